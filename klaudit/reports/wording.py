"""How values, places and versions are put into words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from klaudit.frameworks.pins import is_commit
from klaudit.model import Evidence, FrameworkVersion, Setup, Term, Unknown, Value
from klaudit.reports.view import View
from klaudit.reports.visible import cut, visible

_LONGEST_VALUE = 60
_LONGEST_TEXT = 4_000
_DEEPEST = 4


def value(shown: Value) -> str:
    """A setting's value, short and safe to print."""
    return cut(_value(shown, 0), _LONGEST_VALUE)


def _value(shown: Value, depth: int) -> str:
    if isinstance(shown, Unknown):
        names = ", ".join(map(visible, shown.hangs_on[:4]))
        return f"unknown (hangs on {names})" if names else "unknown"
    if shown is None or isinstance(shown, bool):
        return {None: "null", True: "true", False: "false"}[shown]
    if isinstance(shown, str):
        return (
            visible(shown[: 4 * _LONGEST_VALUE])
            if shown.strip() == shown != ""
            else f'"{visible(shown[: 4 * _LONGEST_VALUE])}"'
        )
    if isinstance(shown, list):
        return "[...]" if depth > _DEEPEST else "[" + ", ".join(_value(item, depth + 1) for item in shown[:20]) + "]"
    if isinstance(shown, dict):
        pairs = (f"{visible(str(key))}: {_value(item, depth + 1)}" for key, item in list(shown.items())[:20])
        return "{...}" if depth > _DEEPEST else "{" + ", ".join(pairs) + "}"
    return number(shown)


def number(shown: float) -> str:
    """A number, also one of more digits than Python is willing to print."""
    if isinstance(shown, int):
        return str(shown) if abs(shown) < 10**20 else f"an integer of {shown.bit_length()} bits"
    return f"{shown:.6g}" if math.isfinite(shown) else str(shown)


def coefficient(term: Term) -> str:
    return "unknown" if term.coefficient is None else number(term.coefficient)


def prose(text: str) -> str:
    """A message or explanation on one line: it may quote what stands in a file."""
    return visible(cut(" ".join(text[: 2 * _LONGEST_TEXT].split(" ")), _LONGEST_TEXT))


def whence(evidence: Evidence, setup: Setup | None, view: View, *, here: str = "") -> str:
    """Where a value comes from; `here` is the path of the file that is spoken of."""
    if evidence.path is None:
        place = f"default of {version_name(setup)}" if setup is not None else "default"
        if evidence.origin != "default":
            place = evidence.origin
    else:
        at = (
            f"line {evidence.line}"
            if evidence.path == here and evidence.line
            else view.place(evidence.path, evidence.line)
        )
        words = {
            "default": "default in",
            "file": "set in",
            "override": "set in",
            "variable": "from a variable in",
            "code": "set in",
        }
        place = f"{words[evidence.origin]} {at}"
        if evidence.path == here:
            place = {"default": "default at", "variable": "from a variable at"}.get(
                evidence.origin, "set at"
            ) + f" {at}"
    return f"{place} ({prose(evidence.note)})" if evidence.note else place


def way(steps: Sequence[Evidence], view: View, *, here: str) -> str:
    """Where a value of the code passes, file by file: `lines 266, 269; core_algos.py:254`."""
    by_path: dict[str, list[str]] = {}
    for step in steps:
        by_path.setdefault(step.path or here, []).append(str(step.line))
    told = []
    for path, lines in by_path.items():
        shown = ", ".join(dict.fromkeys(lines))
        told.append(f"line{'s' if ',' in shown else ''} {shown}" if path == here else f"{view.path(path)}:{shown}")
    return "; ".join(told)


def is_step(evidence: Evidence) -> bool:
    """Whether this is a line that a formula passes on its way to the loss or reward, and no setting."""
    return evidence.origin == "code" and evidence.value is None


def version_name(setup: Setup) -> str:
    """`verl 0.9.1`; formulas of the tree itself belong to no release."""
    return visible(f"{setup.framework} {setup.version.value}") if setup.version.value else "own code"


def version_source(version: FrameworkVersion, view: View) -> str:
    """How it is known which version is used."""
    at = view.place(version.path, version.line) if version.path is not None else ""
    if is_commit(version.allowed):
        return f"{at or 'a requirement'} pins a commit, {visible(version.allowed)}: the newest release is assumed"
    allowed = f" allows {visible(version.allowed)}" if version.allowed else ""
    return {
        "option": "as told",
        "vendored": f"its source is in the tree: {at}" if at else "its source is in the tree",
        "lockfile": f"locked in {at}" if at else "locked",
        "requirement": f"{at or 'a requirement'}{allowed}",
        "assumed": "assumed: nothing in the tree says which",
    }[version.source]


def counted(count: int, noun: str) -> str:
    """`1 file`, `1,042 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
