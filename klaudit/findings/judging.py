"""How judges are found and called.  A judge is a generator registered under its finding's name; it yields drafts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

import klaudit.findings
from klaudit.findings import catalogue
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.resolve import resolve
from klaudit.model import Confidence, Edit, Evidence, Finding, Fix, Safety, Severity, Span

NO_FIX = Fix("none", "")


class Draft(Struct, frozen=True):
    """What a judge says; the rest of a finding comes from the catalogue.  `severity` overrules the catalogue's."""

    span: Span
    message: str
    confidence: Confidence = "high"
    related: tuple[Evidence, ...] = ()
    fix: Fix = NO_FIX
    severity: Severity | None = None
    key: str = ""


@dataclass(frozen=True)
class Subject:
    """One launch to be judged, under the version in use and, when a judge asks, under others."""

    resolution: Resolution

    @cached_property
    def path(self) -> str:
        return self.resolution.launch.head.path

    def under(self, version: str) -> Resolution:
        """The same launch under another version."""
        return resolve(self.resolution.launch, version)


Judge: TypeAlias = Callable[[Subject], Iterable[Draft]]
_JUDGES: dict[str, Judge] = {}


def judges(name: str) -> Callable[[Judge], Judge]:
    """Registers the judge of the finding `name`."""

    def register(judge: Judge) -> Judge:
        _JUDGES[name] = judge
        return judge

    return register


def judge(subject: Subject) -> Iterator[Finding]:
    """All that the judges find, as findings.  Their identities do not depend on places."""
    for name, each in sorted(all_judges().items()):
        for draft in each(subject):
            setup = subject.resolution.setup
            yield finding(name, draft, setup.framework, launch=setup.span)


def finding(name: str, draft: Draft, framework: str = "", *, launch: Span | None = None) -> Finding:
    """A draft with what the catalogue adds."""
    entry = catalogue.entry(name)
    return Finding(
        rule=entry.id,
        name=name,
        severity=draft.severity or entry.severity,
        confidence=draft.confidence,
        span=draft.span,
        message=draft.message,
        why=entry.summary,
        fix=draft.fix,
        identity=_identity(entry.id, draft, framework),
        related=draft.related,
        launch=launch,
    )


def give_fingerprints(findings: Iterable[Finding], prefix: str = "") -> list[Finding]:
    """Findings that are equal but for their place are told apart by order of appearance.

    `prefix` leads from the root of the repository to that of the scan, so that a scan of a part gives the fingerprints of the whole.
    """
    seen: dict[str, int] = {}
    result = []
    for each in findings:
        fingerprint = _hash(each.identity, prefix + each.span.path)
        count = seen.get(fingerprint, 0)
        seen[fingerprint] = count + 1
        result.append(replace(each, fingerprint=f"{fingerprint}-{count}" if count else fingerprint))
    return result


def order_of(finding: Finding) -> tuple[object, ...]:
    """How the findings of a report are sorted."""
    span = finding.span
    return (span.path, span.start, span.end, finding.rule, finding.message)


def advice(safety: Safety, title: str, edits: tuple[Edit, ...] = ()) -> Fix:
    return Fix(safety, title, edits)


def _identity(rule: str, draft: Draft, framework: str) -> str:
    return _hash(rule, framework, " ".join((draft.key or draft.message).split()))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:20]


def all_judges() -> dict[str, Judge]:
    """Every judge by its finding's name."""
    if not _JUDGES:
        for module in iter_modules(klaudit.findings.__path__):
            import_module(f"klaudit.findings.{module.name}")
    return _JUDGES
