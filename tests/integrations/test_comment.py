"""The comment on a pull request, against a server that speaks as much of GitHub's interface as it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from klaudit.ci import comment
from klaudit.ci.comment import BOT, MARKER, Comments, main
from klaudit.reports.markdown import MARK
from tests.integrations.fake_github import PULL_REQUEST, TOKEN, GitHub


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr(comment.time, "sleep", lambda seconds: None)


def run(github: GitHub, folder: Path, report: str, **more: str) -> int:
    file = folder / "report.md"
    file.write_text(report, encoding="utf-8")
    environment = {
        "GITHUB_API_URL": github.address,
        "GITHUB_REPOSITORY": "octo/project",
        "GITHUB_TOKEN": TOKEN,
        "PULL_REQUEST": PULL_REQUEST,
        "KLAUDIT_REPORT": str(file),
        "KLAUDIT_FINDINGS": "1",
    }
    return main(environment | more)


def test_one_comment_is_made_and_then_brought_up_to_date(github: GitHub, tmp_path: Path) -> None:
    github.write("somebody", "hello")
    for report in ("first ❌", "second"):
        assert run(github, tmp_path, report) == 0
        assert github.texts() == [f"{MARKER}\n{report}"]
    github.calls.clear()
    assert run(github, tmp_path, "second") == 0
    assert github.calls == ["GET"]  # nobody is notified of what has not changed
    assert run(github, tmp_path, "all clear", KLAUDIT_FINDINGS="0") == 0
    assert github.texts() == [f"{MARKER}\nall clear"]


def test_a_clean_report_is_no_news(github: GitHub, tmp_path: Path) -> None:
    assert run(github, tmp_path, "nothing found", KLAUDIT_FINDINGS="0") == 0
    assert github.comments == []


def test_our_comment_is_found_behind_hundreds(github: GitHub, tmp_path: Path) -> None:
    for number in range(250):
        github.write("somebody", f"comment {number}")
    own = github.write(BOT, f"{MARKER}\nold")
    assert run(github, tmp_path, "new") == 0
    assert github.comments[own - 1]["body"] == f"{MARKER}\nnew"
    assert len(github.comments) == 251
    assert github.calls == ["GET", "GET", "GET", "PATCH"]


def test_only_the_bot_is_believed_the_marker(github: GitHub, tmp_path: Path) -> None:
    github.write("mallory", f"{MARKER}\nall is well")
    github.write(BOT, f"another workflow quotes {MARKER}")
    github.comments.append({"id": 3, "user": None, "body": MARKER})  # an account that is gone
    github.comments.append({"id": 4, "user": {"login": BOT}, "body": None})
    assert run(github, tmp_path, "new") == 0
    assert github.texts("mallory") == [f"{MARKER}\nall is well"]
    assert github.texts()[-1] == f"{MARKER}\nnew"
    assert len(github.comments) == 5


def test_a_token_of_another_bot_finds_its_own(github: GitHub, tmp_path: Path) -> None:
    github.write("gate[bot]", f"{MARKER}\nold")
    assert run(github, tmp_path, "new", KLAUDIT_BOT="gate[bot]") == 0
    assert github.texts("gate[bot]") == [f"{MARKER}\nnew"]


def test_the_marker_is_that_of_the_report(github: GitHub, tmp_path: Path) -> None:
    assert MARKER == MARK
    assert run(github, tmp_path, f"{MARK}\nnew") == 0
    assert github.texts() == [f"{MARKER}\nnew"]


@pytest.mark.parametrize("status", [403, 404])
def test_a_token_that_may_not_write_is_no_failure(
    github: GitHub, tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    github.answers = [status]
    assert run(github, tmp_path, "new") == 0
    assert capsys.readouterr().out.startswith("::notice title=klaudit::no comment: the token may not write")
    assert github.comments == []


def test_what_passes_is_tried_again(github: GitHub, tmp_path: Path) -> None:
    github.answers = [502, 503]
    assert run(github, tmp_path, "new") == 0
    assert github.texts() == [f"{MARKER}\nnew"]


@pytest.mark.parametrize("answers", [[500] * 3, [401], [422], [302], [307]])
def test_what_stays_wrong_is_told_without_the_token(
    github: GitHub, tmp_path: Path, capsys: pytest.CaptureFixture[str], answers: list[int]
) -> None:
    github.answers = list(answers)
    assert run(github, tmp_path, "new") == 1
    told = capsys.readouterr()
    assert "no comment" in told.err
    assert TOKEN not in told.out + told.err
    assert github.comments == []
    assert len(github.calls) == len(answers)  # a redirect is not followed: the token is for this server alone


def test_a_long_report_is_cut_at_a_line(github: GitHub, tmp_path: Path) -> None:
    assert run(github, tmp_path, "0123456789 ❌\n" * 20_000) == 0
    (text,) = github.texts()
    assert len(text) <= 65_536
    assert text.endswith("❌\n\n(cut here: the rest is in the job summary)\n")


@pytest.mark.parametrize("wrong", [{"PULL_REQUEST": ""}, {"PULL_REQUEST": "7/../../x"}, {"GITHUB_REPOSITORY": "octo"}])
def test_without_a_pull_request_there_is_nothing_to_do(github: GitHub, tmp_path: Path, wrong: dict[str, str]) -> None:
    assert run(github, tmp_path, "new", **wrong) == 2
    assert github.calls == []


def test_a_missing_report_is_told(github: GitHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(github, tmp_path, "new", KLAUDIT_REPORT=str(tmp_path / "none.md")) == 1
    assert "FileNotFoundError" in capsys.readouterr().err


def test_the_number_of_pages_is_bounded(github: GitHub) -> None:
    class Endless(Comments):
        def _call(self, method: str, path: str, body: object = None) -> Any:
            github.calls.append(method)
            return [{"id": 1, "user": {"login": "x"}, "body": ""}] * 100

    assert Endless(github.address, "octo/project", PULL_REQUEST, TOKEN).own(BOT) is None
    assert len(github.calls) == 100
