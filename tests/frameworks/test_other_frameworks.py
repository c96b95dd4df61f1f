"""What the shipped rules say of the smaller frameworks: a snippet, a version, and its terms."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.model import Report

SLIME = "python3 train.py --rollout-batch-size 32 --n-samples-per-prompt 8 "
MILES = SLIME.replace("train.py", "train_multi_lora_async.py")
IN_LOSS = SLIME + "--use-kl-loss --kl-loss-coef 0.01 "
UNBIASED, RATIO = "unbiased-per-token", "importance-weighted"
SWIFT = "swift rlhf --rlhf_type grpo --model org/model "
MEGATRON = SWIFT.replace("swift", "megatron")
OPEN_INSTRUCT = "python open_instruct/grpo_fast.py "
RL2 = "torchrun -m RL2.trainer.ppo "
TORCHTUNE = "loss: {_component_: torchtune.%s}\n"
RLINF = "runner: {task_type: %s}\nalgorithm: {kl_beta: 0.01, kl_penalty_type: %s, adv_type: grpo}\nactor: {training_backend: %s}\n"
AREAL = "gconfig: {n_samples: 4}\nrollout: {max_head_offpolicyness: 0}\nref: {path: org/model}\n"
ROLL = "actor_train: {dtype: bf16}\nactor_infer: {dtype: bf16}\n"
ROLL_REWARD = ROLL + "add_token_level_kl: true\n"


def scanned(folder: Path, framework: str, version: str, files: dict[str, str]) -> Report:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return scan([str(folder)], Options(framework_versions={framework: version}, verbose=True))


def active(report: Report) -> list[str]:
    """The terms in force, as text: placement, estimator, gradient, coefficient in 1/nats, and the verdict."""
    return [
        f"{term.placement} {term.estimator} {term.gradient} {term.coefficient} {term.verdict}"
        for setup in report.setups
        for term in setup.terms
        if term.active
    ]


def rules(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings if finding.severity != "note"}


@pytest.mark.parametrize(
    ("framework", "version", "command", "expected", "findings"),
    [
        # the estimator is k1 by default, the coefficient 0; one estimator serves both places
        ("slime", "0.3.1", SLIME + "--use-kl-loss", [], set()),
        ("slime", "0.3.1", IN_LOSS, ["loss k1 pathwise 0.01 no-regularisation"], {"KLA103"}),
        ("slime", "0.1.0", IN_LOSS, ["loss k1 pathwise 0.01 no-regularisation"], {"KLA103"}),
        ("slime", "0.1.0", IN_LOSS + "--kl-loss-type k1", [], {"KLA203"}),
        ("slime", "0.2.0", IN_LOSS + "--kl-loss-type low_var_kl", ["loss k3 pathwise 0.01 biased"], {"KLA101"}),
        # the ratio makes k1 and k3 unbiased and k2 biased; it is new in 0.2.1
        ("slime", "0.2.1", IN_LOSS + "--kl-loss-type k3 --use-unbiased-kl", [f"loss k3 {RATIO} 0.01 {UNBIASED}"], set()),
        ("slime", "0.2.1", IN_LOSS + "--kl-loss-type k2 --use-unbiased-kl", [f"loss k2 {RATIO} 0.01 biased"], {"KLA105"}),
        ("slime", "0.2.1", IN_LOSS + "--kl-loss-type k2", [f"loss k2 pathwise 0.01 {UNBIASED}"], set()),
        # grpo drops the KL of the reward, reinforce_plus_plus keeps it, its baseline keeps each token's own
        ("slime", "0.3.1", SLIME + "--kl-coef 0.01", [], {"KLA209"}),
        ("slime", "0.3.1", SLIME + "--kl-coef 0.01 --kl-loss-coef 0.01 --use-kl-loss", [], {"KLA206"}),
        ("slime", "0.3.1", SLIME + "--kl-coef 0.01 --advantage-estimator ppo", ["reward k1 score 0.01 unbiased"], set()),
        ("slime", "0.3.1", SLIME + "--kl-coef 0.01 --advantage-estimator reinforce_plus_plus", [], {"KLA206"}),
        ("miles", "0.1.0", MILES + "--kl-coef 0.01 --advantage-estimator ppo", [], {"KLA206"}),
        # an unset beta is 0.04; rloo and reinforce_plus_plus move the KL into the reward, as kl_in_reward does from 3.10.0 on
        ("ms-swift", "3.9.3", SWIFT, ["loss k3 pathwise 0.04 biased"], {"KLA101"}),
        ("ms-swift", "4.6.0", SWIFT + "--beta 0", [], set()),
        ("ms-swift", "4.6.0", SWIFT + "--advantage_estimator rloo", ["reward k1 score 0.04 unbiased"], set()),
        ("ms-swift", "4.6.0", SWIFT + "--kl_in_reward true", ["reward k1 score 0.04 rescaled"], {"KLA108"}),
        ("ms-swift", "4.6.0", SWIFT + "--kl_in_reward true --scale_rewards none", ["reward k1 score 0.04 unbiased"], set()),
        ("ms-swift", "4.6.0", SWIFT + "--kl_in_reward true --scale_rewards gdpo", ["loss k3 pathwise 0.04 biased"], {"KLA101"}),
        ("ms-swift", "4.5.3", MEGATRON + "--advantage_estimator rloo", ["loss k3 pathwise 0.04 biased"], {"KLA101"}),
        ("ms-swift", "4.6.0", MEGATRON + "--advantage_estimator rloo", ["reward k1 score 0.04 unbiased"], set()),
        ("ms-swift", "4.6.0", SWIFT.replace("grpo", "dpo") + "--beta 0.1", [], set()),
        # numbers are indices; 3 is ratio times k1
        ("open-instruct", "0.3.0", OPEN_INSTRUCT, ["loss k3 pathwise 0.05 biased"], {"KLA101"}),
        ("open-instruct", "0.3.0", OPEN_INSTRUCT + "--kl_estimator 0", ["loss k1 pathwise 0.05 no-regularisation"], {"KLA103"}),
        ("open-instruct", "0.3.0", OPEN_INSTRUCT + "--kl_estimator 3", ["loss k1 importance-weighted 0.05 unbiased-per-token"], set()),
        ("open-instruct", "0.0.0", OPEN_INSTRUCT + "--kl_estimator kl4", ["loss k1 importance-weighted 0.05 unbiased-per-token"], set()),
        ("open-instruct", "0.3.0", OPEN_INSTRUCT + "--load_ref_policy False --beta 0.0", [], set()),
        ("open-instruct", "0.3.0", OPEN_INSTRUCT + "--load_ref_policy False", [], {"KLA206"}),
        # the KL is logged only unless a place is named
        ("rl2", "0.0.2", RL2 + "actor.kl.coef=0.01", [], set()),
        ("rl2", "0.0.2", RL2 + "actor.kl.coef=0.01 actor.kl.type=loss", [f"loss k2 pathwise 0.01 {UNBIASED}"], set()),
        ("rl2", "0.0.2", RL2 + "actor.kl.coef=0.01 actor.kl.type=reward", ["reward k1 score 0.01 unbiased"], set()),
        # on by default
        ("megatron-lm", "0.16.0", "python train_rl.py --grpo-group-size 8", ["loss k3 pathwise 0.001 biased"], {"KLA101"}),
        ("megatron-lm", "0.16.0", "python train_rl.py --grpo-kl-beta 0.0", [], set()),
        ("llama-factory", "0.9.5", "llamafactory-cli train --stage ppo", ["reward k1 score 0.2 unbiased"], set()),
        ("llama-factory", "0.9.5", "llamafactory-cli train --stage dpo --pref_beta 0.1", [], set()),
    ],
)  # fmt: skip
def test_commands(
    tmp_path: Path, framework: str, version: str, command: str, expected: list[str], findings: set[str]
) -> None:
    report = scanned(tmp_path, framework, version, {"run.sh": command + "\n"})
    assert active(report) == expected
    assert rules(report) == findings


LOSS = "loss_fn: {reference_policy_kl_penalty: 0.01, reference_policy_kl_type: %s}\n"
REWARD = "loss_fn: {reference_policy_kl_penalty: 0.01, reference_policy_kl_type: k1, use_kl_in_reward: true}\n"
PLUS_PLUS = "grpo: {adv_estimator: {name: reinforce_plus_plus}}\n"
PPO = "ppo: {skip_reference_policy_logprobs_calculation: false}\npolicy: {}\n"


@pytest.mark.parametrize(
    ("framework", "version", "config", "expected", "findings"),
    [
        # the score function came with 0.7.0 and turned the verdicts of k2 and k3 round
        ("nemo-rl", "0.6.0", LOSS % "k3", ["loss k3 pathwise 0.01 biased"], {"KLA101"}),
        ("nemo-rl", "0.7.0", LOSS % "k3", ["loss k3 importance-weighted 0.01 unbiased-per-token"], set()),
        ("nemo-rl", "0.6.0", LOSS % "k2", ["loss k2 pathwise 0.01 unbiased-per-token"], set()),
        ("nemo-rl", "0.7.0", LOSS % "k2", ["loss k2 importance-weighted 0.01 biased"], {"KLA105"}),
        # 0.6.0 adds the KL to the loss all the same (the sum of the two is unbiased); grpo never subtracts it
        ("nemo-rl", "0.7.0", REWARD, [], {"KLA209"}),
        ("nemo-rl", "0.7.0", REWARD + PLUS_PLUS, ["reward k1 score 0.01 unbiased"], set()),
        ("nemo-rl", "0.6.0", REWARD + PLUS_PLUS, ["loss k1 pathwise 0.01 no-regularisation", "reward k1 score 0.01 unbiased"], set()),
        ("nemo-rl", "0.7.0", REWARD + PPO, ["reward k1 score 0.01 unbiased"], set()),
        ("nemo-rl", "0.7.0", REWARD + "ppo: {}\npolicy: {}\n", [], {"KLA206"}),
        ("nemo-rl", "0.7.0", "dpo: {reference_policy_kl_penalty: 0.05}\npolicy: {}\n", [], set()),
        # always in the reward, at 0.1 unless it is said otherwise, and against nothing without a reference model
        ("areal", "1.0.4", AREAL + "actor: {path: org/model}\n", ["reward k1 score 0.1 unbiased"], set()),
        ("areal", "1.0.4", AREAL + "actor: {kl_ctl: 0.0}\n", [], set()),
        ("areal", "1.0.4", AREAL + "actor: {kl_ctl: 0.1, kl_estimator: k3}\n", ["reward k3 score 0.1 biased"], {"KLA102"}),
        ("areal", "1.0.4", "actor: {kl_ctl: 0.1}\n", ["reward k1 score 0.1 biased"], {"KLA104"}),
        ("areal", "0.4.1", "actor: {kl_ctl: 0.1}\n", ["reward k1 score 0.1 unbiased"], set()),
        ("areal", "1.0.4", AREAL + "actor: {kl_ctl: 0.1, adv_norm: {std_level: group}}\n", ["reward k1 score 0.1 rescaled"], {"KLA108"}),
        # the loss is k3 whatever kl_penalty says, which belongs to the reward
        ("roll", "0.3.0", ROLL + "init_kl_coef: 0.2\n", [], set()),
        ("roll", "0.3.0", ROLL + "use_kl_loss: true\nkl_loss_coef: 1.0e-2\nkl_penalty: kl\n", ["loss k3 pathwise 0.01 biased"], {"KLA101"}),
        ("roll", "0.3.0", ROLL_REWARD, ["reward k1 score 0.2 unbiased"], set()),
        ("roll", "0.3.0", ROLL_REWARD + "kl_penalty: mse\n", ["reward k2 score 0.2 biased"], {"KLA104"}),
        ("roll", "0.3.0", ROLL_REWARD + "adv_estimator: agentic_reinforce\n", ["reward k1 score 0.2 biased"], {"KLA104"}),
        # the FSDP worker swaps the arguments, which k2 does not mind; embodied workers read no KL
        ("rlinf", "0.3.0", RLINF % ("reasoning", "low_var_kl", "megatron"), ["loss k3 pathwise 0.01 biased"], {"KLA101"}),
        ("rlinf", "0.3.0", RLINF % ("reasoning", "low_var_kl", "fsdp"), ["loss reversed-k3 pathwise 0.01 biased"], {"KLA105"}),
        ("rlinf", "0.3.0", RLINF % ("reasoning", "k2", "fsdp"), [f"loss k2 pathwise 0.01 {UNBIASED}"], set()),
        ("rlinf", "0.3.0", RLINF % ("embodied", "k2", "fsdp"), [], {"KLA209"}),
        # the loss class decides
        ("torchtune", "0.6.1", TORCHTUNE % "dev.grpo.loss.GRPOSimpleLoss", ["loss k3 pathwise 0.1 biased"], {"KLA101"}),
        ("torchtune", "0.6.1", TORCHTUNE % "rlhf.loss.PPOLoss" + "kl_coeff: 0.01\n", ["reward k1 score 0.01 unbiased"], set()),
        ("torchtune", "0.6.1", TORCHTUNE % "rlhf.loss.DPOLoss", [], set()),
    ],
)  # fmt: skip
def test_config_files(
    tmp_path: Path, framework: str, version: str, config: str, expected: list[str], findings: set[str]
) -> None:
    report = scanned(tmp_path, framework, version, {"config.yaml": config})
    assert active(report) == expected
    assert rules(report) == findings


def test_configs_inherit(tmp_path: Path) -> None:
    """A file without a KL key trains with its grandparent's; a mapping marked `_override_` drops what it would inherit."""
    files = {
        "base.yaml": "grpo: {num_prompts_per_step: 32}\npolicy: {name: m}\n" + LOSS % "k2",
        "exp/middle.yaml": "defaults: ../base.yaml\npolicy: {name: n}\n",
        "exp/child.yaml": "defaults: [middle.yaml]\ncluster: {gpus_per_node: 8}\n",
        "exp/other.yaml": "defaults: middle.yaml\nloss_fn: {_override_: true, reference_policy_kl_penalty: 0.5}\n",
    }
    report = scanned(tmp_path, "nemo-rl", "0.6.0", files)
    found = {setup.path: (setup.terms[0].estimator, setup.terms[0].coefficient) for setup in report.setups}
    k2 = ("k2", 0.01)
    assert found == {"base.yaml": k2, "exp/middle.yaml": k2, "exp/child.yaml": k2, "exp/other.yaml": ("k3", 0.5)}


@pytest.mark.parametrize(
    "text",
    [
        "defaults: circle.yaml\n" + LOSS % "k3",
        "defaults: missing.yaml\n",
        "defaults: /etc/passwd.yaml\n" + LOSS % "k3",
        "defaults: ../../../outside.yaml\n" + LOSS % "k3",
        "defaults: []\n" + LOSS % "k3",
    ],
)
def test_odd_parents_do_no_harm(tmp_path: Path, text: str) -> None:
    report = scanned(tmp_path, "nemo-rl", "0.6.0", {"circle.yaml": text})
    assert len(report.setups) <= 1
    assert all(term.active is not True or term.coefficient == 0.01 for setup in report.setups for term in setup.terms)


def test_a_parent_outside_the_tree_is_unknown(tmp_path: Path) -> None:
    """What a config that is not there might set is not taken for the default."""
    report = scanned(
        tmp_path, "nemo-rl", "0.6.0", {"a.yaml": "defaults: b.yaml\nloss_fn: {reference_policy_kl_type: k3}\n"}
    )
    (setup,) = report.setups
    assert setup.terms[0].coefficient is None


def test_a_fork_counts_only_where_something_tells_it_apart(tmp_path: Path) -> None:
    command = SLIME + "--use-kl-loss --kl-loss-coef 0.01\n"
    report = scanned(tmp_path / "a", "none", "0", {"run.sh": command})
    assert {setup.framework for setup in report.setups} == {"slime"}
    report = scanned(tmp_path / "b", "none", "0", {"run.sh": command, "miles/utils/arguments.py": ""})
    assert {setup.framework for setup in report.setups} == {"miles"}


def test_the_set_up_has_the_weight_that_its_term_really_has(tmp_path: Path) -> None:
    """Without a reference model the estimator is of log pi itself: d has no part in it."""
    (setup,) = scanned(tmp_path, "areal", "1.0.4", {"train.yaml": "actor: {kl_ctl: 0.1}\n"}).setups
    assert (setup.score_weight, setup.verdict) == ("0.1*(log pi)", "biased")
    assert setup.terms[0].score_weight == "log pi"
