"""`klaudit scan`: what its options do, what it writes where, and its exit status."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klaudit.configuration import StandardInput
from klaudit.globs import Globs
from klaudit.reports import FORMATS

Run = Callable[..., Any]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "bad.sh").write_text("error warning", encoding="utf-8")
    (tmp_path / "good.sh").write_text("fine", encoding="utf-8")
    return tmp_path


class TestStatus:
    @pytest.mark.parametrize(
        ("severity", "fail_on", "status"),
        [
            ("error", None, 1), ("warning", None, 1), ("note", None, 0), ("fine", None, 0),
            ("error", "error", 1), ("warning", "error", 0), ("note", "note", 1), ("error", "never", 0),
        ],
    )  # fmt: skip
    def test_findings(self, run: Run, tmp_path: Path, severity: str, fail_on: str | None, status: int) -> None:
        (tmp_path / "run.sh").write_text(severity, encoding="utf-8")
        assert run("scan", *(["--fail-on", fail_on] if fail_on else [])).status == status

    def test_a_missing_path_is_an_error_and_the_others_are_scanned(self, run: Run, tree: Path) -> None:
        outcome = run("scan", "absent", "bad.sh", "--fail-on", "never")
        assert outcome.status == 2
        assert "bad.sh:1:1 KLA101" in outcome.out
        assert "absent: error: no such file or folder" in outcome.out

    def test_errors_outweigh_findings(self, run: Run, tree: Path) -> None:
        assert run("scan", "absent", "bad.sh").status == 2

    def test_nothing_but_a_missing_path(self, run: Run) -> None:
        outcome = run("scan", "absent")
        assert outcome.status == 2
        assert "absent: error" in outcome.out

    def test_a_fault_of_klaudit_asks_to_be_reported(self, run: Run, tree: Path, engine: Any) -> None:
        engine.fault = KeyError("x\x1b[2J")
        outcome = run("scan")
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err == (
            "klaudit: internal error: KeyError: 'x\\x1b[2J'\nPlease report it, with what was scanned and what --verbose shows.\n"
        )

    @pytest.mark.parametrize("option", ["--verbose", "-v"])
    def test_a_fault_shows_its_traceback_only_when_asked(self, run: Run, tree: Path, engine: Any, option: str) -> None:
        engine.fault = ZeroDivisionError("over nothing")
        outcome = run("scan", option)
        assert outcome.status == 2
        assert "Traceback" in outcome.err and "over nothing" in outcome.err

    def test_an_interrupt_is_quiet(self, run: Run, tree: Path, engine: Any) -> None:
        engine.fault = KeyboardInterrupt()
        outcome = run("scan")
        assert (outcome.status, outcome.out, outcome.err.strip()) == (130, "", "")


class TestOutput:
    def test_text_is_the_default_and_paths_are_seen_from_here(
        self, run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert run("scan").out.startswith("bad.sh:1:1 KLA101 k3-in-loss [error] a error\n")
        (tree / "sub").mkdir()
        monkeypatch.chdir(tree / "sub")
        assert run("scan", "..").out.startswith("../bad.sh:1:1 ")
        monkeypatch.chdir("/")
        assert f"{str(os.path.realpath(tree)).lstrip('/')}/bad.sh:1:1 " in run("scan", str(tree)).out

    def test_json_paths_are_relative_to_the_scanned_root(
        self, run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir("/")
        report = json.loads(run("scan", str(tree), "--format", "json").out)
        assert [finding["path"] for finding in report["findings"]] == ["bad.sh", "bad.sh"]

    def test_errors_are_told_on_standard_error_where_they_would_be_missed(self, run: Run, tree: Path) -> None:
        for arguments in (["--format", "json"], ["--quiet"], ["--output", "r.txt"]):
            outcome = run("scan", "absent", "bad.sh", *arguments)
            assert "absent: error: no such file or folder" in outcome.err
            assert "error: no such" not in outcome.out

    def test_quiet_gives_one_line_a_finding(self, run: Run, tree: Path) -> None:
        outcome = run("scan", "--quiet")
        assert (
            outcome.out
            == "bad.sh:1:1 KLA101 k3-in-loss [error] a error\nbad.sh:1:1 KLA101 k3-in-loss [warning] a warning\n"
        )
        assert outcome.err == ""

    def test_a_file_takes_the_report_away_from_standard_output(self, run: Run, tree: Path) -> None:
        outcome = run("scan", "--format", "json", "--output", "report.json")
        assert outcome.out == ""
        assert outcome.err == "2 findings: see report.json\n"
        assert json.loads((tree / "report.json").read_text(encoding="utf-8"))["summary"]["findings"] == 2

    @pytest.mark.parametrize(
        ("name", "begins"),
        [
            ("a.json", '{\n  "format": "klaudit-report/1"'),
            ("a.HTML", "<!DOCTYPE html>"),
            ("a.sarif", '{\n  "$schema"'),
            ("a.sarif.json", '{\n  "$schema"'),
            ("a.xml", "<?xml"),
            ("a.md", "<!-- klaudit -->"),
            ("a.txt", "bad.sh:1:1 KLA101"),
            ("json", "bad.sh:1:1 KLA101"),
        ],
    )
    def test_without_a_format_the_name_of_the_file_says_it(self, run: Run, tree: Path, name: str, begins: str) -> None:
        outcome = run("scan", "bad.sh", "--output", name)
        assert outcome.out == ""
        assert (tree / name).read_text(encoding="utf-8").startswith(begins)
        run("scan", "bad.sh", "--format", "text", "--output", name)
        assert (tree / name).read_text(encoding="utf-8").startswith("bad.sh:1:1 KLA101")

    def test_an_unread_file_is_told_beside_the_findings(self, run: Run, tree: Path) -> None:
        outcome = run("scan", "bad.sh", "absent", "--output", "report.txt")
        assert outcome.err.endswith("2 findings, 1 error: see report.txt\n")

    def test_more_formats_to_files_leave_standard_output(self, run: Run, tree: Path) -> None:
        outcome = run("scan", "--output", "json=a.json", "--output", "text=b.txt", "--color", "always")
        assert "KLA101" in outcome.out and "\x1b[" in outcome.out
        assert json.loads((tree / "a.json").read_text(encoding="utf-8"))["format"] == "klaudit-report/1"
        assert "\x1b" not in (tree / "b.txt").read_text(encoding="utf-8")
        assert "KLA101" in (tree / "b.txt").read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("output", "message"),
        [
            ("absent/report.json", "cannot write to `absent/report.json`"),
            (".", "cannot write to `.`"),
            ("json=", "cannot write to ``"),
            ("jsn=x", "unknown format `jsn`: did you mean `json`?; write `./jsn=x` for a file of that name"),
        ],
    )
    def test_outputs_that_cannot_work_are_refused_before_the_scan(
        self, run: Run, tree: Path, engine: Any, output: str, message: str
    ) -> None:
        outcome = run("scan", "--output", output)
        assert outcome.status == 2
        assert message in outcome.err
        assert engine.calls == []

    def test_a_name_with_an_equals_sign_can_be_written(self, run: Run, tree: Path) -> None:
        assert run("scan", "--output", "./a=b.txt").status == 2  # `./a` is no format either
        assert run("scan", "--output", "text=a=b.txt").status == 1
        assert (tree / "a=b.txt").exists()

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
    def test_a_full_disk_is_told(self, run: Run, tree: Path) -> None:
        outcome = run("scan", "--output", "json=/dev/full")
        assert outcome.status == 2
        assert "cannot write to `/dev/full`" in outcome.err

    @pytest.mark.parametrize(
        ("when", "environment", "is_coloured"),
        [
            ("auto", {}, False),
            ("auto", {"FORCE_COLOR": "1"}, True),
            ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
            ("auto", {"FORCE_COLOR": "", "NO_COLOR": ""}, False),
            ("always", {"NO_COLOR": "1"}, True),
            ("never", {"FORCE_COLOR": "1"}, False),
        ],
    )
    def test_colours(
        self,
        run: Run,
        tree: Path,
        monkeypatch: pytest.MonkeyPatch,
        when: str,
        environment: dict[str, str],
        is_coloured: bool,
    ) -> None:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert ("\x1b[" in run("scan", "--color", when).out) is is_coloured

    def test_columns_are_respected(self, run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for columns, least in (("10", 40), ("50", 50), ("10000", 140)):
            monkeypatch.setenv("COLUMNS", columns)
            lines = run("scan", "--verbose").out.splitlines()
            assert max(len(line) for line in lines if line.startswith(("  ", "set-up"))) <= least


class TestOptions:
    def test_everything_reaches_the_engine(self, run: Run, tmp_path: Path, engine: Any) -> None:
        run(
            "scan", ".", "--select", "KLA1,k3-in-reward", "--select", "KLA205", "--ignore", "KLA106", "--framework", "verl",
            "--framework-version", "verl=0.7.0", "--framework-version", " openrlhf = 0.8 ", "--exclude", "third_party/",
            "--include-markdown",            "--jobs", "3", "--no-prefilter", "--force-exclude", "--fail-on", "note", "--verbose",
        )  # fmt: skip
        options = engine.options
        assert options.select == ("KLA1", "k3-in-reward", "KLA205")
        assert options.ignore == ("KLA106",)
        assert options.frameworks == ("verl",)
        assert options.framework_versions == {"verl": "0.7.0", "openrlhf": "0.8"}
        assert options.exclude == (Globs(os.path.realpath(tmp_path), ("third_party/",)),)
        assert (options.include_markdown, options.jobs, options.prefilter) == (True, 3, False)
        assert (options.force_exclude, options.fail_on, options.verbose) == (True, "note", True)

    def test_the_default_path_is_here(self, run: Run, engine: Any) -> None:
        run("scan")
        assert engine.calls[-1][0] == (".",)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--select", "KLA999"], "unknown rule `KLA999`"),
            (["--select", "k3-in-los"], "unknown rule `k3-in-los`: did you mean `k3-in-loss`"),
            (["--ignore", "KLB1"], "unknown rule `KLB1`"),
            (["--framework", "verll"], "unknown framework `verll`: did you mean `verl`"),
            (["--framework-version", "vrl=0.7"], "unknown framework `vrl`: did you mean `verl`"),
            (["--framework-version", "verl"], "'verl' should look like verl=0.7.0"),
            (["--framework-version", "verl=new"], "`new` is no version such as 0.7.0"),
            (["--format", "jsn"], f"'jsn' is not one of {', '.join(FORMATS)}: did you mean `json`?"),
            (["--fail-on", "warn"], "'warn' is not one of error, warning, note, never: did you mean `warning`?"),
            (["--color", "sometimes"], "'sometimes' is not one of auto, always, never"),
            (["--jobs", "0"], "0 is not in the range"),
            (["--fromat", "json"], "--format"),
            (["--exclude", "*a*b*c*d*e"], "is no usable pattern"),
            (["--config", "absent.toml"], "absent.toml: no such file"),
            (["--config", "x.toml", "--isolated"], "exclude each other"),
            (["--stdin-filename", "x.sh"], "goes with the path `-`"),
            (["-"], "needs --stdin-filename"),
            (["--\x1b[2J"], "No such option"),
            (["-", "x", "--stdin-filename", "x.sh"], "must be the only path"),
        ],
    )
    def test_wrong_usage_is_explained(self, run: Run, engine: Any, arguments: list[str], message: str) -> None:
        outcome = run("scan", *arguments)
        assert (outcome.status, outcome.out) == (2, "")
        assert message in outcome.err
        assert "Traceback" not in outcome.err
        assert "\x1b" not in outcome.err
        assert engine.calls == []

    def test_all_rules_can_be_named(self, run: Run, engine: Any) -> None:
        assert run("scan", "--select", "ALL").status == 0

    def test_standard_input(self, run: Run, tree: Path, engine: Any) -> None:
        outcome = run("scan", "-", "--stdin-filename", "new.sh", stdin=b"error \xff")
        assert engine.options.stdin == StandardInput("new.sh", b"error \xff")
        assert outcome.out.startswith("new.sh:1:1 KLA101 k3-in-loss [error] a error\n  |\n1 | error")
        assert outcome.status == 1

    def test_standard_input_has_a_limit(self, run: Run) -> None:
        outcome = run("scan", "-", "--stdin-filename", "new.sh", stdin=b" " * 20_000_001)
        assert outcome.status == 2
        assert "larger than 20 MB" in outcome.err


class TestConfiguration:
    def test_the_command_line_overrules_the_file(self, run: Run, tmp_path: Path, engine: Any) -> None:
        file = tmp_path / "klaudit.toml"
        file.write_text(
            "select = ['KLA1']\nignore = ['KLA106']\nfail-on = 'never'\njobs = 2\nexclude = ['a/']\n", encoding="utf-8"
        )
        base = os.path.realpath(tmp_path)
        run("scan")
        assert (engine.options.select, engine.options.ignore, engine.options.jobs) == (("KLA1",), ("KLA106",), 2)
        run("scan", "--ignore", "KLA107", "--exclude", "b/", "--jobs", "1")
        assert (engine.options.select, engine.options.ignore, engine.options.jobs) == (
            ("KLA1",),
            ("KLA106", "KLA107"),
            1,
        )
        assert engine.options.exclude == (Globs(base, ("a/",)), Globs(base, ("b/",)))
        run("scan", "--select", "KLA2")
        assert (engine.options.select, engine.options.ignore) == (("KLA2",), ())
        run("scan", "--isolated")
        assert engine.options.select == ()

    def test_its_fail_on_counts(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "run.sh").write_text("error", encoding="utf-8")
        (tmp_path / "klaudit.toml").write_text("fail-on = 'never'", encoding="utf-8")
        assert run("scan").status == 0
        assert run("scan", "--fail-on", "error").status == 1

    def test_a_named_file_counts_alone(self, run: Run, tmp_path: Path, engine: Any) -> None:
        (tmp_path / "klaudit.toml").write_text("jobs = 2", encoding="utf-8")
        (tmp_path / "other.toml").write_text("select = ['KLA2']", encoding="utf-8")
        run("scan", "--config", "other.toml")
        assert (engine.options.jobs, engine.options.select) == (0, ("KLA2",))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("selct = []", "klaudit.toml:1: unknown key `selct`: did you mean `select`?"),
            ("\nselect = ['KLA9']", "klaudit.toml:2: unknown rule `KLA9`"),
            ("frameworks = ['vrl']", "klaudit.toml:1: unknown framework `vrl`"),
            ("[framework-versions]\nvrl = '1'", "klaudit.toml:1: unknown framework `vrl`"),
            ("[per-file-ignores]\n'*' = ['KLA9']", "klaudit.toml:1: unknown rule `KLA9`"),
            ("][", "klaudit.toml:1: not TOML"),
            ('"\\u001b[2J" = 1', "unknown key `\\x1b[2J`"),
            ('frameworks = ["\\u001b[2J"]', "unknown framework `\\x1b[2J`"),
        ],
    )
    def test_a_wrong_file_is_told_with_its_line(
        self, run: Run, tmp_path: Path, engine: Any, text: str, message: str
    ) -> None:
        (tmp_path / "klaudit.toml").write_text(text, encoding="utf-8")
        outcome = run("scan")
        assert (outcome.status, outcome.out) == (2, "")
        assert message in outcome.err
        assert engine.calls == []
