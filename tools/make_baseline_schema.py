#!/usr/bin/env python3
"""Writes rules/schema/baseline.json, the JSON schema of baselines, from the records in klaudit/gate/baseline_file.py.

python tools/make_baseline_schema.py
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from klaudit.gate.baseline_file import FORMAT, Document

SCHEMA = Path(__file__).resolve().parent.parent / "rules" / "schema" / "baseline.json"


def as_text() -> str:
    (_,), definitions = msgspec.json.schema_components([Document], ref_template="#/$defs/{name}")
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **definitions.pop("Document"),
        "title": FORMAT,
        "$defs": definitions,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(as_text(), encoding="utf-8")
