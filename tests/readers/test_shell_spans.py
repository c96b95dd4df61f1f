"""Every piece of a word points to the bytes that spell it: that is what a fix edits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell_reading import read

from klaudit.model import Span
from klaudit.readers.document import Command, Piece, Word
from klaudit.readers.shell import read_shell
from klaudit.readers.source import Source


def spelled(script: str, span: Span) -> str:
    return script.encode()[span.start : span.end].decode()


def only_command(script: str) -> Command:
    (command,) = read(script).commands
    return command


def argument(script: str, number: int = 1) -> Word:
    return only_command(script).words[number]


def pieces(word: Word, script: str) -> list[tuple[str | None, str, str | None]]:
    return [(piece.text, spelled(script, piece.span), piece.variable) for piece in word.pieces]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("run kl=0.1", [("kl=0.1", "kl=0.1", None)]),
        ("run 'kl=0.1'", [("kl=0.1", "kl=0.1", None)]),
        ("K=0.1\nrun kl=$K", [("kl=", "kl=", None), ("0.1", "0.1", "K")]),
        ("K='0.1'\nrun \"kl=${K}\"", [("kl=", "kl=", None), ("0.1", "0.1", "K")]),
        ("A=0.1\nB=$A\nrun $B", [("0.1", "0.1", "A")]),
        ("K=${KL:-0.1}\nrun $K", [("0.1", "0.1", "K")]),
        ("run kl=${KL:-0.1}", [("kl=", "kl=", None), ("0.1", "0.1", "KL")]),
        (': "${KL:=0.1}"\nrun $KL', [("0.1", "0.1", "KL")]),
        ("for k in 0.1; do run $k; done", [("0.1", "0.1", "k")]),
        ("A=(a b=0.1)\nrun ${A[1]}", [("b=0.1", "b=0.1", "A")]),
        ("declare -A M=([kl]=0.1)\nrun ${M[kl]}", [("0.1", "0.1", "M")]),
        ("f() { run $1; }\nf 0.1", [("0.1", "0.1", None)]),
        ("read -r -d '' C <<EOF\nkl=0.1\nEOF\nrun $C", [("kl=0.1", "kl=0.1", "C")]),
        ("X=path/model.bin\nrun ${X%.bin}", [("path/model", "path/model", "X")]),
        ("X=path/model\nrun ${X##*/}", [("model", "model", "X")]),
        ("X=a-b\nrun ${X//-/_}", [("a", "a", "X"), ("_", "_", None), ("b", "b", "X")]),
        ("X=path/run.sh\nrun $(basename $X .sh)", [("run", "run", "X")]),
        ("X=$(echo kl=0.1)\nrun $X", [("kl=0.1", "kl=0.1", "X")]),
        ('run a\\"b', [("a", "a", None), ('"', '\\"', None), ("b", "b", None)]),
        ("run x=$((1 + 2))", [("x=", "x=", None), ("3", "$((1 + 2))", None)]),
        ("run kl=$K", [("kl=", "kl=", None), ("", "", "K")]),
        ("X=bé\nrun é$X", [("é", "é", None), ("bé", "bé", "X")]),
    ],
)  # fmt: skip
def test_pieces_stand_where_they_are_spelled(script: str, expected: list[tuple[str | None, str, str | None]]) -> None:
    assert pieces(argument(script), script) == expected


def test_words_of_a_variable_each_have_their_place_in_its_assignment() -> None:
    script = "K=0.1\nARGS=\"--kl $K --flag='q'\n  --lr=$K\"\nrun $ARGS"
    command = only_command(script)
    assert [spelled(script, word.span) for word in command.words[1:]] == ["--kl", "0.1", "--flag='q'", "--lr=$K"]
    assert {spelled(script, word.site) for word in command.words[1:]} == {"$ARGS"}


def test_array_elements_are_written_in_the_array() -> None:
    script = 'K=1\nA=(\n  "kl=$K"\n  b="c d"\n)\nrun "${A[@]}" ${A[0]}'
    command = only_command(script)
    assert [spelled(script, word.span) for word in command.words[1:]] == ['"kl=$K"', 'b="c d"', '"kl=$K"']
    assert [spelled(script, word.site) for word in command.words[1:]] == ['"${A[@]}"', '"${A[@]}"', "${A[0]}"]


def test_a_word_spelled_in_the_command_is_written_there() -> None:
    script = "K=0.1\nrun a.b=$K $K"
    command = only_command(script)
    assert [spelled(script, word.span) for word in command.words] == ["run", "a.b=$K", "0.1"]
    assert [spelled(script, word.site) for word in command.words] == ["run", "a.b=$K", "$K"]


def test_the_command_ends_with_its_last_word_before_redirections() -> None:
    script = "X=1 \\\n  run a \\\n  b $@ 2>&1 | tee log"
    command = read(script).commands[0]
    assert spelled(script, command.span) == "X=1 \\\n  run a \\\n  b $@"
    assert (command.span.line, command.span.column, command.span.end_line) == (1, 1, 3)


@pytest.mark.parametrize(
    "script",
    [
        'bash -c "cd x && run kl=0.1 b=\\"c d\\""',
        "eval 'run kl=0.1 b=\"c d\"'",
        'C="run kl=0.1 b=\'c d\'"\neval "$C"',
        "ssh host 'run kl=0.1 b=\"c d\"'",
        "bash <<EOF\nrun kl=0.1 b='c d'\nEOF",
        "srun -N 1 bash -lc 'run kl=0.1 b=\"c d\"'",
    ],
)
def test_code_in_words_keeps_the_places_of_its_characters(script: str) -> None:
    command = read(script).commands[-1]
    assert [word.text for word in command.words] == ["run", "kl=0.1", "b=c d"]
    assert [spelled(script, piece.span) for piece in command.words[1].pieces] == ["kl=0.1"]
    assert [spelled(script, piece.span) for piece in command.words[2].pieces] == ["b=", "c d"]


def test_spans_of_sourced_scripts_point_into_them() -> None:
    files = {"conf/kl.sh": "# settings\nKL=0.1\nrun $KL\n"}
    commands = read("source conf/kl.sh\nrun kl=$KL", files).commands
    assert [command.span.path for command in commands] == ["conf/kl.sh", "script.sh"]
    piece = commands[1].words[1].pieces[1]
    assert (piece.span.path, piece.span.line, piece.variable) == ("conf/kl.sh", 2, "KL")
    assert spelled(files["conf/kl.sh"], piece.span) == "0.1"


def test_spans_of_an_embedded_script_point_into_the_file() -> None:
    file = Source("job.yaml", b"run: |\n  K=0.1\n  run kl=$K\n")
    script = file.embed(b"K=0.1\nrun kl=$K\n", [(0, 9), (6, 17)])
    (command,) = read_shell(script).commands
    value = command.words[1].pieces[1]
    assert file.data[value.span.start : value.span.end] == b"0.1"
    assert (command.span.line, command.span.column) == (3, 3)


letters = st.text("abc", min_size=1, max_size=3)
values = st.one_of(letters, letters.map("'{}'".format), letters.map('"{}"'.format), letters.map("${{V:-{}}}".format))
setters = st.one_of(
    values.map("X={}".format),
    values.map("X+={}".format),
    st.tuples(values, values).map(lambda both: f"A=({both[0]} {both[1]})"),
    values.map("A+=({})".format),
    st.just("Y=$X"),
    st.tuples(values, values).map(lambda both: f'Y="{both[0].replace(chr(34), "")} $X"{both[1]}'),
    values.map("set -- {}".format),
)
uses = st.lists(
    st.one_of(
        values,
        st.sampled_from(["$X", '"$Y"', "$Y", "k=$X", '"${A[@]}"', "${A[1]}", "$1", 'a"$X"b', "${X%z}", "$(echo $X)"]),
    ),
    max_size=4,
).map(lambda words: "run " + " ".join(words))
scripts = st.tuples(
    st.lists(setters, max_size=5), st.one_of(uses, uses.map(lambda use: f"eval '{use.replace(chr(39), '')}'"))
).map(lambda both: "\n".join([*both[0], both[1]]))


@given(scripts)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_known_pieces_are_spelled_by_their_bytes(script: str) -> None:
    for command in read(script).commands:
        for word in command.words:
            assert "".join(piece.text or "" for piece in word.pieces) == word.text
            for piece in word.pieces:
                assert piece.text in ("", spelled(script, piece.span)) or piece.text == " ", (script, piece)


@given(scripts, st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_editing_the_bytes_of_a_piece_edits_the_word(script: str, data: st.DataObject) -> None:
    def found(text: str) -> list[Piece]:
        return [piece for word in only_command(text).words for piece in word.pieces]

    candidates = [number for number, piece in enumerate(found(script)) if piece.text]
    number = data.draw(st.sampled_from(candidates))
    piece = found(script)[number]
    before, after = script[: piece.span.start], script[piece.span.end :]
    if piece.text == spelled(script, piece.span):
        edited = found(before + "ccc" + after)
        assert len(edited) == len(found(script))
        assert edited[number].text == "ccc"
