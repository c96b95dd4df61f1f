"""Other classes in the place of a trainer: what is renamed, dropped, spelt out, and when that is refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.fixes.migration import Plan, Request
from klaudit.fixes.planning import plan

IMPORTS = "from trl import GRPOConfig, GRPOTrainer\n\n"
CONFIG = 'args = GRPOConfig(output_dir="out", beta=0.04, num_generations=4)\n'
TRAINER = 'trainer = GRPOTrainer("model", reward, args=args)\n'


def planned(folder: Path, text: str, *, choice: str, version: str = "0.26.2", unsafe: bool = True) -> Plan:
    (folder / "requirements.txt").write_text(f"trl=={version}\n")
    (folder / "train.py").write_bytes(text.encode())
    return plan([str(folder)], Options(), Request(choice=choice, unsafe=unsafe))


def fixed(made: Plan) -> str:
    assert made.contents, [each.why for each in made.unchanged]
    return made.contents["train.py"].decode()


def whys(made: Plan) -> str:
    assert not made.contents
    return "\n".join(each.why for each in made.unchanged)


def test_rloo_takes_the_place_of_grpo(tmp_path: Path) -> None:
    text = IMPORTS + 'args = GRPOConfig(\n    "out",\n    beta=0.04,  # KL\n    loss_type="dr_grpo",\n)\n' + TRAINER
    made = planned(tmp_path, text, choice="rloo")
    assert fixed(made) == (
        "from trl import RLOOConfig, RLOOTrainer\n\n"
        'args = RLOOConfig(\n    "out",\n    num_generations=8,\n    beta=0.04,  # KL\n)\n'
        'trainer = RLOOTrainer("model", reward, args=args)\n'
    )
    after = made.migrations[0].after
    assert after is not None
    assert [(term.placement, term.estimator, term.coefficient) for term in after.terms] == [("reward", "k1", 0.04)]
    assert "loss_type is dropped" in made.migrations[0].notes[0]


@pytest.mark.parametrize(
    ("version", "argument", "goes"),
    [
        ("0.24.0", "cast_lm_head_to_fp32=True", False),
        ("0.25.0", "cast_lm_head_to_fp32=True", True),
        ("0.26.0", "vllm_max_model_length=9", True),
        ("0.27.0", "vllm_max_model_length=9", False),
        ("1.9.0", "entropy_coef=0.1", True),
    ],
)
def test_what_is_dropped_depends_on_the_release(tmp_path: Path, version: str, argument: str, goes: bool) -> None:
    text = IMPORTS + f"args = GRPOConfig(num_generations=4, {argument}, beta=0.04)\n" + TRAINER
    made = planned(
        tmp_path,
        text.replace("beta", "use_bias_correction_kl=False, beta") if version == "1.9.0" else text,
        choice="rloo",
        version=version,
    )
    assert (argument not in fixed(made)) == goes


def test_names_given_by_as_and_by_modules(tmp_path: Path) -> None:
    aliased = "from trl import GRPOConfig as Config\nimport trl\n\nargs = Config(num_generations=4, beta=0.04)\ntrl.GRPOTrainer('m', r, args)\n"
    made = planned(tmp_path, aliased, choice="rloo")
    assert fixed(made) == aliased.replace("GRPO", "RLOO")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (IMPORTS + CONFIG, "no GRPOTrainer is made"),
        (IMPORTS + CONFIG + TRAINER.replace("args=args", "args=args, tools=[t]"), "is given tools"),
        (IMPORTS + CONFIG + TRAINER.replace("args=args", "args=args, **more"), r"with `\*\*`"),
        (IMPORTS + CONFIG + TRAINER + "print(GRPOConfig)\n", "does something else with GRPOConfig"),
        (IMPORTS + CONFIG + TRAINER + "class Own(GRPOTrainer): pass\n", "derives from GRPOTrainer"),
        (IMPORTS + "from trl import RLOOConfig\n" + CONFIG + TRAINER, "RLOOConfig is used in this file already"),
        (IMPORTS + CONFIG + "other = GRPOConfig(beta=0.0)\n" + TRAINER, "same launches"),
    ],
)
def test_what_cannot_be_told_is_refused(tmp_path: Path, text: str, why: str) -> None:
    made = planned(tmp_path, text, choice="rloo")
    import re

    assert re.search(why, whys(made))


@pytest.mark.parametrize(("version", "why"), [("0.21.0", "another trainer"), ("0.15.2", "another trainer")])
def test_rloo_of_old_releases(tmp_path: Path, version: str, why: str) -> None:
    assert why in whys(planned(tmp_path, IMPORTS + CONFIG + TRAINER, choice="rloo", version=version))


@pytest.mark.parametrize(("version", "why"), [("0.15.2", "no method"), ("0.18.1", "inside the loss")])
def test_releases_without_a_hook(tmp_path: Path, version: str, why: str) -> None:
    assert why in whys(planned(tmp_path, IMPORTS + CONFIG + TRAINER, choice="subclass", version=version))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_subclass_is_written_before_its_use(tmp_path: Path, end: str) -> None:
    text = (
        '"""Doc."""\nfrom __future__ import annotations\n'
        + IMPORTS
        + "\n@cached\ndef main():\n    "
        + CONFIG
        + "    "
        + TRAINER
    )
    made = planned(tmp_path, text.replace("\n", end), choice="subclass")
    after = fixed(made)
    assert ("\r\n" in after) == (end == "\r\n")
    assert end == "\n" or "\n" not in after.replace("\r\n", "")
    module = ast.parse(after)
    assert [type(node).__name__ for node in module.body] == [
        "Expr",
        "ImportFrom",
        "Import",
        "Import",
        "ImportFrom",
        "ClassDef",
        "FunctionDef",
    ]
    assert 'GRPOConfig(output_dir="out", beta=0.0, num_generations=4)' in after
    assert 'GRPOTrainerWithRewardKL("model", reward, args=args, kl_coef=0.04)' in after
    result = made.migrations[0].after
    assert result is not None
    assert result.verdict == "unbiased"
    assert [term.coefficient for term in result.terms if term.active] == [0.04]


def test_after_it_nothing_is_found_and_nothing_more_is_done(tmp_path: Path) -> None:
    for choice in ("rloo", "subclass"):
        made = planned(tmp_path, IMPORTS + CONFIG + TRAINER, choice=choice)
        again = planned(tmp_path, fixed(made), choice=choice)
        assert not again.contents
        assert "KLA101" not in {finding.rule for finding in scan([str(tmp_path)], Options()).findings}


def test_choices_are_listed_and_want_unsafe(tmp_path: Path) -> None:
    made = planned(tmp_path, IMPORTS + CONFIG + TRAINER, choice="", unsafe=False)
    assert "only put the KL into the loss" in whys(made)
    told = "\n".join(made.unchanged[0].instead)
    assert "--choice rloo --unsafe: " in told
    assert "--choice subclass --unsafe: " in told
    assert "--unsafe" in whys(planned(tmp_path, IMPORTS + CONFIG + TRAINER, choice="rloo", unsafe=False))


def test_a_launch_that_is_no_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("trl grpo --output_dir o --beta 0.04 --num_generations 4\n")
    made = planned(tmp_path, "", choice="rloo")
    assert "stands elsewhere" in whys(made)
