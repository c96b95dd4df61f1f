"""What a configuration says of single paths, and which set-ups it requires or allows: records only, applied by the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from msgspec import Struct, field

from klaudit.globs import Globs
from klaudit.model import Confidence, Severity

FailOn: TypeAlias = Literal["error", "warning", "note", "never"]
FAIL_ON: tuple[FailOn, ...] = get_args(FailOn)
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)  # highest first
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # worst first


class PerPath(Struct, frozen=True):
    """One `[[per-path]]`: what holds for the paths that match; None where the rest of the configuration decides.

    Of several that match a path and set the same, the last one counts.
    """

    globs: Globs
    fail_on: FailOn | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    min_confidence: Confidence | None = None
    severity: Mapping[str, Severity] = field(default_factory=dict)
    require: tuple[str, ...] | None = None


class Allowed(Struct, frozen=True):
    """One `[[allow]]`: findings of these rules (ids, prefixes, names), of these set-ups, below these paths are no findings, and why.

    What is empty says nothing; `rules` and `setups` are not both empty.  `path` and `line` are where the entry stands.
    """

    reason: str
    rules: tuple[str, ...] = ()
    setups: tuple[str, ...] = ()
    globs: Globs | None = None
    path: str = ""
    line: int | None = None
