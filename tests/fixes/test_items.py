"""Edits of items between commas: Python reads the same arguments but for those that were to change."""

from __future__ import annotations

import ast

from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.fixes import items
from klaudit.fixes.edits import apply
from klaudit.fixes.page import Page
from klaudit.readers.source import Source

NAMES = ["alpha", "beta", "gamma", "delta", "eps"]


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[str], list[tuple[int, int]]]:
    """A call with keywords, their names and where they stand."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    is_long = draw(st.booleans())
    text, places = "x = f(", []
    for at, name in enumerate(names):
        if is_long:
            text += draw(st.sampled_from(["\n    ", "\n    ", "  # note, with a comma\n    "])) if at else "\n    "
        elif at:
            text += draw(st.sampled_from([" ", "", "  "]))
        start = len(text)
        text += f"{name}={draw(st.sampled_from(['1', '(2, 3)', repr('a,b')]))}"
        places.append((start, len(text)))
        if at < len(names) - 1 or draw(st.booleans()):
            text += ","
    text += draw(st.sampled_from(["  # last", ""])) + "\n)\n" if is_long else ")\n"
    return text, names, places


def keywords(text: str) -> list[str | None]:
    call = ast.parse(text).body[0].value  # type: ignore[attr-defined]
    return [keyword.arg for keyword in call.keywords]


def page(text: str) -> Page:
    return Page(Source("train.py", text.encode()))


@settings(max_examples=80, deadline=None)
@given(calls(), st.data())
def test_each_edit(call: tuple[str, list[str], list[tuple[int, int]]], data: st.DataObject) -> None:
    text, names, places = call
    at = data.draw(st.integers(0, len(places) - 1))
    removed = apply(text.encode(), [items.remove(page(text), *places[at])]).decode()
    assert keywords(removed) == names[:at] + names[at + 1 :]
    inserted = apply(text.encode(), [items.insert(page(text), *places[at], ["new=1", "more=2"])]).decode()
    assert sorted(map(str, keywords(inserted))) == sorted([*names, "new", "more"])
    replaced = apply(text.encode(), [items.replace(page(text), *places[at], "kept=1", ["new=1"])]).decode()
    assert sorted(map(str, keywords(replaced))) == sorted([*names[:at], *names[at + 1 :], "kept", "new"])
    for after in (removed, inserted, replaced):
        assert after.count("#") == text.count("#")


@settings(max_examples=40, deadline=None)
@given(calls(), st.data())
def test_all_at_once(call: tuple[str, list[str], list[tuple[int, int]]], data: st.DataObject) -> None:
    text, names, places = call
    stays = data.draw(st.integers(0, len(places) - 1))
    goes = data.draw(st.sets(st.integers(0, len(places) - 1))) - {stays}
    one = page(text)
    edits = [items.insert(one, *places[stays], ["new=1"]), *items.remove_all(one, [places[at] for at in goes])]
    after = apply(text.encode(), edits).decode()
    left = [name for at, name in enumerate(names) if at not in goes]
    assert sorted(map(str, keywords(after))) == sorted([*left, "new"])
