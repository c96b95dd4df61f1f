"""What the shipped rules say of VeRL and what is built on it, by version: one launch, its overrides, and the terms that take effect."""

from __future__ import annotations

import pytest

from klaudit.frameworks.launch import Launch
from klaudit.frameworks.load import load_frameworks
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.resolve import resolve
from klaudit.frameworks.systems.layered import LayeredConfiguration
from klaudit.model import FrameworkVersion, Setting, Span, Value

HERE = Span("train.sh", 0, 1, 1, 1, 1, 2)
ACTOR, ALGORITHM = "actor_rollout_ref.actor.", "algorithm."
LOSS: dict[str, Value] = {ACTOR + "use_kl_loss": True}
REWARD: dict[str, Value] = {ALGORITHM + "use_kl_in_reward": True}


def launch(
    framework: str,
    version: str,
    values: dict[str, Value],
    *,
    trainer: str = "",
    target: str = "verl.trainer.main_ppo",
    config: str = "ppo_trainer",
) -> Resolution:
    rules = next(each for each in load_frameworks() if each.id == framework)
    settings = [Setting(name, value, HERE, HERE, "override") for name, value in values.items()]
    return resolve(
        Launch(
            framework=rules,
            trainer=next(each for each in rules.trainers if trainer in ("", each.id)),
            entry_point=None,
            kind="launch",
            target=target,
            config_name=config,
            head=HERE,
            symbol="",
            assumes=(),
            configuration=LayeredConfiguration(settings),
            imports=(),
            version=FrameworkVersion(version, "option"),
        )
    )


def active(resolution: Resolution) -> list[str]:
    """The terms in force, as text: placement, estimator, gradient, coefficient in 1/nats."""
    return [
        f"{term.placement} {term.estimator} {term.gradient} {term.coefficient}"
        for term in resolution.setup.terms
        if term.active
    ]


ADAPTIVE: dict[str, Value] = {ALGORITHM + "kl_ctrl.type": "adaptive"}
GROUPS: dict[str, Value] = {ALGORITHM + "adv_estimator": "grpo", "actor_rollout_ref.rollout.n": 8}
K3, K1 = "loss k3 pathwise 0.001", "reward k1 score 0.001"
KL_TYPE, KL_COEF, PENALTY, COEF = "kl_loss_type", "kl_loss_coef", "kl_penalty", "kl_ctrl.kl_coef"


@pytest.mark.parametrize(
    ("version", "values", "expected"),
    [
        # nothing set
        ("0.1", {}, [K1]),
        ("0.2", {}, [K1]),
        ("0.3.0.post1", {}, [K1]),
        ("0.4.0", {}, []),
        ("0.9.1", {}, []),
        # one switch moves the penalty, then two switches
        ("0.1", LOSS, [K1]),
        ("0.2", LOSS, [K3]),
        ("0.3.0.post1", LOSS | REWARD, [K3]),
        ("0.4.0", LOSS, [K3]),
        ("0.4.0", REWARD, [K1]),
        ("0.4.0", LOSS | REWARD, [K3, K1]),
        # before it was released, 0.2 subtracted the penalty from the loss
        ("0.2.dev0", LOSS, ["loss k3 pathwise -0.001"]),
        # words
        ("0.3.0.post1", LOSS | {ACTOR + KL_TYPE: "k3"}, []),
        ("0.4.0", LOSS | {ACTOR + KL_TYPE: "k3"}, [K3]),
        ("0.9.1", LOSS | {ACTOR + KL_TYPE: "mse"}, ["loss k2 pathwise 0.001"]),
        ("0.9.1", LOSS | {ACTOR + KL_TYPE: "abs"}, ["loss abs pathwise 0.001"]),
        ("0.9.1", LOSS | {ACTOR + KL_TYPE: "kl"}, ["loss k1 pathwise 0.001"]),
        ("0.9.1", LOSS | {ACTOR + KL_TYPE: "full"}, []),
        ("0.9.1", LOSS | {ACTOR + KL_TYPE: "K3"}, []),
        ("0.5.0", LOSS | {ACTOR + KL_TYPE: "k3+"}, []),
        ("0.7.1", LOSS | {ACTOR + KL_TYPE: "k3+"}, []),
        ("0.8.0.dev0", LOSS | {ACTOR + KL_TYPE: "k3+"}, []),
        ("0.8.0", LOSS | {ACTOR + KL_TYPE: "k3+"}, ["loss k3 straight-through-k2 0.001"]),
        ("0.8.0", REWARD | {ALGORITHM + PENALTY: "k3+"}, ["reward k3 score 0.001"]),
        # coefficients
        ("0.9.1", LOSS | {ACTOR + KL_COEF: 0.0}, []),
        ("0.9.1", LOSS | {ACTOR + KL_COEF: "1e-2"}, ["loss k3 pathwise 0.01"]),
        ("0.9.1", REWARD | {ALGORITHM + COEF: 0.05}, ["reward k1 score 0.05"]),
        # truth of what is not typed
        ("0.9.1", {ACTOR + "use_kl_loss": "off"}, [K3]),
        ("0.9.1", {ACTOR + "use_kl_loss": ""}, []),
        ("0.9.1", {ACTOR + "use_kl_loss": None}, []),
        # the reward that nothing reads
        ("0.9.1", REWARD | {ALGORITHM + "adv_estimator": "gdpo", ALGORITHM + "gdpo_reward_keys": ["a"]}, []),
        ("0.9.1", REWARD | {"distillation.enabled": True, "distillation.distillation_loss.use_task_rewards": False}, []),
        # the adaptive controller
        ("0.3.0.post1", ADAPTIVE, []),
        ("0.3.0.post1", ADAPTIVE | {ALGORITHM + "kl_ctrl.horizon": 1000, ALGORITHM + "kl_ctrl.target_kl": 0.1}, [K1]),
        ("0.4.0", REWARD | ADAPTIVE, [K1]),
        ("0.4.0", REWARD | ADAPTIVE | {ALGORITHM + "kl_ctrl.horizon": 0}, []),
        ("0.4.0", REWARD | {ALGORITHM + "kl_ctrl.type": "linear"}, []),
        ("0.4.0", LOSS | {ALGORITHM + "kl_ctrl.type": "linear"}, [K3]),
    ],
)  # fmt: skip
def test_main_ppo(version: str, values: dict[str, Value], expected: list[str]) -> None:
    assert active(launch("verl", version, values)) == expected


@pytest.mark.parametrize(
    ("version", "target", "config", "values", "expected", "verdicts"),
    [
        ("0.2", "verl.trainer.main_ppo", "ppo_megatron_trainer", {}, [K1], {"unbiased"}),
        ("0.2", "verl.trainer.main_ppo", "ppo_megatron_trainer", LOSS, [], {"ignored"}),
        ("0.3.0.post0", "verl.trainer.main_ppo", "ppo_megatron_trainer", LOSS, [K3], {"biased"}),
        ("0.6.0", "recipe.dapo.main_dapo", "dapo_trainer", REWARD, [], set()),
        ("0.6.1", "recipe.dapo.main_dapo", "dapo_trainer", REWARD, [K1], {"unbiased"}),
        ("0.6.0", "recipe/dapo/main_dapo.py", "dapo_trainer", LOSS, [K3], {"biased"}),
        ("0.7.0", "recipe.prime.main_prime", "prime_trainer", REWARD | {ALGORITHM + COEF: 0.001}, [], {"ignored"}),
        ("0.7.0", "recipe.prime.main_prime", "prime_trainer", LOSS, [K3], {"biased"}),
        ("0.7.0", "recipe.spin.main_spin", "spin_trainer", LOSS | REWARD, [], {"ignored"}),
        ("0.7.0", "recipe.flowrl.main_flowrl", "flowrl_trainer", LOSS, [], {"ignored"}),
        ("0.7.0", "recipe.vla.main_ppo", "rob_ppo_trainer", REWARD, [], set()),
        ("0.7.0", "recipe.entropy.main_entropy", "entropy_trainer", REWARD, [K1], {"unbiased"}),
    ],
)  # fmt: skip
def test_other_trainers(
    version: str, target: str, config: str, values: dict[str, Value], expected: list[str], verdicts: set[str]
) -> None:
    resolution = launch("verl", version, values, target=target, config=config)
    assert active(resolution) == expected
    assert {term.verdict for term in resolution.setup.terms} - {"inactive"} == verdicts


@pytest.mark.parametrize(
    ("version", "values", "rescaled"),
    [
        ("0.3.0.post1", GROUPS, True),
        ("0.9.1", REWARD | GROUPS, True),
        ("0.9.1", REWARD | GROUPS | {"actor_rollout_ref.rollout.n": 1}, False),
        ("0.9.1", REWARD | GROUPS | {ALGORITHM + "norm_adv_by_std_in_grpo": False}, False),
        ("0.9.1", REWARD | GROUPS | {ALGORITHM + "adv_estimator": "rloo"}, False),
    ],
)  # fmt: skip
def test_group_std(version: str, values: dict[str, Value], rescaled: bool) -> None:
    (term,) = [term for term in launch("verl", version, values).setup.terms if term.active]
    assert term.verdict == ("rescaled" if rescaled else "unbiased")


@pytest.mark.parametrize(
    ("version", "values", "expected"),
    [
        ("0.3.2", {}, ["reward k1 score 0.001"]),
        ("0.3.2", {"algorithm.use_kl_loss": "on"}, ["loss k1 pathwise 0.001"]),  # booleans are parsed
        ("0.3.2", {"algorithm.use_kl_loss": "False", "algorithm.kl_penalty": "low_var_kl"}, ["reward k3 score 0.001"]),
        ("0.3.2", {"algorithm.disable_kl": True, "algorithm.use_kl_loss": True}, []),
        ("0.3.2", {"algorithm.kl_penalty": "k1"}, []),
        ("0.3.2", {"algorithm.kl_penalty": "full"}, []),
        ("0.3.0", {"algorithm.kl_type": "adaptive"}, []),  # its horizon is 0
        ("0.3.1", {"algorithm.kl_type": "adaptive"}, ["reward k1 score 0.001"]),
        ("0.2.0.dev0", {}, ["loss k3 pathwise 0.001"]),
        ("0.2.0.dev0", {"worker.actor.use_kl_loss": False}, ["reward k1 score 0.001"]),
        ("0.3.2", {"worker.actor.use_kl_loss": True}, ["reward k1 score 0.001"]),  # overwritten
        ("0.3.2", {"worker.actor.kl_loss_coef": 0.1}, []),  # no such key any more
    ],
)  # fmt: skip
def test_easyr1(version: str, values: dict[str, Value], expected: list[str]) -> None:
    assert active(launch("easyr1", version, values)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [  # as its own sync_config gave when it was executed
        ({}, []),
        (LOSS, []),  # on, with verl's 0.001 overwritten by 0
        ({ACTOR + KL_COEF: 0.001}, [K3]),
        ({ACTOR + KL_COEF: 0.001, ACTOR + "use_kl_loss": False}, []),
        ({"rllm.algorithm.kl_beta": 0.01, ACTOR + KL_COEF: 0.5}, ["loss k3 pathwise 0.01"]),
        (REWARD | {ACTOR + KL_COEF: 0.001}, []),  # an assertion
    ],
)  # fmt: skip
def test_rllm(values: dict[str, Value], expected: list[str]) -> None:
    assert active(launch("rllm", "0.3.0rc0", values)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (LOSS | {ACTOR + KL_COEF: 0.001}, ["loss k1 pathwise 0.001"]),
        (LOSS | {ACTOR + KL_COEF: 0.001, ACTOR + "use_ref": False}, []),
        (REWARD | {ALGORITHM + COEF: 0.001}, ["reward k1 score 0.001"]),
        (REWARD | {ALGORITHM + COEF: 0.001, ACTOR + "use_ref": False}, []),
    ],
)  # fmt: skip
def test_ragen(values: dict[str, Value], expected: list[str]) -> None:
    assert active(launch("verl", "0.9.1", values, trainer="ragen", target="train.py", config="base")) == expected
