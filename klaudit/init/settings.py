"""`[tool.klaudit]` in pyproject.toml, or klaudit.toml where there is no pyproject.toml."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping

from klaudit.configuration_file import has_section
from klaudit.init.proposal import Change, Proposal
from klaudit.init.surroundings import Surroundings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OWN, SHARED = "klaudit.toml", "pyproject.toml"
_HEADER = re.compile(rb"(?m)^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*klaudit[ \t]*\][ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")


def settings(surroundings: Surroundings, assumed: Mapping[str, str], baseline: str | None) -> Proposal:
    """A configuration to start from; where there is one, at most the line that names a new baseline.

    `assumed` maps frameworks found in the tree to the version that is judged by for want of a better one.
    """
    own, shared = surroundings.read(OWN), surroundings.read(SHARED)
    if own is not None:
        return _with_baseline(OWN, own, 0, (), baseline)
    if shared is None:
        return Proposal((Change(OWN, None, _text(assumed, baseline, "\n").encode()),))
    if has_section(shared):
        header = _HEADER.search(shared)
        return _with_baseline(SHARED, shared, header.end() if header else None, ("tool", "klaudit"), baseline)
    end = "\r\n" if b"\r\n" in shared else "\n"
    gap = "" if not shared else end if shared.endswith(b"\n") else end * 2
    after = shared + f"{gap}[tool.klaudit]{end}{_text(assumed, baseline, end)}".encode()
    if _table(after, ("tool", "klaudit")) is None or _without(after) != _without(shared):
        return Proposal(notes=(f"{SHARED} cannot be added to: put the settings into {OWN}",))
    return Proposal((Change(SHARED, shared, after),))


def _text(assumed: Mapping[str, str], baseline: str | None, end: str) -> str:
    lines = ['fail-on = "warning"  # error, warning, note or never']
    if baseline is not None:
        lines.append(f"baseline = {json.dumps(baseline)}")
    if assumed:
        versions = ", ".join(f"{json.dumps(name)} = {json.dumps(version)}" for name, version in sorted(assumed.items()))
        lines += [
            "# Nothing in the repository says which version is trained with; these are assumed.  Better say it:",
            f"# framework-versions = {{ {versions} }}",
        ]
    return "".join(line + end for line in lines)


def _with_baseline(path: str, before: bytes, at: int | None, keys: tuple[str, ...], baseline: str | None) -> Proposal:
    table = _table(before, keys)
    if table is None:
        return Proposal(notes=(f"{path} cannot be read: `klaudit config` says why",))
    if baseline is None or table.get("baseline") == baseline:
        return Proposal(notes=(f"{path} has settings already: left as they are",))
    if "baseline" in table:
        return Proposal(notes=(f"{path} names another baseline: left as it is",))
    end = "\r\n" if b"\r\n" in before else "\n"
    if at is not None:
        head = before[:at] + (end.encode() if at and not before[:at].endswith(b"\n") else b"")
        after = head + f"baseline = {json.dumps(baseline)}{end}".encode() + before[at:]
        if _table(after, keys) == {**table, "baseline": baseline}:
            return Proposal((Change(path, before, after),))
    return Proposal(notes=(f"{path}: add `baseline = {json.dumps(baseline)}` to the settings by hand",))


def _table(data: bytes, keys: tuple[str, ...]) -> dict[str, object] | None:
    """A table of a TOML file; None where the file cannot be read or has no such table."""
    try:
        table: object = tomllib.loads(data.decode("utf-8").replace("\r\n", "\n"))
    except (ValueError, RecursionError):
        return None
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else None


def _without(data: bytes) -> dict[str, object] | None:
    """All of a pyproject.toml but our table."""
    table = _table(data, ())
    if table is None:
        return None
    tool = table.get("tool", {})
    rest = {key: value for key, value in tool.items() if key != "klaudit"} if isinstance(tool, dict) else tool
    return {**table, "tool": rest}
