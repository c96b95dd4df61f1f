"""Runs the command line in this process, with an engine that finds what the test says."""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import klaudit
from klaudit.cli import main
from klaudit.configuration import Options
from klaudit.discover import Targets, list_files, locate
from klaudit.model import Finding, Fix, FrameworkVersion, Problem, Report, Setup, Severity, Span, Term


@dataclass
class FakeEngine:
    """Looks at files as the real one does, and has a finding in each that holds a severity's name."""

    calls: list[tuple[Sequence[str], Options]] = field(default_factory=list)
    fault: BaseException | None = None

    @property
    def options(self) -> Options:
        return self.calls[-1][1]

    def scan(
        self, paths: Sequence[str], options: Options, progress: Callable[[int, int], None] | None = None
    ) -> Report:
        self.calls.append((paths, options))
        if self.fault is not None:
            raise self.fault
        targets = locate(paths, options)
        found = list_files(targets, options)
        findings: list[Finding] = []
        for number, path in enumerate(found.files, 1):
            findings += _findings(targets, path)
            if progress is not None:
                progress(number, len(found.files))
        errors: list[Problem] = [*targets.problems, *found.problems]
        setups = tuple(_setup(finding) for finding in findings)
        return Report(setups, tuple(findings), tuple(errors), len(found.files), len(findings), 0.01, {})


def _findings(targets: Targets, path: str) -> list[Finding]:
    data = targets.overlay.get(path)
    text = (data if data is not None else Path(targets.root, path).read_bytes()).decode("utf-8", "replace")
    severities: tuple[Severity, ...] = ("error", "warning", "note")
    place = Span(path, 0, 1, 1, 1, 1, 2)
    return [
        Finding("KLA101", "k3-in-loss", severity, "high", place, f"a {severity}", "because", Fix("none", ""))
        for severity in severities
        if severity in text
    ]


def _setup(finding: Finding) -> Setup:
    term = Term("loss", "k3", "pathwise", 0.1, True, "1 - exp(-d)", "biased")
    version = FrameworkVersion("0.9.1", "assumed")
    return Setup(
        finding.span.path,
        finding.span,
        "launch",
        "verl",
        version,
        "main_ppo",
        "grpo",
        "",
        (),
        "0.1*(1 - exp(-d))",
        "biased",
        (term,),
    )


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine()
    module = types.ModuleType("klaudit.engine")
    module.scan = fake.scan  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "klaudit.engine", module)
    monkeypatch.setattr(klaudit, "engine", module, raising=False)
    return fake


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


@pytest.fixture
def run(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """`run("scan", ".")` in the test's folder."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["klaudit", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main()
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run
