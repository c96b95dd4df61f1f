"""The schema of framework files: up to date with the records, and as strict as the loader."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from make_schema import as_text, framework_schema, main

from klaudit.frameworks.load import shipped_rules

GOOD: dict[str, Any] = {
    "framework": "tiny",
    "title": "Tiny",
    "releases": ["1.0"],
    "trainers": [
        {
            "id": "ppo",
            "settings": {"coef": {"names": ["a", {"name": "b", "versions": ">=1.0, <2.0"}], "default": 1}},
            "terms": {"id": "loss", "if": {"coef": {"above": 0}, "any": [{"coef": "truthy"}]}},
        }
    ],
}


def test_the_committed_schema_is_up_to_date() -> None:
    committed = (shipped_rules() / "schema" / "framework.json").read_text(encoding="utf-8")
    assert committed == as_text(), "run tools/make_schema.py"
    assert main(["--check"]) == 0


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(framework_schema())


def test_a_good_file_passes() -> None:
    assert [error.message for error in Draft202012Validator(framework_schema()).iter_errors(GOOD)] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["titel"], "Tiny"),
        (["trainers", 0, "terms", "placement"], "lost"),
        (["trainers", 0, "terms", "if"], {"coef": {"over": 1}}),
        (["trainers", 0, "terms", "if"], "truthy"),
        (["trainers", 0, "settings", "coef", "name"], "c"),  # name and names
        (["trainers", 0, "settings", "coef", "defaults"], []),  # default and defaults
        (["trainers", 0, "settings", "coef", "names", 1, "versions"], "~=1.0"),
        (["trainers", 0, "settings", "coef", "names", 1, "version"], ">=1.0"),
        (["trainers", 0, "id"], True),
    ],
)
def test_what_the_loader_refuses_fails(path: list[str | int], value: object) -> None:
    import copy

    file = copy.deepcopy(GOOD)
    node: Any = file
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    assert list(Draft202012Validator(framework_schema()).iter_errors(file))
