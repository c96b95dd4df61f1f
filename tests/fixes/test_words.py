"""Edits of words leave the command whole: bash reads the same words but for those that were to change."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.fixes import words
from klaudit.fixes.edits import apply
from klaudit.fixes.page import Page
from klaudit.model import Edit
from klaudit.readers.source import Source

SEPARATORS = st.sampled_from([" ", "  ", " \\\n    ", " \\\n\t", "\\\n  "])
IN_ARRAY = st.sampled_from([" ", "\n    ", "\n", "  # a note\n    ", "\n\n  "])
WORD = st.from_regex(r"[a-z]{1,6}\.[a-z_]{1,8}=[A-Za-z0-9.]{1,5}", fullmatch=True)
QUOTES = st.sampled_from(["", "'", '"'])


def spoken(script: str) -> list[str]:
    """The words that bash gives to the command `say`."""
    told = subprocess.run(
        ["bash", "-c", 'say() { printf "%s\\n" "$@"; }\n' + script], capture_output=True, text=True, check=True
    )
    return told.stdout.splitlines()


@st.composite
def commands(draw: st.DrawFn) -> tuple[str, list[str], list[tuple[int, int]], str]:
    """A script that says words, the words, where they stand, and in what: a command, an array or a string."""
    within = draw(st.sampled_from(["command", "array", "string"]))
    values = draw(st.lists(WORD, min_size=2, max_size=5, unique=True))
    separators = IN_ARRAY if within == "array" else SEPARATORS
    text, places = {"command": "say first", "array": "ARGS=(", "string": 'ARGS="'}[within], []
    for at, value in enumerate(values):
        if at or within == "command":
            text += draw(separators)
        quote = draw(QUOTES) if within != "string" else ""
        start = len(text)
        text += f"{quote}{value}{quote}"
        places.append((start, len(text)))
    text += {"command": " 2>&1 | cat\n", "array": '\n)\nsay first "${ARGS[@]}"\n', "string": '"\nsay first $ARGS\n'}[
        within
    ]
    return text, ["first", *values], places, within


def page(text: str) -> Page:
    return Page(Source("run.sh", text.encode()))


def edited(text: str, *edits: Edit) -> str:
    return apply(text.encode(), edits).decode()


@settings(max_examples=40, deadline=None)
@given(commands(), st.data())
def test_remove(command: tuple[str, list[str], list[tuple[int, int]], str], data: st.DataObject) -> None:
    text, expected, places, _ = command
    assert spoken(text) == expected
    at = data.draw(st.integers(0, len(places) - 1))
    after = edited(text, words.remove(page(text), *places[at]))
    assert spoken(after) == [word for index, word in enumerate(expected) if index != at + 1]
    assert after.count("#") == text.count("#")


@settings(max_examples=40, deadline=None)
@given(commands(), st.data())
def test_insert_and_replace(command: tuple[str, list[str], list[tuple[int, int]], str], data: st.DataObject) -> None:
    text, expected, places, _ = command
    at = data.draw(st.integers(0, len(places) - 1))
    inserted = edited(text, words.insert(page(text), *places[at], ["x.new=1", "x.more=2"]))
    assert sorted(spoken(inserted)) == sorted([*expected, "x.new=1", "x.more=2"])
    assert inserted.count("#") == text.count("#")
    replaced = edited(text, words.replace(page(text), *places[at], "x.y=z", ["x.new=1"]))
    assert sorted(spoken(replaced)) == sorted([*expected[: at + 1], *expected[at + 2 :], "x.y=z", "x.new=1"])


@settings(max_examples=25, deadline=None)
@given(commands(), st.data())
def test_all_at_once(command: tuple[str, list[str], list[tuple[int, int]], str], data: st.DataObject) -> None:
    """One word stays with others beside it, any of the others go."""
    text, expected, places, _ = command
    stays = data.draw(st.integers(0, len(places) - 1))
    goes = data.draw(st.sets(st.sampled_from([at for at in range(len(places)) if at != stays])))
    one = page(text)
    after = edited(
        text,
        words.replace(one, *places[stays], "kept=1", ["new=1"]),
        *words.remove_all(one, [places[at] for at in goes]),
    )
    left = [word for at, word in enumerate(expected[1:]) if at not in goes and at != stays]
    assert sorted(spoken(after)) == sorted(["first", *left, "kept=1", "new=1"])


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("run a=1 \\\n  b=2 \\\n  c=3\nnext\n", "c=3", "run a=1 \\\n  b=2\nnext\n"),
        ("A=(\n  a=1  # why\n  b=2\n)\n", "a=1", "A=(\n  # why\n  b=2\n)\n"),
        ("run a=1 b=2 >log 2>&1\n", "b=2", "run a=1 >log 2>&1\n"),
        ('A="a=1 b=2"\n', "a=1", 'A="b=2"\n'),
        ("run a=1 \\\r\n  b=2\r\n", "b=2", "run a=1\r\n"),
    ],
)
def test_what_is_left(text: str, word: str, expected: str) -> None:
    start = text.index(word)
    assert edited(text, words.remove(page(text), start, start + len(word))) == expected


def test_a_comment_stays_with_its_word() -> None:
    text = "A=(\n  a=1  # why\n  b=2\n)\n"
    start = text.index("a=1")
    assert edited(text, words.replace(page(text), start, start + 3, "a=2", ["c=3"])) == (
        "A=(\n  c=3\n  a=2  # why\n  b=2\n)\n"
    )
