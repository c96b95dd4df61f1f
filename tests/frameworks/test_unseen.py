"""What a launch or a call takes from where nobody can look is unknown; what stands beside it is not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.model import Setup, Term

_CALL = "from trl import GRPOConfig\n"


def only_term(tree: Path, name: str, content: str) -> Term:
    (tree / name).write_text(content, encoding="utf-8")
    (setup,) = (setup for setup in scan([str(tree)], Options(jobs=1)).setups if setup.path == name)
    (term,) = setup.terms
    return term


@pytest.mark.parametrize(
    ("command", "coefficient", "active"),
    [
        ("trl grpo --config /data/c.yaml", None, None),
        ("trl grpo --config other.yaml", None, None),
        ("trl grpo --config $(ls *.yaml)", None, None),
        ("trl grpo --config other.yaml --beta 0.2", 0.2, True),
        ("trl grpo --config other.yaml --beta 0", 0.0, False),
        ("trl grpo --config c.yaml", 0.001, True),
        ("trl grpo --config $PWD/configs/c.yaml", 0.5, True),
        ("trl grpo --config /data/repo/configs/c.yaml", 0.5, True),
        ("trl grpo", 0.0, False),
        ("trl grpo --config broken.yaml", 0.0, False),
        ("trl grpo --config broken.yaml --beta 0.2", 0.2, False),  # it stops before training
    ],
)
def test_the_config_that_a_command_names(
    tmp_path: Path, command: str, coefficient: float | None, active: bool | None
) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "c.yaml").write_text("beta: 0.5\n", encoding="utf-8")
    (tmp_path / "c.yaml").write_text("beta: 1e-3\n", encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("beta: [\n", encoding="utf-8")
    term = only_term(tmp_path, "a.sh", command + "\n")
    assert (term.coefficient, term.active) == (coefficient, active)


@pytest.mark.parametrize(
    ("code", "coefficient", "active"),
    [
        ("c = GRPOConfig(**load())", None, None),
        ("c = GRPOConfig(**vars(parser.parse_args()))", None, None),
        ("c = GRPOConfig(beta=0.2, **load())", 0.2, True),
        ("c = GRPOConfig(**load())\nc.beta = 0.2", 0.2, True),
        ("c = GRPOConfig(**{'beta': 0.2})", 0.2, True),
        ("c = GRPOConfig(**{'run_name': 'x'})", 0.0, False),
        ("class Mine(GRPOConfig):\n    beta: float = 0.2\nc = Mine(**load())", None, None),
        ("class Mine(GRPOConfig):\n    beta: float = 0.2\nc = Mine(run_name='x')", 0.2, True),
        ("class Mine(GRPOConfig):\n    pass\nc = Mine(beta=0.3)", 0.3, True),
    ],
)
def test_the_keywords_that_a_call_unpacks(
    tmp_path: Path, code: str, coefficient: float | None, active: bool | None
) -> None:
    term = only_term(tmp_path, "a.py", _CALL + code + "\n")
    assert (term.coefficient, term.active) == (coefficient, active)


@pytest.mark.parametrize(
    ("overrides", "active"),
    [
        ("~{0}", False),
        ("~{0} +{0}=True", True),
        ("+{0}=True", False),  # Hydra refuses to add what is there
        ("~actor_rollout_ref.actor +{0}=True", True),
    ],
)
def test_what_is_deleted_may_be_added_again(tmp_path: Path, overrides: str, active: bool) -> None:
    command = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
    name = "actor_rollout_ref.actor.use_kl_loss"
    (tmp_path / "a.sh").write_text(command + overrides.format(name) + "\n", encoding="utf-8")
    (setup,) = scan([str(tmp_path)], Options(jobs=1)).setups
    assert any(term.active for term in setup.terms) is active


COMPLETED = """
    import ray

    @ray.remote
    class TaskRunner:
        def run(self, config):
            if config.algorithm.kl_ctrl.kl_coef == 0:
                config.actor_rollout_ref.actor.use_kl_loss = False
                config.algorithm.use_kl_in_reward = {in_reward}
            train(config)
"""


def _trees(tmp_path: Path, path: str, code: str) -> tuple[Setup, ...]:
    source = tmp_path / "verl" / "trainer"
    (source / "ppo").mkdir(parents=True)
    (source / "ppo" / "core_algos.py").write_text("", encoding="utf-8")
    target = tmp_path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(textwrap.dedent(code), encoding="utf-8")
    return tuple(each for each in scan([str(tmp_path)], Options(jobs=1)).setups if each.path == path)


@pytest.mark.parametrize("path", ["verl/trainer/main_ppo.py", "verl/trainer/ours/main.py"])
def test_what_a_framework_does_to_a_config_it_is_given_is_no_set_up(tmp_path: Path, path: str) -> None:
    """Every launch brings its own config, which the program completes."""
    assert _trees(tmp_path, path, COMPLETED.format(in_reward=True)) == ()


def test_what_a_program_adds_to_a_config_it_is_given_counts_and_nothing_else(tmp_path: Path) -> None:
    (setup,) = _trees(tmp_path, "train.py", COMPLETED.format(in_reward=True))
    terms = {term.placement: term for term in setup.terms}
    assert terms["reward"].coefficient is None  # the framework's default is not what the config holds
    assert terms["reward"].estimator == "unknown"


def test_a_config_built_from_nothing_is_a_set_up(tmp_path: Path) -> None:
    code = """
    from omegaconf import OmegaConf

    def config():
        config = OmegaConf.create()
        config.actor_rollout_ref.actor.use_kl_loss = True
        config.actor_rollout_ref.actor.kl_loss_type = "low_var_kl"
        config.actor_rollout_ref.actor.kl_loss_coef = 0.01
        return config
    """
    for path in ("train.py", "verl/trainer/demo.py"):
        (setup,) = _trees(tmp_path / path.replace("/", "-"), path, code)
        (loss,) = (term for term in setup.terms if term.placement == "loss")
        assert (loss.estimator, loss.coefficient, loss.active) == ("k3", 0.01, True)


_GIVEN = (
    "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_type=low_var_kl"
    " actor_rollout_ref.actor.kl_loss_coef=0.01"
)
_ASYNC = "python3 -m verl.experimental.fully_async_policy.fully_async_main"
_ONE_STEP = "python3 -m verl.experimental.one_step_off_policy.main_ppo"


def verl_setup(tree: Path, command: str, version: str = "0.9.1") -> Setup:
    (tree / "run.sh").write_text(command, encoding="utf-8")
    (setup,) = scan([str(tree)], Options(jobs=1, framework_versions={"verl": version})).setups
    return setup


@pytest.mark.parametrize(
    ("command", "version", "coefficient"),
    [
        (f"{_ASYNC} --config-name=fully_async_ppo_megatron_trainer", "0.9.1", 0.001),
        (f"{_ASYNC} --config-name=fully_async_ppo_megatron_trainer.yaml", "0.7.1", 0.001),
        (f"{_ASYNC} --config-name fully_async_ppo_trainer", "0.9.1", 0.001),
        (f"{_ONE_STEP} --config-name='one_step_off_ppo_megatron_trainer'", "0.8.0", 0.001),
        ("python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer", "0.9.1", 0.001),
        ("python3 -m verl.trainer.main_ppo --config-name=mine", "0.9.1", None),
        (f"{_ASYNC} --config-name=mine", "0.9.1", None),
    ],
)
def test_configs_that_ship_with_a_trainer_are_known_by_name(
    tmp_path: Path, command: str, version: str, coefficient: float | None
) -> None:
    setup = verl_setup(tmp_path, f"{command} algorithm.use_kl_in_reward=True", version)
    (reward,) = (term for term in setup.terms if term.placement == "reward")
    assert reward.coefficient == coefficient


def test_what_is_given_decides_over_a_config_out_of_sight(tmp_path: Path) -> None:
    command = f"python3 -m verl.trainer.main_ppo --config-name=mine algorithm.use_kl_in_reward=False {_GIVEN}"
    setup = verl_setup(tmp_path, command)
    loss, reward = sorted(setup.terms, key=lambda term: term.placement)
    assert (loss.active, loss.estimator, loss.coefficient, loss.verdict) == (True, "k3", 0.01, "biased")
    assert "judged as if the config mine leaves distillation.enabled at False" in loss.facts
    assert reward.active is False
    assert setup.verdict == "biased"


@pytest.mark.parametrize("left_out", ["algorithm.use_kl_in_reward=False", "actor_rollout_ref.actor.kl_loss_coef=0.01"])
def test_what_a_config_out_of_sight_may_change_stays_unknown_and_is_named(tmp_path: Path, left_out: str) -> None:
    given = f"algorithm.use_kl_in_reward=False {_GIVEN}".replace(left_out, "")
    setup = verl_setup(tmp_path, f"python3 -m verl.trainer.main_ppo --config-name=mine {given}")
    assert setup.verdict == "unknown"
    name = left_out.partition("=")[0]
    (value,) = {str(each.value) for term in setup.terms for each in term.evidence if each.setting == name}
    assert "the config mine" in value
