"""Markdown: rendered as GitHub does it, and looked at there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from klaudit.model import Problem, Report
from klaudit.reports import View, markdown
from klaudit.reports.markdown_text import code, table, words
from klaudit.reports.view import which
from klaudit.reports.visible import visible

OURS = {
    "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary", "ul", "li", "a", "sub", "strong", "em",
}  # fmt: skip


@dataclass
class Rendered(HTMLParser):
    """What a page consists of: its elements, addresses of links, texts of code, and all other text."""

    elements: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.open.append(tag)
        if tag == "a":
            self.links.append(dict(attrs).get("href") or "")
        if tag == "code":
            self.codes.append("")
        if tag == "tr":
            self.cells.append([])
        if tag == "td":
            self.cells[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "what is opened is closed"

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.cells[-1][-1] += data
        if "code" in self.open:
            self.codes[-1] += data
        elif "a" not in self.open:
            self.texts.append(data)


def rendered(text: str) -> Rendered:
    """With raw HTML left in: what GitHub takes out of it afterwards is no protection that tests should lean on."""
    page = Rendered()
    page.feed(cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE))
    page.close()
    assert page.open == []
    return page


def page_of(report: Report, view: View) -> str:
    return "".join(markdown.render(report, view))


def assert_no_references(page: Rendered) -> None:
    """Outside code nothing is left that forges make mentions, references, commits, pictures or links of."""
    for told in page.texts:
        assert not re.search(r"[@#`]\w|\bGH-\d|:[a-z_]+:|\b[0-9a-f]{7,40}\b|www\.|://", told), told


# --- the page ------------------------------------------------------------------------------------------------------------------------


def test_the_page(report: Report, view: View) -> None:
    text = page_of(report, replace(view, repository_prefix="train/"))
    assert text.splitlines()[0] == "<!-- klaudit -->"
    page = rendered(text)
    assert "klaudit: 2 findings (1 error, 1 warning)" in page.texts
    head, first, second, *others = page.cells
    assert head == []
    assert first == [
        "error",
        "train/conf/ppo.yaml:3",
        "KLA102 k3-in-reward",
        "k3 in the reward, unknown coefficient: descends KL(pi||ref) - KL(ref||pi) (confidence: medium)",
        "set algorithm.kl_penalty=kl",
    ]
    assert second[0] == "warning"
    assert second[4].endswith("remove actor_rollout_ref.actor.use_kl_loss (unsafe)")
    assert ["train/broken.yaml:3", "found a tab where indentation is expected"] in others
    setups = [row for row in others if len(row) == 6]
    assert [row[4] for row in setups] == ["biased", "biased", "inactive"]
    assert [
        "verl 0.9.1", "k3 in loss, 0.001", "0.001 - 0.001*exp(-d)", "KL(ref||pi)", "biased", "train/examples/run.sh:4",
    ] in setups  # fmt: skip
    assert set(page.elements) <= OURS
    assert page.elements.count("details") == 3
    assert page.links == ["http://joschu.net/blog/kl-approx.html"]


def test_places_are_links_where_the_forge_is_known(report: Report, view: View) -> None:
    page = rendered(
        page_of(report, replace(view, blob="https://forge.example/o/r/blob/abc/", repository_prefix="a b/"))
    )
    assert page.links[:2] == [
        "https://forge.example/o/r/blob/abc/a%20b/conf/ppo.yaml#L3",
        "https://forge.example/o/r/blob/abc/a%20b/examples/run.sh#L8",
    ]
    assert "https://forge.example/o/r/blob/abc/a%20b/train.ipynb?plain=1#L1" in page.links


def test_rules_link_to_their_pages_once_there_are_any(
    report: Report, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klaudit.reports.links.DOCUMENTATION", "https://docs.example/")
    assert "https://docs.example/rules/KLA102.html" in rendered(page_of(report, view)).links


def test_nothing_found(empty_report: Report, view: View) -> None:
    page = rendered(page_of(empty_report, view))
    assert "klaudit: no findings" in page.texts
    assert "table" not in page.elements and "details" not in page.elements


def test_nothing_found_where_not_all_was_read_says_so(report: Report, view: View) -> None:
    page = rendered(page_of(replace(report, findings=(), setups=()), view))
    assert "klaudit: not all could be scanned" in page.texts


def test_what_the_gate_says(gated: Report, view: View) -> None:
    page = rendered(page_of(gated, view))
    assert "1 entry of the baseline is stale" in page.texts
    assert any("3 findings withheld (2 suppressed, 1 in the baseline)." in each for each in page.texts)
    told = [row for row in page.cells if len(row) == 3]
    assert told[0] == ["conf/ppo.yaml:3", "KLA102 k3-in-reward", "suppressed (conf/ppo.yaml:3): ablation of table 3"]
    assert len(told) == 2
    assert len([row for row in rendered(page_of(gated, replace(view, verbose=True))).cells if len(row) == 3]) == 3


def test_set_ups_of_one_effect_stand_together(report: Report, view: View) -> None:
    launch = next(each for each in report.setups if each.kind == "launch")
    spans = [replace(launch.span, line=number) for number in range(1, 41)]
    alike = tuple(replace(launch, span=span) for span in spans)
    (row,) = [row for row in rendered(page_of(replace(report, setups=alike), view)).cells if len(row) == 6]
    assert row[5].endswith("examples/run.sh:5 and 35 more")


def test_what_a_fix_would_make_of_a_set_up(report: Report, view: View) -> None:
    launch = next(setup for setup in report.setups if setup.kind == "launch")
    k1 = replace(launch.terms[1], active=True, score_weight="d", verdict="unbiased")
    fixed = replace(launch, terms=(k1,), score_weight="0.001*d", verdict="unbiased")
    page = rendered(page_of(report, replace(view, after=lambda: {which(launch): fixed})))
    rows = [row for row in page.cells if len(row) == 7]
    assert [row[5] for row in rows if row[6].startswith("examples/run.sh")] == [
        "k1 in reward, 0.001, 0.001*d, KL(pi||ref), unbiased"
    ]
    assert [row[5] for row in rows].count("") == 2
    assert "after klaudit fix" not in rendered(page_of(report, view)).texts


# --- room ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 100, 700, 1_500, 5_000, 20_000, 65_536])
def test_it_keeps_to_the_room_there_is(report: Report, view: View, room: int) -> None:
    many = replace(
        report,
        findings=report.findings * 200,
        errors=tuple(Problem(f"{number}.yaml", 1, "broken") for number in range(200)),
        remarks=("a remark",) * 300,
    )
    text = page_of(many, replace(view, room=room))
    assert len(text.encode()) <= room
    page = rendered(text)
    rows = [row for row in page.cells if len(row) == 5]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)  # error, warning
    if room > 1_500:
        assert f"{400 - len(rows)} findings more than fit here:" in page.texts


def test_a_wall_of_findings_leaves_room_for_what_is_trained_with(report: Report, view: View) -> None:
    page = rendered(page_of(replace(report, findings=report.findings * 400), replace(view, room=20_000)))
    assert len([row for row in page.cells if len(row) == 6]) == 3
    assert len([row for row in page.cells if len(row) == 5]) > 20


def test_a_table_of_set_ups_that_does_not_fit_is_cut(report: Report, view: View) -> None:
    launch = next(setup for setup in report.setups if setup.kind == "launch")
    differing = tuple(replace(launch, score_weight=f"{number}*d") for number in range(500))
    page = rendered(page_of(replace(report, setups=differing), replace(view, room=20_000)))
    shown = len([row for row in page.cells if len(row) == 6])
    assert 50 < shown < 500
    assert f"{500 - shown} rows more than fit here." in page.texts


def test_all_is_shown_where_there_is_room(report: Report, view: View) -> None:
    many = replace(report, findings=report.findings * 200)
    page = rendered(page_of(many, replace(view, room=1_000_000)))
    assert len([row for row in page.cells if len(row) == 5]) == 400
    assert not any("more than fit" in each for each in page.texts)


# --- hostile content -----------------------------------------------------------------------------------------------------------------


def test_nothing_comes_out_of_a_file(nasty_report: Report, nasty_view: View) -> None:
    text = page_of(replace(nasty_report, setups=()), nasty_view)
    page = rendered(text)
    assert set(page.elements) <= OURS and "img" not in page.elements
    assert [row[0] for row in page.cells if len(row) == 5] == ["error", "warning", "note"]
    assert all(link.startswith(("https://forge.example/o/r/blob/abc/", "http://joschu.net/")) for link in page.links)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert_no_references(page)


def test_nor_into_the_table_of_set_ups(nasty_report: Report, nasty_view: View) -> None:
    page = rendered(page_of(replace(nasty_report, findings=(), errors=(), withheld=()), nasty_view))
    assert set(page.elements) <= OURS
    assert len([row for row in page.cells if len(row) == 6]) == 1
    assert_no_references(page)


_PIECES = st.sampled_from(
    [
        *"ab01 `|\\<>[]()!*_~#@:&;.-=",
        "www.x.yz",
        "http://x",
        "a@b.cd",
        "<b>",
        "&lt;",
        "GH-1",
        "deadbeef",
        "k3",
        "#1",
        "``",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=12).map("".join))
def test_code_is_shown_as_it_is(text: str) -> None:
    shown = visible(text)
    for markdown_text in (code(text, in_table=False), "\n".join(table(["h"], [[code(text)]]))):
        page = rendered(f"{markdown_text}\n")
        if shown.strip():
            assert [each.strip() for each in page.codes] == [shown.strip()]
            assert [each for each in page.texts if each.strip() not in ("", "h")] == []


def _bare(text: str) -> str:
    """Without spaces, and without backticks, which make code of what stands between them."""
    return "".join(text.split()).replace("`", "")


@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=14).map("".join))
def test_prose_says_what_it_quotes_and_nothing_else(text: str) -> None:
    page = rendered("\n".join(table(["h", "i"], [[words(text), "last"]])))
    ((first, last),) = [row for row in page.cells if row]
    assert last == "last"
    assert _bare(first) == _bare(visible(text))
    assert set(page.elements) <= OURS and not page.links
    assert_no_references(page)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k3 in the loss, coefficient 0.001 (a.b=True, c=0.1):", "k3 in the loss, coefficient 0.001 (`a.b=True, c=0.1`):"),
        ("score weight w(d) = 1 - exp(-d), descends KL(ref||pi)", "score weight `w(d) = 1 - exp(-d)`, descends `KL(ref\\|\\|pi)`"),
        ("set a=1 (a.b: otherwise not)", "set `a=1` (`a.b`: otherwise not)"),
        ("ask @org/team", "ask `@org/team`"),
        ("coefficient self.b: `f(x - y) - (x` with log pi = `g(...)`, so", "coefficient `self.b`: `f(x - y) - (x` with log pi = `g(...)`, so"),
        ("log pi = m(...)[1], log pi_ref = b['ref']: it", "log pi = `m(...)[1]`, log pi_ref = `b['ref']`: it"),
        ("descends KL(ref||pi); KL(pi||ref) has", "descends `KL(ref\\|\\|pi)`; `KL(pi\\|\\|ref)` has"),
        ("", ""),
    ],
)  # fmt: skip
def test_prose_is_easy_to_read(text: str, expected: str) -> None:
    assert words(text) == expected


def test_hostile_prose_takes_no_time() -> None:
    for piece in (")", "(", "`", "a(", "|", "\\"):
        assert words(piece * 20_000)
