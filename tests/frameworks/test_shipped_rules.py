"""What launches of OpenRLHF, SkyRL and TRL train with, release by release, by the shipped rules.

The expectations were read in the releases' source, not in the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pytest

from klaudit.frameworks.launch import Launch
from klaudit.frameworks.load import load_framework, shipped_rules
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.resolve import resolve
from klaudit.frameworks.rules import Framework
from klaudit.frameworks.systems.layered import LayeredConfiguration
from klaudit.model import FrameworkVersion, Setting, Span, Value

Terms = set[tuple[str, str, float | None, str]]
Given = Mapping[str, Value]


@lru_cache
def shipped(name: str) -> Framework:
    return load_framework(shipped_rules() / "frameworks" / f"{name}.yaml")


def resolved(
    name: str, trainer: str, version: str, given: Given, *, target: str = "", imports: tuple[str, ...] = ()
) -> Resolution:
    framework = shipped(name)
    span = Span("launch.sh", 0, 1, 1, 1, 1, 2)
    settings = [Setting(key, value, span, span, "override") for key, value in given.items()]
    launch = Launch(
        framework, next(each for each in framework.trainers if each.id == trainer), None, "launch", target, "", span, "", (),
        LayeredConfiguration(settings), imports, FrameworkVersion(version, "option"),
    )  # fmt: skip
    return resolve(launch)


def active(resolution: Resolution) -> Terms:
    terms = (state.term for state in resolution.terms)
    return {(term.placement, term.estimator, term.coefficient, term.verdict) for term in terms if term.active}


def rules_that_fire(resolution: Resolution) -> set[tuple[str, str]]:
    return {(fault.rule, fault.setting) for fault, known in resolution.faults if known}


# --- OpenRLHF -----------------------------------------------------------------------------------------------------------------------

_FLAT_LOSS: Given = {"use_kl_loss": True, "init_kl_coef": 1e-3}
_DOTTED: Given = {"algo.kl.use_loss": True, "algo.kl.estimator": "k3", "algo.kl.init_coef": 1e-3}


@pytest.mark.parametrize(
    ("version", "given", "terms"),
    [
        ("0.3.5", {}, {("reward", "k1", 0.02, "unbiased")}),
        ("0.3.8", {}, {("reward", "k1", 0.01, "unbiased")}),
        ("0.11.2", {}, {("reward", "k1", 0.01, "unbiased")}),
        ("0.6.0", {"use_kl_estimator_k3": True}, {("reward", "k3", 0.01, "biased")}),
        ("0.9.10", {"kl_estimator": "k3"}, {("reward", "k3", 0.01, "biased")}),
        ("0.5.9.post1", _FLAT_LOSS, set()),  # argparse knows no such flag
        ("0.9.10", _DOTTED, set()),
        ("0.10.2", _FLAT_LOSS, set()),
        ("0.9.10", _FLAT_LOSS, {("loss", "k1", 1e-3, "no-regularisation")}),
        ("0.6.0", {**_FLAT_LOSS, "use_kl_estimator_k3": True}, {("loss", "k3", 1e-3, "biased")}),
        ("0.6.4", {**_FLAT_LOSS, "packing_samples": True}, {("loss", "k1", 1e-3, "no-gradient")}),
        ("0.7.0", {**_FLAT_LOSS, "packing_samples": True}, {("loss", "k1", 1e-3, "no-regularisation")}),
        ("0.7.1", _FLAT_LOSS, set()),  # AttributeError at the first step
        ("0.10.4", _DOTTED, {("loss", "k3", 1e-3, "biased")}),
        ("0.11.1", {**_DOTTED, "algo.kl.unbiased_gradient": True}, {("loss", "k3", 1e-3, "unbiased-per-token")}),
        ("0.11.0", {**_DOTTED, "algo.kl.unbiased_gradient": True}, set()),
        ("0.7.0", {**_FLAT_LOSS, "init_kl_coef": -0.1}, {("loss", "k1", -0.1, "no-regularisation")}),
        ("0.8.0", {**_FLAT_LOSS, "init_kl_coef": -0.1}, set()),
        ("0.7.0", {"init_kl_coef": -0.1}, set()),
        ("0.11.2", {**_DOTTED, "algo.kl.init_coef": 0}, set()),
    ],
)  # fmt: skip
def test_openrlhf(version: str, given: Given, terms: Terms) -> None:
    assert active(resolved("openrlhf", "ppo", version, given)) == terms


def test_openrlhf_estimators_add_the_penalty_after_the_group_statistics() -> None:
    for estimator in ("group_norm", "rloo", "reinforce_baseline"):
        (term,) = active(resolved("openrlhf", "ppo", "0.11.2", {"algo.advantage.estimator": estimator}))
        assert term == ("reward", "k1", 0.01, "unbiased")


def test_openrlhf_controller_and_dead_settings() -> None:
    adaptive = {"algo.kl.target": 6, "algo.kl.horizon": 0}
    assert rules_that_fire(resolved("openrlhf", "ppo", "0.11.2", adaptive)) == {("KLA203", "kl_horizon")}
    assert not rules_that_fire(resolved("openrlhf", "ppo", "0.11.2", {"algo.kl.target": 6}))
    unread = {"algo.kl.unbiased_gradient": True, "algo.kl.horizon": 5}
    assert rules_that_fire(resolved("openrlhf", "ppo", "0.11.2", unread)) == {
        ("KLA202", "unbiased_gradient"),
        ("KLA202", "kl_horizon"),
    }


def test_openrlhf_asserts_equal_placement_of_a_colocated_reference() -> None:
    given: dict[str, Value] = {"train.colocate_all": True, "actor.num_gpus_per_node": 8, "ref.num_gpus_per_node": 4}
    assert rules_that_fire(resolved("openrlhf", "ppo", "0.11.2", given)) == {("KLA206", "ref_num_nodes")}
    assert not rules_that_fire(resolved("openrlhf", "ppo", "0.11.2", {**given, "algo.kl.init_coef": 0}))
    assert not rules_that_fire(resolved("openrlhf", "ppo", "0.11.2", {**given, "ref.num_gpus_per_node": 8}))


# --- SkyRL --------------------------------------------------------------------------------------------------------------------------

_REWARD: Given = {"use_kl_loss": False, "use_kl_in_reward": True}
_K1: Given = {**_REWARD, "kl_estimator_type": "k1"}


def skyrl(framework: str, version: str, given: Given, *, target: str = "") -> Resolution:
    settings = {f"trainer.algorithm.{name}": value for name, value in given.items()}
    return resolved(framework, "ppo", version, settings, target=target)


@pytest.mark.parametrize(
    ("framework", "version", "given", "terms"),
    [
        ("skyrl-train", "0.1.0", {}, {("loss", "k3", 0.001, "no-gradient")}),
        ("skyrl-train", "0.4.0", {}, {("loss", "k3", 0.001, "no-gradient")}),
        ("skyrl", "0.1.0", {}, {("loss", "k3", 0.001, "no-gradient")}),
        ("skyrl", "0.2.0", {}, {("loss", "k3", 0.001, "biased")}),
        ("skyrl", "0.4.0", _REWARD, {("reward", "k3", 0.001, "biased")}),
        ("skyrl", "0.4.0", _K1, {("reward", "k1", 0.001, "rescaled")}),
        ("skyrl", "0.4.0", {**_K1, "grpo_norm_by_std": False}, {("reward", "k1", 0.001, "unbiased")}),
        ("skyrl", "0.4.0", {**_K1, "advantage_estimator": "rloo"}, {("reward", "k1", 0.001, "unbiased")}),
        ("skyrl", "0.4.0", {**_K1, "advantage_estimator": "maxrl"}, {("reward", "k1", 0.001, "rescaled")}),
        ("skyrl", "0.4.0", {"use_kl_in_reward": True}, set()),  # use_kl_loss is on by default: AssertionError
        ("skyrl", "0.4.0", {**_REWARD, "kl_loss_coef": -1.0}, set()),
        ("skyrl", "0.4.0", {"kl_loss_coef": -1.0}, {("loss", "k3", -1.0, "biased")}),
        ("skyrl", "0.4.0", {"kl_estimator_type": "low_var_kl"}, set()),
        ("skyrl-train", "0.2.0", {**_K1, "use_abs_kl": True}, {("reward", "abs", 0.001, "biased")}),
        ("skyrl-train", "0.2.0", {**_K1, "use_kl_estimator_k3": True}, {("reward", "k3", 0.001, "biased")}),
        ("skyrl-train", "0.4.0", {**_K1, "use_abs_kl": True}, {("reward", "k1", 0.001, "rescaled")}),
    ],
)  # fmt: skip
def test_skyrl(framework: str, version: str, given: Given, terms: Terms) -> None:
    assert active(skyrl(framework, version, given)) == terms


def test_skyrl_distillation_example_reads_neither_estimator_nor_coefficient() -> None:
    target = "examples.train.on_policy_distillation.main_on_policy_distill"
    given = {**_REWARD, "advantage_estimator": "no_op"}
    assert active(skyrl("skyrl", "0.3.0", given, target=target)) == {("reward", "k1", 1.0, "unbiased")}


def test_skyrl_overridden_estimator_is_dead() -> None:
    given = {**_K1, "use_abs_kl": True}
    assert rules_that_fire(skyrl("skyrl-train", "0.3.0", given)) == {("KLA202", "kl_estimator_type")}


# --- TRL ----------------------------------------------------------------------------------------------------------------------------

_WITH_KL: Given = {"beta": 0.02}


@pytest.mark.parametrize(
    ("version", "given", "terms"),
    [
        ("0.18.2", {}, {("loss", "k3", 0.04, "biased")}),
        ("0.19.0", {}, set()),
        ("0.25.1", _WITH_KL, {("loss", "k3", 0.02, "biased")}),
        ("1.9.2", _WITH_KL, {("loss", "k3", 0.02, "biased")}),
        ("1.9.2", {**_WITH_KL, "use_bias_correction_kl": True}, {("loss", "k3", 0.02, "unbiased-per-token")}),
        ("1.10.0", _WITH_KL, {("loss", "k3", 0.02, "unbiased-per-token")}),
        ("1.10.0", {**_WITH_KL, "use_bias_correction_kl": False}, {("loss", "k3", 0.02, "biased")}),
        ("1.10.0", {**_WITH_KL, "no_use_bias_correction_kl": True}, {("loss", "k3", 0.02, "biased")}),
        ("1.10.0", {**_WITH_KL, "importance_sampling_level": "sequence"}, {("loss", "k3", 0.02, "biased")}),
        ("1.10.0", {**_WITH_KL, "importance_sampling_level": "sequence_token"}, {("loss", "k3", 0.02, "biased")}),
        ("1.3.0", {**_WITH_KL, "use_bias_correction_kl": True, "use_liger_kernel": True}, {("loss", "k3", 0.02, "biased")}),
        ("1.4.0", {**_WITH_KL, "use_bias_correction_kl": True, "use_liger_kernel": True}, {("loss", "k3", 0.02, "unbiased-per-token")}),
        ("1.16.0", {"beta": "1e-3"}, {("loss", "k3", 0.001, "unbiased-per-token")}),
    ],
)  # fmt: skip
def test_trl_grpo(version: str, given: Given, terms: Terms) -> None:
    assert active(resolved("trl", "grpo", version, given)) == terms


def test_unsloth_rewrites_the_default_of_beta() -> None:
    def with_unsloth(version: str, given: Given) -> Terms:
        return active(resolved("trl", "grpo", version, given, imports=("unsloth", "trl")))

    assert with_unsloth("0.22.2", {"loss_type": "bnpo"}) == {("loss", "k3", 0.001, "biased")}
    assert with_unsloth("0.22.2", {}) == set()
    assert with_unsloth("0.18.2", {}) == {("loss", "k3", 0.001, "biased")}
    assert with_unsloth("0.22.2", {"beta": 0.02}) == {("loss", "k3", 0.02, "biased")}


@pytest.mark.parametrize(
    ("trainer", "version", "given", "terms"),
    [
        ("grpo-variants", "1.12.0", _WITH_KL, {("loss", "k3", 0.02, "biased")}),
        ("rloo", "0.9.6", {}, {("reward", "k1", 0.05, "unbiased")}),
        ("rloo", "0.22.0", {}, {("reward", "k1", 0.05, "unbiased")}),
        ("rloo", "0.24.0", {"beta": 0.1, "kl_coef": 0.2}, {("reward", "k1", 0.2, "unbiased")}),
        ("rloo", "0.25.0", {"beta": 0.1, "kl_coef": 0.2}, set()),  # TypeError: kl_coef is gone
        ("rloo", "0.21.0", {"beta": 0.1}, set()),  # TypeError: not yet
        ("rloo", "1.16.0", {"beta": 0.0}, set()),
        ("ppo", "0.4.6", {}, {("reward", "k1", 0.2, "unbiased")}),
        ("ppo", "0.11.4", {"init_kl_coef": 0.2, "kl_penalty": "mse"}, {("reward", "k2", 0.2, "biased")}),
        ("ppo", "0.11.4", {"kl_penalty": "full"}, {("reward", "full", 0.2, "biased")}),
        ("ppo", "0.4.7", {"kl_penalty": "full"}, set()),
        ("ppo", "0.12.0", {}, {("reward", "k1", 0.05, "unbiased")}),
        ("ppo", "1.12.0", {"kl_coef": 0.05, "kl_estimator": "k3"}, {("reward", "k3", 0.05, "biased")}),
        ("ppo", "1.12.0", {"kl_estimator": "k2"}, set()),
        ("ppov2", "0.11.4", {}, {("reward", "k1", 0.05, "unbiased")}),
        ("nash-md", "0.11.4", {}, {("loss", "k1", 0.1, "no-regularisation")}),
        ("nash-md", "1.13.0", {}, {("loss", "k1", 0.1, "unbiased-per-token")}),
        ("sdpo", "1.16.0", {"beta": 0.1}, set()),
        ("async-grpo", "1.16.0", {"beta": 0.1}, set()),
    ],
)  # fmt: skip
def test_other_trl_trainers(trainer: str, version: str, given: Given, terms: Terms) -> None:
    assert active(resolved("trl", trainer, version, given)) == terms


def test_a_beta_that_nobody_reads_is_ignored_not_off() -> None:
    (state,) = resolved("trl", "sdpo", "1.16.0", {"beta": 0.1}).terms
    assert state.term.verdict == "ignored"


def test_classes_whose_beta_is_no_kl_coefficient_are_unknown() -> None:
    names = {
        name.rpartition(".")[2]
        for trainer in shipped("trl").trainers
        for item in trainer.classes
        for name in item.names
    }
    assert not names & {
        "DPOConfig",
        "KTOConfig",
        "CPOConfig",
        "ORPOConfig",
        "OnlineDPOConfig",
        "XPOConfig",
        "GKDConfig",
        "A2POConfig",
    }
