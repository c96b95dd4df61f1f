"""Edits made one after another are the same as one set of edits of the first text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.fixes.codemods.layers import Layers
from klaudit.fixes.edits import apply
from klaudit.model import Edit


@st.composite
def _step(draw: st.DrawFn, size: int) -> list[Edit]:
    """Edits of a text of a size, of which none touches another."""
    marks = sorted(draw(st.sets(st.integers(0, size), max_size=6)))
    pairs = list(zip(marks[::2], marks[1::2], strict=False))
    return [Edit("a", start, end, draw(st.text("xyz\n", max_size=4))) for start, end in pairs]


@settings(max_examples=60)
@given(st.data(), st.text("abc\n", max_size=30))
def test_composition(data: st.DataObject, text: str) -> None:
    original = text.encode()
    layers = Layers("a", original)
    now = original
    for _ in range(3):
        edits = data.draw(_step(len(now)))
        now = apply(now, edits)
        layers.add(edits)
        assert layers.data == now
    assert apply(original, layers.edits(range(layers.steps))) == now
    assert apply(original, [edit for group in layers.together() for edit in layers.edits(group)]) == now
