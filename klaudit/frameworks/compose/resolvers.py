"""OmegaConf's own resolvers (`${oc.env:..}`, `${oc.select:..}` ...); programs may register others, which stay unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from klaudit.frameworks.compose.found import DeadEndError, Found, UnresolvedError
from klaudit.frameworks.compose.interpolation_grammar import Element, parse_element
from klaudit.frameworks.compose.items import Branch, Leaf
from klaudit.frameworks.compose.primitives import GrammarError
from klaudit.model import Unknown, Value


class Reader(Protocol):
    """What a resolver can ask the configuration at work; all raise UnresolvedError."""

    @property
    def environment(self) -> Mapping[str, str | None]: ...

    def reference(self, key: str, found: Found, *, throw_on_missing: bool) -> Found | None:
        """The item a dotted name means as seen from `found`."""

    def element(self, element: Element, found: Found) -> Value:
        """The value of an argument."""

    def plain(self, found: Found) -> Value:
        """An item as a plain value."""


def shown(value: Value) -> str:
    """A value inside a text, as Python's str() renders it.  Raises UnresolvedError for one that is unknown."""
    _check_known(value)
    return str(value)


def _check_known(value: Value) -> None:
    if isinstance(value, Unknown):
        raise UnresolvedError(*value.hangs_on)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_known(inner)


def _env(reader: Reader, arguments: list[Value], found: Found) -> Value:
    name = _text(arguments, "oc.env", 2)
    if name in reader.environment:
        known = reader.environment[name]
        if known is None:
            raise UnresolvedError(name)
        return known
    if len(arguments) == 1:
        raise UnresolvedError(name)
    return None if arguments[1] is None else shown(arguments[1])


def _select(reader: Reader, arguments: list[Value], found: Found) -> Found | Value:
    target = reader.reference(_text(arguments, "oc.select", 2), found, throw_on_missing=False)
    if target is None or (isinstance(target.item, Leaf) and target.item.is_missing):
        return arguments[1] if len(arguments) == 2 else None
    return target


def _decode(reader: Reader, arguments: list[Value], found: Found) -> Value:
    if arguments == [None]:
        return None
    text = _text(arguments, "oc.decode", 1)
    try:
        return reader.element(parse_element(text), found)
    except GrammarError:
        raise DeadEndError(f"oc.decode:{text}") from None


def _create(reader: Reader, arguments: list[Value], found: Found) -> Value:
    if len(arguments) != 1 or isinstance(arguments[0], str):  # a text would be read as YAML
        raise UnresolvedError("oc.create")
    return arguments[0]


def _keys(reader: Reader, arguments: list[Value], found: Found) -> Value:
    return [*_branch(reader, arguments, found)[1].items]


def _values(reader: Reader, arguments: list[Value], found: Found) -> Value:
    values = reader.plain(_branch(reader, arguments, found)[0])
    return [*values.values()] if isinstance(values, dict) else []


def _branch(reader: Reader, arguments: list[Value], found: Found) -> tuple[Found, Branch]:
    key = _text(arguments, "oc.dict", 1)
    target = reader.reference(key, found, throw_on_missing=True)
    if target is None or not isinstance(target.item, Branch):
        raise DeadEndError(key)
    return target, target.item


def _deprecated(reader: Reader, arguments: list[Value], found: Found) -> Found:
    key = _text(arguments, "oc.deprecated", 2)
    target = reader.reference(key, found, throw_on_missing=False)
    if target is None:
        raise DeadEndError(key)
    return target


def _text(arguments: list[Value], name: str, limit: int) -> str:
    """The first argument, which must be a text."""
    if not 1 <= len(arguments) <= limit:
        raise DeadEndError(name)
    first = arguments[0]
    if isinstance(first, Unknown):
        raise UnresolvedError(*first.hangs_on)
    if not isinstance(first, str):
        raise DeadEndError(name)
    return first


RESOLVERS: dict[str, Callable[[Reader, list[Value], Found], Found | Value]] = {
    "oc.env": _env,
    "oc.select": _select,
    "oc.decode": _decode,
    "oc.create": _create,
    "oc.dict.keys": _keys,
    "oc.dict.values": _values,
    "oc.deprecated": _deprecated,
}
