"""GitLab's Code Quality: the fields it asks for, one fingerprint a row."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec.structs import replace

from klaudit.model import Problem, Report
from klaudit.reports import View, gitlab


def rows(report: Report, view: View) -> Any:
    text = "".join(gitlab.render(report, view))
    assert text.isascii() and not set(text) & {chr(code) for code in range(32)} - {"\n"}
    return json.loads(text)


def assert_complete(found: Any) -> None:
    """docs.gitlab.com, Code Quality report format."""
    assert isinstance(found, list)
    for row in found:
        assert set(row) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert row["description"] and row["check_name"] and re.fullmatch("[0-9a-f]{64}", row["fingerprint"])
        assert row["severity"] in ("info", "minor", "major", "critical", "blocker")
        path, line = row["location"]["path"], row["location"]["lines"]["begin"]
        assert path and not path.startswith(("/", "./", "..")) and isinstance(line, int) and line >= 1
    assert len({row["fingerprint"] for row in found}) == len(found)


def test_rows(report: Report, view: View) -> None:
    found = rows(report, replace(view, repository_prefix="train/"))
    assert_complete(found)
    assert [(row["check_name"], row["severity"], row["location"]) for row in found] == [
        ("KLA102 k3-in-reward", "critical", {"path": "train/conf/ppo.yaml", "lines": {"begin": 3}}),
        ("KLA101 k3-in-loss", "major", {"path": "train/examples/run.sh", "lines": {"begin": 8}}),
        ("not-scanned", "major", {"path": "train/broken.yaml", "lines": {"begin": 3}}),
        ("not-scanned", "major", {"path": "train/odd.py", "lines": {"begin": 1}}),
    ]
    assert found[0]["description"].endswith("KL(ref||pi). To mend it: set algorithm.kl_penalty=kl")


def test_nothing_is_an_empty_list(empty_report: Report, view: View) -> None:
    assert rows(empty_report, view) == []


def test_notes_are_information(report: Report, view: View) -> None:
    (row, *_) = rows(replace(report, findings=(replace(report.findings[0], severity="note"),)), view)
    assert row["severity"] == "info"


def test_rows_that_are_alike_are_told_apart(report: Report, view: View) -> None:
    alike = replace(report.findings[0], fingerprint="")
    found = rows(replace(report, findings=(report.findings[0], report.findings[0], alike, alike)), view)
    assert_complete(found)


def test_fingerprints_stay_when_lines_move(report: Report, view: View) -> None:
    moved = tuple(replace(each, span=replace(each.span, line=each.span.line + 9)) for each in report.findings)
    before, after = rows(report, view), rows(replace(report, findings=moved), View())
    assert [row["fingerprint"] for row in before] == [row["fingerprint"] for row in after]


def test_a_path_that_was_never_there_is_no_row(report: Report, view: View) -> None:
    assert rows(replace(report, findings=(), errors=(Problem('""', None, "an empty path"),)), view) == []


def test_anything_can_be_quoted(nasty_report: Report, nasty_view: View) -> None:
    found = rows(nasty_report, nasty_view)
    assert_complete(found)
    assert len(found) == 5
