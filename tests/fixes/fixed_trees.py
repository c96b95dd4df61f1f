"""Fixture projects with a fixed tree beside them, and how each was fixed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from klaudit.configuration import Options
from klaudit.fixes.migration import Plan, Request
from klaudit.fixes.planning import plan

FOLDER = Path(__file__).resolve().parents[2] / "fixtures"
# `fixed` is the tree after the default migration, `fixed-TARGET` that after another one, `fixed-unsafe[-TARGET]` that with --unsafe,
# `fixed-unsafe-choice-NAME` that of a marked choice
CASES = [(path.parent.name, path.name) for path in sorted(FOLDER.glob("*/fixed*"))]


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def request_of(name: str) -> Request:
    target = name.removeprefix("fixed").removeprefix("-unsafe").removeprefix("-")
    choice = target.removeprefix("choice-") if target.startswith("choice-") else ""
    target = "k1-in-reward" if choice or not target else target
    return Request(target, unsafe=name.startswith("fixed-unsafe"), choice=choice)


@cache
def planned(case: str, name: str) -> Plan:
    """The plan of a case, made once for all tests that look at it."""
    return plan([str(FOLDER / case / "input")], Options(), request_of(name))
