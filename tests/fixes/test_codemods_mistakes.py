"""Signs, directions, gradients, clamps and arguments: each mistake has its own rewrite, and one that is refused."""

from __future__ import annotations

import pytest

from klaudit.findings import catalogue
from tests.fixes.codemod_cases import fixed, loaded, only, refusal, rewritten

torch = pytest.importorskip("torch")

MISTAKES = [
    (entry.id, example.wrong)
    for entry in catalogue.load()
    for example in entry.examples
    if entry.id.startswith("KLA3") and example.language == "py"
]


@pytest.mark.parametrize(("rule", "wrong"), MISTAKES, ids=[rule for rule, _ in MISTAKES])
def test_the_wrong_examples_of_the_catalogue_are_mended(rule: str, wrong: str) -> None:
    made = rewritten(wrong, wanted=only(rule))
    assert made.content is not None, [each.why for each in made.unchanged]
    assert not made.unchanged
    assert rewritten(made.content.decode(), wanted=only(rule)).content is None


def test_every_mistake_has_an_example() -> None:
    assert len(MISTAKES) == 8


# --- sign --------------------------------------------------------------------------------------------------------------------------------


def test_in_an_objective_that_is_minimised_by_mistake_one_sign_alone_is_not_turned() -> None:
    code = """
    import torch

    def compute_loss(logp, old_logp, ref_logp, advantages, beta):
        ratio = torch.exp(logp - old_logp)
        kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        loss = (ratio * advantages - beta * kl).mean()
        return loss
    """
    assert "objective to be maximised" in refusal(code)


def test_a_penalty_that_is_subtracted_in_place() -> None:
    code = "def compute_loss(pg_loss, logp, ref_logp, beta):\n    loss = pg_loss\n    loss -= beta * (0.5 * (logp - ref_logp) ** 2).mean()\n    return loss\n"
    assert "loss += beta" in fixed(code)


# --- direction -----------------------------------------------------------------------------------------------------------------------------


def test_swapped_arguments_of_a_helper_change_places_where_they_are_given() -> None:
    code = """
    import torch

    def k3(logp, ref_logp):
        return torch.exp(ref_logp - logp) - (ref_logp - logp) - 1

    def compute_loss(pg_loss, logp, ref_logp, beta):
        return pg_loss + beta * k3(ref_logp, logp).mean()
    """
    assert "k3(logp, ref_logp).mean()" in fixed(code, wanted=only("KLA302"))


def test_a_difference_that_a_metric_reads_is_not_turned() -> None:
    code = """
    def compute_loss(pg_loss, logp, ref_logp, beta, log):
        d = logp - ref_logp
        log["d"] = d.mean().item()
        return pg_loss + beta * (d.exp() - 1 - d).mean()
    """
    assert "one difference" in refusal(code, wanted=only("KLA302"))


# --- gradient --------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "    with torch.no_grad():\n        kl = 0.5 * (logp - ref_logp) ** 2\n    return pg_loss + beta * kl.mean()\n",
        "    with torch.no_grad():\n        ref_logp = ref_logp * 1.0\n        kl = 0.5 * (logp - ref_logp) ** 2\n    return pg_loss + beta * kl.mean()\n",
        "    kl = (0.5 * (logp - ref_logp) ** 2).detach()\n    return pg_loss + beta * kl.mean()\n",
        "    kl = 0.5 * (logp.detach() - ref_logp) ** 2\n    return pg_loss + beta * kl.mean()\n",
        "    kl = 0.5 * (logp - ref_logp) ** 2\n    return pg_loss + beta * kl.mean().item()\n",
    ],
)
def test_the_gradient_comes_back(body: str) -> None:
    code = "import torch\n\ndef compute_loss(pg_loss, logp, ref_logp, beta):\n" + body
    after = fixed(code, wanted=only("KLA303"))
    ref_logp = torch.tensor([-1.0, -2.0])

    def slope(text: str) -> list[float]:
        logp = torch.tensor([-1.5, -1.0], requires_grad=True)
        loss = loaded(text)((logp * 0).sum(), logp, ref_logp, 2.0)
        (found,) = torch.autograd.grad(loss, logp)
        return list(found.tolist())

    assert slope(code) == [0.0, 0.0]
    assert slope(after) == pytest.approx([-0.5, 1.0])


def test_values_copied_into_a_new_tensor_cannot_be_given_a_gradient() -> None:
    code = """
    import torch

    def compute_loss(pg_loss, logp, ref_logp, beta):
        kl = 0.5 * (logp - ref_logp) ** 2
        kl_mean = torch.tensor([each.mean() for each in kl])
        return pg_loss + beta * kl_mean.mean()
    """
    assert "not lost in one" in refusal(code, wanted=only("KLA303"))


def test_a_loss_that_is_also_reported_keeps_what_it_returns() -> None:
    code = """
    import torch

    def step(logp, old_logp, ref_logp, advantages, beta, optimizer):
        kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        loss = (-torch.exp(logp - old_logp) * advantages + beta * kl).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    def compute_loss(logp, old_logp, ref_logp, advantages, beta, optimizer):
        loss = step(logp, old_logp, ref_logp, advantages, beta, optimizer)
        print(loss)
        return loss
    """
    assert "return loss.item()" in fixed(code)


def test_a_rewarded_penalty_is_detached_where_it_is_deducted() -> None:
    code = """
    import torch

    def policy_loss(logp, old_logp, ref_logp, score, beta):
        kl = logp - ref_logp
        reward = score - beta * kl
        loss = -(torch.exp(logp - old_logp) * reward).mean()
        return loss, kl
    """
    assert "reward = score - beta * kl.detach()" in fixed(code, wanted=only("KLA304"))


# --- estimator of a reward ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        "torch.exp(ref_logp - logp) - (ref_logp - logp) - 1",
        "0.5 * (logp - ref_logp) ** 2",
        "(logp - ref_logp).abs()",
    ],
)
def test_a_rewarded_estimator_becomes_k1(estimator: str) -> None:
    code = f"""
    import torch

    def compute_rewards(scores, logp, ref_logp, beta):
        with torch.no_grad():
            kl = {estimator}
            return scores - beta * kl
    """
    after = fixed(code)
    given = (torch.tensor([1.0]), torch.tensor([-1.0]), torch.tensor([-3.0]), 0.5)
    assert loaded(after, "compute_rewards")(*given).tolist() == [0.0]  # 1 - 0.5 * (-1 - -3)


# --- numbers -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kl",
    [
        "torch.exp(ref_logp - logp) - (ref_logp - logp) - 1",
        "torch.clamp(torch.exp(ref_logp - logp) - (ref_logp - logp) - 1, max=10.0)",
        "torch.expm1(ref_logp - logp) - (ref_logp - logp)",
    ],
)
def test_no_overflow_is_left(kl: str) -> None:
    code = f"import torch\n\ndef compute_loss(pg_loss, logp, ref_logp, beta):\n    kl = {kl}\n    return pg_loss + beta * kl.mean()\n"
    after = fixed(code, wanted=only("KLA305"))

    def run(text: str, gap: float) -> tuple[float, float]:
        logp = torch.tensor([-1.0 - gap], requires_grad=True)
        loss = loaded(text)((logp * 0).sum(), logp, torch.tensor([-1.0]), 1.0)
        (found,) = torch.autograd.grad(loss, logp)
        return loss.item(), found.item()

    assert all(torch.isfinite(torch.tensor(run(after, 200.0))))
    assert not all(torch.isfinite(torch.tensor(run(code, 200.0))))
    assert run(after, 0.5) == run(code, 0.5)


@pytest.mark.parametrize(
    "spelled",
    [
        "torch.log(torch.softmax(logits, dim=-1))",
        "torch.log(F.softmax(logits, -1) + 1e-8)",
        "logits.softmax(-1).log()",
        "torch.log(torch.clamp(logits.softmax(dim=-1), min=1e-9))",
        "torch.log(probs)",
    ],
)
def test_log_softmax_follows_the_spelling_of_the_file(spelled: str) -> None:
    code = f"""
    import torch
    import torch.nn.functional as F

    def compute_loss(pg_loss, logits, ref_logits, beta):
        probs = torch.softmax(logits, dim=-1)
        log_p, log_q = {spelled}, ref_logits.log_softmax(-1)
        kl = (probs * (log_p - log_q)).sum(-1)
        return pg_loss + beta * kl.mean()
    """
    after = fixed(code, wanted=only("KLA307"))
    assert "log_softmax(" in after
    logits, reference = torch.randn(3, 5), torch.randn(3, 5)
    given = (torch.tensor(0.0), logits, reference, 1.0)
    assert loaded(after)(*given).item() == pytest.approx(loaded(code)(*given).item(), abs=1e-5)
    assert torch.isfinite(loaded(after)(torch.tensor(0.0), logits * 1e4, reference, 1.0))


@pytest.mark.parametrize(
    "call",
    [
        'F.kl_div(log_p, log_q, log_target=True, reduction="none")',
        'F.kl_div(log_p, log_q.exp(), reduction="none")',
        'F.kl_div(log_q, log_p, reduction="none")',
    ],
)
def test_the_arguments_of_kl_div(call: str) -> None:
    code = f"""
    import torch
    import torch.nn.functional as F

    def compute_loss(pg_loss, logits, ref_logits, beta):
        log_p, log_q = logits.log_softmax(-1), ref_logits.log_softmax(-1)
        kl = {call}.sum(-1)
        return pg_loss + beta * kl.mean()
    """
    after = fixed(code, wanted=only("KLA308"))
    logits, other = torch.randn(3, 5), torch.randn(3, 5)
    log_p, log_q = logits.log_softmax(-1), other.log_softmax(-1)
    wanted = (log_p.exp() * (log_p - log_q)).sum(-1).mean().item()
    assert loaded(after)(torch.tensor(0.0), logits, other, 1.0).item() == pytest.approx(wanted, abs=1e-5)


def test_another_reduction_of_kl_div_is_left_to_its_owner() -> None:
    code = """
    import torch.nn.functional as F

    def compute_loss(pg_loss, logits, ref_logits, beta):
        log_p, log_q = logits.log_softmax(-1), ref_logits.log_softmax(-1)
        return pg_loss + beta * F.kl_div(log_q, log_p, log_target=True)
    """
    assert "size of the vocabulary" in refusal(code, wanted=only("KLA308"))
