"""Annotations: what the runner of GitHub Actions makes of each line, and what it must not make of a file's contents."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from klaudit.model import Problem, Report, Severity
from klaudit.readers.source import Source
from klaudit.reports import View, github, load, text
from klaudit.reports.visible import inert, visible

# What runners know, also what they no longer obey.
COMMANDS = {
    "error", "warning", "notice", "debug", "group", "endgroup", "add-mask", "stop-commands", "set-output", "set-env", "add-path",
    "save-state", "echo", "add-matcher", "remove-matcher", "internal-set-repo-path",
}  # fmt: skip


@dataclass
class Command:
    name: str
    properties: dict[str, str]
    data: str


def command_in(line: str) -> Command | None:
    """As the runner reads a line: `::name key=value,...::data` after spaces, else `##[name key=value;...]data` anywhere."""
    stripped = line.lstrip()
    if stripped.startswith("::") and (end := stripped.find("::", 2)) != -1:
        name, _, given = stripped[2:end].partition(" ")
        if name in COMMANDS:
            pairs = [pair.split("=", 1) for pair in given.strip().split(",") if "=" in pair]
            return Command(
                name, {key: unescape(value, ":,") for key, value in pairs}, unescape(stripped[end + 2 :], "")
            )
    start = line.find("##[")
    if start != -1 and (end := line.find("]", start)) != -1:
        name, _, _ = line[start + 3 : end].partition(" ")
        if name in COMMANDS:
            return Command(f"##[{name}]", {}, line[end + 1 :])
    return None


def unescape(text: str, further: str) -> str:
    for character in "\r\n" + further:
        text = text.replace(f"%{ord(character):02X}", character)
    return text.replace("%25", "%")


def commands(printed: str) -> list[Command]:
    return [command for line in re.split(r"\r\n|\r|\n", printed) if (command := command_in(line))]


def annotations(report: Report, view: View) -> list[Command]:
    return commands("".join(github.render(report, view)))


def many(report: Report, errors: int = 0, warnings: int = 0, notes: int = 0) -> Report:
    counts: list[tuple[Severity, int]] = [("note", notes), ("warning", warnings), ("error", errors)]
    rows = [
        replace(report.findings[0], severity=severity, message=f"{severity} {number}")
        for severity, count in counts
        for number in range(count)
    ]
    return replace(report, findings=tuple(rows), errors=())


def test_an_annotation_says_where_what_and_what_to_do(report: Report, view: View) -> None:
    first, second, *problems = annotations(report, replace(view, repository_prefix="train: a,b/"))
    assert (first.name, second.name) == ("error", "warning")
    assert first.properties == {
        "file": "train: a,b/conf/ppo.yaml", "line": "3", "endLine": "3", "col": "3", "endColumn": "25", "title": "KLA102 k3-in-reward",
    }  # fmt: skip
    assert first.data == (
        "k3 in the reward, unknown coefficient: descends KL(pi||ref) - KL(ref||pi) (confidence: medium)\n"
        "To mend it: set algorithm.kl_penalty=kl\nklaudit explain KLA102 says why."
    )
    assert [each.properties for each in problems] == [
        {"file": "train: a,b/broken.yaml", "line": "3", "title": "klaudit: not scanned"},
        {"file": "train: a,b/odd.py", "title": "klaudit: not scanned"},
    ]
    assert "Traceback" not in problems[1].data


def test_nothing_found_leaves_a_line_for_the_log(empty_report: Report, view: View) -> None:
    printed = "".join(github.render(empty_report, view))
    assert commands(printed) == []
    assert printed == "No findings: no KL set-up there. 3 files looked at, 0 parsed, 0.01 s.\n"


def test_the_cell_of_a_notebook_is_named(report: Report, view: View) -> None:
    where = Source("train.ipynb", b'{"beta": 1}', cell=4).span(1, 7)
    first, *_ = annotations(replace(report, findings=(replace(report.findings[0], span=where),)), view)
    assert first.properties["title"] == "KLA102 k3-in-reward (cell 5)"


def test_a_span_of_several_lines_is_annotated_on_its_first(report: Report) -> None:
    source = Source("f", b"f(\n  1)\n")
    finding = replace(report.findings[0], span=source.span(0, 7))
    first, *_ = annotations(replace(report, findings=(finding,)), View(source=lambda path: source))
    assert (first.properties["line"], first.properties["endLine"]) == ("1", "1")


class TestLimits:
    def test_ten_of_each_kind_are_shown_the_most_severe_first(self, report: Report, view: View) -> None:
        made = annotations(many(report, 15, 12, 30), view)
        kinds = [each.name for each in made]
        assert kinds == ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10 + ["group", "endgroup"]

    def test_a_notice_says_how_many_more_and_where(self, report: Report, view: View) -> None:
        printed = "".join(github.render(many(report, 15, 12, 30), view))
        (notice,) = [each for each in commands(printed) if "more" in each.data]
        assert notice.data == (
            "28 more findings (5 errors, 2 warnings, 21 notes): GitHub shows 10 annotations of a kind. The log of this step lists all."
        )
        rows = [line for line in printed.splitlines() if line.startswith("conf/ppo.yaml:3:3 KLA102 ")]
        assert len(rows) == 28
        assert "error 14" in printed and "warning 11" in printed and "note 29" in printed

    @pytest.mark.parametrize("counts", [(10, 0, 0), (0, 10, 9), (10, 10, 9)])
    def test_what_fits_needs_no_notice(self, report: Report, view: View, counts: tuple[int, int, int]) -> None:
        made = annotations(many(report, *counts), view)
        assert len(made) == sum(counts) and not any(each.name == "group" for each in made)

    def test_a_wall_of_findings_does_not_hide_that_a_file_was_not_read(self, report: Report, view: View) -> None:
        errors = tuple(Problem(f"{n}.yaml", 1, "broken") for n in range(3))
        made = annotations(replace(many(report, 15), errors=errors), view)
        titles = [each.properties["title"] for each in made if each.name == "error"]
        assert len(titles) == 10 and titles.count("klaudit: not scanned") == 1
        assert any(
            "6 more findings (6 errors) and 2 more files that could not be scanned" in each.data for each in made
        )

    def test_a_wall_of_broken_files_does_not_hide_findings(self, report: Report, view: View) -> None:
        errors = tuple(Problem(f"{n}.yaml", 1, "broken") for n in range(50))
        made = annotations(replace(many(report, 4), errors=errors), view)
        titles = [each.properties["title"] for each in made if each.name == "error"]
        assert titles == ["KLA102 k3-in-reward"] * 4 + ["klaudit: not scanned"] * 6

    def test_remarks_of_the_gate_are_notices(self, gated: Report, view: View) -> None:
        made = annotations(gated, view)
        assert [each.data for each in made if each.name == "notice"] == ["1 entry of the baseline is stale"]
        assert "3 findings withheld (2 suppressed, 1 in the baseline)" in "".join(github.render(gated, view))

    def test_messages_are_shorter_than_what_the_runner_cuts(self, report: Report, view: View) -> None:
        finding = replace(report.findings[0], message="x" * 50_000)
        assert max(len(each.data) for each in annotations(replace(report, findings=(finding,)), view)) < 4_096


class TestHostileContent:
    def test_no_command_comes_out_of_a_file(self, nasty_report: Report, nasty_view: View) -> None:
        more = replace(nasty_report, findings=nasty_report.findings * 12)
        made = annotations(more, nasty_view)
        kinds = Counter(each.name for each in made)
        assert kinds == {"error": 10, "warning": 10, "notice": 10, "group": 1, "endgroup": 1}
        known = {"file", "line", "endLine", "col", "endColumn", "title"}
        assert all(set(each.properties) <= known for each in made)
        titles = {each.properties["title"] for each in made if "title" in each.properties}
        assert titles == {"KLA101 k3-in-loss", "klaudit: not scanned", "klaudit"}

    @pytest.mark.parametrize("name", ["text", "json", "sarif", "gitlab", "junit", "markdown"])
    def test_no_other_format_gives_commands_when_it_is_printed(
        self, nasty_report: Report, nasty_view: View, name: str
    ) -> None:
        for view in (nasty_view, replace(nasty_view, wrap=True, width=40), replace(nasty_view, colour=True)):
            printed = "".join(load(name).render(nasty_report, view))
            assert commands(printed) == []
            assert not re.search(r"##(vso|teamcity)?\[", printed)

    def test_nothing_moves_the_cursor(self, nasty_report: Report, nasty_view: View) -> None:
        printed = "".join(github.render(nasty_report, nasty_view))
        assert all(character.isprintable() or character == "\n" for character in printed)

    @settings(max_examples=150, deadline=None)
    @given(
        st.lists(
            st.sampled_from(["a", " ", ":", "::error::", "#", "##[error]", "%0A", "\n", "\r", ",", "]", "="]),
            max_size=8,
        )
    )
    def test_any_mixture_stays_within_its_command(self, pieces: list[str]) -> None:
        quoted = "".join(pieces)
        line = github.command("error", visible(quoted), file=visible(quoted), title="t")
        (only,) = commands(line)
        assert (only.name, only.data) == ("error", visible(quoted))
        assert only.properties == ({"file": visible(quoted), "title": "t"} if quoted else {"title": "t"})

    @settings(max_examples=150, deadline=None)
    @given(st.text(st.sampled_from(" :#[]aerro\u3000\t"), max_size=12))
    def test_a_line_made_inert_is_no_command(self, line: str) -> None:
        for start in ("", "##[error]", "::error::", " ::notice ::", "##[group]"):
            assert command_in(inert(start + line)) is None

    def test_a_line_that_is_folded_begins_no_command(self, report: Report, view: View) -> None:
        finding = replace(report.findings[0], why="word " * 6 + "::add-mask::x " + "word " * 3)
        narrow: Any = replace(view, wrap=True, width=40)
        printed = "".join(text.render(replace(report, findings=(finding,)), narrow))
        assert "add-mask" in printed and commands(printed) == []
