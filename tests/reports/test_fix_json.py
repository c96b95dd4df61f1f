"""`klaudit fix --format json` follows its schema, whatever was fixed or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from klaudit.configuration import Options
from klaudit.fixes.migration import TARGETS, Request
from klaudit.fixes.planning import plan
from klaudit.model import Safety, Verdict
from klaudit.reports.migrations_json import render

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "rules" / "schema" / "fix.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("case", "request_"),
    [
        ("verl-python", Request()),
        ("easyr1-configs", Request()),  # one fixed, one refused
        ("trl-notebook", Request()),  # refused, with choices
        ("trl-other-classes", Request(choice="subclass", unsafe=True)),
        ("code-notebook", Request(unsafe=True)),
        ("skyrl-gsm8k", Request("no-kl")),
    ],
)
def test_it_follows_the_schema(case: str, request_: Request) -> None:
    made = plan([str(ROOT / "fixtures" / case / "input")], Options(), request_)
    document: Any = json.loads("".join(render(made, is_written=False)))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["migrations"] or document["unchanged"]


def test_errors_follow_it_too(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("use_kl_loss: [\n")
    document = json.loads("".join(render(plan([str(tmp_path)], Options(), Request()), is_written=False)))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["errors"]


def test_the_schema_knows_the_words_of_the_model() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    definitions = SCHEMA["$defs"]
    assert set(definitions["verdict"]["enum"]) == set(get_args(Verdict))
    assert definitions["migration"]["properties"]["target"]["enum"] == list(TARGETS)
    assert set(definitions["migration"]["properties"]["safety"]["enum"]) == set(get_args(Safety))
