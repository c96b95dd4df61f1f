"""The domain words: immutable records that every stage of the pipeline passes on.  No I/O, no framework knowledge."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

EstimatorName: TypeAlias = Literal["k1", "k2", "k3", "abs", "full", "reversed-k3", "unknown"]
Placement: TypeAlias = Literal["loss", "reward", "metric"]
Gradient: TypeAlias = Literal["pathwise", "straight-through-k2", "importance-weighted", "score", "none"]
Verdict: TypeAlias = Literal[
    "unbiased",
    "unbiased-per-token",
    "rescaled",
    "biased",
    "no-regularisation",
    "no-gradient",
    "inactive",
    "ignored",
    "unknown",
]
Origin: TypeAlias = Literal["default", "file", "override", "variable", "code"]
Severity: TypeAlias = Literal["error", "warning", "note"]
Confidence: TypeAlias = Literal["high", "medium", "low"]
Safety: TypeAlias = Literal["safe", "unsafe", "none"]
SetupKind: TypeAlias = Literal["launch", "config", "code"]
WithheldBy: TypeAlias = Literal["suppression", "baseline", "unchanged", "allowed", "confidence"]
VersionSource: TypeAlias = Literal["option", "vendored", "lockfile", "requirement", "assumed"]


class Span(Struct, frozen=True):
    """Bytes `start`..`end` of one file.  Lines and columns count from 1; columns count characters, not bytes.

    `cell` is the index of the notebook cell, from 0, counting all cells.
    """

    path: str
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None


class Unknown(Struct, frozen=True):
    """A value that cannot be known without running something.

    `hangs_on` names what decides it: shell or Python names, interpolations, command substitutions.
    """

    hangs_on: tuple[str, ...]
    text: str = ""

    def __bool__(self) -> bool:
        raise TypeError("an unknown value has no truth value: test for Unknown first")


Scalar: TypeAlias = None | bool | int | float | str
Value: TypeAlias = Scalar | Unknown | list["Value"] | dict[str, "Value"]


class Setting(Struct, frozen=True):
    """One assignment of a value to a dotted name or flag, and where it stands.

    `span` is the whole entry (`a.b=c`, `--flag value`, `key: value`, `beta=0.04`), `value_span` the value alone.  `source` is where
    the value itself was written when that is elsewhere (a shell variable's assignment, an interpolated key).
    """

    name: str
    value: Value
    span: Span
    value_span: Span
    origin: Origin
    source: Span | None = None
    raw: str = ""


class Problem(Struct, frozen=True):
    """Something a reader could not make sense of; the rest of the file was still read."""

    path: str
    line: int | None
    message: str


class Evidence(Struct, frozen=True):
    """Why a term is what it is: one effective setting and where it was set (`path` is None for a shipped default)."""

    setting: str
    value: Value
    origin: Origin
    path: str | None
    line: int | None
    span: Span | None = None
    note: str = ""


class Term(Struct, frozen=True):
    """One KL term of a set-up.  `coefficient` is in nats⁻¹ of the loss or reward; None where it cannot be known."""

    placement: Placement
    estimator: EstimatorName
    gradient: Gradient
    coefficient: float | None
    active: bool | None
    score_weight: str
    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    normalised_by_group_std: bool | None = False
    why_inactive: str = ""
    facts: tuple[str, ...] = ()


class FrameworkVersion(Struct, frozen=True):
    value: str
    source: VersionSource
    allowed: str = ""
    path: str | None = None
    line: int | None = None


class Setup(Struct, frozen=True):
    """What one launch, config file or config object really trains with."""

    path: str
    span: Span
    kind: SetupKind
    framework: str
    version: FrameworkVersion
    entry_point: str
    algorithm: str
    symbol: str
    assumes: tuple[str, ...]
    score_weight: str
    verdict: Verdict
    terms: tuple[Term, ...]


class Edit(Struct, frozen=True):
    """Replace bytes `start`..`end` of `path` by `replacement`."""

    path: str
    start: int
    end: int
    replacement: str


class Fix(Struct, frozen=True):
    safety: Safety
    title: str
    edits: tuple[Edit, ...] = ()


class Finding(Struct, frozen=True):
    """One thing that is wrong.

    `identity` says what is wrong in the terms of the launch or formula: it stays when lines move, values change or the file is renamed,
    and is shared by all findings that are alike.  `fingerprint` is unique in a report: identity, path within the repository, and a
    number where several are alike.
    """

    rule: str
    name: str
    severity: Severity
    confidence: Confidence
    span: Span
    message: str
    why: str
    fix: Fix
    fingerprint: str = ""
    related: tuple[Evidence, ...] = ()
    launch: Span | None = None  # the set-up that it is about: that set-up's span
    identity: str = ""


class Withheld(Struct, frozen=True):
    """A finding that does not count: who said so (a comment, the baseline, an unchanged launch, the policy), why and where."""

    finding: Finding
    by: WithheldBy
    reason: str = ""
    path: str | None = None
    line: int | None = None


class FileResult(Struct, frozen=True):
    """All that one file gave; what travels between processes."""

    path: str
    setups: tuple[Setup, ...] = ()
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    parsed: bool = False


class Report(Struct, frozen=True):
    """The outcome of a scan, in deterministic order.

    `findings` are those that count; `withheld` those that the gate took out; `remarks` what the gate has to say besides (a stale
    entry of a baseline, a time budget that ran out).
    """

    setups: tuple[Setup, ...]
    findings: tuple[Finding, ...]
    errors: tuple[Problem, ...]
    files_seen: int
    files_parsed: int
    seconds: float
    by_rule: dict[str, int] = field(default_factory=dict)
    withheld: tuple[Withheld, ...] = ()
    remarks: tuple[str, ...] = ()
