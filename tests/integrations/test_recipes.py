"""What docs/ci.md shows is valid, names what there is, and says what is set up by `klaudit init`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from klaudit import __version__
from klaudit.cli.scan import command
from klaudit.init.proposal import template
from klaudit.reports import FORMATS
from tests.integrations.scratch import ACTION, ROOT

DOCUMENT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(# (\S+).*?\n.*?)```", DOCUMENT, re.DOTALL)
SCHEMAS = {".github/workflows/klaudit.yml": "vendor.github-workflows", ".gitlab-ci.yml": "vendor.gitlab-ci"}
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "klaudit.yml").read_bytes())


def of(name: str) -> list[Any]:
    return [yaml.safe_load(text) for text, file in BLOCKS if file == name]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_recipes_are_valid(tmp_path: Path, number: int) -> None:
    text, name = BLOCKS[number]
    file = tmp_path / Path(name).name
    file.write_text(text, encoding="utf-8")
    if name in SCHEMAS:
        check = ["check_jsonschema", "--builtin-schema", SCHEMAS[name], str(file)]
    elif name == ".pre-commit-config.yaml":
        check = ["pre_commit", "validate-config", str(file)]
    else:
        assert yaml.safe_load(text)
        return
    done = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_inputs_that_are_named_exist() -> None:
    inputs = yaml.safe_load(ACTION.read_bytes())["inputs"]
    table = DOCUMENT.partition("| input |")[2].partition("\n\n")[0]
    listed = re.findall(r"`([a-z-]+)`", "\n".join(row.split("|")[1] for row in table.splitlines()[2:]))
    assert sorted(listed) == sorted(inputs)
    called, reusable = of(".github/workflows/klaudit.yml")
    assert set(called["jobs"]["klaudit"]["steps"][1]["with"]) <= set(inputs)
    job = reusable["jobs"]["klaudit"]
    assert set(job["with"]) <= set(WORKFLOW[True]["workflow_call"]["inputs"])
    assert job["permissions"] == WORKFLOW["jobs"]["klaudit"]["permissions"]


def test_outputs_that_are_named_exist() -> None:
    outputs = yaml.safe_load(ACTION.read_bytes())["outputs"]
    sentence = DOCUMENT.partition("Outputs: ")[2].partition(". ")[0]
    assert set(re.findall(r"`([a-z-]+)`", sentence)) == set(outputs)


def test_the_hook_from_the_index_is_the_one_that_init_writes() -> None:
    assert of(".pre-commit-config.yaml")[1]["repos"] == yaml.safe_load(template("pre-commit.yml"))
    assert f'additional_dependencies: ["klaudit=={__version__}"]' in DOCUMENT


def test_the_job_for_gitlab_is_that_of_init_in_short() -> None:
    (short,) = of(".gitlab-ci.yml")
    full = yaml.safe_load(template("gitlab.yml"))["klaudit"]
    assert short["klaudit"]["rules"] == full["rules"]
    assert set(short["klaudit"]["script"][-1].split()) <= set(full["script"][-1].split())


def test_formats_and_options_that_are_named_exist() -> None:
    table = DOCUMENT.partition("| format |")[2].partition("\n\n")[0]
    assert re.findall(r"(?m)^\| `(\w+)` \|", table) and set(re.findall(r"(?m)^\| `(\w+)` \|", table)) == set(FORMATS)
    options = {option for parameter in command.params for option in parameter.opts}
    init = {"--write", "--baseline", "--github", "--pre-commit", "--no-gitlab", "--gitlab"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", DOCUMENT)) - options - init <= {"--quiet"}
