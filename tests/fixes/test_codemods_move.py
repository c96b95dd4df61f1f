"""A penalty of the loss moved into the advantage: what the text looks like, and when it is left alone."""

from __future__ import annotations

import difflib
import textwrap

import pytest

from tests.fixes.codemod_cases import fixed, is_wanted, refusal, rewritten


def changed(code: str) -> list[str]:
    """The lines that a rewrite takes away (-), then those that it adds (+)."""
    before, after = textwrap.dedent(code).splitlines(), fixed(code).splitlines()
    ways = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    gone = [f"-{line}" for way, start, end, _, _ in ways if way != "equal" for line in before[start:end]]
    return [*gone, *(f"+{line}" for way, _, _, start, end in ways if way != "equal" for line in after[start:end])]


def test_the_penalty_is_deducted_before_the_advantage_is_first_used() -> None:
    code = """
    import torch

    def compute_loss(logp, old_logp, ref_logp, advantages, mask, beta):
        kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        # clipped
        ratio = torch.exp(logp - old_logp)
        loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        loss = loss + beta * kl
        return (loss * mask).sum() / mask.sum(), kl.mean().item()
    """
    assert changed(code) == [
        "-    loss = loss + beta * kl",
        "+    # KL penalty: k1, detached, deducted from the advantage",
        "+    advantages = advantages - beta * (logp - ref_logp).detach()",
    ]


def test_what_only_served_the_penalty_goes_with_it() -> None:
    code = """
    import torch

    def compute_loss(logp, old_logp, ref_logp, advantages, mask, cfg):
        beta = cfg.beta
        log_ratio = ref_logp - logp
        kl = torch.exp(log_ratio) - log_ratio - 1
        kl_loss = (kl * mask).sum() / mask.sum()
        pg_loss = -(torch.exp(logp - old_logp) * advantages * mask).sum() / mask.sum()
        return pg_loss + beta * kl_loss
    """
    assert changed(code) == [
        "-    log_ratio = ref_logp - logp",
        "-    kl = torch.exp(log_ratio) - log_ratio - 1",
        "-    kl_loss = (kl * mask).sum() / mask.sum()",
        "-    return pg_loss + beta * kl_loss",
        "+    # KL penalty: k1, detached, deducted from the advantage",
        "+    advantages = advantages - beta * (logp - ref_logp).detach()",
        "+    return pg_loss",
    ]


def test_advantages_of_whole_responses_get_the_axis_of_tokens() -> None:
    code = """
    import torch

    def compute_loss(self, logp, inputs, mask):
        advantages = inputs["advantages"]
        ratio = torch.exp(logp - inputs["old_logp"])
        loss = -torch.min(ratio * advantages.unsqueeze(1), ratio.clamp(0.8, 1.2) * advantages.unsqueeze(1))
        if self.beta > 0:
            ref_logp = inputs["ref_logp"]
            kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
            loss = loss + self.beta * kl
            self.metrics["kl"].append(kl.mean().item())
        return (loss * mask).sum() / mask.sum()
    """
    assert changed(code) == [
        "-    loss = -torch.min(ratio * advantages.unsqueeze(1), ratio.clamp(0.8, 1.2) * advantages.unsqueeze(1))",
        "-        loss = loss + self.beta * kl",
        "+    advantages = advantages.unsqueeze(1)",
        "+    if self.beta > 0:",
        "+        # KL penalty: k1, detached, deducted from the advantage",
        '+        advantages = advantages - self.beta * (logp - inputs["ref_logp"]).detach()',
        "+    loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)",
    ]


def test_an_advantage_that_others_read_keeps_its_value() -> None:
    code = """
    import torch

    def compute_loss(logp, old_logp, ref_logp, advantages, mask, beta):
        kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        loss = -torch.exp(logp - old_logp) * advantages + beta * kl
        log = {"advantage": advantages.mean().item(), "kl": kl.mean().item()}
        return (loss * mask).sum() / mask.sum(), log
    """
    assert changed(code) == [
        "-    loss = -torch.exp(logp - old_logp) * advantages + beta * kl",
        "+    # KL penalty: k1, detached, deducted from the advantage",
        "+    penalised_advantages = advantages - beta * (logp - ref_logp).detach()",
        "+    loss = -torch.exp(logp - old_logp) * penalised_advantages",
    ]


def test_what_asks_for_the_sign_of_the_advantage_sees_the_penalty() -> None:
    code = """
    import torch

    def compute_loss(logp, old_logp, ref_logp, advantages, mask, beta, log):
        ratio = torch.exp(logp - old_logp)
        kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        pg = torch.max(-ratio * advantages, -ratio.clamp(0.8, 1.2) * advantages)
        pg = torch.where(advantages < 0, torch.min(pg, -3.0 * advantages), pg)
        log["mean"] = advantages.mean().item()
        return ((pg + beta * kl) * mask).sum() / mask.sum()
    """
    after = fixed(code)
    assert "torch.where(penalised_advantages < 0, torch.min(pg, -3.0 * penalised_advantages), pg)" in after
    assert 'log["mean"] = advantages.mean().item()' in after


def test_an_advantage_of_an_outer_function_is_not_assigned() -> None:
    code = """
    import torch

    def train(model, batch, ref_logp, old_logp, advantages, beta):
        def closure():
            logp = model(batch)
            kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
            loss = (-torch.exp(logp - old_logp) * advantages + beta * kl).mean()
            loss.backward()
            return loss
        return closure
    """
    assert "penalised_advantages = advantages - beta" in fixed(code)


def test_both_branches_of_a_policy_term_take_the_same_advantage() -> None:
    code = """
    import torch

    def compute_loss(logp, batch, ref_logp, advantages, mask, beta):
        kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        if "old_logp" in batch:
            ratio = torch.exp(logp - batch["old_logp"])
            loss = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        else:
            loss = torch.exp(logp - logp.detach()) * advantages
        loss = -(loss - beta * kl)
        return (loss * mask).sum() / mask.sum()
    """
    assert changed(code) == [
        "-    kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1",
        "-    loss = -(loss - beta * kl)",
        "+    # KL penalty: k1, detached, deducted from the advantage",
        "+    advantages = advantages - beta * (logp - ref_logp).detach()",
        "+    loss = -loss",
    ]


def test_branches_that_weigh_the_advantage_otherwise_are_left_alone() -> None:
    code = """
    import torch

    def compute_loss(logp, old_logp, ref_logp, advantages, mask, beta, weights):
        kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        loss = -torch.exp(logp - old_logp) * advantages
        if weights is not None:
            loss = loss * weights
        loss = loss + beta * kl
        return (loss * mask).sum() / mask.sum()
    """
    assert "weighted by more" in refusal(code)


def test_casts_of_the_difference_are_kept() -> None:
    code = """
    import torch

    def k3(logp, ref_logp, mask=None):
        x = ref_logp.float() - logp.float()
        x = x if mask is None else x * mask
        return x.exp() - x - 1

    def compute_loss(logp, old_logp, ref_logp, advantages, mask, beta):
        loss = -torch.exp(logp - old_logp) * advantages + beta * k3(logp, ref_logp, mask)
        return (loss * mask).sum() / mask.sum()
    """
    assert "advantages - beta * (logp.float() - ref_logp.float()).detach()" in fixed(code)


def test_in_a_loop_the_advantage_is_not_reduced_again_and_again() -> None:
    code = """
    import torch

    def train(model, batch, ref_logp, advantages, mask, beta, optimizer):
        for _ in range(4):
            logp = model.log_probs(batch)
            kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
            ratio = torch.exp(logp - logp.detach())
            loss = ((-ratio * advantages + beta * kl) * mask).sum() / mask.sum()
            loss.backward()
            optimizer.step()
    """
    assert "penalised_advantages = advantages - beta * (logp - ref_logp).detach()" in fixed(code)


def test_an_advantage_out_of_a_batch_gets_a_name() -> None:
    code = """
    import torch

    def compute_loss(logp, batch, mask, beta):
        kl = torch.exp(batch["ref_logp"] - logp) - (batch["ref_logp"] - logp) - 1
        loss = -torch.exp(logp - batch["old_logp"]) * batch["advantages"] + beta * kl
        return (loss * mask).sum() / mask.sum(), kl.mean().item()
    """
    assert '    advantages = batch["advantages"] - beta * (logp - batch["ref_logp"]).detach()' in fixed(code)
    assert "* advantages\n" in fixed(code)


def test_methods_and_helpers_in_other_files() -> None:
    code = """
    import torch
    from kl import approx_kl

    class Trainer:
        def compute_loss(self, logp, old_logp, ref_logp, advantages, mask):
            kl = approx_kl(logp, ref_logp)
            loss = -torch.exp(logp - old_logp) * advantages + self.beta * kl
            return (loss * mask).sum() / mask.sum()
    """
    helper = """
    import torch

    def approx_kl(log_probs, log_probs_base):
        x = log_probs_base - log_probs
        return torch.exp(x) - x - 1
    """
    made = rewritten(code, files={"kl.py": helper})
    assert made.content is not None, [each.why for each in made.unchanged]
    assert b"advantages = advantages - self.beta * (logp - ref_logp).detach()" in made.content
    assert b"* advantages\n" in made.content


BODY = """
import torch

def compute_loss(logp, old_logp, ref_logp, advantages, mask, beta, c=None, weights=None):
    ratio = torch.exp(logp - old_logp)
    kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
{}
"""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("loss = -(ratio * advantages).mean() + beta * (kl * mask).sum() / mask.sum()\nreturn loss", "averaged or weighted otherwise"),
        ("loss = -ratio * advantages\nloss = loss * weights\nloss = loss + beta * kl\nreturn loss.mean()", "averaged or weighted otherwise"),
        ("loss = 0.5 * (-ratio * advantages).mean() + beta * kl.mean()\nreturn loss", "averaged or weighted otherwise"),
        ("loss = -0.5 * ratio * advantages + beta * kl\nreturn loss.mean()", "token by token"),
        ("loss = -torch.min(ratio * advantages * weights, ratio.clamp(0.8, 1.2) * advantages * weights) + beta * kl\nreturn loss.mean()", "weighted by more"),
        ("loss = -torch.exp(ratio) * advantages + beta * kl\nreturn loss.mean()", "token by token"),
        ("loss = -torch.exp(old_logp - logp) * advantages + beta * kl\nreturn loss.mean()", "same sign"),
        ("term = lambda: -torch.exp(logp - old_logp) * advantages + beta * (torch.exp(ref_logp - logp) - (ref_logp - logp) - 1)\nreturn term().mean()", "lambda"),
        ("seq = torch.exp((logp - old_logp).mean(-1, keepdim=True))\nloss = -seq * advantages + beta * kl\nreturn loss.mean()", "token by token"),
        ("loss = -ratio.gather(1, c) * advantages + beta * kl\nreturn loss.mean()", "token by token"),
        ("loss = policy_loss(logp, old_logp, advantages) + beta * kl\nreturn loss.mean()", "computed by policy_loss()"),
        ("for c in weights:\n    loss = -ratio * advantages\nloss = loss + beta * kl\nreturn loss.mean()", "cannot be followed"),
        ("loss = -ratio * advantages\nbeta = beta * 2\nloss = loss + beta * kl\nreturn loss.mean()", "`beta`"),
        ("objective = ratio * advantages + beta * kl\nreturn objective.mean()", "same sign"),
        ("loss = -ratio * advantages\nfor _ in range(2):\n    loss = loss + beta * kl\nreturn loss.mean()", "loop"),
    ],
)  # fmt: skip
def test_in_doubt_nothing_is_moved(body: str, why: str) -> None:
    assert why in refusal(BODY.format(textwrap.indent(body, "    ")))


def test_where_k1_cannot_be_rewarded_the_other_way_is_named() -> None:
    made = rewritten(
        BODY.format("    loss = -(ratio * advantages).mean() + beta * (kl * mask).sum() / mask.sum()\n    return loss")
    )
    assert [each.instead[0][:20] for each in made.unchanged] == ["--target k2-in-loss:"]
    assert "per token only" in made.unchanged[0].instead[0]


def test_without_an_advantage_k2_takes_the_place_in_the_loss() -> None:
    code = """
    import torch

    def compute_loss(logp, ref_logp, task_loss, mask, beta):
        kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        return task_loss + beta * (kl * mask).sum() / mask.sum()
    """
    assert changed(code) == [
        "-    kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1",
        "+    kl = 0.5 * (logp - ref_logp) ** 2",
    ]
    assert "per token only" in rewritten(code).migrations[0].notes[0]


def test_nothing_is_done_without_unsafe_but_it_is_told() -> None:
    from klaudit.fixes.codemods.planning import rewrite
    from klaudit.fixes.migration import Request
    from klaudit.readers.source import Source

    code = BODY.format("    loss = -ratio * advantages + beta * kl\n    return loss.mean()").encode()
    made = rewrite(Source("a.py", code), lambda path: None, Request(), lambda finding: finding.severity != "note")
    assert made.content is None
    assert [each.why for each in made.unchanged] == ["the change rewrites code and is not safe: --unsafe makes it"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["    ", "  ", "\t"])
def test_line_ends_and_indentation_are_those_of_the_file(newline: str, indent: str) -> None:
    code = BODY.format(
        "    loss = -ratio * advantages\n    if beta:\n        loss = loss + beta * kl\n    return loss.mean()"
    )
    code = code.replace("    ", indent).replace("\n", newline)
    after = fixed(code)
    assert f"{newline}{indent}if beta:{newline}{indent}{indent}# KL penalty" in after
    assert after.count("\n") == after.count(newline)


def test_twice_is_once() -> None:
    code = BODY.format("    loss = -ratio * advantages + beta * kl\n    return loss.mean(), kl.mean()")
    assert rewritten(fixed(code)).content is None


def test_only_the_lines_of_the_penalty_change() -> None:
    code = BODY.format("    loss = -ratio   *  advantages+beta*kl  # é\n    return  loss.mean ()\n\n\nx = {  'a':1}")
    after = fixed(code)
    assert "    loss = -ratio   *  advantages  # é\n    return  loss.mean ()\n\n\nx = {  'a':1}" in after


@pytest.mark.parametrize(
    "head", [b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\n# \xe9\xe8\n", "# \u00e9\u4e2d\U0001f600\n".encode()]
)
def test_whatever_stands_above_the_bytes_are_found(head: bytes) -> None:
    from klaudit.fixes.codemods.planning import rewrite
    from klaudit.fixes.migration import Request
    from klaudit.readers.source import Source

    code = BODY.format("    loss = -ratio * advantages + beta * kl\n    return loss.mean(), kl.mean()").encode()
    plain = rewrite(Source("a.py", code), lambda path: None, Request(unsafe=True), is_wanted)
    made = rewrite(Source("a.py", head + code), lambda path: None, Request(unsafe=True), is_wanted)
    assert plain.content is not None
    assert made.content == head + plain.content


def test_names_that_the_encoding_of_the_file_spells_otherwise_are_left_alone() -> None:
    from klaudit.fixes.codemods.planning import rewrite
    from klaudit.fixes.migration import Request
    from klaudit.readers.source import Source

    body = BODY.format("    loss = -ratio * advantages + beta * kl\n    return loss.mean(), kl.mean()").replace(
        "beta", "beta_\u00e9"
    )
    code = b"# -*- coding: latin-1 -*-\n" + body.encode("latin-1")
    made = rewrite(Source("a.py", code), lambda path: None, Request(unsafe=True), is_wanted)
    assert made.content is None
    assert "not in UTF-8" in made.unchanged[0].why
