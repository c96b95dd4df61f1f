"""How an expression is laid out does not change what is known of it."""

from __future__ import annotations

import pytest

from klaudit.code.formatting import canonical

PLAIN = 'torch.exp(ref - logp) - (ref - logp) - 1 + f(x, "a")'


@pytest.mark.parametrize(
    "text",
    [
        "torch.exp(ref-logp)-(ref-logp)-1+f(x,'a')",
        "torch.exp(\n    ref - logp  # the reference\n) - (ref - logp) - 1 + f(\n    x,\n    'a',\n)",
        'torch.exp(ref - logp) \\\n  - (ref - logp) - 1 + f(x, """a""")',
        PLAIN + "  # done",
    ],
)
def test_layout_is_no_difference(text: str) -> None:
    assert canonical(text) == canonical(PLAIN)


@pytest.mark.parametrize(
    "text", [PLAIN.replace("ref - logp", "logp - ref"), PLAIN.replace('"a"', '"b"'), PLAIN.replace(" - 1", " - 2")]
)
def test_everything_else_is(text: str) -> None:
    assert canonical(text) != canonical(PLAIN)


@pytest.mark.parametrize("text", ["f(", "'", "x)", "", "é 'a", "(" * 5_000, "\0", "a\n  b\n c"])
def test_what_is_no_expression_is_kept(text: str) -> None:
    assert canonical(text) == canonical(text) and canonical("f( ") != canonical("g( ")
