"""The action and the workflows, their steps executed as the runner would, in scratch repositories."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from klaudit.ci.comment import MARKER
from klaudit.init.proposal import template
from tests.integrations.actions_runner import Run, Step
from tests.integrations.fake_github import TOKEN, GitHub
from tests.integrations.scratch import ACTION, LAUNCH, MODULES, ROOT, Project, git, trap

WORKFLOW = ROOT / ".github" / "workflows" / "klaudit.yml"


def annotations(step: Step) -> list[tuple[str, str | None, str | None]]:
    return [
        (name, given.get("file"), given.get("line")) for name, given, _ in step.commands if name in ("error", "warning")
    ]


def test_a_pull_request_fails_by_what_is_new(installed: tuple[str, Run, dict[str, str]]) -> None:
    _, run, outputs = installed
    scan = run.step("Scan")
    assert scan.outcome == "failure", scan.log
    assert annotations(scan) == [("warning", "new.sh", "4")], scan.log
    assert outputs["findings"] == "1" and outputs["exit-status"] == "1"
    sarif = json.loads(Path(outputs["sarif"]).read_bytes())
    assert [result["ruleId"] for result in sarif["runs"][0]["results"] if not result.get("suppressions")] == ["KLA101"]
    assert "new.sh" in scan.summary and "KLA101" in scan.summary
    assert Path(outputs["report"]).read_text(encoding="utf-8").strip() in scan.summary
    assert "new.sh:4:3 KLA101 k3-in-loss [warning]" in scan.log  # for people who read the log
    assert run.step("Set up Python").outcome == "skipped"


def test_the_installed_package_sets_up_what_it_runs(installed: tuple[str, Run, dict[str, str]], tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    command = [installed[0], "-I", "-m", "klaudit", "init", "--github", "--gitlab", "--pre-commit"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, done.stderr
    assert 'python" -I -m klaudit.ci.github' in done.stdout


def test_a_clean_change_passes(installed: tuple[str, Run, dict[str, str]], tmp_path: Path) -> None:
    run, outputs = Project(tmp_path, {"old.sh": LAUNCH}, {"note.py": "print(1)\n"}).run(installed[0])
    scan = run.step("Scan")
    assert (scan.outcome, annotations(scan)) == ("success", []), scan.log
    assert (outputs["findings"], outputs["exit-status"]) == ("0", "0")


def test_everything_counts_outside_of_a_pull_request(
    installed: tuple[str, Run, dict[str, str]], tmp_path: Path
) -> None:
    project = Project(tmp_path, {"old.sh": LAUNCH}, {"new.sh": LAUNCH})
    assert project.run(installed[0], {})[1]["findings"] == "2"
    assert project.run(installed[0], diff_base="none")[1]["findings"] == "2"
    assert project.run(installed[0], {}, fail_on="error")[1]["exit-status"] == "0"
    assert project.run(installed[0], {"merge_group": {"base_sha": project.base}})[1]["findings"] == "1"


def test_inputs_reach_the_scan(installed: tuple[str, Run, dict[str, str]], tmp_path: Path) -> None:
    project = Project(tmp_path, {}, {"a b/new.sh": LAUNCH, "c/other.sh": LAUNCH})
    sarif = project.workspace / "out.sarif"
    run, outputs = project.run(
        installed[0], path="a b", args="--select=KLA101\n\n--min-confidence=high\n", sarif_file="out.sarif", summary="false", python_version="3.12"
    )  # fmt: skip
    assert outputs["findings"] == "1"
    assert sarif.is_file() and outputs["sarif"] == "out.sarif"
    assert run.step("Scan").summary == ""
    setup = run.step("Set up Python")
    assert re.fullmatch(r"actions/setup-python@[0-9a-f]{40}", setup.uses) and setup.given == {"python-version": "3.12"}
    baseline = {"format": "klaudit-baseline/1", "klaudit": "0", "findings": []}
    (project.workspace / "known.json").write_text(json.dumps(baseline), encoding="utf-8")
    assert project.run(installed[0], baseline="known.json")[1]["exit-status"] == "1"


@pytest.mark.parametrize("depth", [1, None])
def test_the_base_is_had_however_little_was_checked_out(
    installed: tuple[str, Run, dict[str, str]], tmp_path: Path, depth: int | None
) -> None:
    run, outputs = Project(tmp_path, {"old.sh": LAUNCH}, {"new.sh": LAUNCH}, depth).run(installed[0])
    assert outputs["findings"] == "1", run.step("Scan").log


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_checkout_of_another_user_is_looked_at(installed: tuple[str, Run, dict[str, str]], tmp_path: Path) -> None:
    """In a container the runner's checkout is not its own, and git refuses it."""
    project = Project(tmp_path, {"old.sh": LAUNCH}, {"new.sh": LAUNCH})
    for path in (project.workspace, *project.workspace.rglob("*")):
        os.chown(path, 1234, 1234, follow_symlinks=False)
    run, outputs = project.run(installed[0])
    assert outputs["findings"] == "1", run.step("Scan").log


def test_a_base_that_cannot_be_had_is_told(installed: tuple[str, Run, dict[str, str]], tmp_path: Path) -> None:
    project = Project(tmp_path, {}, {"new.sh": LAUNCH})
    for sha in ("f" * 40, "--output=owned", "main"):
        run, outputs = project.run(installed[0], {"pull_request": {"base": {"sha": sha}}})
        assert (run.step("Scan").outcome, outputs["exit-status"], outputs["findings"]) == ("failure", "2", "")
        (command,) = run.step("Scan").commands
        assert command[0] == "error" and "fetch-depth: 0" in command[2]


def test_wrong_usage_is_no_clean_run(installed: tuple[str, Run, dict[str, str]], tmp_path: Path) -> None:
    project = Project(tmp_path, {}, {"new.sh": LAUNCH})
    assert project.run(installed[0])[1]["findings"] == "1"
    run, outputs = project.run(installed[0], args="--no-such-option")
    assert (run.failed, outputs["exit-status"], outputs["findings"], outputs["sarif"]) == (True, "2", "", "")
    assert "No such option" in run.step("Scan").log


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("inputs"), {}, {"new.sh": LAUNCH})


class TestHostile:
    """What is judged, and what is asked, cannot become commands of a shell, of Python or of the runner."""

    def test_no_module_of_the_repository_is_imported(
        self, installed: tuple[str, Run, dict[str, str]], tmp_path: Path
    ) -> None:
        new = {f"{name}.py": trap(tmp_path) for name in MODULES}
        new |= {"klaudit/__main__.py": trap(tmp_path), "new.sh": LAUNCH}
        _, outputs = Project(tmp_path, {}, new).run(installed[0])
        assert outputs["findings"] == "1"
        assert not (tmp_path / "ran").exists()
        assert not (installed[1].temp.parent / "ran").exists()  # nor while it was installed

    @pytest.mark.parametrize("name", ["path", "args", "fail-on", "baseline", "diff-base", "sarif-file", "report-file"])
    def test_no_input_is_run(self, installed: tuple[str, Run, dict[str, str]], project: Project, name: str) -> None:
        value = """'; touch ran; '"; touch ran; "$(touch ran)`touch ran`; touch ran #"""
        run, _ = project.run(installed[0], **{name: value})
        assert not (project.workspace / "ran").exists()
        assert "Traceback" not in run.step("Scan").log

    @pytest.mark.skipif(sys.platform == "win32", reason="names that only other systems allow")
    def test_no_name_or_value_is_obeyed(self, installed: tuple[str, Run, dict[str, str]], tmp_path: Path) -> None:
        forged = "::error file=forged.py,line=1::forged"
        new = {
            f"{forged}.sh": LAUNCH,
            f"a\n{forged}\nb.sh": LAUNCH,
            f"unreadable\n{forged}.py": "use_kl_loss = '\udcff'\n",
            f"{forged}.py": "use_kl_loss = '\udcff'\n",
            "##[error]forged.sh": LAUNCH,
            "x.sh": LAUNCH.replace("low_var_kl", f"'low_var_kl\n{forged}\n::add-mask::x\n##[error]forged'"),
            "y.sh": LAUNCH.replace("low_var_kl", f"low_var_kl trainer.name='\n::stop-commands::x\n{forged}'"),
            "klaudit.toml": f"# {forged}\nignore = []\n",
            "many.sh": "# many\n" + LAUNCH * 30,
        }
        run, _ = Project(tmp_path, {}, new).run(installed[0])
        scan = run.step("Scan")
        assert scan.outcome == "failure"
        assert {name for name, _, _ in scan.commands} <= {"error", "warning", "notice"}
        files = {given.get("file") for _, given, _ in scan.commands}
        assert "forged.py" not in files
        assert not [message for _, _, message in scan.commands if message == "forged"]
        assert len([1 for name, _, _ in scan.commands if name == "warning"]) == 10  # what GitHub shows

    def test_a_configuration_cannot_give_commands(
        self, installed: tuple[str, Run, dict[str, str]], tmp_path: Path
    ) -> None:
        forged = "::error file=forged.py,line=1::forged"
        new = {"klaudit.toml": f'"x\\n{forged}\\n##[error]forged" = 1\n', "new.sh": LAUNCH}
        run, outputs = Project(tmp_path, {}, new).run(installed[0])
        assert (outputs["exit-status"], run.step("Scan").commands) == ("2", [])

    def test_links_of_the_repository_are_not_written_through(
        self, installed: tuple[str, Run, dict[str, str]], tmp_path: Path
    ) -> None:
        project = Project(tmp_path, {}, {"new.sh": LAUNCH})
        outside = tmp_path / "outside.txt"
        outside.write_text("mine", encoding="utf-8")
        for name in ("klaudit.sarif", "klaudit.md", "klaudit.json", "klaudit-annotations.txt"):
            (project.workspace / name).symlink_to(outside)
        (project.workspace / "reports").symlink_to(tmp_path, target_is_directory=True)
        assert project.run(installed[0])[1]["findings"] == "1"
        _, outputs = project.run(installed[0], sarif_file="reports/outside.txt")
        assert outputs["exit-status"] == "2"
        assert outside.read_text(encoding="utf-8") == "mine"


# --- the workflows -------------------------------------------------------------------------------------------------------------------


def workflow_steps(text: str, python: str) -> list[dict[str, Any]]:
    """The job's steps; what is installed from the package index was installed by the action already."""
    (job,) = yaml.safe_load(text)["jobs"].values()
    for step in job["steps"]:
        step["run"] = step.get("run", "").replace('"$RUNNER_TEMP/klaudit-venv/bin/python"', f'"{python}"')
        if not step["run"]:
            del step["run"]
    return list(job["steps"])


def github_of(project: Project, head: str = "octo/project") -> dict[str, Any]:
    return {
        "repository": "octo/project",
        "event_name": "pull_request",
        "token": TOKEN,
        "event": {"pull_request": {"number": 7, "base": {"sha": project.base}, "head": {"repo": {"full_name": head}}}},
    }


def judge(project: Project, python: str, github: GitHub, source: str, head: str = "octo/project") -> Run:
    """Runs the workflow's job for a pull request from `head`."""
    text = WORKFLOW.read_text(encoding="utf-8") if source == "reusable" else template("github.yml", BRANCH="main")
    definition = yaml.safe_load(text)
    called = definition[True].get("workflow_call", {}).get("inputs", {})  # `on` is true in YAML 1.1
    inputs = {name: each.get("default", "") for name, each in called.items()}
    run = Run(project.workspace, project.temp, github_of(project, head), inputs)
    run.environment = {"GITHUB_API_URL": github.address}
    run.replaced["Install klaudit"] = Step("Install klaudit", "success")
    run.run(workflow_steps(text, python))
    return run


@pytest.mark.parametrize("source", ["reusable", "template"])
def test_the_workflow_annotates_uploads_and_keeps_one_comment(
    installed: tuple[str, Run, dict[str, str]], tmp_path: Path, github: GitHub, source: str
) -> None:
    project = Project(tmp_path, {"old.sh": LAUNCH}, {"new.sh": LAUNCH}, None)
    run = judge(project, installed[0], github, source)
    scan, upload, comment = (run.step(name) for name in ("Scan", "Upload SARIF", "Comment"))
    assert (scan.outcome, annotations(scan), run.failed) == ("failure", [("warning", "new.sh", "3")], True)
    assert upload.given["sarif_file"] == scan.outputs["sarif"]
    assert comment.outcome == "success", comment.log
    (text,) = github.texts()
    assert text.startswith(MARKER) and "KLA101" in text and "new.sh" in text
    assert TOKEN not in "".join(step.log for step in run.steps) + text

    git(project.workspace, "rm", "-q", "new.sh")
    run = judge(project, installed[0], github, source)
    assert (run.step("Scan").outcome, run.step("Comment").outcome, run.failed) == ("success", "success", False)
    (text,) = github.texts()  # the same comment, brought up to date
    assert text.startswith(MARKER) and "KLA101" not in text.partition("<details>")[0]


def test_a_fork_is_annotated_and_summarised_only(
    installed: tuple[str, Run, dict[str, str]], tmp_path: Path, github: GitHub
) -> None:
    project = Project(tmp_path, {}, {"new.sh": LAUNCH}, None)
    run = judge(project, installed[0], github, "reusable", "mallory/fork")
    assert annotations(run.step("Scan")) and "KLA101" in run.step("Scan").summary
    assert [run.step(name).outcome for name in ("Upload SARIF", "Comment")] == ["skipped", "skipped"]
    assert (run.failed, github.calls) == (True, [])


@pytest.mark.parametrize(
    ("file", "schema"),
    [(ACTION, "vendor.github-actions"), (WORKFLOW, "vendor.github-workflows")],
    ids=["action", "workflow"],
)
def test_they_are_valid(file: Path, schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    assert subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def test_zizmor_finds_nothing(tmp_path: Path) -> None:
    """The security linter of GitHub Actions, without the network, at its strictest."""
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "own.yml").write_text(template("github.yml", BRANCH="main"), encoding="utf-8")
    program = Path(sys.executable).with_name("zizmor")
    command = [program, "--offline", "--no-config", "--persona=pedantic", "--no-progress", ACTION, WORKFLOW, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout


def test_actions_are_pinned_to_the_same_commits() -> None:
    texts = [ACTION.read_text("utf-8"), WORKFLOW.read_text("utf-8"), template("github.yml")]
    uses = {line for text in texts for line in re.findall(r"uses: (\S+@\S+ # v[\d.]+)", text)}
    assert len(uses) == len({line.partition("@")[0] for line in uses}) == 3
    assert sum(text.count("uses: ") - text.count("{uses: ") for text in texts) == sum(
        len(re.findall(r"uses: \S+@[0-9a-f]{40} # v", text)) for text in texts
    )
