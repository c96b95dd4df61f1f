"""The pipeline over a tree: files in, one report out.  Over many files the work is spread over processes."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from klaudit.budget import Budget
from klaudit.configuration import Options
from klaudit.discover import list_context, list_files, locate, path_in_repository
from klaudit.findings.judging import give_fingerprints, order_of
from klaudit.findings.selection import Selection
from klaudit.gate import Gate, hold
from klaudit.gate.directives import MARKER
from klaudit.model import FileResult, Finding, Problem, Report, Setup
from klaudit.pool import scan_files
from klaudit.scanner import Scanner
from klaudit.tree import TooLargeError, Tree

Progress = Callable[[int, int], None]

# What a byte of a file that passed the prefilter costs, in seconds, by suffix; a pool pays off above half a second of work.
_COST = {".py": 1.3e-6, ".ipynb": 0.4e-6, ".yaml": 0.6e-6, ".yml": 0.6e-6}
_COST_OF_OTHERS = 0.8e-6
_POOL_PAYS = 0.45


def scan(paths: Sequence[str], options: Options, progress: Progress | None = None) -> Report:
    """Scan files and folders.  Files that cannot be read are rows of `errors`; nothing that stands in a file raises.

    Raises RulesError where the framework rules themselves are broken.
    """
    started = time.perf_counter()
    budget = Budget.of(options)
    targets = locate(paths, options)
    found = list_files(targets, options)
    tree = Tree(targets.root, dict(targets.overlay))
    scanner = Scanner(tree, list_context(targets, found, options), options)
    marked: list[str] = []
    results, seen = _scan_files(scanner, found.files, options, progress, marked, budget)
    problems = [*targets.problems, *found.problems, *(problem for result in results for problem in result.problems)]
    findings = _findings(results, Selection(options, targets.root), path_in_repository(targets.root))
    report = Report(
        setups=tuple(sorted((setup for result in results for setup in result.setups), key=_setup_order)),
        findings=tuple(findings),
        errors=tuple(sorted(set(problems), key=lambda problem: (problem.path, problem.line or 0, problem.message))),
        files_seen=seen,
        files_parsed=sum(result.parsed for result in results),
        seconds=0.0,
    )
    report = hold(report, Gate(tree, targets, found.files, options, marked, budget))
    by_rule = Counter(finding.rule for finding in report.findings)
    return replace(report, by_rule=dict(sorted(by_rule.items())), seconds=time.perf_counter() - started)


def _scan_files(
    scanner: Scanner,
    files: Sequence[str],
    options: Options,
    progress: Progress | None,
    marked: list[str],
    budget: Budget,
) -> tuple[list[FileResult], int]:
    """Results of the files that may matter, and how many were looked at; `marked` gets those that hold klaudit's comments."""
    hits: list[tuple[str, float]] = []
    results: list[FileResult] = []
    for path in files:
        if budget.is_spent:
            hits.append((path, 0.0))  # nobody has time to look: it will be among those that were not scanned
            continue
        try:
            source = scanner.tree.source(path)
        except (OSError, TooLargeError) as error:
            results.append(FileResult(path, problems=(Problem(path, None, _why(error)),)))
            continue
        if source is None:
            continue
        if MARKER in source.data:  # whatever else the file holds: the comment itself may be wrong
            marked.append(path)
        if not options.prefilter or scanner.may_matter(path, source.data):
            hits.append((path, len(source.data) * _COST.get(os.path.splitext(path)[1], _COST_OF_OTHERS)))
        else:
            scanner.tree.forget(path)  # most files: their bytes would only fill memory
    total = len(hits)
    biggest_first = [path for path, _ in sorted(hits, key=lambda hit: -hit[1])]  # so that no worker is left with the long end
    for done, result in enumerate(scan_files(scanner.scan, biggest_first, _workers(options, hits), budget), 1):
        results.append(result)
        if progress is not None:
            progress(done, total)
    results.sort(key=lambda result: result.path)
    return results, len(files)


def _workers(options: Options, hits: Sequence[tuple[str, float]]) -> int:
    wanted = options.jobs or os.cpu_count() or 1
    return min(wanted, len(hits)) if sum(cost for _, cost in hits) > _POOL_PAYS else 1


def _findings(results: Iterable[FileResult], selection: Selection, prefix: str) -> list[Finding]:
    unique: dict[tuple[object, ...], Finding] = {}
    for result in results:
        for finding in result.findings:
            if selection.keeps(finding):
                unique.setdefault((finding.rule, finding.span, finding.message), finding)
    return give_fingerprints(sorted(unique.values(), key=order_of), prefix)


def _setup_order(setup: Setup) -> tuple[object, ...]:
    span = setup.span
    return (
        setup.path,
        span.start,
        span.end,
        setup.framework,
        setup.entry_point,
        setup.symbol,
        setup.assumes,
        setup.score_weight,
    )


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
