"""Mappings as YAML gives them to frozen records, by the records' own annotations; what does not fit says where it stands.

Files write a field's name with dashes and `when` as `if`.  One record stands for a list of one.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import fields as fields_of
from packaging.version import Version

from klaudit.frameworks.versions import VersionRange, parse_version

Keys = tuple[str | int, ...]


class MisfitError(Exception):
    """Something that does not fit the records; `keys` lead to it."""

    def __init__(self, keys: Keys, message: str) -> None:
        super().__init__(message)
        self.keys = keys


def key_of(field: str) -> str:
    """How files write the name of a field."""
    return "if" if field == "when" else field.replace("_", "-")


def is_record(hint: Any) -> bool:
    """Whether an annotation is a class of records."""
    return isinstance(hint, type) and issubclass(hint, Struct)


def build(record: Any, data: Any, keys: Keys) -> Any:
    """A record of that class.  Raises MisfitError."""
    fields = _fields(record)
    data = mapping(data, keys)
    check_keys(data, fields.of_key, keys)
    values: dict[str, Any] = {}
    for key, item in data.items():
        name = fields.of_key[key]
        values[name] = convert(fields.hints[name], item, (*keys, key))
        if f"has_{name}" in fields.hints:
            values[f"has_{name}"] = True
    for name in fields.required:
        if name not in values:
            raise MisfitError(keys, f"`{key_of(name)}` is missing")
    return record(**values)


class _Fields(Struct, frozen=True):
    hints: dict[str, Any]
    of_key: dict[str, str]
    required: tuple[str, ...]


@lru_cache(maxsize=64)
def _fields(record: Any) -> _Fields:
    hints = typing.get_type_hints(record)
    return _Fields(
        hints,
        {key_of(name): name for name in hints if not name.startswith("has_")},
        tuple(each.name for each in fields_of(record) if each.required),
    )


def convert(hint: Any, item: Any, keys: Keys) -> Any:
    """`item` as a value of the annotation `hint`.  Raises MisfitError."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (VersionRange, Version):
        try:
            return VersionRange.parse(str(item)) if hint is VersionRange else parse_version(str(item))
        except ValueError as error:
            raise MisfitError(keys, str(error)) from None
    if is_record(hint):
        return build(hint, item, keys)
    if origin is tuple:
        items = item if isinstance(item, list) else [item]
        return tuple(convert(arguments[0], each, (*keys, at)) for at, each in enumerate(items))
    if origin is typing.Literal:
        if item not in arguments:
            all_of_them = ", ".join(map(str, arguments))
            raise MisfitError(keys, f"{item!r} is none of {all_of_them}{did_you_mean(str(item), arguments)}")
        return item
    if origin is Mapping:
        return mapping(item, keys)
    if origin in (types.UnionType, typing.Union):
        if item is None:
            return None
        known = [each for each in arguments if each is not type(None) and not isinstance(each, typing.ForwardRef)]
        return item if len(known) != 1 else convert(known[0], item, keys)
    if hint is float and isinstance(item, int | float) and not isinstance(item, bool):
        return float(item)
    if hint in (str, bool, int, float) and (not isinstance(item, hint) or (hint is int and isinstance(item, bool))):
        raise MisfitError(keys, f"{item!r} is not a {hint.__name__}")
    return item


def mapping(data: Any, keys: Keys) -> Mapping[str, Any]:
    """Raises MisfitError for what is no mapping with text keys (YAML 1.1 reads `on`, `off` and `no` as booleans)."""
    if not isinstance(data, dict):
        raise MisfitError(keys, "must be a mapping")
    if odd := [key for key in data if not isinstance(key, str)]:
        raise MisfitError(keys, f"keys must be texts: put quotes around what YAML reads as {odd[0]!r}")
    return data


def sequence(data: Any, keys: Keys) -> list[Any]:
    """Raises MisfitError for what is no list."""
    if not isinstance(data, list):
        raise MisfitError(keys, "must be a list")
    return data


def check_keys(data: Mapping[str, Any], allowed: Collection[str], keys: Keys) -> None:
    """Raises MisfitError for a key that is not allowed."""
    for key in data:
        if key not in allowed:
            raise MisfitError((*keys, key), f"unknown key{did_you_mean(key, allowed)}")


def did_you_mean(word: str, known: Iterable[Any], cutoff: float = 0.6) -> str:
    """` (did you mean 'x'?)` where something known is close, else nothing."""
    from difflib import get_close_matches

    close = get_close_matches(word, [str(each) for each in known], n=1, cutoff=cutoff)
    return f" (did you mean {close[0]!r}?)" if close else ""


def line_of(yaml: Any, text: str, keys: Keys) -> int:
    """The line, from 1, of the node of a YAML text that `keys` lead to, or of the nearest one above it."""
    node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if node is None:
        return 1
    line: int = node.start_mark.line + 1
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == str(key)), None)
            if pair is not None:
                line, node = pair[0].start_mark.line + 1, pair[1]
            elif key != 0:  # a record that stands for a list of one has no index in the text
                break
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        elif key != 0:
            break
    return line
