"""What k3 in the loss and k1 in the reward are in effective settings, framework by framework; written by hand, not read from the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.fix.launches import DotlistPrograms, FlagPrograms, HydraPrograms, Launched, Settings
from benchmarks.fix.recorder import Commands


class Programs(Protocol):
    def launches(self, tree: Path, commands: Commands) -> list[Launched]: ...


@dataclass(frozen=True, slots=True)
class Measured:
    """`coefficient` of k3 in the loss, None where a launch has none; `missed`: why settings are not k1 in the reward with it."""

    programs: Programs
    coefficient: Callable[[Settings], float | None]
    missed: Callable[[Settings, float], str]
    may_change: frozenset[str]


_ACTOR, _CTRL = "actor_rollout_ref.actor.", "algorithm.kl_ctrl."
_HYDRA = HydraPrograms(
    {
        "verl.trainer.main_ppo": ("verl/trainer/config", "ppo_trainer"),
        "verl.trainer.main_ppo_format": ("verl/trainer/config", "ppo_trainer"),
        "verl.experimental.one_step_off_policy.main_ppo": (
            "verl/experimental/one_step_off_policy/config",
            "one_step_off_ppo_trainer",
        ),
        "verl.experimental.fully_async_policy.fully_async_main": (
            "verl/experimental/fully_async_policy/config",
            "fully_async_ppo_trainer",
        ),
        "verl.experimental.vla.main_ppo": ("verl/experimental/vla/config", "rob_ppo_trainer"),
    }
)


def _verl_coefficient(settings: Settings) -> float | None:
    if settings.get(_ACTOR + "use_kl_loss") is not True:
        return None
    if settings.get(_ACTOR + "kl_loss_type") not in ("low_var_kl", "k3"):
        return None
    return float(settings[_ACTOR + "kl_loss_coef"]) or None


def _verl_missed(settings: Settings, amount: float) -> str:
    if settings.get(_ACTOR + "use_kl_loss"):
        return "the loss term is on"
    if settings.get("algorithm.use_kl_in_reward") is not True:
        return "the reward term is off"
    if settings.get("algorithm.kl_penalty") not in ("kl", "k1"):
        return f"the reward holds {settings.get('algorithm.kl_penalty')}"
    if settings.get(_CTRL + "type") != "fixed":
        return "the controller is not fixed"
    if float(settings[_CTRL + "kl_coef"]) != amount:
        return f"the coefficient is {settings[_CTRL + 'kl_coef']}, not {amount}"
    is_grouped = settings.get("algorithm.adv_estimator") == "grpo" and settings.get("actor_rollout_ref.rollout.n") != 1
    if is_grouped and settings.get("algorithm.norm_adv_by_std_in_grpo") is not False:
        return "advantages are divided by the group's standard deviation"
    return ""


_ALGORITHM = "trainer.algorithm."
_SKYRL = DotlistPrograms(  # but for the programs that fine-tune, serve, generate or simulate
    r"(^|[/.])main_(?!sft|generate|harbor_generate|fully_async_sim)[a-z_0-9]+(\.py)?$",
    _ALGORITHM,
    ("skyrl/train/config/config.py", "AlgorithmConfig"),
)


def _skyrl_coefficient(settings: Settings) -> float | None:
    if settings.get(_ALGORITHM + "use_kl_loss") is not True or settings.get(_ALGORITHM + "kl_estimator_type") != "k3":
        return None
    return float(settings[_ALGORITHM + "kl_loss_coef"]) or None


def _skyrl_missed(settings: Settings, amount: float) -> str:
    if settings.get(_ALGORITHM + "use_kl_loss") is not False:
        return "the loss term is on"
    if settings.get(_ALGORITHM + "use_kl_in_reward") is not True:
        return "the reward term is off"
    if settings.get(_ALGORITHM + "kl_estimator_type") != "k1":
        return f"the estimator is {settings.get(_ALGORITHM + 'kl_estimator_type')}"
    if float(settings[_ALGORITHM + "kl_loss_coef"]) != amount:
        return f"the coefficient is {settings[_ALGORITHM + 'kl_loss_coef']}, not {amount}"
    estimator, std = settings.get(_ALGORITHM + "advantage_estimator"), settings.get(_ALGORITHM + "grpo_norm_by_std")
    if estimator == "grpo" and std is not False:
        return "advantages are divided by the group's standard deviation"
    return ""


_OPENRLHF = FlagPrograms(r"(^|[/.])openrlhf[./]cli[./]train_ppo\w*(\.py)?$", {})


def _openrlhf_coefficient(settings: Settings) -> float | None:
    in_loss = settings.get("--use_kl_loss") or settings.get("--algo.kl.use_loss")
    estimator = settings.get("--kl_estimator") or settings.get("--algo.kl.estimator")
    if not in_loss or not (estimator == "k3" or settings.get("--use_kl_estimator_k3")):
        return None
    if settings.get("--algo.kl.unbiased_gradient"):
        return None
    return _openrlhf_amount(settings) or None


def _openrlhf_amount(settings: Settings) -> float:
    return float(settings.get("--init_kl_coef") or settings.get("--algo.kl.init_coef") or 0.01)


def _openrlhf_missed(settings: Settings, amount: float) -> str:
    if settings.get("--use_kl_loss") or settings.get("--algo.kl.use_loss"):
        return "the loss term is on"
    if settings.get("--use_kl_estimator_k3"):
        return "the reward holds k3"
    estimator = settings.get("--kl_estimator") or settings.get("--algo.kl.estimator") or "k1"
    if estimator != "k1":
        return f"the reward holds {estimator}"
    return (
        "" if _openrlhf_amount(settings) == amount else f"the coefficient is {_openrlhf_amount(settings)}, not {amount}"
    )


MEASURED = {
    "verl": Measured(
        _HYDRA,
        _verl_coefficient,
        _verl_missed,
        frozenset(
            {
                *(_ACTOR + name for name in ("use_kl_loss", "kl_loss_type", "kl_loss_coef")),
                *("algorithm." + name for name in ("use_kl_in_reward", "kl_penalty", "norm_adv_by_std_in_grpo")),
                *(_CTRL + name for name in ("type", "kl_coef")),
            }
        ),
    ),
    "skyrl": Measured(
        _SKYRL,
        _skyrl_coefficient,
        _skyrl_missed,
        frozenset(
            _ALGORITHM + name
            for name in ("use_kl_loss", "use_kl_in_reward", "kl_estimator_type", "kl_loss_coef", "grpo_norm_by_std")
        ),
    ),
    "openrlhf": Measured(
        _OPENRLHF,
        _openrlhf_coefficient,
        _openrlhf_missed,
        frozenset(
            {
                "--use_kl_loss",
                "--kl_estimator",
                "--use_kl_estimator_k3",
                "--init_kl_coef",
                "--algo.kl.use_loss",
                "--algo.kl.estimator",
                "--algo.kl.unbiased_gradient",
                "--algo.kl.init_coef",
            }
        ),
    ),
}
