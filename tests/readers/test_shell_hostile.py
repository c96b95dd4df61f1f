"""Input that no one would write: an answer in bounded time, never a crash."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell_reading import read, words

from klaudit.readers.document import ShellDocument
from klaudit.readers.shell import read_shell
from klaudit.readers.source import Source, UnreadableError

SECONDS = 10.0  # generous: machines that run tests are busy


def nested(opener: str, closer: str, count: int, inner: str) -> str:
    return opener * count + inner + closer * count


MIXED = "x"
for _ in range(15):
    MIXED = nested("${a:-", "}", 20, f"$(if true; then {nested('( ', ' )', 20, 'echo ' + MIXED)}; fi)")

CASES = {
    "everything in everything": "run " + MIXED,
    "substitutions never closed": "echo " + "$( " * 10_000,
    "substitutions in substitutions": "echo " + "$( " * 3_000 + "x" + " )" * 3_000,
    "parentheses": "(" * 30_000,
    "groups": "{ " * 30_000,
    "braces in braces": "echo " + "{a," * 5_000 + "}" * 5_000,
    "brace bomb": "run " + "{a,b}" * 40,
    "ifs never closed": "if true; then\n" * 5_000,
    "ifs in ifs": "if true; then " * 300 + "run" + "; fi" * 300,
    "cases": "case x in a) " * 5_000,
    "quotes in substitutions": '"$(' * 5_000,
    "defaults in defaults": "echo " + "${a:-" * 3_000 + "x" + "}" * 3_000,
    "backquotes": "`" * 20_001,
    "many words": "run " + "a=b " * 40_000,
    "a very long string": 'X="' + "a$b " * 50_000 + '"\nrun $X',
    "a long chain": "a && " * 3_000 + "b",
    "a very long chain of harmless commands": "true && " * 20_000 + "b",
    "functions in functions": "x() " * 50_000 + "{ :; }",
    "a long pipeline": "a | " * 3_000 + "b",
    "heredocs": "cat <<A\n" * 5_000,
    "doubling text": "A=aaaaaaaaaa\nfor i in {1..60}; do A=$A$A; done\nrun $A",
    "doubling words": 'A="a a a"\nfor i in {1..60}; do A="$A $A"; done\nrun $A',
    "doubling arrays": 'A=(a a)\nfor i in {1..60}; do A=("${A[@]}" "${A[@]}"); done\nrun ${A[0]}',
    "growing replacements": "A=aaaaaaaaaa\nfor i in {1..60}; do A=${A//a/$A}; done\nrun $A",
    "a function that calls itself": "f() { f; f; }\nf",
    "a fork bomb": ":() { : | : & }\n:",
    "eval of itself": 'A=\'eval "$A"; eval "$A"\'\neval "$A"',
    "a script that sources itself": "source script.sh\nsource script.sh",
    "a script that starts itself": "bash script.sh\nbash script.sh",
    "endless loops": "while true; do while :; do run; done; done",
    "counting far": "i=0\nwhile [ $i -lt 100000000 ]; do i=$((i + 1)); done\nrun",
    "long lists": "for i in $(seq 1 100000000) {1..99999999}; do run $i; done",
    "branches upon branches": "".join(f'if [ "$X{n}" = x ]; then A={n}; else B={n}; fi\n' for n in range(300))
    + "run $A",
    "deep arithmetic": "run $((" + "(" * 5_000 + "1" + ")" * 5_000 + "))",
    "long arithmetic": "run $((" + "1+" * 20_000 + "1))",
    "powers of powers": "run $((9**9**9**9)) $((1 << 99999)) $((1 / 0))",
    "patterns that backtrack": "X="
    + "a" * 2_000
    + "\nrun ${X##*a*a*a*a*a*b} ${X//*a*b/x}\n[[ $X =~ ^(a|aa)+$ ]] && [[ $X == +(+(a))b ]] && run",
    "huge repetitions": "[[ aaa =~ a{1000}{1000} ]] && run; [[ a =~ (((((a{20}){20}){20}){20}){20}) ]]",
    "wide formats": "X=$(printf '%999999999d' 1)\nrun $(printf '%9999s' a)",
    "names that name each other": "declare -n a=b\ndeclare -n b=a\na=1\nrun $a ${!a}",
    "control characters": "run \x01\x1b[31m \x7f\x0c\x0b a\rb\n",
    "not UTF-8 by halves": "X=é\nrun ${X:0:1} ${X%?}",
    "empty": "",
    "only a backslash": "\\",
}


@pytest.mark.parametrize("name", CASES)
def test_hostile_scripts_are_read_in_bounded_time(name: str) -> None:
    source = Source("script.sh", CASES[name].encode())
    start = time.process_time()
    document = read_shell(source, load={"script.sh": source}.get, follow_scripts=True)
    assert time.process_time() - start < SECONDS
    assert isinstance(document, ShellDocument)
    for command in document.commands:
        assert all(0 <= word.span.start <= word.span.end <= len(source.data) for word in command.words)


fragments = st.sampled_from(
    [
        "run",
        "a=b",
        "$X",
        "${X:-a}",
        '"',
        "'",
        "`",
        "$(",
        ")",
        "${",
        "}",
        "((",
        "))",
        "[[",
        "]]",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ";",
        ";;",
        "&",
        "&&",
        "|",
        "||",
        "<",
        ">",
        "<<",
        "<<<",
        "EOF",
        "\n",
        "\\",
        "\\\n",
        "#",
        "=",
        "+=",
        "A=(",
        "$((",
        "~",
        "*",
        "?",
        "!",
        "if",
        "then",
        "else",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "while",
        "case",
        "esac",
        "function",
        "f()",
        "local",
        "eval",
        "set",
        "--",
        "shift",
        "exit",
        "-e",
        "-u",
        "export",
        "read",
        "[@]",
        ":-",
        "//",
        "##",
        "%%",
        "é",
    ]
)


@given(st.lists(fragments, max_size=40), st.sampled_from(["", " "]))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_sequence_of_tokens_is_read(tokens: list[str], between: str) -> None:
    script = between.join(tokens)
    for command in read(script).commands:
        assert command.words
        assert script.encode()[command.span.start : command.span.end].strip()


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_shell(Source("script.sh", data))
    except UnreadableError:
        assert b"\0" in data


def test_binary_data_is_refused_with_its_line() -> None:
    with pytest.raises(UnreadableError) as caught:
        read_shell(Source("x.sh", b"#!/bin/bash\nrun\n\0\1\2"))
    assert caught.value.line == 3


def test_bytes_that_are_not_utf8_are_shown_as_such() -> None:
    (command,) = read_shell(Source("x.sh", b"run \xff\xe9 b")).commands
    assert words(command) == ["run", "��", "b"]


@pytest.mark.parametrize(
    ("script", "expected", "message"),
    [
        ("run 1\nif true; then\nrun 2\n", [["run", "1"], ["run", "2"]], "unexpected end of the script"),
        ("run 1\nrun 'a\nrun 2\n", [["run", "1"], ["run", "2"]], "quote or expansion without an end"),
        ("run 1\nfi\nrun 2", [["run", "1"], ["run", "2"]], "unexpected fi"),
        ("ROOT=<PATH>\nrun a=$ROOT", [["run", "a="]], "redirection without a target"),
        ("run a )\nrun b", [["run", "a"], ["run", "b"]], "unexpected )"),
        ("for x in 1\nrun", [["run"]], "unexpected"),
    ],
)
def test_what_can_be_read_of_a_broken_script_is_read(script: str, expected: list[list[str]], message: str) -> None:
    document = read(script)
    assert [words(command) for command in document.commands] == expected
    assert any(message in problem.message for problem in document.problems)
    assert all(problem.line for problem in document.problems)


def test_windows_line_ends_are_line_ends() -> None:
    script = "X=1\r\nif [ $X = 1 ]; then\r\n  run a=$X \\\r\n    b='c'\r\nfi\r\n"
    assert [words(command) for command in read(script).commands] == [["run", "a=1", "b=c"]]
