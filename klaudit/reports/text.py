"""The report for people: findings by file, each with its source, what set what, and what to change; then the set-ups and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence

from msgspec.structs import replace

from klaudit.model import Evidence, Finding, Problem, Report, Setup, Severity, Span
from klaudit.reports.excerpt import Mark, excerpt
from klaudit.reports.layout import Cell, Line, Style, paint, paragraph, table
from klaudit.reports.setup_block import setup_blocks
from klaudit.reports.shared_notes import SharedNote, divided
from klaudit.reports.view import NO_LIMIT, View
from klaudit.reports.visible import visible
from klaudit.reports.withheld import why_withheld, withheld_in_words
from klaudit.reports.wording import counted, is_step, prose, value, way, whence

_MOST_MARKS = 4  # besides the finding's own
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
INTERNAL = "internal error"  # how messages about klaudit's own faults begin


def render(report: Report, view: View) -> Iterator[str]:
    lines = _brief(report, view) if view.quiet else _full(report, view)
    return paint(lines, colour=view.colour)


def render_part(report: Report, view: View) -> Iterator[str]:
    """What is chosen from a report: its findings and set-ups in full, and who withholds what, without the summary."""
    return paint((*_by_file(report, view, every_file=True), *_withheld(report, view)), colour=view.colour)


def _brief(report: Report, view: View) -> Iterator[Line]:
    for finding in report.findings:
        yield head(finding, view)


def _full(report: Report, view: View) -> Iterator[Line]:
    listed, shared = divided(report.findings, view)
    yield from _by_file(replace(report, findings=tuple(listed)), view, every_file=view.verbose)
    if view.verbose:
        yield from _withheld(report, view)
    yield from problems(report.errors, view)
    yield from _summary(report, view, {finding.span.path for finding in listed}, shared)


def _by_file(report: Report, view: View, *, every_file: bool) -> Iterator[Line]:
    setups: dict[str, list[Setup]] = {}
    for setup in report.setups:
        setups.setdefault(setup.path, []).append(setup)
    findings: dict[str, list[Finding]] = {}
    for finding in report.findings:
        findings.setdefault(finding.span.path, []).append(finding)
    paths = dict.fromkeys([*findings, *setups]) if every_file else findings
    for path in paths:
        for finding in findings.get(path, []):
            yield from _finding(finding, setups.get(path, []), view)
            yield ()
        yield from setup_blocks(setups.get(path, []), view)


# --- one finding --------------------------------------------------------------------------------------------------------------------


def head(finding: Finding, view: View) -> Line:
    """`path:line:column KLA101 name [severity] message`."""
    span = finding.span
    return (
        (view.place(span.path, span.line, span.column, span.cell), "path"),
        (" ", "plain"),
        (finding.rule, "rule"),
        (f" {finding.name} ", "plain"),
        (f"[{finding.severity}]", finding.severity),
        (f" {prose(finding.message)}", "plain"),
    )


def _finding(finding: Finding, setups: Sequence[Setup], view: View) -> Iterator[Line]:
    *place, (message, style) = head(finding, view)
    if view.wrap:
        yield tuple(place)
        yield from paragraph(message.strip(), view.width, first=(("  ", "plain"),), indent=2, style="strong")
    else:
        yield (*place, (message, style))
    setup = _setup_of(finding, setups)
    marked, others, steps = _evidence(finding)
    source = view.source(finding.span.path)
    if source is None:
        others, marked = [*marked, *others], []
    else:
        marks = [Mark(finding.span, primary=True), *_marks(marked, finding)]
        yield from excerpt(source, marks, view.width, finding.severity)
    for each in others:
        shown = f"{visible(each.setting)} = {value(each.value)}, {whence(each, setup, view, here=finding.span.path)}"
        yield from _remark("setting", shown, view)
    yield from _remark("by way of", way(steps, view, here=finding.span.path), view)
    if finding.confidence != "high":
        yield from _remark("confidence", finding.confidence, view)
    yield from _remark("why", prose(finding.why), view)
    if finding.fix.title:
        tier = " (unsafe)" if finding.fix.safety == "unsafe" else ""
        yield from _remark(f"fix{tier}", prose(finding.fix.title), view, "good")


def _remark(label: str, text: str, view: View, style: Style = "plain") -> Iterator[Line]:
    if text:
        yield from paragraph(
            text, view.width, first=(("  = ", "context"), (f"{label}: ", "strong")), indent=6, style=style
        )


def _evidence(finding: Finding) -> tuple[list[Evidence], list[Evidence], list[Evidence]]:
    """Settings that can be shown in the finding's own excerpt, settings said in words, and the lines that a formula passes."""
    marked: list[Evidence] = []
    others: list[Evidence] = []
    steps: list[Evidence] = []
    for each in finding.related:
        if is_step(each):
            steps.append(each)
            continue
        is_near = each.span is not None and each.span.path == finding.span.path and len(marked) < _MOST_MARKS
        (marked if is_near else others).append(each)
    return marked, others, steps


def _marks(marked: Sequence[Evidence], finding: Finding) -> Iterator[Mark]:
    """One mark a place: a variable can give several settings their values, and what lies in the finding's own span is marked by it."""
    labels: dict[Span, list[str]] = {}
    for each in marked:
        if each.span is not None and not (finding.span.start <= each.span.start and each.span.end <= finding.span.end):
            labels.setdefault(each.span, []).append(_label(each))
    for span, told in labels.items():
        yield Mark(span, "; ".join(dict.fromkeys(told)))


def _label(evidence: Evidence) -> str:
    name = visible(evidence.setting.rpartition(".")[2])
    words = {"default": f"default of {name}", "variable": f"value of {name}"}.get(evidence.origin, "set here")
    return f"{words} ({prose(evidence.note)})" if evidence.note else words


def _setup_of(finding: Finding, setups: Sequence[Setup]) -> Setup | None:
    """The set-up that a finding is about, for naming the framework whose defaults it quotes: the one whose span holds it."""
    holding = [s for s in setups if s.span.start <= finding.span.start and finding.span.end <= s.span.end]
    versions = {(s.framework, s.version.value) for s in setups}
    return holding[0] if holding else setups[0] if len(versions) == 1 else None


def _withheld(report: Report, view: View) -> Iterator[Line]:
    for each in report.withheld:
        *place, (message, style) = head(each.finding, view)
        yield (("withheld ", "strong"), *place, (message, "faint" if style == "plain" else style))
        yield from paragraph(why_withheld(each, view), view.width, first=(("  = ", "context"),), indent=6)
    if report.withheld:
        yield ()


# --- problems and summary -----------------------------------------------------------------------------------------------------------


def problems(errors: Sequence[Problem], view: View) -> Iterator[Line]:
    """Files that could not be read, and klaudit's own faults with the wish to hear of them."""
    for error in errors:
        first, _, rest = error.message.partition("\n")
        place: Line = ((view.place(error.path, error.line), "path"), (": ", "plain"), ("error", "error"))
        if view.wrap:
            yield from paragraph(f": {prose(first)}", view.width, first=place, indent=2)
        else:
            yield (*place, (f": {prose(first)}", "plain"))
        if view.verbose:
            for line in rest.splitlines():
                yield ((f"  {visible(line)}", "faint"),)
    if any(error.message.startswith(INTERNAL) for error in errors):
        text = "This is a fault of klaudit, not of the file. Please report it, with the file and what --verbose shows."
        yield from paragraph(text, view.width)
    if errors:
        yield ()


def _summary(report: Report, view: View, shown: Container[str], shared: Sequence[SharedNote]) -> Iterator[Line]:
    """`shown` are the files whose set-ups stand above."""
    if report.findings:
        by_rule = Counter((f.rule, f.name, f.severity) for f in report.findings)
        rows: list[list[Cell]] = [
            [(rule, "rule"), (name, "plain"), (severity, severity), (f"{count:,}", "plain")]
            for (rule, name, severity), count in sorted(by_rule.items())
        ]
        yield from table(("rule", "name", "severity", "findings"), rows, view.width)
        yield ()
    width = view.width if view.wrap else NO_LIMIT
    if report.setups:
        verdicts = Counter(setup.verdict for setup in report.setups)
        told = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.most_common())
        yield from paragraph(f"{counted(len(report.setups), 'set-up')}: {told}.", width, indent=2)
        if not view.verbose and any(setup.path not in shown for setup in report.setups):
            which = "Those not shown" if shared else "Those without findings"
            hint = f"{which} are listed by `klaudit setups` and shown by --verbose."
            yield from paragraph(hint, width, indent=2, style="faint")
    for note in shared:
        yield from paragraph(prose(note.in_words), width, first=(("note: ", "note"),), indent=2)
    for remark in report.remarks:
        yield from paragraph(prose(remark), width, first=(("note: ", "note"),), indent=2)
    if withheld := withheld_in_words(report):
        yield from paragraph(f"{withheld}.", width, indent=2)
    yield from paragraph(outcome(report), width, indent=2, style="strong")


def outcome(report: Report) -> str:
    if report.findings:
        severities = Counter(finding.severity for finding in report.findings)
        told = ", ".join(counted(severities[each], each) for each in _SEVERITIES if severities[each])
        files = len({finding.span.path for finding in report.findings})
        start = f"{counted(len(report.findings), 'finding')} ({told}) in {counted(files, 'file')}"
    elif report.files_seen == 0 and report.errors:
        start = "Nothing scanned"
    elif report.files_seen == 0:
        start = "Nothing to scan: no shell script, Python file, notebook, YAML, JSON or TOML file there"
    else:
        start = "No findings" if report.setups else "No findings: no KL set-up there"
    errors = f", {counted(len(report.errors), 'error')}" if report.errors else ""
    seen = f"{counted(report.files_seen, 'file')} looked at, {report.files_parsed:,} parsed"
    return f"{start}{errors}. {seen}, {report.seconds:.2f} s."
