"""What stands in a scanned file is text in the page, whatever it says."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.reports.html.markup import element, joined, text
from klaudit.reports.visible import visible
from tests.reports.html.conftest import HOSTILE, Page, hostile, hostile_view, parse, text_of, words_of


def _shape(tree: Page) -> Counter[tuple[str, frozenset[str]]]:
    """Which elements there are, with the names of their attributes."""
    return Counter((str(e.tag), frozenset(e.attrib) - {"data-framework"}) for e in tree.iter() if e.tag != "wbr")


@pytest.mark.parametrize("words", HOSTILE)
@pytest.mark.parametrize("scripting", [False, True])
def test_hostile_words_add_no_element_and_no_attribute(words: str, scripting: bool) -> None:
    harmless = parse(text_of(hostile("harmless"), hostile_view("harmless")), scripting=scripting)
    attacked = parse(text_of(hostile(words), hostile_view(words)), scripting=scripting)
    assert _shape(attacked) - _shape(harmless) <= Counter({("span", frozenset({"class"})): 40})  # wrapped lines at most
    assert {str(e.tag) for e in attacked.iter()} == {str(e.tag) for e in harmless.iter()} | {"wbr"}


@pytest.mark.parametrize("words", HOSTILE)
def test_what_is_folded_is_as_inert_as_the_page(words: str) -> None:
    """The script parses the text of noscript elements: it must give what a browser without script sees."""
    folded = list(parse(text_of(hostile(words), hostile_view(words)), scripting=True).iter("noscript"))
    assert folded
    for each in folded:
        assert not list(each)
        inside = parse(f"<!DOCTYPE html><title>x</title><body>{each.text}")
        assert not any(list(inside.iter(name)) for name in ("script", "img", "style", "noscript", "iframe"))
        for element_ in inside.iter():
            assert all(not name.startswith("on") for name in element_.attrib)
            assert str(element_.get("href", "#")).startswith("#")


@pytest.mark.parametrize("words", [w for w in HOSTILE if w.isprintable()])
def test_hostile_words_can_be_read_as_they_are(words: str) -> None:
    assert words in words_of(parse(text_of(hostile(words), hostile_view(words))))


@pytest.mark.parametrize("words", HOSTILE)
def test_nothing_unprintable_reaches_the_page(words: str) -> None:
    shown = words_of(parse(text_of(hostile(words), hostile_view(words))).find("body"))  # type: ignore[arg-type]
    assert all(character.isprintable() or character == "\n" for character in shown)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=30), st.text(max_size=30))
def test_any_text_survives_as_text(words: str, other: str) -> None:
    page = f"<!DOCTYPE html><title>x</title><body>{element('p', words, title=other)}"
    assert page.isascii()
    (paragraph,) = parse(page).iter("p")
    assert not list(paragraph)
    assert words_of(paragraph) == visible(words) and paragraph.get("title") == visible(other)


def test_only_the_builder_makes_markup() -> None:
    assert element("b", "<i>") == "<b>&lt;i&gt;</b>"
    assert element("b", element("i", "x"), None, ["&", text("<")]) == "<b><i>x</i>&amp;&lt;</b>"
    assert (
        element("a", href='"><x', hidden=True, title=None, class_="c")
        == '<a href="&quot;&gt;&lt;x" hidden class="c"></a>'
    )
    assert joined(["a", None, element("br")]) == "a<br>"
