"""The pipeline over a tree: files in, one report out.  Over many files the work is spread over processes."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from klaudit.budget import Budget
from klaudit.configuration import Options
from klaudit.discover import list_context, list_files, locate, path_in_repository
from klaudit.discover.targets import repository_of
from klaudit.findings.judging import give_fingerprints, order_of
from klaudit.findings.selection import Selection
from klaudit.frameworks.detect import Detector, beyond_releases
from klaudit.frameworks.load import load_frameworks
from klaudit.gate import Gate, hold
from klaudit.model import FileResult, Finding, Problem, Report, Setup
from klaudit.pool import scan_files
from klaudit.scanner import Scanner
from klaudit.sieve import Sieve
from klaudit.tree import Tree

Progress = Callable[[int, int], None]

_POOL_PAYS = 0.45  # seconds of work


def scan(paths: Sequence[str], options: Options, progress: Progress | None = None) -> Report:
    """Scan files and folders.  Files that cannot be read are rows of `errors`; nothing that stands in a file raises.

    Raises RulesError where the framework rules themselves are broken.
    """
    started = time.perf_counter()
    budget = Budget.of(options)
    targets = locate(paths, options)
    found = list_files(targets, options)
    tree = Tree(targets.root, dict(targets.overlay))

    def judge(tree: Tree, context: Sequence[str], files: Sequence[str]) -> tuple[Report, Sequence[str]]:
        return _judge(tree, context, files, options, budget)

    context = list_context(targets, found, options)
    report, marked = _judge(tree, context, found.files, options, budget, progress)
    report = replace(
        report,
        errors=_in_order({*targets.problems, *found.problems, *report.errors}),
        remarks=(*report.remarks, *_versions_above(report, tree.root, options)),
    )
    report = hold(report, Gate(tree, targets, found.files, options, marked, budget, judge))
    by_rule = Counter(finding.rule for finding in report.findings)
    return replace(report, by_rule=dict(sorted(by_rule.items())), seconds=time.perf_counter() - started)


def _versions_above(report: Report, root: str, options: Options) -> Iterator[str]:
    """What the repository says of the frameworks whose version a scan of one of its folders has to assume."""
    assumed = {setup.framework: setup.version.value for setup in report.setups if setup.version.source == "assumed"}
    repository = repository_of(root)
    inside = path_in_repository(root).rstrip("/")
    if not assumed or not inside or repository is None:
        return
    known = {framework.id: framework for framework in load_frameworks(options.rules)}
    detector = Detector(Tree(repository), (), {})
    for name in sorted(assumed.keys() & known.keys()):
        version = detector.version(known[name], f"{inside}/.")
        if version.source != "assumed":
            where = (
                "the source above it is that of"
                if version.source == "vendored"
                else f"{version.path} above it asks for"
            )
            yield (
                f"`{inside}` is judged by itself, with {name} {assumed[name]} assumed, but {where} {name} {version.value}: scan the "
                f"repository from its root"
            )


def _judge(
    tree: Tree,
    context: Sequence[str],
    files: Sequence[str],
    options: Options,
    budget: Budget,
    progress: Progress | None = None,
) -> tuple[Report, Sequence[str]]:
    """All that there is in the files of a tree, whether it counts or not, and those of them that hold klaudit's comments."""
    scanner = Scanner(tree, context, options)
    sieve = Sieve(scanner, budget, prefilter=options.prefilter)
    results = _scan_files(sieve, scanner, files, options, progress, budget)
    report = Report(
        setups=tuple(sorted((setup for result in results for setup in result.setups), key=_setup_order)),
        findings=tuple(_findings(results, Selection(options, tree.root), path_in_repository(tree.root))),
        errors=_in_order({problem for result in results for problem in result.problems}),
        files_seen=len(files),
        remarks=tuple(beyond_releases(load_frameworks(options.rules), options.framework_versions)),
        files_parsed=sum(result.parsed for result in results),
        seconds=0.0,
    )
    return report, sorted(sieve.marked)


def _scan_files(
    sieve: Sieve, scanner: Scanner, files: Sequence[str], options: Options, progress: Progress | None, budget: Budget
) -> list[FileResult]:
    """Results of the files that may matter, and of those that could not be looked at."""
    paths = sieve.kept(files)
    first: list[str] = []
    while sieve.cost <= _POOL_PAYS and (path := next(paths, None)) is not None:
        first.append(path)
    workers = (options.jobs or os.cpu_count() or 1) if sieve.cost > _POOL_PAYS else 1
    is_worth_it = bool(first) and not budget.is_spent
    if is_worth_it and workers > 1:
        scanner.prepare()
    knowledge = scanner.analyses if is_worth_it else None
    results: list[FileResult] = []
    for done, result in enumerate(scan_files(scanner.scan, chain(first, paths), workers, budget, knowledge), 1):
        results.append(result)
        if progress is not None:
            progress(done + sieve.dropped, len(files))
    results += sieve.failures
    results.sort(key=lambda result: result.path)
    return results


def _findings(results: Iterable[FileResult], selection: Selection, prefix: str) -> list[Finding]:
    unique: dict[tuple[object, ...], Finding] = {}
    for result in results:
        for finding in result.findings:
            if selection.keeps(finding):
                unique.setdefault((finding.rule, finding.span, finding.message), finding)
    return give_fingerprints(sorted(unique.values(), key=order_of), prefix)


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.path, problem.line or 0, problem.message)))


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
