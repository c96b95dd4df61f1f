"""Framework files that do not follow the format: every error names file, line and what was meant."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from klaudit.frameworks.load import RulesError, load_framework, load_frameworks, shipped_rules
from klaudit.frameworks.rules import Framework
from klaudit.model import Unknown

GOOD = """\
framework: tiny
title: Tiny
releases: ["1.0", "2.0"]
trainers:
  - id: ppo
    algorithm: estimator
    entry-points:
      - modules: [tiny.main]
        system: hydra
    vocabularies:
      kl:
        words:
          - {value: kl, estimator: k1}
    settings:
      switch:
        name: actor.use_kl
        default: false
      estimator:
        names: [actor.kind, {name: kind, versions: "<2.0", replaced-by: actor.kind}]
        vocabulary: kl
        defaults:
          - {versions: "<2.0", value: null}
          - {versions: ">=2.0", value: kl}
      coef: {name: coef, type: float, default: 1}
    terms:
      - id: loss
        placement: loss
        if: {switch: truthy, estimator: {in: [kl]}}
        estimator: {setting: estimator}
        coefficient: {setting: coef}
"""

Load = Callable[[str], Framework]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def loader(text: str) -> Framework:
        path = tmp_path / "tiny.yaml"
        path.write_text(text, encoding="utf-8")
        return load_framework(path)

    return loader


def test_a_good_file_becomes_records(load: Load) -> None:
    framework = load(GOOD)
    (trainer,) = framework.trainers
    assert framework.newest == "2.0"
    assert trainer.entry_points[0].modules == ("tiny.main",)
    assert [name.name for name in trainer.settings["estimator"].names] == ["actor.kind", "kind"]
    assert trainer.settings["switch"].defaults[0].value is False
    assert trainer.terms[0].estimator[0].setting == "estimator"  # one record stands for a list of one
    assert trainer.terms[0].when == {"switch": "truthy", "estimator": {"in": ["kl"]}}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("title: Tiny", "titel: Tiny", 2, r"titel: unknown key \(did you mean 'title'\?\)"),
        ("title: Tiny\n", "", 1, r"`title` is missing"),
        ("algorithm:", "algoritm:", 6, r"trainers\.0\.algoritm: unknown key \(did you mean 'algorithm'\?\)"),
        ("modules:", "module:", 8, r"entry-points\.0\.module: unknown key \(did you mean 'modules'\?\)"),
        ("system: hydra", "system: hidra", 9, r"'hidra' is none of hydra, .* \(did you mean 'hydra'\?\)"),
        ("estimator: k1", "estimator: k11", 13, r"'k11' is none of k1, k2"),
        ("estimator: k1}", 'estimator: k1, versions: "~=1.0"}', 13, r"not a version comparison: '~=1\.0'"),
        ("name: actor.use_kl", "nam: actor.use_kl", 16, r"settings\.switch\.nam: unknown key \(did you mean 'name'\?\)"),
        ("name: actor.use_kl", "name: [a]", 16, r"\['a'\] is not a str"),
        ("vocabulary: kl", "vocabulary: lk", 20, r"no vocabulary 'lk'"),
        ("type: float", "type: flaot", 24, r"'flaot' is none of .* \(did you mean 'float'\?\)"),
        ("placement: loss", "placement: lost", 27, r"did you mean 'loss'\?"),
        ("{switch: truthy,", "{swich: truthy,", 28, r"no setting 'swich' \(did you mean 'switch'\?\)"),
        ("{setting: coef}", "{setting: coeff}", 30, r"no setting 'coeff' \(did you mean 'coef'\?\)"),
        ("{in: [kl]}", "{on: [kl]}", 28, r"no comparison True"),
        ("{in: [kl]}", "{in: kl, abov: 3}", 28, r"abov.*did you mean 'above'"),
        ("{in: [kl]}", "{matches: '('}", 28, r"not a pattern"),
        ("{in: [kl]}", "{above: {setting: coff}}", 28, r"no setting 'coff' \(did you mean 'coef'\?\)"),
        ("switch: truthy", "switch: thruthy", 28, r"did you mean 'truthy'\?"),
        ("{switch: truthy, ", "{any: {switch: truthy}, ", 28, r"must be a list"),
        ("if: {switch: truthy, estimator: {in: [kl]}}", "if: truthy", 28, r"must be a mapping"),
        ('releases: ["1.0", "2.0"]', 'releases: ["1.0", "two"]', 3, r"Invalid version: 'two'"),
        ('releases: ["1.0", "2.0"]', "releases: 1.0", 3, r"must be a list"),
        ("vocabularies:", "vocabularies: []\n    x:", 10, r"must be a mapping|unknown key"),
        ("id: ppo", "id: on", 5, r"True is not a str"),  # YAML 1.1
        ("id: ppo", "id: [ppo", 6, r"expected|did not find"),
        ("  - id: ppo", "  - ppo\n  - id: ppo", 5, r"must be a mapping"),
        ("default: false", "default: false\n        defaults: [{value: true}]", 18, r"default.*defaults"),
        (GOOD, "- framework\n", 1, r"must be a mapping"),
        (GOOD, "", 1, r"must be a mapping"),
        ("if: {switch: truthy,", "if: &c {not: *c,", 1, r"nested too deeply"),
    ],
)  # fmt: skip
def test_an_error_says_where_and_what_was_meant(load: Load, old: str, new: str, line: int, message: str) -> None:
    assert old in GOOD
    with pytest.raises(RulesError, match=message) as error:
        load(GOOD.replace(old, new, 1))
    assert re.match(rf".*tiny\.yaml:{line}: ", str(error.value)), str(error.value)


def test_a_file_of_the_same_name_in_another_folder_wins(tmp_path: Path) -> None:
    (tmp_path / "frameworks").mkdir()
    (tmp_path / "frameworks" / "verl.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "frameworks" / "mine.yaml").write_text(
        GOOD.replace("framework: tiny", "framework: mine"), encoding="utf-8"
    )
    own = {Path(framework.path).name: framework.id for framework in load_frameworks((str(tmp_path),))}
    assert own["verl.yaml"] == "tiny"
    assert own["mine.yaml"] == "mine"
    assert set(own) > {Path(framework.path).name for framework in load_frameworks()} - {"verl.yaml"}


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_bytes(b"framework: \xff\xfe")
    with pytest.raises(RulesError, match=r"tiny\.yaml:1: not UTF-8"):
        load_framework(path)


@pytest.mark.parametrize("path", sorted((shipped_rules() / "frameworks").glob("*.yaml")), ids=lambda path: path.stem)
class TestShippedFiles:
    def test_it_follows_the_schema(self, path: Path) -> None:
        import yaml

        schema = json.loads((shipped_rules() / "schema" / "framework.json").read_text(encoding="utf-8"))
        errors = [
            f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
            for error in Draft202012Validator(schema).iter_errors(yaml.safe_load(path.read_text(encoding="utf-8")))
        ]
        assert errors == []

    def test_its_releases_are_in_order(self, path: Path) -> None:
        framework = load_framework(path)
        assert list(framework.releases) == sorted(set(framework.releases))

    def test_every_release_has_one_default_for_every_setting_that_it_reads(self, path: Path) -> None:
        """A default under a condition needs one without behind it, or the setting hangs on what may not be known."""
        framework = load_framework(path)
        for trainer in framework.trainers:
            for spec in trainer.settings.values():
                for release in framework.releases:
                    fitting = [default for default in spec.defaults if release in default.versions]
                    assert not fitting or any(default.when is None and not default.config for default in fitting), (
                        trainer.id,
                        spec.id,
                        release,
                    )

    def test_no_value_is_a_boolean_by_accident(self, path: Path) -> None:
        """YAML 1.1 reads on, off, yes and no as booleans: words of a vocabulary and choices are texts or plain numbers."""
        for trainer in load_framework(path).trainers:
            for vocabulary in trainer.vocabularies.values():
                assert not any(isinstance(word.value, dict | Unknown) for word in vocabulary.words)
            for spec in trainer.settings.values():
                assert not any(
                    isinstance(default.value, str) and default.value in ("on", "off", "yes", "no")
                    for default in spec.defaults
                )
