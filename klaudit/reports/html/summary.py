"""The summary: what was scanned and, at a glance, what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from klaudit import __version__
from klaudit.model import Finding, Report, Severity, Verdict
from klaudit.reports.html.facets import address
from klaudit.reports.html.markup import NOTHING, Html, element
from klaudit.reports.html.words import severity, tone
from klaudit.reports.view import View
from klaudit.reports.wording import counted

_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_TONES = ("error", "warning", "good", "faint")


def header(report: Report, view: View) -> Html:
    scanned = view.prefix.rstrip("/") or "the working directory"
    facts = (
        f"{scanned}: {counted(report.files_seen, 'file')} looked at, {report.files_parsed:,} parsed, {report.seconds:.1f} s. "
        f"klaudit {__version__}."
    )
    toggle = element("button", "Theme: auto", type="button", id="theme", hidden=True)
    return element(
        "header",
        element("div", element("p", "klaudit", class_="brand"), toggle, class_="bar"),
        element("h1", outcome(report)),
        element("p", facts, class_="facts"),
    )


def outcome(report: Report) -> str:
    """The page's heading: the outcome in one line."""
    if not report.findings:
        return "No findings" if report.setups else "No findings: no KL set-up there"
    files = len({finding.span.path for finding in report.findings})
    return f"{counted(len(report.findings), 'finding')} in {counted(files, 'file')}"


def section(report: Report) -> Html:
    parts = (
        _tiles(report),
        _verdicts(report),
        element("div", _rules(report.findings), _frameworks(report), class_="columns"),
    )
    return element(
        "section", element("h2", "Summary", id="summary", class_="unseen"), *parts, aria_labelledby="summary"
    )


def _tiles(report: Report) -> Html:
    severities = Counter(finding.severity for finding in report.findings)
    tiles = [_tile(severities[each], f"{each}s", address("severity", each), each) for each in _SEVERITIES]
    tiles.append(_tile(len(report.setups), "set-ups", "#setups", ""))
    if report.withheld:
        tiles.append(_tile(len(report.withheld), "withheld", "#withheld", ""))
    tiles.append(
        _tile(len(report.errors), "unreadable", "#errors" if report.errors else "", "error" if report.errors else "")
    )
    return element("ul", tiles, class_="tiles")


def _tile(count: int, label: str, target: str, kind: str) -> Html:
    body = (element("strong", f"{count:,}"), " ", label)
    shown = element("a", *body, href=target) if target and count else element("span", *body)
    return element("li", shown, class_=kind if count and kind else "quiet")


def _verdicts(report: Report) -> Html:
    if not report.setups:
        return NOTHING
    counts = Counter(setup.verdict for setup in report.setups)
    ordered = sorted(counts, key=lambda verdict: (_TONES.index(tone(verdict)), -counts[verdict], verdict))
    links = (
        element(
            "li",
            element("a", verdict, href=address("verdict", verdict)),
            f" {counts[verdict]:,} ",
            element("span", f"({_share(counts[verdict], len(report.setups))})", class_="share"),
            class_=tone(verdict),
        )
        for verdict in ordered
    )
    return element(
        "div",
        element("h3", "What the set-ups train with"),
        _bar([(tone(verdict), counts[verdict]) for verdict in ordered]),
        element("ul", links, class_="verdicts"),
        class_="verdict-bar",
    )


def _rules(findings: Iterable[Finding]) -> Html:
    counts = Counter((f.rule, f.name, f.severity) for f in findings)
    if not counts:
        return NOTHING
    rows = (
        (element("a", rule, href=address("rule", rule)), element("span", name), severity(level), f"{count:,}")
        for (rule, name, level), count in sorted(counts.items())
    )
    return _table("Findings by rule", ("Rule", "Name", "Severity", "Findings"), rows)


def _frameworks(report: Report) -> Html:
    setups = Counter(setup.framework for setup in report.setups)
    if not setups:
        return NOTHING
    verdicts: dict[str, Counter[Verdict]] = {framework: Counter() for framework in setups}
    for setup in report.setups:
        verdicts[setup.framework][setup.verdict] += 1
    rows = (
        (element("a", framework, href=address("framework", framework)), f"{count:,}", _verdict_bar(verdicts[framework]))
        for framework, count in setups.most_common()
    )
    return _table("Set-ups by framework", ("Framework", "Set-ups", "Verdicts"), rows)


def _verdict_bar(counts: Counter[Verdict]) -> Html:
    ordered = sorted(counts, key=lambda verdict: (_TONES.index(tone(verdict)), verdict))
    told = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in ordered)
    bar = _bar([(tone(verdict), counts[verdict]) for verdict in ordered])
    return element("span", bar, element("span", told, class_="unseen"), title=told)


def _bar(parts: list[tuple[str, int]]) -> Html:
    """Shares as one bar; told in words beside it."""
    total, at, pieces = sum(count for _, count in parts), 0.0, []
    for kind, count in parts:
        width = 1000 * count / total
        pieces.append(element("rect", x=f"{at:.1f}", y=0, width=f"{max(width - 3, 1):.1f}", height=8, class_=kind))
        at += width
    return element(
        "svg",
        pieces,
        class_="shares",
        viewBox="0 0 1000 8",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )


def _table(caption: str, names: tuple[str, ...], rows: Iterable[tuple[str | Html, ...]]) -> Html:
    head = element("tr", (element("th", name, scope="col") for name in names))
    body = (
        element("tr", element("th", first, scope="row"), (element("td", cell) for cell in rest))
        for first, *rest in rows
    )
    return element(
        "table", element("caption", caption), element("thead", head), element("tbody", body), class_="counts"
    )


def _share(count: int, total: int) -> str:
    share = 100 * count / total
    return "<1 %" if share < 1 else f"{share:.0f} %"
