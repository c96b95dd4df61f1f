"""The job for GitLab, its script executed in a scratch repository."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from klaudit import __version__
from klaudit.init.proposal import template
from tests.integrations.actions_runner import Run
from tests.integrations.scratch import LAUNCH, Project

JOB = yaml.safe_load(template("gitlab.yml"))["klaudit"]


def run(project: Project, python: str, **variables: str) -> int:
    """Runs the script as GitLab's runner does: one shell, which stops where a line fails.  Its environment is installed already."""
    lines = list(JOB["script"])
    install = [line for line in lines if "mktemp" in line or " -I -m " in line]
    assert [line.rpartition(" -m ")[2].split()[0] for line in install[1:]] == ["venv", "pip"]
    lines[: len(install)] = [f"klaudit_home={Path(python).parent.parent}"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("CI_", "PYTHON", "KLAUDIT"))}
    environment |= {"CI": "true", "CI_PROJECT_DIR": str(project.workspace), **JOB["variables"], **variables}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(lines)],
        cwd=project.workspace,
        env=environment,
        check=False,
        timeout=120,
    )
    return done.returncode


@pytest.fixture
def python(installed: tuple[str, Run, dict[str, str]]) -> str:
    return installed[0]


def test_a_merge_request_fails_by_what_is_new(python: str, tmp_path: Path) -> None:
    project = Project(tmp_path, {"old.sh": LAUNCH}, {"new.sh": LAUNCH}, None)
    assert run(project, python, CI_MERGE_REQUEST_DIFF_BASE_SHA=project.base) == 1
    reports = {name: project.workspace / file for name, file in JOB["artifacts"]["reports"].items()}
    (finding,) = json.loads(reports["codequality"].read_bytes())
    assert (finding["location"]["path"], finding["location"]["lines"]["begin"]) == ("new.sh", 3)
    suites = ElementTree.parse(reports["junit"]).getroot()
    assert len(list(suites.iter("failure"))) == 1
    assert all((project.workspace / file).is_file() for file in JOB["artifacts"]["paths"])


def test_the_main_branch_is_judged_as_a_whole(python: str, tmp_path: Path) -> None:
    project = Project(tmp_path, {"old.sh": LAUNCH}, {"new.sh": LAUNCH})
    assert run(project, python) == 1
    assert len(json.loads((project.workspace / "gl-code-quality-report.json").read_bytes())) == 2
    assert run(project, python, KLAUDIT_FAIL_ON="error") == 0


def test_a_link_in_the_place_of_a_report_is_refused(python: str, tmp_path: Path) -> None:
    project = Project(tmp_path, {}, {"new.sh": LAUNCH})
    outside = tmp_path / "outside.json"
    outside.write_text("mine", encoding="utf-8")
    (project.workspace / "gl-code-quality-report.json").symlink_to(outside)
    assert run(project, python) == 2
    assert outside.read_text(encoding="utf-8") == "mine"


def test_the_release_is_that_which_wrote_the_file() -> None:
    assert JOB["variables"]["KLAUDIT_VERSION"] == __version__
    assert JOB["variables"]["GIT_DEPTH"] == "0"  # the base of the merge request
