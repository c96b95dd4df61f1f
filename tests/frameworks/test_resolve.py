"""Effective settings, terms and verdicts, on a made-up framework that has every kind of fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.frameworks.launch import Launch
from klaudit.frameworks.load import load_framework
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.resolve import resolve
from klaudit.frameworks.rules import Framework
from klaudit.frameworks.systems.layered import LayeredConfiguration
from klaudit.model import FrameworkVersion, Setting, Span, Unknown, Value

RULES = """
framework: made-up
title: Made Up
releases: ["1.0", "2.0", "3.0"]
trainers:
  - id: t
    algorithm: algorithm
    vocabularies:
      kl:
        otherwise-raises: ValueError
        words:
          - {value: one, estimator: k1}
          - {value: three, estimator: k3}
          - {value: three+, estimator: k3, gradient: straight-through-k2, versions: ">=2.0"}
          - {value: full, estimator: full, raises: NotImplementedError}
    settings:
      loss: {names: [{name: old.loss, versions: "<2.0"}, {name: new.loss, versions: ">=2.0"}], default: false}
      kind: {name: kind, vocabulary: kl, default: three}
      beta: {name: beta, type: float, defaults: [{versions: "<3.0", value: 0.04}, {versions: ">=3.0", value: 0.0}]}
      reward:
        name: reward
        defaults:
          - {versions: "<2.0", if: {loss: truthy}, value: false, fixed: true}
          - {versions: "<2.0", value: true, fixed: true}
          - {versions: ">=2.0", value: false}
      algorithm: {name: algorithm, default: grpo}
      std: {name: std, default: true}
      adaptive: {name: adaptive, default: false}
    terms:
      - {id: loss, placement: loss, if: {loss: truthy}, estimator: {setting: kind}, coefficient: {setting: beta},
         gradient: [{versions: "<1.5", gradient: none, why: under no_grad}]}
      - {id: reward, placement: reward, if: {reward: truthy}, estimator: {setting: kind}, coefficient: {setting: beta},
         negative-coefficient: "off", ignored: [{if: {algorithm: deaf}, why: it never reads rewards}],
         group-std: [{if: {algorithm: grpo, std: truthy}, switch: std,
                      switched-off: false, why: divided}]}
    faults:
      - {if: {loss: truthy, reward: truthy, adaptive: truthy}, versions: ">=2.0", raises: AssertionError, why: not together}
"""


@pytest.fixture(scope="module")
def framework(tmp_path_factory: pytest.TempPathFactory) -> Framework:
    path = tmp_path_factory.mktemp("rules") / "made-up.yaml"
    path.write_text(RULES, encoding="utf-8")
    return load_framework(Path(path))


def resolved(framework: Framework, version: str, **given: Value) -> Resolution:
    span = Span("launch.sh", 0, 1, 1, 1, 1, 2)
    settings = [Setting(name.replace("__", "."), value, span, span, "override") for name, value in given.items()]
    launch = Launch(
        framework, framework.trainers[0], None, "launch", "made.up", "", span, "", (), LayeredConfiguration(settings), (),
        FrameworkVersion(version, "option"),
    )  # fmt: skip
    return resolve(launch)


def terms(resolution: Resolution) -> dict[str, tuple[object, ...]]:
    return {
        state.rule.id: (state.term.estimator, state.term.coefficient, state.term.active, state.term.verdict)
        for state in resolution.terms
    }


def test_defaults_follow_the_version(framework: Framework) -> None:
    assert terms(resolved(framework, "1.0"))["reward"] == ("k3", 0.04, True, "biased")
    assert terms(resolved(framework, "2.0"))["reward"][2] is False
    assert terms(resolved(framework, "3.0", reward=True))["reward"] == ("k3", 0.0, False, "inactive")


def test_a_spelling_counts_only_in_its_versions(framework: Framework) -> None:
    assert terms(resolved(framework, "2.0", new__loss=True))["loss"] == ("k3", 0.04, True, "biased")
    assert terms(resolved(framework, "2.0", old__loss=True))["loss"][2] is False


def test_a_fixed_default_overrules_what_is_set_and_remembers_it(framework: Framework) -> None:
    resolution = resolved(framework, "1.0", old__loss=True, reward=True)
    assert resolution["reward"].value is False
    assert resolution["reward"].unread is not None and resolution["reward"].unread.value is True


def test_text_on_an_untyped_switch_is_true_unless_empty(framework: Framework) -> None:
    assert terms(resolved(framework, "2.0", new__loss="off"))["loss"][2] is True
    assert terms(resolved(framework, "2.0", new__loss=""))["loss"][2] is False


def test_gradient_cases_and_words_decide_the_gradient(framework: Framework) -> None:
    assert terms(resolved(framework, "1.0", old__loss=True))["loss"][3] == "no-gradient"
    assert terms(resolved(framework, "2.0", new__loss=True, kind="three+"))["loss"][3] == "unbiased-per-token"
    assert terms(resolved(framework, "1.6", old__loss=True))["loss"][3] == "biased"


def test_words_that_raise_or_are_unknown_stop_the_term(framework: Framework) -> None:
    for word, estimator in (("full", "full"), ("nonsense", "unknown"), ("three+", "unknown")):
        resolution = resolved(framework, "1.6", old__loss=True, kind=word)
        assert terms(resolution)["loss"] == (estimator, 0.04, False, "inactive"), word
        assert resolution.terms[0].raises


def test_group_std_rescales_a_rewarded_k1_only(framework: Framework) -> None:
    assert terms(resolved(framework, "2.0", reward=True, kind="one"))["reward"][3] == "rescaled"
    assert terms(resolved(framework, "2.0", reward=True, kind="one", std=False))["reward"][3] == "unbiased"
    assert terms(resolved(framework, "2.0", reward=True, kind="three"))["reward"][3] == "biased"


def test_ignored_penalties_are_no_terms_of_the_sum(framework: Framework) -> None:
    resolution = resolved(framework, "2.0", reward=True, kind="one", algorithm="deaf")
    assert terms(resolution)["reward"][2:] == (False, "ignored")
    assert resolution.setup.verdict == "inactive"


def test_a_stopping_fault_makes_every_term_inactive(framework: Framework) -> None:
    resolution = resolved(framework, "2.0", reward=True, new__loss=True, adaptive=True)
    assert {row[2] for row in terms(resolution).values()} == {False}


def test_unknown_values_stay_unknown(framework: Framework) -> None:
    resolution = resolved(framework, "2.0", new__loss=Unknown(("USE",)))
    assert terms(resolution)["loss"][2] is None
    assert resolution.setup.verdict == "unknown"
    assert terms(resolved(framework, "2.0", new__loss=True, beta=Unknown(("B",))))["loss"] == (
        "k3",
        None,
        True,
        "biased",
    )


def test_an_unknown_value_does_not_revive_a_term_that_is_off(framework: Framework) -> None:
    assert terms(resolved(framework, "2.0", new__loss=False, beta=Unknown(("B",))))["loss"][2] is False


def test_a_negative_coefficient_is_off_only_where_the_rules_say_so(framework: Framework) -> None:
    assert terms(resolved(framework, "2.0", reward=True, beta=-0.1))["reward"][2] is False
    assert terms(resolved(framework, "2.0", new__loss=True, beta=-0.1))["loss"][2] is True


def test_both_placements_are_judged_on_their_sum(framework: Framework) -> None:
    assert resolved(framework, "2.0", reward=True, new__loss=True).setup.verdict == "unbiased"
    mixed = resolved(framework, "2.0", reward=True, new__loss=True, kind="three+").setup
    assert mixed.verdict == "biased"
