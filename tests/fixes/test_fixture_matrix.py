"""Every framework that has recipes, in every kind of source it is configured by, has a fixture project with its fixed tree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from klaudit.fixes.migration import Migration
from klaudit.frameworks.load import load_frameworks
from tests.fixes.fixed_trees import CASES, planned

# The cells that must not be empty.  `command` is one that is put together in Python, `job file` a script inside YAML.
MATRIX = {
    "areal": {"YAML"},
    "easyr1": {"YAML"},
    "megatron-lm": {"script"},
    "miles": {"script"},
    "ms-swift": {"script", "Python"},
    "nemo-rl": {"YAML"},
    "open-instruct": {"script"},
    "openrlhf": {"script", "command", "notebook", "job file"},
    "rl2": {"script"},
    "rlinf": {"YAML"},
    "rllm": {"YAML"},
    "roll": {"YAML"},
    "skyrl": {"script", "Python", "command", "notebook", "job file"},
    "skyrl-train": {"script", "YAML"},
    "slime": {"script", "Python"},
    "torchtune": {"YAML"},
    "trl": {"script", "YAML", "JSON", "TOML", "Python", "notebook", "job file"},
    "verl": {"script", "YAML", "JSON", "TOML", "Python", "command", "notebook", "job file"},
}
_BY_SUFFIX = {"sh": "script", "ipynb": "notebook", "json": "JSON", "toml": "TOML"}


def kind(migration: Migration) -> str:
    suffix = migration.path.rpartition(".")[2]
    if suffix == "py":
        return "Python" if migration.before.kind == "code" else "command"
    if suffix == "yaml":
        return "YAML" if migration.before.kind == "config" else "job file"
    return _BY_SUFFIX[suffix]


def migrated() -> Iterator[Migration]:
    for case, name in CASES:
        if not case.startswith("code-"):
            yield from planned(case, name).migrations


@pytest.fixture(scope="module")
def cells() -> set[tuple[str, str]]:
    return {(each.before.framework, kind(each)) for each in migrated()}


def test_every_framework_with_a_recipe_is_listed() -> None:
    able = {
        framework.id
        for framework in load_frameworks()
        for trainer in framework.trainers
        if any(not recipe.impossible for recipe in trainer.recipes)
    }
    assert set(MATRIX) == able


@pytest.mark.parametrize(
    ("framework", "source"), [(name, each) for name, row in MATRIX.items() for each in sorted(row)]
)
def test_there_is_a_fixed_tree(framework: str, source: str, cells: set[tuple[str, str]]) -> None:
    assert (framework, source) in cells
