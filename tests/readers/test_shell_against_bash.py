"""Scripts made up by hypothesis: bash and the reader start the same commands."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from shell_reading import BASH, plain_run, run_by_bash

pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash")

PRELUDE = "N=5\nM=3\nX=a\nY='b c'\nE=\nA=(1 '2 3' x)\n"
EPILOGUE = 'end "$X" "$Y" "${A[@]}" $N "$#"\n'

one_of = st.sampled_from
names = one_of(["X", "Y", "Z", "U", "E"])
literals = st.text("ab1=.,:-_+%@", min_size=1, max_size=4)
patterns = one_of(
    ["a", "*", "?", "b*", "*b", "[ab]", "[!a]", "*.", ".*", "1", '"*"', "'a'", "$X", "*[0-9]", "a*b", "[[:alpha:]]"]
)


def joined(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    return st.tuples(*[st.just(part) if isinstance(part, str) else part for part in parts]).map("".join)


def arithmetic() -> st.SearchStrategy[str]:
    def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        operators = one_of(["+", "-", "*", "<", ">", "==", "&&", "||", "|", "&", "<<", "!="])
        return st.one_of(
            joined(inner, " ", operators, " ", inner),
            joined("(", inner, ")"),
            joined("-", inner),
            joined(inner, " ? ", inner, " : ", inner),
        )

    return st.recursive(one_of(["0", "1", "2", "7", "N", "M"]), deeper, max_leaves=4)


def expansion(word: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """What may stand inside double quotes as well as outside."""
    return st.one_of(
        joined("$", names),
        joined("${", names, "}"),
        joined("${", names, one_of([":-", "-", ":+", "+", ":=", "="]), word, "}"),
        joined("${", names, one_of(["#", "##", "%", "%%"]), patterns, "}"),
        joined(
            "${",
            names,
            one_of(["/", "//", "/#", "/%"]),
            one_of(["a", "b", "?", "[ab]", "1"]),
            one_of(["", "/", "/x", "/$Y"]),
            "}",
        ),
        joined("${#", names, "}"),
        joined("${", names, ":", one_of(["0", "1", " -1", "N"]), one_of(["", ":1", ":2", ":0"]), "}"),
        joined("${", names, one_of(["^", "^^", ",", ",,"]), "}"),
        joined("$((", arithmetic(), "))"),
        one_of(["${A[0]}", "${A[1]}", "${A[-1]}", "${#A[@]}", "$#", "$1", "${2:-d}", "${A[*]}", "$*"]),
        joined("$(echo ", word, ")"),
        joined("$(printf ", one_of(["'%s\\n'", "'%s '", "%s,", "'[%s]'", "'%3s|'"]), " ", word, ")"),
    )


inner_words = st.one_of(literals, joined("$", names), joined('"', literals, '"'), joined("'", literals, "'"))
in_quotes = joined(
    '"',
    st.lists(
        st.one_of(one_of(["a b", " ", '\\"', "\\$", "\\\\", "{", "'", "\n", "\\\n"]), expansion(inner_words)),
        max_size=3,
    ).map("".join),
    '"',
)
parts = st.one_of(
    literals,
    one_of(
        [
            "'a b'",
            "''",
            "'$X'",
            "'\"'",
            "\\ ",
            "\\$",
            '\\"',
            "\\\n",
            "$'a\\tb'",
            "$'\\x41'",
            "{a,b}",
            "x{1..3}",
            "{a,{b,c}}",
            "{a}",
        ]
    ),
    in_quotes,
    expansion(inner_words),
    one_of(["${A[@]}", '"${A[@]}"', '"$@"', '"${A[@]:1}"', '"${A[@]/#/p}"']),
)
words = st.lists(parts, min_size=1, max_size=3).map("".join)
commands = joined(one_of(["run1 ", "run2 "]), st.lists(words, max_size=3).map(" ".join))
conditions = st.one_of(
    joined("[ ", in_quotes, one_of([" = ", " != "]), in_quotes, " ]"),
    joined("[ ", one_of(["-z", "-n"]), " ", in_quotes, " ]"),
    joined("[[ $", names, one_of([" == ", " != "]), patterns, " ]]"),
    one_of(
        [
            "[[ $N -gt 3 && -n $X ]]",
            "[[ ! -z $U || $X < b ]]",
            '[[ "$Y" =~ ^b.c$ ]]',
            "[ $N -lt 5 -o -n a ]",
            "true",
            "! true",
        ]
    ),
    joined("(( ", arithmetic(), " ))"),
)
assignments = st.one_of(
    joined(names, one_of(["=", "+="]), words),
    joined(one_of(["A=(", "A+=("]), st.lists(words, max_size=3).map(" ".join), ")"),
    joined(one_of(["A[0]=", "A[N]=", "A[1]+="]), words),
    joined("set -- ", st.lists(words, max_size=3).map(" ".join)),
    one_of(["N=$((N + 1))", "((N++))", "unset X", "shift", "IFS=,", 'read -r X Y <<< "$Y"', 'mapfile -t A <<< "$Y"']),
)


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        joined("if ", conditions, "; then\n", inner, "\nelse\n", inner, "\nfi"),
        joined(conditions, one_of([" && ", " || "]), commands),
        joined(
            "case ", words, " in\n", one_of(["a", "b*", "?", "[ab]|x"]), ") ", inner, " ;;\n*) ", inner, " ;;\nesac"
        ),
        joined("for v in ", st.lists(words, max_size=3).map(" ".join), "; do\n", inner, "\nX=$v\ndone"),
        joined("f() {\nlocal X=$1\n", inner, '\nrun3 "$@"\n}\nf ', words),
        joined("( ", inner, '\nrun4 "$X"\n)'),
        joined("for ((i = 0; i < 2; i++)); do ", inner, "\ndone"),
        joined("read -r -d '' U <<EOF\n", one_of(["a $X 'b'", "\\$X ${Y:-d}", "l1\nl2 $(echo hi)"]), "\nEOF\n", inner),
        joined("eval ", one_of(["'run5 $X \"$Y\"'", '"run5 $X"', 'run5 \\"$X\\" b'])),
    )


statements = st.recursive(st.one_of(commands, commands, assignments), compound, max_leaves=3)
scripts = st.lists(statements, min_size=1, max_size=4).map("\n".join)


@given(scripts)
@settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
def test_reader_and_bash_start_the_same_commands(script: str) -> None:
    script = PRELUDE + script + "\n" + EPILOGUE
    started, complaints = run_by_bash(script)
    assume(not complaints)  # an error in the script: what happens then is bash's own affair
    assert plain_run(script) == started
