"""Several reports of one run, and what CI systems ask of where they go."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klaudit.cli.ci import SUMMARY_LIMIT, blob_address, repository_prefix
from klaudit.reports import FORMATS

Run = Callable[..., Any]
VARIABLES = (
    "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA",
    "CI_PROJECT_DIR", "CI_PROJECT_URL", "CI_COMMIT_SHA",
)  # fmt: skip


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "bad one.sh").write_text("error warning note", encoding="utf-8")
    return tmp_path


def sarif_uris(file: Path) -> set[str]:
    (run,) = json.loads(file.read_text(encoding="utf-8"))["runs"]
    return {row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for row in run["results"]}


class TestSeveral:
    def test_every_format_at_once(self, run: Run, tree: Path) -> None:
        outputs = [part for name in FORMATS for part in ("--output", f"{name}=report.{name}")]
        outcome = run("scan", "--format", "github", *outputs)
        assert outcome.status == 1
        assert outcome.out.startswith("::error file=examples/bad one.sh,line=1,")
        assert all((tree / f"report.{name}").stat().st_size > 0 for name in FORMATS)
        assert (tree / "report.github").read_text(encoding="utf-8") == outcome.out

    @pytest.mark.parametrize("name", FORMATS)
    def test_a_second_run_replaces_the_file_of_the_first(self, run: Run, tree: Path, name: str) -> None:
        (tree / "out").write_text("x" * 1_000_000, encoding="utf-8")
        run("scan", "--output", f"{name}=out")
        assert "xxx" not in (tree / "out").read_text(encoding="utf-8")


class TestStepSummary:
    @pytest.fixture
    def summary(self, tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        file = tree / "summary.md"
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
        return file

    def test_what_others_wrote_stays(self, run: Run, summary: Path) -> None:
        summary.write_text("| others |", encoding="utf-8")
        run("scan", "--output", f"markdown={summary}")
        assert summary.read_text(encoding="utf-8").startswith("| others |\n\n<!-- klaudit -->\n### klaudit: 3 findings")

    def test_also_under_another_name(self, run: Run, summary: Path) -> None:
        summary.write_text("# others\n", encoding="utf-8")
        (summary.parent / "link.md").symlink_to("summary.md")
        run("scan", "--output", "markdown=link.md")
        run("scan", "--output", "markdown=./examples/../summary.md")
        text = summary.read_text(encoding="utf-8")
        assert text.startswith("# others\n") and text.count("<!-- klaudit -->") == 2

    def test_an_empty_one_begins_with_the_mark(self, run: Run, summary: Path) -> None:
        summary.touch()
        run("scan", "--output", f"markdown={summary}")
        assert summary.read_text(encoding="utf-8").startswith("<!-- klaudit -->\n")

    def test_it_stays_within_what_github_takes(self, run: Run, summary: Path) -> None:
        summary.write_text("x" * (SUMMARY_LIMIT - 1_100), encoding="utf-8")
        run("scan", "--output", f"markdown={summary}")
        assert summary.stat().st_size <= SUMMARY_LIMIT

    def test_it_has_more_room_than_a_comment(self, run: Run, summary: Path) -> None:
        for number in range(700):
            (summary.parent / f"{number}.sh").write_text("error warning note", encoding="utf-8")
        run("scan", "--output", f"markdown={summary}", "--output", "markdown=comment.md")
        comment = (summary.parent / "comment.md").read_text(encoding="utf-8")
        assert "more than fit here" in comment and len(comment.encode()) <= 65_536
        text = summary.read_text(encoding="utf-8")
        assert "more than fit here" not in text and "699.sh" in text


class TestPaths:
    @pytest.mark.parametrize(
        ("here", "arguments"),
        [
            (".", []),
            (".", ["examples"]),
            ("examples", []),
            ("examples", ["."]),
            ("examples", [".."]),
            ("/", ["TREE/examples"]),
        ],
    )
    def test_they_are_those_of_the_repository_wherever_it_is_scanned_from(
        self, run: Run, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, arguments: list[str]
    ) -> None:
        monkeypatch.chdir(tree / here)
        given = [each.replace("TREE", str(tree)) for each in arguments]
        outcome = run("scan", *given, "--format", "github", "--output", f"sarif={tree / 'out.sarif'}")
        assert outcome.out.startswith("::error file=examples/bad one.sh,")
        assert sarif_uris(tree / "out.sarif") == {"examples/bad%20one.sh"}

    def test_of_standard_input_the_name_counts(self, run: Run, tree: Path) -> None:
        outcome = run("scan", "-", "--stdin-filename", "examples/new.sh", "--format", "github", stdin=b"error")
        assert outcome.out.startswith("::error file=examples/new.sh,")

    def test_outside_a_repository_the_working_directory_counts(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "b.sh").write_text("error", encoding="utf-8")
        assert run("scan", "a", "--format", "github").out.startswith("::error file=a/b.sh,")

    def test_or_the_workspace_of_the_ci_system(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "w" / "a" / "b").mkdir(parents=True)
        root = os.path.realpath(tmp_path / "w" / "a" / "b")
        monkeypatch.chdir(root)
        assert repository_prefix(root) == ""
        monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path / "w"))
        assert repository_prefix(root) == "a/b/"
        monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "elsewhere"))
        assert repository_prefix(root) == "a/b/"


class TestAddresses:
    def test_github(self, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = os.path.realpath(tree)
        monkeypatch.setenv("GITHUB_WORKSPACE", str(tree))
        monkeypatch.setenv("GITHUB_SERVER_URL", "https://forge.example")
        monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
        assert blob_address(root) == ""
        monkeypatch.setenv("GITHUB_SHA", "abc123")
        assert blob_address(root) == blob_address(root + "/examples") == "https://forge.example/o/r/blob/abc123/"
        assert blob_address("/") == ""

    def test_gitlab(self, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI_PROJECT_DIR", str(tree))
        monkeypatch.setenv("CI_PROJECT_URL", "https://forge.example/o/r")
        monkeypatch.setenv("CI_COMMIT_SHA", "abc123")
        assert blob_address(os.path.realpath(tree)) == "https://forge.example/o/r/-/blob/abc123/"

    @pytest.mark.parametrize("url", ["javascript:alert(1)", "https://x)](y", "https://x\n", ""])
    def test_what_is_no_address_is_none(self, tree: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        monkeypatch.setenv("CI_PROJECT_DIR", str(tree))
        monkeypatch.setenv("CI_PROJECT_URL", url)
        monkeypatch.setenv("CI_COMMIT_SHA", "abc123")
        assert blob_address(os.path.realpath(tree)) == ""

    def test_of_a_checkout_beside_the_workspace_none_is_known(
        self, tree: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tree / "other" / ".git").mkdir(parents=True)
        monkeypatch.setenv("CI_PROJECT_DIR", str(tree))
        monkeypatch.setenv("CI_PROJECT_URL", "https://forge.example/o/r")
        monkeypatch.setenv("CI_COMMIT_SHA", "abc123")
        assert blob_address(os.path.realpath(tree / "other")) == ""


class TestLinks:
    """A repository must not choose, by a link in it, which file is written."""

    @pytest.fixture
    def outside(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        file = tmp_path_factory.mktemp("outside") / "precious"
        file.write_text("precious", encoding="utf-8")
        return file

    @pytest.mark.parametrize("output", ["out.sarif", "sub/precious", "sub/new", "dangling"])
    def test_a_link_that_leads_out_is_not_followed(
        self, run: Run, tree: Path, outside: Path, engine: Any, output: str
    ) -> None:
        (tree / "out.sarif").symlink_to(outside)
        (tree / "sub").symlink_to(outside.parent)
        (tree / "dangling").symlink_to(outside.parent / "absent")
        outcome = run("scan", "--output", f"sarif={output}")
        assert outcome.status == 2 and "a symbolic link leads out" in outcome.err
        assert engine.calls == []
        assert [file.name for file in outside.parent.iterdir()] == ["precious"]
        assert outside.read_text(encoding="utf-8") == "precious"

    def test_a_link_to_what_version_control_keeps_is_not_followed(self, run: Run, tree: Path) -> None:
        hook = tree / ".git" / "hooks" / "post-checkout"
        hook.parent.mkdir(parents=True)
        (tree / "report.json").symlink_to(hook)
        (tree / "sub").symlink_to(".git/hooks")
        for output in ("report.json", "sub/post-checkout", ".git/hooks/post-checkout"):
            assert run("scan", "--output", f"json={output}").status == 2
        assert not hook.exists()

    def test_a_link_within_is_followed(self, run: Run, tree: Path) -> None:
        (tree / "latest").symlink_to("report.json")
        assert run("scan", "--output", "json=latest").status == 1
        assert (tree / "report.json").exists()

    def test_what_is_named_outside_is_written(self, run: Run, tree: Path, outside: Path) -> None:
        link = outside.parent / "link"
        link.symlink_to(outside)
        assert run("scan", "--output", f"json={link}").status == 1
        assert outside.read_text(encoding="utf-8").startswith("{")
