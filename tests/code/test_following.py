"""Helpers across functions and files: what a call leads to, and which setting chooses."""

from __future__ import annotations

import pytest

from klaudit.code.judge import findings
from tests.code.snippets import findings_of, only, result_of, rules_of, told, used

KL = """
import torch

def kl_penalty(logprob, ref_logprob, kind):
    if kind in ("kl", "k1"):
        return logprob - ref_logprob
    if kind == "mse":
        return 0.5 * (logprob - ref_logprob).square()
    if kind == "low_var_kl":
        x = torch.clamp(ref_logprob - logprob, min=-20, max=20)
        return (torch.exp(x) - x - 1).contiguous()
    raise NotImplementedError(kind)
"""

ACTOR = """
from pkg.algos import {imported}

class Actor:
    def update_policy(self, batch):
        log_prob = self.forward(batch)
        ref_log_prob = batch["ref_log_prob"]
        loss = -(log_prob - batch["old_log_prob"]).exp() * batch["advantages"]
        if self.config.use_kl_loss:
            kld = {call}
            loss = loss + self.config.kl_loss_coef * kld
        loss.mean().backward()
"""


def test_a_config_attribute_ties_the_helper_to_its_setting() -> None:
    code = ACTOR.format(imported="kl_penalty", call="kl_penalty(log_prob, ref_log_prob, self.config.kl_loss_type)")
    formula = only(code, {"pkg/algos.py": KL})
    assert formula.chosen_by == ("self.config.kl_loss_type",)
    assert [(variant.when, variant.what.estimator) for variant in formula.variants] == [
        ("self.config.kl_loss_type = k1 or kl", "k1"),
        ("self.config.kl_loss_type = mse", "k2"),
        ("self.config.kl_loss_type = low_var_kl", "k3"),
    ]
    assert [knob.name for knob in formula.knobs] == ["self.config.kl_loss_coef"]
    assert "self.config.use_kl_loss" in formula.settings
    assert rules_of(code, {"pkg/algos.py": KL}) == [], "the launch that chooses is judged, not the library"


@pytest.mark.parametrize(
    ("literal", "rules"), [("low_var_kl", ["KLA101"]), ("mse", []), ("kl", ["KLA103"])], ids=["k3", "k2", "k1"]
)
def test_a_literal_chooses(literal: str, rules: list[str]) -> None:
    call = f"kl_penalty(logprob=log_prob, ref_logprob=ref_log_prob, kind={literal!r})"
    assert rules_of(ACTOR.format(imported="kl_penalty", call=call), {"pkg/algos.py": KL}) == rules


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("kl_penalty as penalty", "penalty(log_prob, ref_log_prob, 'low_var_kl')"),
        ("kl_penalty", "(lambda a, b: kl_penalty(a, b, 'low_var_kl'))(log_prob, ref_log_prob)"),
    ],
)
def test_spellings_of_the_call(imported: str, call: str) -> None:
    assert told(only(ACTOR.format(imported=imported, call=call), {"pkg/algos.py": KL}))[1] == "k3"


def test_a_module_is_imported_whole() -> None:
    code = ACTOR.format(imported="kl_penalty", call="algos.kl_penalty(log_prob, ref_log_prob, 'low_var_kl')").replace(
        "from pkg.algos import kl_penalty", "from pkg import algos"
    )
    assert told(only(code, {"pkg/algos.py": KL, "pkg/__init__.py": ""}))[1] == "k3"


def test_relative_imports_and_packages_below_the_root() -> None:
    code = ACTOR.format(imported="kl_penalty", call="kl_penalty(log_prob, ref_log_prob, 'low_var_kl')").replace(
        "from pkg.algos import", "from ..common.algos import"
    )
    files = {"src/pkg/common/algos.py": KL}
    found = [f for f in result_of(code, files, "src/pkg/workers/actor.py").formulas if f.placement == "loss"]
    assert [f.what.estimator for f in found] == ["k3"]
    absolute = code.replace("from ..common.algos", "from pkg.common.algos")
    found = [f for f in result_of(absolute, files, "src/pkg/workers/actor.py").formulas if f.placement == "loss"]
    assert [f.what.estimator for f in found] == ["k3"]


def test_re_exports_are_followed() -> None:
    code = ACTOR.format(imported="kl_penalty", call="kl_penalty(log_prob, ref_log_prob, 'low_var_kl')").replace(
        "pkg.algos", "pkg"
    )
    files = {"pkg/__init__.py": "from pkg.algos import kl_penalty  # logp", "pkg/algos.py": KL}
    assert told(only(code, files))[1] == "k3"


def test_partial_and_a_table_of_functions() -> None:
    code = """
    from functools import partial
    import torch

    def k1(lp, ref_lp, scale=1.0):
        return scale * (lp - ref_lp)

    def k3(lp, ref_lp, scale=1.0):
        x = ref_lp - lp
        return scale * (x.exp() - x - 1)

    ESTIMATORS = {"k1": k1, "k3": k3}

    def loss_fn(lp, old_lp, ref_lp, adv, cfg):
        kl = {call}
        return (-(lp - old_lp).exp() * adv + cfg.beta * kl).mean()
    """
    assert told(only(code.replace("{call}", "partial(k3, scale=2.0)(lp, ref_lp)")))[1] == "k3"
    assert told(only(code.replace("{call}", "ESTIMATORS['k3'](lp, ref_lp)")))[1] == "k3"
    chosen = used(code.replace("{call}", "ESTIMATORS[cfg.kind](lp, ref_lp)"))
    assert {variant.what.estimator for formula in chosen for variant in formula.variants} == {"k1", "k3"}
    assert all(formula.chosen_by == ("cfg.kind",) for formula in chosen)


def test_a_registry_filled_by_decorators() -> None:
    code = """
    REGISTRY = {}

    def register(name):
        def wrap(fn):
            REGISTRY[name] = fn
            return fn
        return wrap

    @register("k1")
    def log_ratio(lp, ref_lp):
        return lp - ref_lp

    @register("k3")
    def schulman(lp, ref_lp):
        x = ref_lp - lp
        return x.exp() - x - 1

    def loss_fn(lp, old_lp, ref_lp, adv, beta):
        return (-(lp - old_lp).exp() * adv + beta * REGISTRY["k3"](lp, ref_lp)).mean()
    """
    assert told(only(code))[1] == "k3"


def test_methods_on_self_and_in_a_base_class() -> None:
    base = """
    class Base:
        def kl(self, logps, ref_logps):
            x = ref_logps - logps
            return x.exp() - x - 1
    """
    code = """
    from base import Base

    class Trainer(Base):
        def compute_loss(self, logps, old_logps, ref_logps, adv):
            return (-(logps - old_logps).exp() * adv + self.beta * self.kl(logps, ref_logps)).mean()
    """
    assert told(only(code, {"base.py": base}))[1] == "k3"


def test_an_object_with_its_own_settings() -> None:
    code = """
    class Estimator:
        def __init__(self, kind="k1", clamp=True):
            self.kind = kind
            self.clamp = clamp

        def __call__(self, log_probs, log_probs_base):
            return self.compute(log_probs, log_probs_base, self.kind, self.clamp)

        @staticmethod
        def compute(log_probs, log_probs_base, kind, clamp):
            d = log_probs - log_probs_base
            if kind == "k3":
                d = (-d).exp() - 1 + d
            if clamp:
                d = d.clamp(-10, 10)
            return d

    class Actor:
        def __init__(self, config):
            self.kl_ctl = config.kl_ctl
            self.estimator = Estimator({kind})

        def compute_advantages(self, data):
            rewards = -self.kl_ctl * self.estimator(data["old_logp"], data["ref_logp"])
            rewards = rewards + data["score"]
            return rewards
    """
    assert told(only(code.replace("{kind}", "'k3'")))[:2] == ("reward", "k3")
    assert told(only(code.replace("{kind}", "")))[:2] == ("reward", "k1")
    assert rules_of(code.replace("{kind}", "'k3'")) == ["KLA102"]
    assert rules_of(code.replace("{kind}", "config.kl_estimator")) == []


def test_early_returns_and_reassignment() -> None:
    code = """
    def approx_kl(log_probs, log_probs_base, kind="k1"):
        log_ratio = log_probs.float() - log_probs_base.float()
        if kind == "k1":
            pass
        elif kind == "k2":
            log_ratio = log_ratio ** 2 / 2.0
        elif kind == "k3":
            log_ratio = (-log_ratio).exp() - 1 + log_ratio
        else:
            raise ValueError(kind)
        return log_ratio.clamp(min=-10, max=10)

    def training_step(self, logps, old_logps, base_logps, adv, coef):
        loss = (-(logps - old_logps).exp() * adv).mean() + coef * approx_kl(logps, base_logps, "k3").mean()
        self.strategy.backward(loss, self.actor, self.optim)
    """
    (formula,) = used(code)
    assert (formula.what.estimator, formula.placement) == ("k3", "loss")
    assert formula.what.limits.live == pytest.approx((-2.61, 11.0), abs=0.01)


def test_tuple_returns_dict_entries_and_attributes() -> None:
    code = """
    def parts(logps, old_logps, ref_logps, adv):
        x = ref_logps - logps
        return -(logps - old_logps).exp() * adv, {"kl": x.exp() - x - 1}

    class Trainer:
        def step(self, batch, logps):
            pg, extra = parts(logps, batch["old_logps"], batch["ref_logps"], batch["adv"])
            self.kl = extra["kl"]
            total = pg.mean() + self.args.beta * self.kl.mean()
            total.backward()
    """
    assert told(only(code)) == ("loss", "k3", "pathwise", 1)


def test_what_one_method_stores_another_reads() -> None:
    code = """
    class Maker:
        def make(self, samples, action_log_probs, base_action_log_probs):
            samples.kl = action_log_probs - base_action_log_probs
            samples.info["kl"] = samples.kl.mean()

        def compute_rewards(self, experience, r, kl_coef):
            kl_reward = -kl_coef * experience.kl
            return r + kl_reward
    """
    assert ("reward", "k1", "pathwise", -1) in [told(formula) for formula in used(code)]


def test_functions_inside_functions() -> None:
    code = """
    def forward_backward(self, batches, engine):
        def loss_func(output):
            logps = output["log_probs"]
            x = batches["ref_log_probs"] - logps
            return -batches["adv"] * logps + self.cfg.kl_beta * (x.exp() - x - 1)
        return engine(batches, loss_func)
    """
    assert told(only(code))[1:] == ("k3", "pathwise", 1)


def test_closures_see_what_is_assigned_around_them() -> None:
    code = """
    class Worker:
        def get_step(self):
            def forward_step(batch, model):
                ref_logprobs = batch["ref_logprobs"]
                def loss_func(output):
                    logprobs = output["log_probs"]
                    d = logprobs - ref_logprobs
                    return -batch["advantages"] * logprobs + self.kl_beta * 0.5 * d ** 2
                return model(batch), loss_func
            return forward_step
    """
    assert told(only(code))[1:] == ("k2", "pathwise", 1)


def test_list_comprehensions_zip_and_append() -> None:
    code = """
    import torch
    def compute_advantages(args, data):
        kl = [a - b for a, b in zip(data["old_log_probs"], data["ref_log_probs"])]
        rewards = []
        for reward, per_token_kl in zip(data["rewards"], kl):
            token_level = per_token_kl * -args.kl_coef
            token_level[-1] += reward
            rewards.append(token_level)
        advantages = torch.stack(rewards)
        return advantages
    """
    assert told(only(code)) == ("reward", "k1", "none", -1)


def test_top_level_scripts() -> None:
    code = """
    import torch
    beta = 0.04
    for batch in loader:
        logps = model(batch["ids"]).logits.log_softmax(-1).gather(-1, batch["ids"]).squeeze(-1)
        with torch.no_grad():
            ref_logps = ref_model(batch["ids"]).logits.log_softmax(-1).gather(-1, batch["ids"]).squeeze(-1)
        x = ref_logps - logps
        loss = -(batch["adv"] * logps).mean() + beta * (x.exp() - x - 1).mean()
        loss.backward()
    """
    formula = only(code)
    assert told(formula) == ("loss", "k3", "pathwise", 1)
    assert formula.coefficient(formula.what) == pytest.approx(0.04)


def test_swapped_arguments_are_the_callers_mistake() -> None:
    code = ACTOR.format(imported="kl_penalty", call="kl_penalty(ref_log_prob, log_prob, self.config.kl_loss_type)")
    assert rules_of(code, {"pkg/algos.py": KL}) == ["KLA302"]


def test_a_helper_under_no_grad_loses_the_gradient() -> None:
    helper = KL.replace("def kl_penalty", "@torch.no_grad()\ndef kl_penalty")
    code = ACTOR.format(imported="kl_penalty", call="kl_penalty(log_prob, ref_log_prob, self.config.kl_loss_type)")
    (finding,) = findings_of(code, {"pkg/algos.py": helper})
    assert finding.rule == "KLA303"
    assert finding.span.path == "trainer.py"


def test_a_subtracted_penalty_is_wrong_whatever_the_estimator() -> None:
    code = ACTOR.format(imported="kl_penalty", call="kl_penalty(log_prob, ref_log_prob, self.config.kl_loss_type)")
    assert rules_of(code.replace("loss + self", "loss - self"), {"pkg/algos.py": KL}) == ["KLA301"]


def test_a_default_decides_where_nothing_else_does() -> None:
    code = """
    def loss_fn(logps, old_logps, ref_logps, adv, *, kind="k3", beta=0.1):
        d = logps - ref_logps
        if kind == "k2":
            kl = d ** 2 / 2
        else:
            kl = (-d).exp() - 1 + d
        return (-(logps - old_logps).exp() * adv + beta * kl).mean()
    """
    assert rules_of(code) == ["KLA101"]
    assert rules_of(code.replace('kind="k3"', 'kind="k2"')) == []
    assert rules_of(code.replace('kind="k3"', "kind")) == []


def test_match_statements_choose_too() -> None:
    code = """
    def kl_of(logps, ref_logps, kind):
        match kind:
            case "k1":
                return logps - ref_logps
            case "k2" | "mse":
                return 0.5 * (logps - ref_logps) ** 2
            case _:
                raise ValueError(kind)

    def loss_fn(logps, old_logps, ref_logps, adv, cfg):
        return (-(logps - old_logps).exp() * adv + cfg.beta * kl_of(logps, ref_logps, cfg.kind)).mean()
    """
    (formula,) = used(code)
    assert [(variant.when, variant.what.estimator) for variant in formula.variants] == [
        ("cfg.kind = k1", "k1"),
        ("cfg.kind = k2 or mse", "k2"),
    ]


RECORD = """
import torch
from dataclasses import dataclass

@dataclass
class Experience:
    sequences: torch.Tensor
    log_probs: torch.Tensor
    info: dict
    kl: torch.Tensor = None

class Maker:
    def advantages(self, samples):
        for experience, score in self.make_all(samples):
            rewards = score - self.kl_ctl.value * experience.kl
            experience.returns = self.discount(rewards, experience.log_probs, self.reference)

    def make(self, sequences):
        log_probs = self.actor(sequences, return_logps=True)
        with torch.no_grad():
            base_log_probs = self.initial_model(sequences, return_logps=True)
        kl = self.actor_logps(sequences) - base_log_probs
        return Experience({given})
"""


@pytest.mark.parametrize("given", ["sequences, log_probs, {}, kl", "sequences, log_probs, info={}, kl=kl"])
def test_a_record_carries_the_penalty_to_another_method(given: str) -> None:
    """The method that reads it stands before the one that writes it, and is found all the same."""
    (formula,) = used(RECORD.replace("{given}", given))
    assert told(formula)[0] == "reward" and formula.what.estimator == "k1"
    assert formula.symbol == "Maker.advantages"
    assert formula.knobs[0].name == "self.kl_ctl.value"


def test_a_function_whose_code_is_elsewhere_is_named_and_not_judged() -> None:
    code = """
    from library.algos import kl_penalty
    def loss_fn(log_prob, old_log_prob, data, adv, config):
        kld = kl_penalty(log_prob, data["ref_log_prob"], config.kl_loss_type)
        return (-(log_prob - old_log_prob).exp() * adv - config.kl_loss_coef * kld).mean()
    """
    (formula,) = used(code)
    assert formula.external == "library.algos.kl_penalty"
    assert (formula.placement, formula.what.estimator) == ("loss", "unknown")
    assert formula.knobs[0].name == "config.kl_loss_coef"
    assert rules_of(code, notes=True) == []


def test_a_caller_does_not_say_it_again() -> None:
    code = (
        KL
        + """
def policy_loss(logp, old_logp, ref_logp, adv, args):
    kl = kl_penalty(logp, ref_logp, args.kl_loss_type)
    return (-(logp - old_logp).exp() * adv - args.kl_loss_coef * kl).mean()

def loss_function(args, batch, logp):
    ref_logp = batch["ref_logp"]
    return policy_loss(logp, batch["old_logp"], ref_logp, batch["adv"], args) / args.steps
"""
    )
    assert [(finding.rule, finding.span.line) for finding in findings_of(code) if finding.severity != "note"] == [
        ("KLA301", code.count("\n", 0, code.index("- args.kl_loss_coef")) + 1)
    ]


def test_a_class_made_by_a_function() -> None:
    """A factory of trainers: its methods are judged as those of any other class."""
    code = """
    def wrapped(base):
        class Trainer(base):
            def policy_loss(self, pg, logps, ref_logps):
                return pg.mean() + self.beta * (logps - ref_logps).mean()
        return Trainer
    """
    assert rules_of(code) == ["KLA103"]


def test_a_method_of_the_policy_that_speaks_for_the_reference() -> None:
    code = """
    class Trainer:
        def collect(self, obs):
            log_probs = self.policy.log_probs(obs)
            ref_log_probs = self.policy.get_log_probs_ref_model(obs)
            kl_rewards = -1 * self.controller.kl_coeff * (log_probs - ref_log_probs)
            total_rewards = obs.rewards + kl_rewards.cpu().numpy()
            return total_rewards
    """
    assert only(code).placement == "reward"


@pytest.mark.parametrize("decorator", ["property", "functools.cached_property"])
def test_a_property_of_an_object_is_no_number(decorator: str) -> None:
    code = f"""
    import functools
    class Controller:
        def __init__(self, kl_coeff):
            self._kl_coeff = kl_coeff
        @{decorator}
        def kl_coeff(self):
            return self._kl_coeff
    class Trainer:
        def __init__(self, kl_coeff):
            self.controller = Controller(kl_coeff)
        def shaped_rewards(self, rewards, logps, ref_logps):
            return rewards - self.controller.kl_coeff * (logps - ref_logps)
    """
    formula = only(code)
    assert formula.coefficient(formula.what) is None
    assert [knob.name for knob in formula.knobs] == ["Controller(...).kl_coeff"]


def test_a_test_by_another_name_is_followed() -> None:
    code = """
        import torch
        from torch.nn.functional import logsigmoid

        def exists(value):
            return value is not None

        def at(logits, tokens):
            return logits.log_softmax(dim=-1).gather(-1, tokens)

        class Model(torch.nn.Module):
            def forward(self, tokens, labels=None):
                logp = at(self.model(tokens), tokens)
                ref_logp = at(self.ref_model(tokens), tokens)
                shaped = 0.1 * (logp - ref_logp)
                if not exists(labels):
                    return shaped
                return logsigmoid(shaped).mean()

        if __name__ == "__main__":
            labels = torch.randint(0, 2, (2,))
            model = Model()
            loss = model(tokens, labels)
            loss.backward()
        """
    assert findings(result_of(code, prefilter=False)) == ()


def test_what_torch_says_of_itself_may_be_nothing() -> None:
    code = """
        import torch

        class Trainer:
            def compute_loss(self, model, batch):
                logps = self.get_logps(model, batch)
                ref_logps = batch["ref_logps"]
                kl = 0
                if torch.version.hip is None:
                    kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1
                policy_loss = -(torch.exp(logps - logps.detach()) * batch["advantages"])
                return (policy_loss + 0.1 * kl).mean()
        """
    assert rules_of(code) == ["KLA101"]


ESTIMATORS = """
def approx_kl(log_probs, ref_log_probs):
    return log_probs - ref_log_probs
"""
SHAPING = """
def shaped_rewards(kl, scores, coef):
    rewards = scores - coef * kl
    return rewards
"""


def test_what_passes_through_a_file_on_its_way_is_judged_there() -> None:
    """The estimator of one file joins the reward in another: only the file that calls both knows."""
    code = """
    from estimators import approx_kl
    from shaping import shaped_rewards

    def advantages_and_returns(args, batch):
        kl = approx_kl(batch["log_probs"], batch["ref_log_probs"])
        rewards = shaped_rewards(kl, batch["scores"], args.kl_coef)
        return rewards
    """
    formula = only(code, {"estimators.py": ESTIMATORS, "shaping.py": SHAPING})
    assert (formula.placement, formula.judged_elsewhere) == ("reward", False)
    assert [knob.name for knob in formula.knobs] == ["args.kl_coef"]


def test_what_another_file_does_by_itself_is_judged_there() -> None:
    both = (
        ESTIMATORS
        + SHAPING
        + (
            "\ndef reward_of(batch, coef):\n"
            "    return shaped_rewards(approx_kl(batch['log_probs'], batch['ref_log_probs']), batch['scores'], coef)\n"
        )
    )
    code = """
    from library import reward_of

    def kl_rewards(args, batch):
        return reward_of(batch, args.kl_coef)
    """
    assert all(formula.judged_elsewhere for formula in used(code, {"library.py": both}))
    assert [formula.judged_elsewhere for formula in used(both)] == [False]


def test_a_formula_is_told_of_the_function_that_it_stands_in() -> None:
    """Not of the one that calls this, wherever that stands, nor of the top level."""
    inner = """
    def policy_loss(logp, ref_logp, pg, args):
        loss = pg + args.beta * (logp - ref_logp).mean()
        return loss
    """
    outer = """
    def outer(batch, ref_logp, args):
        policy_loss(batch["logp"], ref_logp, batch["pg"], args).backward()
    """
    top = """
    policy_loss(model(x).logp, ref_logp, pg, settings).backward()
    """
    for code in (inner + outer, outer + inner, inner + outer + top):
        assert [formula.symbol for formula in used(code)] == ["policy_loss"]


@pytest.mark.parametrize("body", ["raise NotImplementedError", "...", "pass", '"""Of a token."""'])
@pytest.mark.parametrize("name", ["kl_penalty", "penalty", "regulariser"])
@pytest.mark.parametrize("children", [1, 2])
def test_a_method_that_is_left_to_subclasses_is_that_of_the_only_one(body: str, name: str, children: int) -> None:
    code = f"""
class Base:
    def {name}(self, logp, ref_logp):
        {body}

    def compute_loss(self, pg_loss, logp, ref_logp):
        return pg_loss + self.beta * self.{name}(logp, ref_logp).mean()

class One(Base):
    def {name}(self, logp, ref_logp):
        x = ref_logp - logp
        return x.exp() - x - 1
"""
    if children == 1:
        assert rules_of(code) == ["KLA101"]
    else:
        other = (
            f"class Two(Base):\n    def {name}(self, logp, ref_logp):\n        return (logp - ref_logp).square() / 2\n"
        )
        assert rules_of(code + other) == [], "which one, the file does not say"
