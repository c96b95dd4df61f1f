"""One penalty written in many ways is one penalty; a detach, a sign or a swapped direction makes another of it.

Trainers are put together from parts: how the log-probabilities come about, how the estimator is spelled, which names things have, where
the formula is written, how it is averaged, weighted and joined with the rest, and how the loss is used.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.code.snippets import findings_of, only, rules_of, told

# {p}, {q}: log pi and log pi_ref.  Each list holds the same function of d = p - q, up to what is algebra.
SPELLINGS: dict[str, list[str]] = {
    "k1": [
        "{p} - {q}",
        "-({q} - {p})",
        "torch.sub({p}, {q})",
        "{p}.sub({q})",
        "-1.0 * {q} + {p}",
        "({p}.float() - {q}.float()).to({p}.dtype)",
        "torch.log(torch.exp({p}) / torch.exp({q}))",
        "2 * ({p} - {q}) - ({p} - {q})",
        "{p}.add({q}, alpha=-1)",
        "torch.neg({q} - {p})",
    ],
    "k2": [
        "0.5 * ({p} - {q}) ** 2",
        "({q} - {p}).pow(2) / 2",
        "torch.square({p} - {q}) * 0.5",
        "({p} - {q}) * ({p} - {q}) / 2",
        "torch.pow({p} - {q}, 2).div(2)",
        "0.5 * ({p} ** 2 - 2 * {p} * {q} + {q} ** 2)",
        "0.5 * torch.abs({p} - {q}) ** 2",
        "0.5 * F.mse_loss({p}, {q}, reduction='none')",
    ],
    "k3": [
        "torch.exp({q} - {p}) - ({q} - {p}) - 1",
        "({q} - {p}).exp() - 1 + ({p} - {q})",
        "torch.expm1({q} - {p}) - ({q} - {p})",
        "{p} - {q} + torch.exp({q} - {p}) - 1.0",
        "torch.exp({q}) / torch.exp({p}) - 1 - {q} + {p}",
        "-1 - ({q} - {p}) + 1 / torch.exp({p} - {q})",
        "(torch.exp({q} - {p}) - torch.log(torch.exp({q} - {p}))) - 1",
        "math.e ** ({q} - {p}) - ({q} - {p}) - 1",
    ],
    "abs": [
        "torch.abs({p} - {q})",
        "({q} - {p}).abs()",
        "torch.maximum({p} - {q}, {q} - {p})",
        "torch.where({p} > {q}, {p} - {q}, {q} - {p})",
        "abs({p} - {q})",
    ],
}  # fmt: skip
RULES = {"k1": ["KLA103"], "k2": [], "k3": ["KLA101"], "abs": ["KLA105"]}
NAMES = [("new", "ref"), ("p", "q"), ("current", "anchor"), ("x_t", "y_t"), ("policy_side", "other_side"), ("a", "b")]

# how log pi ({p}) and log pi_ref ({q}) come about, whatever they are called
ORIGINS = [
    """
    {p} = self.get_logps(self.model, batch["ids"])
    with torch.no_grad():
        {q} = self.get_logps(self.ref_model, batch["ids"])
    """,
    """
    {p} = self.get_logps(self.model, batch["ids"])
    {q} = batch["ref_log_probs"]
    """,
    """
    {q} = batch.ref_logps
    {p} = torch.gather(self.policy(batch["ids"]).logits.log_softmax(-1), -1, batch["ids"].unsqueeze(-1)).squeeze(-1)
    """,
    """
    {p} = self.get_logps(self.model, batch["ids"])
    with torch.inference_mode(), self.model.disable_adapter():
        {q} = self.get_logps(self.model, batch["ids"])
    """,
    """
    {p} = -F.cross_entropy(self.model(batch["ids"]).logits, batch["ids"], reduction="none")
    {q} = batch["ref_log_prob"].detach()
    """,
]
# where the formula ({f}) of two tensors is written: code before the class, before the method, in the class, and the expression
HOMES: list[tuple[str, str, str, str]] = [
    ("", "", "", "{f}"),
    ("def between(left, right):\n    return {g}\n", "", "", "between({p}, {q})"),
    ("def between(right, left):\n    out = {g}\n    return out\n", "", "", "between(left={p}, right={q})"),
    ("", "between = lambda left, right: {g}", "", "between({p}, {q})"),
    ("", "", "def between(self, left, right):\n    return {g}\n", "self.between({p}, {q})"),
    ("", "", "@staticmethod\ndef between(left, right):\n    return {g}\n", "self.between({p}, {q})"),
    ("def between(left, right):\n    return {g}\nESTIMATORS = {{'mine': between}}\n", "", "", "ESTIMATORS['mine']({p}, {q})"),
    ("def between(scale, left, right):\n    return scale * ({g})\nhalf = functools.partial(between, 1.0)\n", "", "", "half({p}, {q})"),
    ("def between(left, right):\n    def inner():\n        return {g}\n    return inner()\n", "", "", "between({p}, {q})"),
    ("def first(left, right):\n    return {g}\ndef between(left, right):\n    return first(left, right)\n", "", "", "between({p}, {q})"),
    (
        "def between(left, right, kind='other'):\n    if kind == 'mine':\n        return {g}\n    raise ValueError(kind)\n",
        "", "", "between({p}, {q}, 'mine')",
    ),
]  # fmt: skip
JOINS = [
    "loss = ((pg + self.beta * kl) * mask).sum() / mask.sum()",
    "loss = (pg * mask).sum() / mask.sum() + self.beta * (kl * mask).sum() / mask.sum()",
    "loss = masked_mean(pg, mask)\nloss += masked_mean(kl, mask) * self.beta",
    "loss = -(-pg - self.beta * kl).mean()",
    "terms = [pg.mean(), self.beta * kl.mean()]\nloss = sum(terms)",
    "penalty = kl.mul(self.beta)\nloss = pg.add(penalty)\nloss = (loss * mask).sum(-1).mean()",
    "kl_mean = (kl * mask).sum(dim=-1).div(mask.sum(dim=-1)).mean()\nloss = pg.mean()\n"
    "if self.beta > 0:\n    loss = loss + self.beta * kl_mean",
    "loss = torch.stack([pg.mean(), self.beta * kl.mean()]).sum()",
]  # fmt: skip
SINKS = [
    "return loss",
    "loss.backward()",
    "self.accelerator.backward(loss)",
    "return {'loss': loss, 'kl': kl.mean().item()}",
    "(loss / self.steps).backward()",
]


@dataclass(frozen=True)
class Trainer:
    """The parts of one trainer; `kl` is the penalty as it is joined with the rest."""

    spelling: str
    origin: str
    home: tuple[str, str, str, str]
    names: tuple[str, str]
    join: str
    sink: str
    turned: bool = False
    detached: bool = False
    subtracted: bool = False

    def code(self) -> str:
        p, q = self.names
        outside, before, method, call = self.home
        g = self.spelling.format(p="left", q="right")
        given = (q, p) if self.turned else (p, q)
        kl = call.format(p=given[0], q=given[1], f=self.spelling.format(p=given[0], q=given[1]))
        if self.detached:
            kl = f"({kl}).detach()"
        if self.subtracted:
            kl = f"-({kl})"
        origin = textwrap.dedent(self.origin).strip().format(p=p, q=q)
        body = "\n".join(
            [
                origin,
                'mask = batch["loss_mask"]',
                'old_log_probs, advantages = batch["old_log_probs"], batch["advantages"]',
                f"ratio = torch.exp({p} - old_log_probs)",
                "pg = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)",
                before.format(g=g),
                f"kl = {kl}",
                self.join,
                self.sink,
            ]
        )
        members = "def __init__(self, beta=0.04):\n    self.beta = beta\n" + method.format(g=g)
        members += "def step(self, batch):\n" + textwrap.indent(body, "    ")
        return (
            "import functools, math\nimport torch\nimport torch.nn.functional as F\n"
            + outside.format(g=g)
            + "class Trainer:\n"
            + textwrap.indent(members, "    ")
        )


@st.composite
def trainers(draw: st.DrawFn, estimator: str) -> Trainer:
    return Trainer(
        draw(st.sampled_from(SPELLINGS[estimator])),
        draw(st.sampled_from(ORIGINS)),
        draw(st.sampled_from(HOMES)),
        draw(st.sampled_from(NAMES)),
        draw(st.sampled_from(JOINS)),
        draw(st.sampled_from(SINKS)),
    )


_some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_some
@given(st.data(), st.sampled_from(sorted(SPELLINGS)))
def test_however_it_is_written(data: st.DataObject, estimator: str) -> None:
    code = data.draw(trainers(estimator)).code()
    formula = only(code)
    assert told(formula) == ("loss", estimator, "pathwise", 1), code
    assert formula.coefficient(formula.what) in (None, 0.04), code  # None where another number divides it
    assert rules_of(code) == RULES[estimator], code


@_some
@given(st.data(), st.sampled_from(sorted(SPELLINGS)))
def test_a_detach_is_seen_wherever_it_is(data: st.DataObject, estimator: str) -> None:
    trainer = data.draw(trainers(estimator))
    assert rules_of(replace(trainer, detached=True).code()) == ["KLA303"], trainer


@_some
@given(st.data(), st.sampled_from(sorted(SPELLINGS)))
def test_a_turned_sign_is_seen(data: st.DataObject, estimator: str) -> None:
    code = replace(data.draw(trainers(estimator)), subtracted=True).code()
    assert only(code).sign(only(code).what) == -1, code
    assert ("KLA301" in rules_of(code)) == (estimator != "k1"), code  # which regularises nothing with either sign
    assert set(RULES[estimator]) <= set(rules_of(code)), code


@_some
@given(st.data())
def test_a_swapped_direction_is_seen(data: st.DataObject) -> None:
    code = replace(data.draw(trainers("k3")), turned=True).code()
    assert told(only(code)) == ("loss", "reversed-k3", "pathwise", 1), code
    assert rules_of(code) == ["KLA302"], code


@_some
@given(st.data())
def test_a_swapped_log_ratio_turns_its_sign(data: st.DataObject) -> None:
    code = replace(data.draw(trainers("k1")), turned=True).code()
    assert told(only(code)) == ("loss", "k1", "pathwise", -1), code


@_some
@given(st.data(), st.sampled_from(["k2", "abs"]))
def test_what_is_even_does_not_mind_the_direction(data: st.DataObject, estimator: str) -> None:
    trainer = data.draw(trainers(estimator))
    code = replace(trainer, turned=True).code()
    assert told(only(code)) == told(only(trainer.code())), code


IMPORTS = [
    ("from pkg.kl import between", "between({p}, {q})"),
    ("from pkg.kl import between as distance", "distance({p}, {q})"),
    ("import pkg.kl", "pkg.kl.between({p}, {q})"),
    ("import pkg.kl as penalties", "penalties.between({p}, {q})"),
    ("from pkg import kl as penalties", "penalties.between(right={q}, left={p})"),
    ("from pkg.kl import *", "between({p}, {q})"),
]


@_some
@given(st.data(), st.sampled_from(sorted(SPELLINGS)), st.sampled_from(IMPORTS))
def test_moved_to_another_file(data: st.DataObject, estimator: str, imported: tuple[str, str]) -> None:
    line, call = imported
    trainer = data.draw(trainers(estimator))
    formula = trainer.spelling.format(p="left", q="right")
    helper = f"import math, torch\nimport torch.nn.functional as F\n\ndef between(left, right):\n    return {formula}\n"
    code = line + "\n" + replace(trainer, home=("", "", "", call)).code()
    files = {"pkg/__init__.py": "", "pkg/kl.py": helper}
    assert told(only(code, files)) == ("loss", estimator, "pathwise", 1), code
    assert rules_of(code, files) == RULES[estimator], code
    assert {finding.span.path for finding in findings_of(code, files)} == {"trainer.py"}
    assert findings_of(helper, files, "pkg/kl.py") == ()


REWARDS = {"k1": [], "k2": ["KLA104"], "k3": ["KLA102"], "abs": ["KLA104"]}


@_some
@given(st.data(), st.sampled_from(sorted(SPELLINGS)), st.booleans())
def test_as_a_reward(data: st.DataObject, estimator: str, live: bool) -> None:
    spelling, (p, q) = data.draw(st.sampled_from(SPELLINGS[estimator])), data.draw(st.sampled_from(NAMES))
    join = data.draw(
        st.sampled_from(
            [
                "token_rewards = scores - self.beta * kl",
                "token_rewards = -self.beta * kl\ntoken_rewards[:, -1] += scores",
                "token_rewards = scores\ntoken_rewards = token_rewards + kl * -self.beta",
                "token_rewards = scores.add(kl, alpha=-self.beta)",
                "non_score_reward = -self.beta * kl\ntoken_rewards = non_score_reward.clone()\ntoken_rewards[:, -1] += scores",
            ]
        )
    )
    code = f"""
import math
import torch
import torch.nn.functional as F

class Trainer:
    def rollout(self, ids, scores):
        {"" if live else "with torch.no_grad():"}
        {"" if live else "    "}{p} = self.get_logps(self.model, ids)
        with torch.no_grad():
            {q} = self.get_logps(self.ref_model, ids)
        kl = {spelling.format(p=p, q=q)}
{textwrap.indent(join, " " * 8)}
        return token_rewards
"""
    formula = only(code)
    assert told(formula)[:2] == ("reward", estimator), code
    assert formula.sign(formula.what) == -1, code
    assert rules_of(code) == REWARDS[estimator], code  # whoever calls it may have switched the gradient off
