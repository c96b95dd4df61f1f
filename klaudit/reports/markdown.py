"""A summary for people who read a pull request or a job: Markdown of GitHub, which GitLab reads as well.

The first line is a mark by which a workflow finds its comment again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from klaudit.findings import catalogue
from klaudit.findings.catalogue import Entry
from klaudit.model import Finding, Report, Setup
from klaudit.reports.links import rule_page
from klaudit.reports.markdown_page import Page, Rows
from klaudit.reports.markdown_text import code, words
from klaudit.reports.places import repository_path, uri
from klaudit.reports.ranking import SEVERITIES, most_severe_first
from klaudit.reports.setup_block import descends, terms_in_brief
from klaudit.reports.view import View, which
from klaudit.reports.visible import visible
from klaudit.reports.withheld import why_withheld, withheld_in_words
from klaudit.reports.wording import counted, prose, version_name

MARK = "<!-- klaudit -->"
_FINDING_HEADERS = ("severity", "place", "rule", "finding", "what to do")
_MOST_PLACES = 5  # of set-ups that are alike
_MOST_REMARKS = 20
_SHARE_OF_SETUPS = 4  # a fourth of the room, however many findings there are
_FOR_THE_END = 600  # bytes kept for the notice that something was left out, and the last line


def render(report: Report, view: View) -> Iterator[str]:
    """As much as `view.room` bytes hold: the findings, most severe first, before all else; a notice says what was left out."""
    page = Page(view.room - _FOR_THE_END)
    if not page.add([MARK, f"### klaudit: {_headline(report)}", "", _looked_at(report)]):
        return
    if report.remarks:
        page.add(["", *(f"- {words(prose(remark), in_table=False)}" for remark in report.remarks[:_MOST_REMARKS])])
    if report.setups:
        page.keep(view.room // _SHARE_OF_SETUPS)
    findings, errors = len(report.findings), len(report.errors)
    left_out = {
        "finding": page.table(_FINDING_HEADERS, _findings(report, view), findings),
        "file": page.table(("file", "why it was not scanned"), _errors(report, view), errors),
    }
    page.release()
    page.add([""])
    page.folded_table(_setups_title(report), *_setup_rows(report, view))
    page.folded_table(withheld_in_words(report), *_withheld(report, view))
    for entry in _entries(report):
        page.folded(f"{entry.id} {entry.name}: {_html(entry.summary)}", _about(entry))
    yield from page.lines
    for noun, count in left_out.items():
        if count:
            yield f"\n**{counted(count, noun)} more than fit here:** `klaudit scan` lists all.\n"
    yield "\n<sub>`klaudit explain RULE` says why, `klaudit fix` shows the patch.</sub>\n"


def _headline(report: Report) -> str:
    if not report.findings:
        return "no findings" if not report.errors else "not all could be scanned"
    by_severity = Counter(finding.severity for finding in report.findings)
    told = ", ".join(counted(by_severity[each], each) for each in SEVERITIES if by_severity[each])
    return f"{counted(len(report.findings), 'finding')} ({told})"


def _looked_at(report: Report) -> str:
    withheld = withheld_in_words(report)
    files = len({finding.span.path for finding in report.findings})
    found = (
        f"In {counted(files, 'file')} of {report.files_seen:,}."
        if files
        else f"{counted(report.files_seen, 'file')} looked at."
    )
    return f"{found} {counted(len(report.setups), 'KL set-up')}.{f' {withheld}.' if withheld else ''}"


# --- rows ---------------------------------------------------------------------------------------------------------------------------


def _findings(report: Report, view: View) -> Iterator[Sequence[str]]:
    return (_finding(finding, view) for finding in most_severe_first(report.findings))


def _finding(finding: Finding, view: View) -> Sequence[str]:
    span = finding.span
    doubt = "" if finding.confidence == "high" else f" (confidence: {finding.confidence})"
    unsafe = " (unsafe)" if finding.fix.safety == "unsafe" else ""
    return (
        finding.severity,
        _place(span.path, span.line, span.cell, view),
        f"{_rule(finding.rule)} {finding.name}",
        words(prose(finding.message)) + doubt,
        words(prose(finding.fix.title)) + unsafe if finding.fix.title else "",
    )


def _rule(rule: str) -> str:
    page = rule_page(rule)
    return f"[{rule}]({page})" if page else rule


def _place(path: str, line: int | None, cell: int | None, view: View) -> str:
    """`path:line`, linked to the file where its address is known."""
    known = repository_path(path, view)
    shown = code((known or path) + ("" if line is None else f":{line}"))
    if view.blob and known is not None:
        anchor = "" if line is None else f"?plain=1#L{line}" if known.endswith((".md", ".ipynb")) else f"#L{line}"
        shown = f"[{shown}]({view.blob}{uri(known)}{anchor})"
    return shown if cell is None else f"{shown} (cell {cell + 1})"


def _errors(report: Report, view: View) -> Iterator[Sequence[str]]:
    for each in report.errors:
        yield _place(each.path, each.line, None, view), words(prose(each.message.partition("\n")[0]))


def _withheld(report: Report, view: View) -> tuple[Sequence[str], Rows]:
    """Those that somebody let pass; those that were there before only on request."""
    rows: list[Sequence[str]] = []
    for each in report.withheld:
        if view.verbose or each.by in ("suppression", "allowed"):
            span = each.finding.span
            place = _place(span.path, span.line, span.cell, view)
            rows.append((place, f"{each.finding.rule} {each.finding.name}", words(why_withheld(each, view))))
    return ("place", "rule", "why it does not count"), rows


# --- what is trained with -----------------------------------------------------------------------------------------------------------


def _setups_title(report: Report) -> str:
    verdicts = Counter(setup.verdict for setup in report.setups)
    told = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.most_common())
    return f"What is trained with: {counted(len(report.setups), 'set-up')} ({told})"


class _Effect(NamedTuple):
    verdict: str
    terms: str
    weight: str
    objective: str

    @classmethod
    def of(cls, setup: Setup) -> _Effect:
        return cls(setup.verdict, terms_in_brief(setup), setup.score_weight, _descends(setup))

    def __str__(self) -> str:
        return ", ".join(filter(None, (words(self.terms), code(self.weight), code(self.objective), self.verdict)))


def _setup_rows(report: Report, view: View) -> tuple[Sequence[str], Rows]:
    """Set-ups of one effect together; and what `klaudit fix` makes of them, where that is known."""
    after = view.after() if report.findings else {}
    alike: dict[tuple[_Effect, str, str], list[Setup]] = {}
    for setup in report.setups:
        fixed = after.get(which(setup))
        key = (_Effect.of(setup), version_name(setup), "" if fixed is None else str(_Effect.of(fixed)))
        alike.setdefault(key, []).append(setup)
    rows: list[Sequence[str]] = []
    for (now, framework, then), setups in sorted(alike.items(), key=lambda pair: (pair[0][0].verdict, -len(pair[1]))):
        told = [words(framework), words(now.terms), code(now.weight), code(now.objective), now.verdict]
        rows.append([*told, *([then] if after else []), _places(setups, view)])
    headers = ["framework", "KL terms", "score weight w(d)", "descends", "verdict"]
    return [*headers, *(["after `klaudit fix`"] if after else []), "where"], rows


def _descends(setup: Setup) -> str:
    """Of a single term; what a sum descends is said by its score weight and verdict."""
    on = [term for term in setup.terms if term.active is not False]
    return descends(on[0]) if len(on) == 1 else ""


def _places(setups: Sequence[Setup], view: View) -> str:
    places = dict.fromkeys(_place(setup.path, setup.span.line, setup.span.cell, view) for setup in setups)
    more = f" and {len(places) - _MOST_PLACES:,} more" if len(places) > _MOST_PLACES else ""
    return ", ".join([*places][:_MOST_PLACES]) + more


# --- rules --------------------------------------------------------------------------------------------------------------------------


def _entries(report: Report) -> Iterator[Entry]:
    known = catalogue.names()
    for name in dict.fromkeys(finding.name for finding in most_severe_first(report.findings)):
        if name in known:
            yield catalogue.entry(name)


def _about(entry: Entry) -> list[str]:
    lines = [*entry.why.splitlines(), "", *(f"**What to do.** {entry.fix}".splitlines() if entry.fix else [])]
    if entry.references:
        lines += ["", f"References: {', '.join(entry.references)}"]
    return lines


def _html(text: str) -> str:
    """Of the catalogue: what stands in a heading of HTML is not read as Markdown."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
