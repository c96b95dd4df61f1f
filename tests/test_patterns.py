"""Expressions that are compiled when they are first used: no other ones than if they were compiled at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import pytest

import klaudit
from klaudit import patterns
from klaudit.patterns import rare


def all_rare() -> Iterator[tuple[str, re.Pattern[str]]]:
    for module in walk_packages(klaudit.__path__, "klaudit."):
        if not module.name.startswith("klaudit.tensor") and not module.name.endswith("__main__"):
            for name, value in vars(import_module(module.name)).items():
                if isinstance(value, patterns._Rare):
                    yield f"{module.name}.{name}", value  # type: ignore[misc]


def test_all_of_them_are_expressions() -> None:
    """A mistake in one would otherwise be told when a scan first meets what it is for."""
    flags = {name: pattern.flags for name, pattern in all_rare()}
    assert len(flags) > 20
    assert all(isinstance(each, int) for each in flags.values())


def test_it_is_compiled_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    plain = re.compile
    monkeypatch.setattr(re, "compile", lambda pattern, flags=0: compiled.append(pattern) or plain(pattern, flags))
    pattern = rare(r"(a+)b", re.IGNORECASE)
    assert compiled == []
    assert [match[1] for match in pattern.finditer("xAAb ab")] == ["AA", "a"]
    assert pattern.fullmatch("ab") and not pattern.match("b")
    assert pattern.groups == 1 and pattern.pattern == r"(a+)b"
    assert set(compiled) == {r"(a+)b"}


def test_bytes() -> None:
    assert rare(rb"\w+").findall(b"a b") == [b"a", b"b"]
