"""A configuration whose penalty is off, and a class of the same file that has one of its own: what the launch trains with."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.model import Setup
from tests.code.snippets import only, told

REPOSITORY = Path(__file__).parents[2]

OWN = """
from trl import GRPOConfig, GRPOTrainer

class Own(GRPOTrainer):
    def __init__(self, *given, weight, **more):
        super().__init__(*given, **more)
        self.weight = weight

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        kl = (batch["old_per_token_logps"] - batch["ref_per_token_logps"]).sum(dim=1)
        batch["advantages"] = batch["advantages"] - self.weight * kl
        return batch

"""
CONFIG = 'config = GRPOConfig("out", beta=0.0)\n'
CALL = "Own(model, reward, args=config, weight=0.1).train()\n"


def setups(folder: Path, text: str) -> list[Setup]:
    (folder / "train.py").write_text(text)
    return list(scan([str(folder)], Options(framework_versions={"trl": "0.26.2"})).setups)


def active(setup: Setup) -> list[tuple[str, str, float | None]]:
    return [(term.placement, term.estimator, term.coefficient) for term in setup.terms if term.active]


def test_what_a_fix_writes_is_told_as_what_it_is() -> None:
    report = scan([str(REPOSITORY / "fixtures/trl-other-classes/fixed-unsafe-choice-subclass")], Options())
    (setup,) = report.setups
    assert active(setup) == [("reward", "k1", 0.04)]
    assert (setup.framework, setup.verdict) == ("trl", "unbiased")
    term = setup.terms[-1]
    assert ("kl_coef", 0.04) in {(each.setting, each.value) for each in term.evidence}
    assert not report.findings


@pytest.mark.parametrize(
    "use",
    [
        CONFIG + CALL,
        'Own(model, reward, GRPOConfig("out", beta=0.0), weight=0.1).train()\n',
        "def main():\n    " + CONFIG + "    trainer = " + CALL + "\nmain()\n",
    ],
)
def test_one_setup_of_both(tmp_path: Path, use: str) -> None:
    (setup,) = setups(tmp_path, OWN + use)
    assert (setup.framework, setup.verdict, active(setup)) == ("trl", "unbiased", [("reward", "k1", 0.1)])


@pytest.mark.parametrize(
    "use",
    [
        CONFIG + CALL + CALL,  # which of the two?
        CONFIG + "config = other\n" + CALL,
        CONFIG + CALL.replace("0.1", "weight"),
        CONFIG + CALL.replace("0.1", "True"),
        CONFIG + CALL.replace("config", "other"),
        CONFIG.replace("0.0", "0.2") + CALL,  # two penalties: the sum is for the reader of both
        CONFIG + CALL + "register(Own)\n",
    ],
)
def test_two_setups_where_the_link_is_not_certain(tmp_path: Path, use: str) -> None:
    found = setups(tmp_path, OWN + use)
    assert [setup.framework for setup in found if setup.framework == "custom"] == ["custom"]
    assert all(active(setup) != [("reward", "k1", 0.1)] for setup in found)


def test_a_coefficient_of_the_configuration_is_not_taken_from_the_call(tmp_path: Path) -> None:
    found = setups(tmp_path, OWN.replace("self.weight * kl", "self.beta * kl") + CONFIG + CALL)
    assert sorted(setup.framework for setup in found) == ["custom", "trl"]


@pytest.mark.parametrize("init", ["self.weight = weight or 1", "self.weight = weight\n        self.weight *= 2"])
def test_a_coefficient_that_is_changed_on_the_way_is_not_known(tmp_path: Path, init: str) -> None:
    found = setups(tmp_path, OWN.replace("self.weight = weight", init) + CONFIG + CALL)
    assert sorted(setup.framework for setup in found) == ["custom", "trl"]


REWARD = """
class Own(Base):
    def score(self, inputs):
        batch = super().score(inputs)
        kl = (batch.get("old_logps") - batch.pop("ref_logps")).sum(dim=1)
        {made}
        batch["advantages"] = batch["advantages"] - self.coef * above
        return batch
"""


@pytest.mark.parametrize(
    "made",
    [
        "above = self.accelerator.gather(kl)",
        "above = self.accelerator.gather_for_metrics(kl)",
        "above = kl - kl.mean(dim=0)",
        "groups = kl.view(-1, 8)\n        above = groups - groups.mean(dim=1, keepdim=True)",
        "size = self.size\n        above = (kl - kl.mean()) * size / (size - 1)",
        "size = self.size if self.training else self.other\n        above = (kl - kl.mean()) * size / max(size - 1, 1)",
    ],
)
def test_ways_to_set_a_penalty_against_those_of_its_group(made: str) -> None:
    formula = only(REWARD.format(made=made))
    assert told(formula) == ("reward", "k1", "none", -1)
    assert [(knob.name, knob.inverse) for knob in formula.knobs] == [("self.coef", False)]


def test_a_factor_without_a_baseline_stays() -> None:
    formula = only(REWARD.format(made="size = self.size\n        above = kl * size / (size - 1)"))
    assert len(formula.knobs) == 3
