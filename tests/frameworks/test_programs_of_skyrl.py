"""Two packages with the same settings, many mains, and programs that read the settings but do not train."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.model import Setup

_SETTINGS = "trainer.policy.model.path=m trainer.algorithm.use_kl_loss=true"


def setups(tree: Path, **files: str) -> tuple[Setup, ...]:
    for name, text in files.items():
        path = tree / name.replace("__", "/")
        path = path.with_suffix(".py" if text.startswith(("import", "from")) else ".sh")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return scan([str(tree)], Options()).setups


@pytest.mark.parametrize(
    ("program", "framework"),
    [
        ("-m skyrl.train.entrypoints.main_base", "skyrl"),
        ("-m skyrl_train.entrypoints.main_base", "skyrl-train"),
        ("-m examples.train.multiply.main_multiply", "skyrl"),
        ("-m examples.multiply.main_multiply", "skyrl-train"),
        ("-m examples.train.gsm8k.main_gsm8k_generate", None),
        ("-m examples.train_integrations.harbor.entrypoints.main_harbor_generate", None),
        ("-m skyrl.train.entrypoints.serve", None),
    ],
)
def test_the_program_tells_the_package(tmp_path: Path, program: str, framework: str | None) -> None:
    found = setups(tmp_path, run=f"uv run {program} {_SETTINGS}\n")
    assert [setup.framework for setup in found] == ([framework] if framework else [])


def test_mains_of_users_are_known_by_the_settings_and_belong_to_the_package_that_the_tree_pins(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("skyrl==0.2.0\n", encoding="utf-8")
    (setup,) = setups(tmp_path, run=f"python -m mine.main {_SETTINGS}\n")
    assert (setup.framework, setup.version.value) == ("skyrl", "0.2.0")


def test_config_objects_count_where_they_set_the_kl(tmp_path: Path) -> None:
    text = "from skyrl.train.config import AlgorithmConfig, SkyRLTrainConfig\n"
    assert setups(tmp_path, plain=text + "cfg = SkyRLTrainConfig()\nalgorithm = AlgorithmConfig(gamma=1.0)\n") == ()
    (whole,) = setups(tmp_path, plain=text + "cfg = SkyRLTrainConfig()\ncfg.trainer.algorithm.use_kl_loss = False\n")
    assert [term.active for term in whole.terms] == [False, False]
    (part,) = setups(tmp_path, plain=text + "algorithm = AlgorithmConfig(kl_estimator_type='k2')\n")
    assert [(term.estimator, term.active) for term in part.terms] == [("k2", True), ("k2", False)]
