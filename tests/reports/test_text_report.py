"""The report for people."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from klaudit.model import Evidence, Finding, Fix, FrameworkVersion, Problem, Report, Setup, Span, Term, Unknown
from klaudit.readers.source import Source
from klaudit.reports import View, setups
from klaudit.reports.text import render
from klaudit.reports.visible import cells

Expected = Callable[[str, str], None]
HOSTILE = "a\x1b[2J\x1b]0;owned\x07b\u202egnp\u2066\x85\x9b31m\r\nKLA000\tc\u200b\ud83d\x00"


def shown(report: Report, view: View) -> str:
    return "".join(render(report, view))


@pytest.mark.parametrize("width", [40, 60, 100, 140])
def test_the_whole_report(report: Report, view: View, expected: Expected, width: int) -> None:
    expected(f"text_{width}.txt", shown(report, replace(view, width=width, wrap=True)))


def test_in_a_pipe_the_first_line_of_a_finding_stays_whole(report: Report, view: View, expected: Expected) -> None:
    text = shown(report, replace(view, width=60, prefix="../tree/"))
    expected("text_pipe.txt", text)
    assert re.search(
        r"(?m)^\.\./tree/examples/run\.sh:8:5 KLA101 k3-in-loss \[warning\] k3 in the loss, .*not KL\(pi\|\|ref\)$",
        text,
    )


def test_verbose_shows_every_setup_and_the_whole_error(report: Report, view: View, expected: Expected) -> None:
    expected("text_verbose.txt", shown(report, replace(view, verbose=True)))


def test_quiet_gives_one_line_a_finding(report: Report, view: View) -> None:
    lines = shown(report, replace(view, quiet=True, width=40)).splitlines()
    assert [line.split(" k3 ")[0] for line in lines] == [
        "conf/ppo.yaml:3:3 KLA102 k3-in-reward [error]",
        "examples/run.sh:8:5 KLA101 k3-in-loss [warning]",
    ]


def test_the_table_of_setups(report: Report, view: View, expected: Expected) -> None:
    for width in (40, 100):
        expected(f"setups_{width}.txt", "".join(setups.render(report, replace(view, width=width, wrap=True))))
    in_pipe = "".join(setups.render(report, replace(view, width=40, quiet=True)))
    assert len(in_pipe.splitlines()) == 1 + len(report.setups)


@pytest.mark.parametrize("width", [40, 57, 80, 120])
def test_no_line_is_wider_than_a_terminal(report: Report, view: View, width: int) -> None:
    text = shown(report, replace(view, width=width, wrap=True, verbose=True))
    too_wide = [line for line in text.splitlines() if cells(line) > width and "[" not in line]
    assert too_wide == []


def test_nothing_found(empty_report: Report, view: View) -> None:
    assert shown(empty_report, view) == "No findings: no KL set-up there. 3 files looked at, 0 parsed, 0.01 s.\n"
    assert shown(replace(empty_report, files_seen=0), view).startswith("Nothing to scan: ")
    lost = replace(empty_report, files_seen=0, errors=(Problem("lost", None, "no such file or folder"),))
    assert "Nothing scanned, 1 error." in shown(lost, view)
    assert shown(empty_report, replace(view, quiet=True)) == ""


def test_colours_change_nothing_but_colours(report: Report, view: View) -> None:
    coloured = shown(report, replace(view, colour=True))
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == shown(report, view).splitlines()


def test_only_ascii_is_drawn_with(report: Report, view: View) -> None:
    drawn = shown(report, replace(view, verbose=True))
    assert {character for character in drawn if not character.isascii()} <= set("奖励中的")


class TestExcerpt:
    @staticmethod
    def excerpt(data: bytes, start: int, end: int, width: int = 60) -> list[str]:
        source = Source("f", data)
        finding = Finding("KLA101", "k3-in-loss", "warning", "high", source.span(start, end), "m", "", Fix("none", ""))
        report = Report((), (finding,), (), 1, 1, 0.0)
        text = shown(report, View(source=lambda path: source, width=width))
        return [line for line in text.splitlines() if re.match(r" *\d* \|", line) or line == "..."]

    def test_wide_characters_tabs_and_escapes_are_underlined_in_place(self) -> None:
        data = "\tk\u200bl: '奖励' # x".encode()
        start = data.index(b"'")
        drawn = self.excerpt(data, start, start + len("'奖励'".encode()))
        assert drawn[1:3] == ["1 |     k\\u200bl: '奖励' # x", "  |               ^^^^^^"]

    def test_a_long_line_is_shown_around_its_mark(self) -> None:
        data = b"a" * 500_000 + b"MARK" + b"b" * 500_000
        line, mark = self.excerpt(data, 500_000, 500_004)[1:3]
        assert cells(line) <= 60
        assert line.startswith("1 | ...a") and line.endswith("b...")
        assert line[mark.index("^") : mark.rindex("^") + 1] == "MARK"

    def test_of_a_long_span_the_beginning_is_shown(self) -> None:
        data = b"first \\\n  second \\\n  third \\\n  fourth \\\n  fifth\nafter\n"
        drawn = self.excerpt(data, 0, data.index(b"\nafter"))
        assert drawn == [
            "  |",
            "1 | first \\",
            "  | ^^^^^^^",
            "2 |   second \\",
            "  | ^^^^^^^^^^",
            "3 |   third \\",
            "  | ^^^^^^^^^",
            "...",
            "  |",
        ]

    @pytest.mark.parametrize("data", [b"", b"\xff\xfe\xff", b"\r\n\r\n", b"\n" * 5, b"a\x00b"])
    def test_a_file_that_has_changed_since_breaks_nothing(self, data: bytes) -> None:
        for line, column in ((1, 1), (1, 50), (9, 1), (2, 3)):
            place = Span("f", 0, 9, line, column, line + 1, column)
            finding = Finding("KLA101", "n", "note", "low", place, "m", "w", Fix("none", ""))
            shown(Report((), (finding,), (), 1, 1, 0.0), View(source=lambda path: Source("f", data)))

    @settings(max_examples=150, deadline=None)
    @given(
        text=st.text(st.characters(codec="utf-8"), max_size=80),
        bounds=st.tuples(st.integers(0, 80), st.integers(0, 80)),
        width=st.integers(40, 90),
    )
    def test_any_text_and_span_keeps_to_the_width_and_stays_inert(
        self, text: str, bounds: tuple[int, int], width: int
    ) -> None:
        data = text.encode()
        start, end = sorted(min(bound, len(data)) for bound in bounds)
        for line in self.excerpt(data, start, end, width):
            assert line.isprintable()
            assert cells(line) <= width


def _hostile_report(text: str) -> Report:
    place = Span(text, 0, 1, 1, 1, 1, 2)
    value = {text: [text, Unknown((text,), text)]}
    evidence = tuple(
        Evidence(text, value if origin == "file" else text, origin, path, 1, span, note=text)  # type: ignore[arg-type]
        for origin in ("default", "file", "override", "variable", "code")
        for path, span in ((None, None), (text, place), ("other", None))
    )
    term = Term("loss", "k3", "pathwise", 0.1, True, text, "biased", evidence, None, text, (text,))
    off = replace(term, active=False)
    setup = Setup(
        text,
        place,
        "code",
        text,
        FrameworkVersion(text, "requirement", text, text, 1),
        text,
        text,
        text,
        (text,),
        text,
        "biased",
        (term, off),
    )
    finding = Finding("KLA101", "k3-in-loss", "error", "low", place, text, text, Fix("unsafe", text), text, evidence)
    return Report(
        (setup, setup), (finding,), (Problem(text, 1, text), Problem(text, None, "internal error" + text)), 1, 1, 0.0
    )


class TestHostileText:
    """Names, values and excerpts cannot move the cursor, change colours, reorder text or start a line of their own."""

    @pytest.mark.parametrize("colour", [False, True])
    def test_every_field_is_shown_inert(self, colour: bool) -> None:
        for text in (HOSTILE, HOSTILE[::-1], "\u202e" * 3, "\x1b"):
            source = Source("f", text.encode("utf-8", "replace"))
            view = View(source={text: source}.get, prefix="p\x1b/", verbose=True, wrap=True, colour=colour)
            report = _hostile_report(text)
            drawn = (
                shown(report, view) + "".join(setups.render(report, view)) + shown(report, replace(view, quiet=True))
            )
            own = re.sub(r"\x1b\[[0-9;]*m(?=[^\x1b]*\x1b\[0m)|\x1b\[0m", "", drawn) if colour else drawn
            assert {c for c in own if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} <= {"\n"}

    def test_a_line_of_a_file_cannot_pose_as_a_finding(self, view: View) -> None:
        report = _hostile_report("x\nrun.sh:1:1 KLA999 forged [error] y")
        drawn = shown(report, replace(view, verbose=True)) + "".join(setups.render(report, view))
        assert not [line for line in drawn.splitlines() if line.startswith("run.sh:1:1 KLA999")]

    def test_huge_values_and_deep_values_stay_small(self, report: Report, view: View) -> None:
        deep: object = "x"
        for _ in range(5_000):
            deep = [deep]
        for value in ("v" * 1_000_000, ["a" * 10_000] * 10_000, deep, 10**5000, float("nan"), {"k": float("-inf")}):
            evidence = Evidence("s", value, "default", None, None)  # type: ignore[arg-type]
            first = replace(report.findings[0], related=(evidence,), message="m" * 1_000_000, why="w " * 500_000)
            assert len(shown(replace(report, findings=(first,)), view)) < 30_000


def test_every_field_of_a_finding_is_shown(report: Report, view: View) -> None:
    """A field added to Finding must be shown, or be named here as not for people."""
    finding = Finding(
        "KLA777",
        "some-name",
        "note",
        "low",
        Span("file-path", 0, 1, 91, 92, 91, 93, cell=6),
        "the-message",
        "the-why",
        Fix("unsafe", "the-title"),
        "print",
        (Evidence("the-setting", "the-value", "file", "elsewhere", 55, None, "the-note"),),
    )
    text = shown(replace(report, findings=(finding,), setups=()), view)
    for part in (
        "KLA777",
        "some-name",
        "[note]",
        "low",
        "file-path:91:92 (cell 7)",
        "the-message",
        "the-why",
        "(unsafe)",
        "the-title",
    ):
        assert part in text
    for part in ("the-setting = the-value", "elsewhere:55", "the-note"):
        assert part in text
    not_for_people = {"fingerprint", "identity", "launch"}
    shown_fields = {"rule", "name", "severity", "confidence", "span", "message", "why", "fix", "related"}
    assert {field.name for field in fields(Finding)} == shown_fields | not_for_people


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(width=st.integers(40, 140), message=st.text(max_size=300))
def test_messages_are_folded_without_losing_anything(view: View, report: Report, width: int, message: str) -> None:
    finding = replace(report.findings[0], message=message, why="", fix=Fix("none", ""), related=(), confidence="high")
    view = replace(view, width=width, wrap=True, source=lambda path: None)
    text = shown(Report((), (finding,), (), 1, 1, 0.0), view).split("\n\n")[0]
    body = "".join(text.splitlines()[1:]).replace(" ", "")
    expected = "".join(c if c.isprintable() else "" for c in message).replace(" ", "")
    assert "".join(c for c in expected if c in body) == expected


def test_what_the_gate_took_out_is_counted(gated: Report, view: View) -> None:
    text = "".join(render(gated, view))
    assert "\n3 findings withheld (2 suppressed, 1 in the baseline).\n" in text
    assert "\nnote: 1 entry of the baseline is stale\n" in text
    assert "ablation" not in text and "KLA102" not in text
    assert "withheld" not in "".join(render(gated, replace(view, quiet=True)))


def test_and_told_with_its_reasons_on_request(gated: Report, view: View) -> None:
    text = "".join(render(gated, replace(view, verbose=True)))
    rows = text.splitlines()
    start = next(at for at, row in enumerate(rows) if row.startswith("withheld "))
    assert rows[start].startswith("withheld conf/ppo.yaml:3:3 KLA102 k3-in-reward [error] k3 in the reward")
    assert rows[start + 1] == "  = suppressed (conf/ppo.yaml:3): ablation of table 3"
    assert rows[start + 3] == "  = suppressed"
    assert rows[start + 5] == "  = in the baseline (klaudit-baseline.json:7)"
