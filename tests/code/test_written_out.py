"""A loss that is summed over a table or tuple of terms: each term has its own coefficient."""

from __future__ import annotations

import pytest

from tests.code.snippets import only, rules_of, told

LOSS = """
WEIGHTS = {{"pg": 1.0, "kl": {weight}, "entropy": 0.01}}

def compute_loss(pg_loss, entropy, logp, ref_logp):
    x = ref_logp - logp
    kl = (x.exp() - x - 1).mean()
    losses = {{"pg": pg_loss, "kl": kl, "entropy": entropy}}
    pairs = ((1.0, pg_loss), ({weight}, kl), (0.01, entropy))
    return {total}
"""
TOTALS = [
    "sum(WEIGHTS[key] * value for key, value in losses.items())",
    "sum([WEIGHTS[name] * losses[name] for name in losses.keys()])",
    "sum(value * WEIGHTS.get(key) for key, value in losses.items())",
    "sum(weight * term for weight, term in pairs)",
    "sum(weight * term for weight, term in [(1.0, pg_loss), ({weight}, kl)])",
]


@pytest.mark.parametrize("total", TOTALS)
@pytest.mark.parametrize("weight", [0.05, -0.2])
def test_each_term_of_a_sum_has_its_own_coefficient(total: str, weight: float) -> None:
    code = LOSS.format(total=total.format(weight=weight), weight=weight)
    formula = only(code)
    assert told(formula) == ("loss", "k3", "pathwise", 1 if weight > 0 else -1)
    assert formula.coefficient(formula.what) == pytest.approx(weight)
    assert ("KLA301" in rules_of(code)) == (weight < 0)


@pytest.mark.parametrize("total", ["sum(term for term in terms)", "sum(losses)", "sum(losses[key] for key in chosen)"])
def test_what_is_not_written_out_is_as_it_was(total: str) -> None:
    code = f"""
    def compute_loss(batches, chosen, logp, ref_logp, beta):
        x = ref_logp - logp
        losses = [beta * (x.exp() - x - 1).mean() for batch in batches]
        terms = losses
        return {total}
    """
    assert told(only(code)) == ("loss", "k3", "pathwise", 1)
