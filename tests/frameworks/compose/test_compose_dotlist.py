"""Dotlists, held against OmegaConf."""

from __future__ import annotations

from typing import Any

import pytest
from composing import differences
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from klaudit.frameworks.compose.configuration import shipped
from klaudit.frameworks.compose.dotlist import compose_dotlist, parse_dotlist
from klaudit.model import Span, Unknown, Value
from klaudit.readers.document import Piece, Word

BASE: dict[str, Value] = {"a.b": 1, "a.c": "${a.b}", "l": [1, {"x": 2}], "d.e.f": True, "n": None}


def disagreement(arguments: list[str]) -> str:
    base = shipped({name: (value, "") for name, value in BASE.items()})
    ours = compose_dotlist(base, arguments)
    plain: dict[str, Any] = {"a": {"b": 1, "c": "${a.b}"}, "l": [1, {"x": 2}], "d": {"e": {"f": True}}, "n": None}
    try:
        theirs = OmegaConf.merge(OmegaConf.create(plain), OmegaConf.from_dotlist(arguments))
    except Exception as error:
        return "" if ours.refused is not None else f"OmegaConf refuses: {error}"
    if ours.refused is not None:
        return f"only klaudit refuses: {ours.refused}"
    return "\n".join(map(str, differences(theirs, ours)))


ARGUMENTS = """
a.b=2|a.b=off|a.b=1e-3|a.b=010|a.b=|a.b|a.b=null|a.b=[1, 2]|a.b={x: 1}|a={b: 3}|a=3|l=[5]|l={x: 1}|d.e=1|d.e.f.g=1|a.new=x|new.key=1
a.b='off'|a.b="x: y"|a.b=x: y|a.b=[1|a.b=*x|a.b=a=b|a.b=${n}|a.b=${|+a.b=1|--flag|a[b]=4|a.b=- 1
a.b=2001-12-14|a.b=#x|a.b=!x y|a.b={x: 1, x: 2}
""".strip()


@pytest.mark.parametrize("argument", ARGUMENTS.replace("\n", "|").split("|"))
def test_read_as_omegaconf_does(argument: str) -> None:
    if argument != "a.b=!x y":  # a tag whose constructor only the program knows
        assert disagreement([argument]) == ""


keys = st.sampled_from(["a", "a.b", "a.c", "l", "d.e", "d.e.f", "n", "new", "new.x"])
values = st.sampled_from(["1", "x", "[1, 2]", "{q: 1}", "", "true", "${a.b}", "${.b}", "'1'", "1e3"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(keys, values).map("=".join), max_size=4))
def test_any_list_is_merged_as_omegaconf_does(arguments: list[str]) -> None:
    assert disagreement(arguments) == ""


def test_later_arguments_win_and_all_are_given() -> None:
    configuration = compose_dotlist(shipped({"a.b": (1, "")}), ["a.b=2", "a.b=3"])
    found = configuration.get("a.b")
    assert found is not None
    assert (found.value, found.origin, found.raw) == (3, "override", "3")
    assert [each.value for each in configuration.given("a.b")] == [2, 3]


def test_a_closed_base_refuses_unknown_keys() -> None:
    assert compose_dotlist(shipped({"a.b": (1, "")}, names=["a.b"]), ["a.c=2"]).refused is not None


def test_unknown_parts_of_a_word() -> None:
    here = Span("run.sh", 0, 4, 1, 1, 1, 5)
    word = Word((Piece("a.b=", here), Piece(None, here, hangs_on=("X",))), here, here)
    assert parse_dotlist(word).value == Unknown(("X",), "${X}")
    arguments = Word((Piece(None, here, hangs_on=("ARGS",)),), here, here)
    assert compose_dotlist(shipped({}), [arguments]).hangs_on == ("ARGS",)


@pytest.mark.parametrize("value", ["[" * 10_000, "{a: " * 10_000, "&a [*a]", "\udc80"])
def test_hostile_values_are_refused(value: str) -> None:
    assert compose_dotlist(shipped({}), [f"a={value}"]).refused is not None
