#!/usr/bin/env python3
"""Writes rules/schema/framework.json, the JSON schema of framework files, from the records in klaudit/frameworks/rules.py.

python tools/make_schema.py            write the file
python tools/make_schema.py --check    exit 1 where the file is not up to date
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs
from packaging.version import Version

from klaudit.frameworks import conditions, rules
from klaudit.frameworks.load import shipped_rules
from klaudit.frameworks.records import is_record
from klaudit.frameworks.versions import VersionRange

Schema = dict[str, Any]

_PLAIN: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Version: {"type": "string", "description": "a version as PEP 440 has it"},
    VersionRange: {
        "type": "string",
        "pattern": r"^\s*(>=|<=|==|!=|>|<)[^,]+(,\s*(>=|<=|==|!=|>|<)[^,]+)*$",
        "description": "comparisons that must all hold, in the order of PEP 440: 0.8.0.dev0 is before 0.8.0",
    },
}
_FILLED_IN = {
    rules.Framework: {"id", "path", "release_names"},
    rules.Trainer: set(),
    rules.SettingSpec: {"id"},
    rules.Vocabulary: {"id"},
}


def framework_schema() -> Schema:
    """The schema of a whole file, with one definition a record."""
    definitions: dict[str, Schema] = {"Condition": _condition()}
    file = _record(rules.Framework, definitions)
    file["properties"] = {
        "framework": {"type": "string", "description": "the id of the framework"},
        **file["properties"],
        "shared": {"description": "a place for YAML anchors; not read"},
    }
    file["required"] = ["framework", "title", "releases", "trainers"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "klaudit framework rules",
        **file,
        "$defs": dict(sorted(definitions.items())),
    }


def as_text() -> str:
    """The file's text."""
    return json.dumps(framework_schema(), indent=2, ensure_ascii=False) + "\n"


def _record(record: Any, definitions: dict[str, Schema]) -> Schema:
    """An object schema with the record's fields under the names that files use."""
    hints = typing.get_type_hints(record)
    properties: Schema = {}
    required = []
    for field in structs.fields(record):
        if field.name.startswith("has_") or field.name in _FILLED_IN.get(record, ()):
            continue
        key = "if" if field.name == "when" else field.name.replace("_", "-")
        properties[key] = {"$ref": "#/$defs/Condition"} if field.name == "when" else _of(hints[field.name], definitions)
        if field.required:
            required.append(key)
    written = record.__doc__ or ""
    schema: Schema = {
        **({"description": inspect.cleandoc(written)} if written else {}),
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": required,
    }
    return _SHORTHANDS.get(record, _as_it_is)(schema)


def _setting(schema: Schema) -> Schema:
    """Settings may say `name` for `names`, a name alone for its record, and `default` for a single default."""
    names = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Name"}]}
    schema["properties"] |= {"name": {"type": "string"}, "names": {"type": "array", "items": names}, "default": {}}
    return schema | {
        "required": [],
        "not": {"anyOf": [{"required": ["name", "names"]}, {"required": ["default", "defaults"]}]},
        "anyOf": [{"required": ["name"]}, {"required": ["names"]}],
    }


def _vocabulary(schema: Schema) -> Schema:
    return schema | {"required": ["words"]}


def _as_it_is(schema: Schema) -> Schema:
    return schema


_SHORTHANDS = {rules.SettingSpec: _setting, rules.Vocabulary: _vocabulary}


def _of(hint: Any, definitions: dict[str, Schema]) -> Schema:
    """The schema of what the loader converts to this annotation."""
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if is_record(hint):
        name = typing.cast(type, hint).__name__
        if name not in definitions:
            definitions[name] = {}  # a record may hold itself
            definitions[name] = _record(hint, definitions)
        return {"$ref": f"#/$defs/{name}"}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (tuple, frozenset):
        item = _of(arguments[0], definitions)
        return {"anyOf": [{"type": "array", "items": item}, item]} if item else {}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if origin in (types.UnionType, typing.Union):
        known = [argument for argument in arguments if argument is not type(None)]
        if len(known) == 1:
            return {"anyOf": [_of(known[0], definitions), {"type": "null"}]}
    return {}  # any value that YAML can hold


def _condition() -> Schema:
    """See conditions.py."""
    part = {"$ref": "#/$defs/Condition"}
    signs: Schema = {sign: {} for sign in ("in", "not-in", "equals", "above", "below")} | {
        "matches": {"type": "string", "format": "regex"}
    }
    compared = {"type": "object", "minProperties": 1, "additionalProperties": False, "properties": signs}
    return {
        "description": inspect.cleandoc(conditions.__doc__ or ""),
        "type": "object",
        "minProperties": 1,
        "properties": {"any": {"type": "array", "items": part}, "all": {"type": "array", "items": part}, "not": part},
        "additionalProperties": {"anyOf": [{"type": ["string", "number", "boolean", "null"]}, compared]},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 1 where --check finds the file out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    path = shipped_rules() / "schema" / "framework.json"
    if options.check:
        fresh = path.is_file() and path.read_text(encoding="utf-8") == as_text()
        print(f"{path} is {'up to date' if fresh else 'out of date: run tools/make_schema.py'}")
        return 0 if fresh else 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
