"""Whole migrations of small trees: what is written, what is refused and why."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaudit.configuration import Options
from klaudit.fixes.migration import Plan, Request
from klaudit.fixes.planning import plan

HEAD = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=8"


def planned(folder: Path, files: dict[str, str], options: Options | None = None, **request: Any) -> Plan:
    for name, text in {"requirements.txt": "verl==0.7.0\n", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return plan([str(folder)], options or Options(), Request(**request))


def fixed(made: Plan, name: str = "run.sh") -> str:
    return made.contents[name].decode()


def whys(made: Plan) -> str:
    return "\n".join(each.why for each in made.unchanged)


# --- commands --------------------------------------------------------------------------------------------------------------------------


def test_a_loop_keeps_the_variable_that_carries_the_coefficient(tmp_path: Path) -> None:
    text = f"for c in 0.001 0.01; do\n{HEAD} \\\n  actor_rollout_ref.actor.use_kl_loss=True \\\n  actor_rollout_ref.actor.kl_loss_coef=$c\ndone\n"
    made = planned(tmp_path, {"run.sh": text})
    assert "algorithm.kl_ctrl.kl_coef=$c" in fixed(made)
    assert [each.after.terms[1].coefficient for each in made.migrations if each.after] == [0.001, 0.01]


def test_a_loop_over_the_switch_is_refused(tmp_path: Path) -> None:
    text = f"for kl in True False; do {HEAD} actor_rollout_ref.actor.use_kl_loss=$kl; done\n"
    made = planned(tmp_path, {"run.sh": text})
    assert not made.contents
    assert "shares its text" in whys(made)


def test_new_words_stand_before_what_ends_the_command(tmp_path: Path) -> None:
    for end in ('"$@"', "$@", "2>&1 | tee log", "> log 2>&1 &"):
        made = planned(tmp_path, {"run.sh": f"{HEAD} \\\n  actor_rollout_ref.actor.use_kl_loss=True {end}\n"})
        assert re.search(r"use_kl_loss=False(?: \\\n  algorithm\.\S+)+ " + re.escape(end), fixed(made))


def test_nothing_is_put_behind_a_cut(tmp_path: Path) -> None:
    text = (
        f"{HEAD} \\\n  actor_rollout_ref.actor.use_kl_loss=True \\\n  # trainer.nnodes=1 \\\n  trainer.total_epochs=1\n"
    )
    made = planned(tmp_path, {"run.sh": text})
    assert fixed(made).index("use_kl_in_reward") < fixed(made).index("# trainer.nnodes")


def test_the_last_of_several_values_is_changed(tmp_path: Path) -> None:
    switch = "actor_rollout_ref.actor.use_kl_loss"
    made = planned(tmp_path, {"run.sh": f"{HEAD} {switch}=False trainer.nnodes=1 {switch}=True\n"})
    assert f"{switch}=False trainer.nnodes=1 {switch}=False algorithm.use_kl_in_reward=True" in fixed(made)


def test_a_plus_only_where_the_key_is_absent(tmp_path: Path) -> None:
    config = "defaults: [_self_]\nalgorithm: {adv_estimator: grpo, kl_ctrl: {type: fixed, kl_coef: 0.001}}\nactor_rollout_ref: {actor: {use_kl_loss: false, kl_loss_coef: 0.001, kl_loss_type: low_var_kl}, rollout: {n: 8}}\n"
    text = "python3 -m verl.trainer.main_ppo --config-path=config --config-name=own actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.01\n"
    made = planned(tmp_path, {"config/own.yaml": config, "run.sh": text})
    assert "+algorithm.use_kl_in_reward=True" in fixed(made)
    assert " algorithm.kl_ctrl.kl_coef=0.01" in fixed(made)


def test_words_of_a_sourced_file_that_another_launch_needs_are_overruled_in_the_script(tmp_path: Path) -> None:
    files = {
        "common.sh": "KL=(actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.01)\n",
        "one.sh": f'source common.sh\n{HEAD} "${{KL[@]}}" "$@"\n',
        "two.sh": f'source common.sh\n{HEAD} "${{KL[@]}}" actor_rollout_ref.actor.use_kl_loss=False\n',
    }
    made = planned(tmp_path, files)
    assert set(made.contents) == {"one.sh"}
    assert '"${KL[@]}" actor_rollout_ref.actor.use_kl_loss=False algorithm.use_kl_in_reward=True' in fixed(
        made, "one.sh"
    )
    assert fixed(made, "one.sh").endswith(' "$@"\n')
    assert "two.sh" in made.migrations[0].notes[0]


def test_a_file_that_was_not_named_has_a_say_too(tmp_path: Path) -> None:
    files = {
        ".git/HEAD": "",
        "common.sh": "KL=(actor_rollout_ref.actor.use_kl_loss=True)\n",
        "one.sh": f'source common.sh\n{HEAD} "${{KL[@]}}"\n',
        "two.sh": f'source common.sh\n{HEAD} "${{KL[@]}}" actor_rollout_ref.actor.use_kl_loss=False\n',
    }
    planned(tmp_path, files)
    assert set(plan([str(tmp_path / "one.sh")], Options(), Request()).contents) == {"one.sh"}


def test_words_of_a_sourced_file_that_all_launches_change(tmp_path: Path) -> None:
    files = {
        "common.sh": "KL=(actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.01)\n",
        "one.sh": f'source common.sh\n{HEAD} "${{KL[@]}}"\n',
        "two.sh": f'source common.sh\n{HEAD} "${{KL[@]}}" actor_rollout_ref.rollout.n=1\n',
    }
    assert set(planned(tmp_path, files).contents) == {"common.sh"}


def test_a_branch_that_cannot_be_migrated_keeps_its_settings(tmp_path: Path) -> None:
    text = (
        'MORE=""\nif [ "$STEP_WISE" = true ]; then\n  MORE="generator.step_wise_trajectories=true"\nfi\n'
        "python -m skyrl.train.entrypoints.main_base trainer.algorithm.advantage_estimator=grpo \\\n"
        "  trainer.algorithm.kl_loss_coef=0.01 \\\n  $MORE\n"
    )
    made = planned(tmp_path, {"requirements.txt": "skyrl==0.4.0\n", "run.sh": text})
    assert 'MORE="generator.step_wise_trajectories=true trainer.algorithm.' in fixed(made)
    assert "trainer.algorithm.kl_estimator_type=k3" in fixed(made)
    assert "trainer.algorithm.kl_estimator_type=k1" in fixed(made)
    assert "STEP_WISE" in made.migrations[0].notes[0]


def test_flags(tmp_path: Path) -> None:
    text = (
        "python3 -m openrlhf.cli.train_ppo_ray \\\n  --advantage_estimator group_norm \\\n  --use_kl_loss \\\n"
        "  --kl_estimator k3 \\\n  --init_kl_coef 1e-3\n"
    )
    made = planned(tmp_path, {"requirements.txt": "openrlhf==0.8.0\n", "run.sh": text})
    assert fixed(made) == text.replace("  --use_kl_loss \\\n", "").replace("k3", "k1")


def test_lists_of_overrides_in_code(tmp_path: Path) -> None:
    text = (
        "from hydra import compose\nconfig = compose('ppo_trainer', overrides=[\n    'algorithm.adv_estimator=gae',\n"
        "    'actor_rollout_ref.actor.use_kl_loss=True',  # on\n])\n"
        "other = compose('ppo_trainer', overrides=['algorithm.adv_estimator=gae', 'actor_rollout_ref.actor.use_kl_loss=False'])\n"
    )
    made = planned(tmp_path, {"run.py": text})
    assert fixed(made, "run.py") == text.replace(
        "    'actor_rollout_ref.actor.use_kl_loss=True',  # on\n",
        "    'algorithm.use_kl_in_reward=True',\n    'actor_rollout_ref.actor.use_kl_loss=False',  # on\n",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the value of the coefficient is moved as it is written
        ("kl_loss_coef=`cat coef`", "algorithm.kl_ctrl.kl_coef=`cat coef`"),
        ("kl_loss_coef=${1:-0.01}", "algorithm.kl_ctrl.kl_coef=${1:-0.01}"),
        ("kl_loss_coef=1e-2", "algorithm.kl_ctrl.kl_coef=1e-2"),
    ],
)
def test_the_coefficient_moves_as_it_is_written(tmp_path: Path, text: str, expected: str) -> None:
    actor = "actor_rollout_ref.actor"
    made = planned(tmp_path, {"run.sh": f"{HEAD} {actor}.use_kl_loss=True {actor}.{text} > log 2>&1 &\n"})
    assert f" {expected} > log 2>&1 &\n" in fixed(made)


def test_quotes(tmp_path: Path) -> None:
    """Quotes within quotes are the program's own, and would make a text of a boolean."""
    actor = "actor_rollout_ref.actor"
    made = planned(tmp_path, {"run.sh": f"{HEAD} \"{actor}.use_kl_loss='True'\" '{actor}.kl_loss_coef=\"0.01\"'\n"})
    assert f'"{actor}.use_kl_loss=False"' in fixed(made)
    assert "'algorithm.kl_ctrl.kl_coef=\"0.01\"'" in fixed(made)


# --- choices --------------------------------------------------------------------------------------------------------------------------


def test_keep_std_takes_what_stays_unbiased(tmp_path: Path) -> None:
    text = f"{HEAD} actor_rollout_ref.actor.use_kl_loss=True\n"
    made = planned(tmp_path, {"run.sh": text}, keep_std=True)
    assert "norm_adv_by_std" not in fixed(made)
    assert "actor_rollout_ref.actor.kl_loss_type=mse" in fixed(made)
    (tmp_path / "run.sh").write_text(fixed(made))
    assert not planned(tmp_path, {}, keep_std=True).contents


def test_what_cannot_be_reached_is_refused_with_the_alternative(tmp_path: Path) -> None:
    text = f"{HEAD} actor_rollout_ref.actor.use_kl_loss=True\n"
    made = planned(tmp_path, {"requirements.txt": "verl==0.3.0\n", "run.sh": text})
    assert not made.contents
    assert "standard deviation" in whys(made)
    assert any("k2-in-loss" in text for each in made.unchanged for text in each.instead)


def test_selection(tmp_path: Path) -> None:
    files = {"run.sh": f"{HEAD} actor_rollout_ref.actor.use_kl_loss=True\n"}
    assert planned(tmp_path, files, Options(select=("KLA101",))).contents
    assert not planned(tmp_path, files, Options(select=("KLA102",))).contents
    assert not planned(tmp_path, files, Options(ignore=("k3-in-loss",))).contents


# --- config files ---------------------------------------------------------------------------------------------------------------------


@st.composite
def configs(draw: st.DrawFn) -> str:
    """YAML of one set-up with k3 in the loss, in many styles."""
    indent = draw(st.sampled_from(["  ", "    "]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    note = draw(st.sampled_from(["", "  # note: a, b"]))
    actor = [("use_kl_loss", draw(st.sampled_from(["true", "True", "on"]))), ("kl_loss_coef", "0.02")]
    actor += draw(
        st.sampled_from([[], [("kl_loss_type", "low_var_kl")], [("kl_loss_type", '"low_var_kl"'), ("clip", "{a: 1}")]])
    )
    actor = draw(st.permutations(actor))
    lines = [draw(st.sampled_from(["# head", "---", "trainer: {n: 1}"])), "actor_rollout_ref:"]
    if draw(st.booleans()):
        lines += [f"{indent}actor: {{{', '.join(f'{key}: {value}' for key, value in actor)}}}{note}"]
    else:
        lines += [f"{indent}actor:{note}", *(f"{indent * 2}{key}: {value}{note}" for key, value in actor)]
    lines += [
        f"{indent}rollout:",
        f"{indent * 2}n: 8",
        f"algorithm: {{adv_estimator: grpo}}{note}"
        if draw(st.booleans())
        else f"algorithm:{end}{indent}adv_estimator: grpo{note}",
    ]
    return end.join(lines) + draw(st.sampled_from([end, ""]))


def flat(node: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(node, dict):
        return {name: node}
    return {
        key: value for inner, below in node.items() for key, value in flat(below, f"{name}.{inner}".strip(".")).items()
    }


def test_what_a_merge_key_brings_in_is_overruled_beside_it(tmp_path: Path) -> None:
    text = (
        "base: &base\n  use_kl_loss: true\n  kl_loss_coef: 0.01\nactor_rollout_ref:\n  actor:\n    <<: *base\n"
        "    kl_loss_type: low_var_kl\n    clip: 0.2\nalgorithm:\n  adv_estimator: gae\n"
    )
    made = planned(tmp_path, {"own.yaml": text})
    after = yaml.safe_load(fixed(made, "own.yaml"))
    assert after["base"] == {"use_kl_loss": True, "kl_loss_coef": 0.01}
    assert after["actor_rollout_ref"]["actor"] == {"use_kl_loss": False, "kl_loss_coef": 0.01, "clip": 0.2}
    assert after["algorithm"]["kl_ctrl"] == {"kl_coef": 0.01}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "own.yaml",
            "{algorithm: {adv_estimator: gae,   # est\n   gamma: 1.0},\n actor_rollout_ref: {actor: {\n    use_kl_loss: true,\n    kl_loss_coef: 0.01}}}\n",
            "{algorithm: {adv_estimator: gae,   # est\n   gamma: 1.0,\n   use_kl_in_reward: true,\n   kl_ctrl: {kl_coef: 0.01}},\n"
            " actor_rollout_ref: {actor: {\n    use_kl_loss: false}}}\n",
        ),
        (
            "own.toml",
            'algorithm.adv_estimator = "gae"\nactor_rollout_ref.actor.use_kl_loss = true # on\n',
            'algorithm.adv_estimator = "gae"\nalgorithm.use_kl_in_reward = true\nactor_rollout_ref.actor.use_kl_loss = false # on\n',
        ),
        (
            "own.json",
            '{\r\n\t"actor_rollout_ref": {"actor": {"kl_loss_coef": 0.01, "use_kl_loss": true}},\r\n\t"algorithm": {}\r\n}\r\n',
            '{\r\n\t"actor_rollout_ref": {"actor": {"use_kl_loss": false}},\r\n'
            '\t"algorithm": {"use_kl_in_reward": true, "kl_ctrl": {"kl_coef": 0.01}}\r\n}\r\n',
        ),
        (
            "own.yaml",
            "\ufeffactor_rollout_ref:\n  actor:\n    use_kl_loss: true\nalgorithm:\n  adv_estimator: gae",
            "\ufeffactor_rollout_ref:\n  actor:\n    use_kl_loss: false\nalgorithm:\n  adv_estimator: gae\n  use_kl_in_reward: true",
        ),
    ],
)  # fmt: skip
def test_styles_are_kept(tmp_path: Path, name: str, text: str, expected: str) -> None:
    assert fixed(planned(tmp_path, {name: text}), name) == expected


def test_new_mappings_where_the_last_line_goes(tmp_path: Path) -> None:
    """The algorithm section is missing, and the last key of the only section is one that goes."""
    for end in ("", "\n"):
        text = "actor_rollout_ref:\n  actor:\n    use_kl_loss: yes\n    kl_loss_coef: 1e-2" + end
        made = planned(tmp_path, {"own.yaml": text})
        assert fixed(made, "own.yaml") == (
            "actor_rollout_ref:\n  actor:\n    use_kl_loss: false\n"
            "algorithm:\n  use_kl_in_reward: true\n  kl_ctrl:\n    kl_coef: 1e-2" + end
        )


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(configs())
def test_yaml_says_the_same_but_for_what_was_to_change(tmp_path: Path, text: str) -> None:
    made = planned(tmp_path, {"own.yaml": text})
    before, after = flat(yaml.safe_load(text)), flat(yaml.safe_load(fixed(made, "own.yaml")))
    changed = {name for name in {*before, *after} if before.get(name, ...) != after.get(name, ...)}
    prefix = "actor_rollout_ref.actor."
    assert changed - {f"{prefix}kl_loss_type"} == {
        f"{prefix}use_kl_loss", f"{prefix}kl_loss_coef", "algorithm.use_kl_in_reward", "algorithm.kl_ctrl.kl_coef",
        "algorithm.norm_adv_by_std_in_grpo",
    }  # fmt: skip
    assert after["algorithm.kl_ctrl.kl_coef"] == 0.02
    assert fixed(made, "own.yaml").count("# note") == text.count("# note")
    assert ("\r\n" in text) == ("\r\n" in fixed(made, "own.yaml"))
    assert not re.search(r"(?<!\r)\n", fixed(made, "own.yaml")) or "\r\n" not in text


def test_a_script_leaves_to_its_config_what_changes_there(tmp_path: Path) -> None:
    config = "algorithm: {adv_estimator: grpo}\nactor_rollout_ref:\n  actor: {use_kl_loss: true, kl_loss_coef: 0.02}\n  rollout: {n: 8}\n"
    script = "python3 -m verl.trainer.main_ppo --config-path=. --config-name=own trainer.nnodes=2\n"
    made = planned(tmp_path, {"own.yaml": config, "run.sh": script})
    assert set(made.contents) == {"own.yaml"}
    assert {each.path for each in made.migrations} == {"own.yaml", "run.sh"}


def test_values_that_stand_for_others_too(tmp_path: Path) -> None:
    text = (
        "on: &on true\nalgorithm: {{adv_estimator: grpo}}\nactor_rollout_ref:\n  actor:\n    use_kl_loss: {}\n"
        "    kl_loss_coef: 0.02\n  rollout: {{n: 8}}\nother: {}\n"
    )
    anchored = planned(tmp_path, {"own.yaml": text.format("&kl true", "*kl")})
    assert not anchored.contents
    assert "other would change" in whys(anchored)
    aliased = planned(tmp_path, {"own.yaml": text.format("*on", "*on")})
    assert yaml.safe_load(fixed(aliased, "own.yaml"))["other"] is True


def test_a_file_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_bytes(b"use_kl_loss: \xff\xfe\nkl_loss_coef: [")
    (tmp_path / "deep.json").write_text("[" * 5000 + '"use_kl_loss"' + "]" * 5000)
    (tmp_path / "latin.sh").write_bytes(b"# \xe9\n" + HEAD.encode() + b" actor_rollout_ref.actor.use_kl_loss=True\n")
    made = planned(tmp_path, {"run.sh": f"{HEAD} actor_rollout_ref.actor.use_kl_loss=True\n"})
    assert "run.sh" in made.contents
    assert {problem.path for problem in made.problems} >= {"broken.yaml"}
    assert not any("internal error" in problem.message for problem in made.problems)


def test_launches_of_code_that_is_wrong_are_named_with_it() -> None:
    folder = Path(__file__).parents[2] / "fixtures" / "code-vendored-trainer" / "input"
    made = plan([str(folder)], Options(), Request())
    assert not made.migrations
    assert any(
        "mended first" in each.why and {"KLA301", "KLA302", "KLA303"} & set(each.rules) for each in made.unchanged
    )


# --- lines of code ------------------------------------------------------------------------------------------------------------------------

ATTRIBUTES = (
    'from omegaconf import OmegaConf\nconfig = OmegaConf.load("base.yaml")\nconfig.algorithm.adv_estimator = "grpo"\n'
    "config.actor_rollout_ref.actor.use_kl_loss = True  # on\n"
    'config.actor_rollout_ref.actor.kl_loss_type = "low_var_kl"  # gone\nconfig.actor_rollout_ref.actor.kl_loss_coef = 0.01  # kept\n'
)


@pytest.mark.parametrize("target", ["k1-in-reward", "k2-in-loss"])
def test_lines_behind_a_comment_end_as_the_others(tmp_path: Path, target: str) -> None:
    text = re.sub('.*"low_var_kl".*\n', "", ATTRIBUTES)
    made = planned(tmp_path, {"launch.py": text.replace("\n", "\r\n")}, target=target)
    assert "\n" not in fixed(made, "launch.py").replace("\r\n", "")
    with_other_ends = planned(tmp_path / "other", {"launch.py": text}, target=target)
    assert fixed(made, "launch.py").replace("\r\n", "\n") == fixed(with_other_ends, "launch.py")


def test_a_lone_carriage_return_ends_a_comment_and_what_follows_stays(tmp_path: Path) -> None:
    made = planned(tmp_path, {"launch.py": ATTRIBUTES.replace("# gone", "# gone\rkeep = 1")})
    assert "keep = 1" in made.contents.get("launch.py", b"keep = 1").decode()
    assert "shares its line with another statement" in whys(made)
