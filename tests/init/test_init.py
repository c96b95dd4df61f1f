"""`klaudit init`: what it proposes for which repository, that it writes just that, once, and over nobody else's work."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from klaudit import __version__
from klaudit.cli import main
from klaudit.configuration import load
from klaudit.init.proposal import template

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True"
    " actor_rollout_ref.actor.kl_loss_type=low_var_kl\n"
)
WORKFLOW = ".github/workflows/klaudit.yml"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("--write")` in a repository with one finding."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    write(tmp_path, {"run.sh": LAUNCH, ".git/HEAD": "ref: refs/heads/trunk\n"})

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["klaudit", "init", *arguments])
        status = main()
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())


def contents(root: Path) -> dict[str, bytes]:
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {name: data for name, data in files.items() if not name.startswith(".git/")}


def remote(root: Path, url: str) -> None:
    write(root, {".git/config": f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n\tfetch = +refs/*\n'})


class TestWhatIsProposed:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("git@github.com:octo/project.git", {WORKFLOW}),
            ("https://github.example.org/octo/project", {WORKFLOW}),
            ("ssh://git@gitlab.com:22/octo/project", {".gitlab-ci.yml", ".gitlab/klaudit.yml"}),
            ("../github.com/elsewhere", set()),
            ("https://codeberg.org/github/x", set()),
            ("https://[broken", set()),
        ],
    )
    def test_a_remote_says_where_the_pipeline_runs(
        self, run: Run, tmp_path: Path, url: str, expected: set[str]
    ) -> None:
        remote(tmp_path, url)
        status, out, err = run()
        assert (status, set(re.findall(r"(?m)^\+\+\+ b/(.+)$", out)) - {"klaudit.toml"}) == (1, expected)
        assert ("no remote on GitHub or GitLab is known" in err) == (not expected)

    def test_files_say_it_too(self, run: Run, tmp_path: Path) -> None:
        write(
            tmp_path,
            {".github/CODEOWNERS": "", ".gitlab-ci.yml": "stages: [test]\n", ".pre-commit-config.yaml": "repos: []\n"},
        )
        _, out, _ = run()
        named = re.findall(r"(?m)^\+\+\+ b/(.+)$", out)
        assert named == [WORKFLOW, ".gitlab-ci.yml", ".gitlab/klaudit.yml", ".pre-commit-config.yaml", "klaudit.toml"]

    @pytest.mark.parametrize(
        ("git", "branch"),
        [
            ({}, "trunk"),
            ({".git/refs/heads/trunk": "", ".git/refs/heads/main": ""}, "main"),
            (
                {".git/packed-refs": "# pack-refs with: peeled\n0123 refs/heads/master\n4567 refs/heads/mains\n"},
                "master",
            ),
            (
                {".git/refs/remotes/origin/HEAD": "ref: refs/remotes/origin/dev\n", ".git/refs/heads/main": ""},
                "dev",
            ),
        ],
    )
    def test_the_workflow_runs_on_the_main_branch_whatever_is_checked_out(
        self, run: Run, tmp_path: Path, git: dict[str, str], branch: str
    ) -> None:
        write(tmp_path, git)
        _, out, _ = run("--github")
        assert f"    branches: [{branch}]\n" in out

    def test_what_was_not_found_is_offered(self, run: Run, tmp_path: Path) -> None:
        assert "--pre-commit adds one" in run()[2]
        for arguments in (("--pre-commit",), ("--no-pre-commit",)):
            assert "--pre-commit adds one" not in run(*arguments)[2]

    def test_files_are_counted(self, run: Run) -> None:
        assert run()[2].endswith("1 file, not written: --write does that.\n")
        assert run("--pre-commit", "--write")[2].endswith("2 files written.\n")

    def test_options_overrule_what_is_found(self, run: Run, tmp_path: Path) -> None:
        write(tmp_path, {".github/CODEOWNERS": "", "klaudit.toml": ""})
        _status, out, err = run("--no-github", "--pre-commit")
        assert re.findall(r"(?m)^\+\+\+ b/(.+)$", out) == [".pre-commit-config.yaml"]
        assert "pre-commit install" in err

    def test_findings_of_today_are_offered_to_a_baseline(self, run: Run, tmp_path: Path) -> None:
        _status, _out, err = run("--write")
        assert "1 finding today: --baseline lists what is there" in err
        assert "baseline" not in (tmp_path / "klaudit.toml").read_text(encoding="utf-8")
        assert run("--baseline", "--write")[0] == 0
        assert json.loads((tmp_path / "klaudit-baseline.json").read_bytes())["findings"][0]["path"] == "run.sh"
        assert load(tmp_path / "klaudit.toml").options.baseline == str(tmp_path.resolve() / "klaudit-baseline.json")

    def test_an_assumed_version_is_named(self, run: Run, tmp_path: Path) -> None:
        run("--write")
        assert '# framework-versions = { "verl" = ' in (tmp_path / "klaudit.toml").read_text(encoding="utf-8")
        (tmp_path / "klaudit.toml").unlink()
        write(tmp_path, {"requirements.txt": "verl==0.4.0\n"})
        run("--write")
        assert "framework-versions" not in (tmp_path / "klaudit.toml").read_text(encoding="utf-8")

    def test_code_has_no_version_to_name(self, run: Run, tmp_path: Path) -> None:
        code = (
            "import torch\ndef loss(logp, ref):\n    d = ref - logp\n    return ((torch.exp(d) - d - 1) * 0.1).mean()\n"
        )
        write(tmp_path, {"losses.py": code, "requirements.txt": "verl==0.4.0\n"})
        run("--write")
        assert "framework-versions" not in (tmp_path / "klaudit.toml").read_text(encoding="utf-8")

    def test_from_a_folder_below_the_repository_is_meant(self, run: Run, tmp_path: Path) -> None:
        write(tmp_path, {"sub/x.txt": ""})
        run("sub", "--write")
        assert (tmp_path / "klaudit.toml").exists()


class TestWriting:
    def test_nothing_is_written_unless_asked(self, run: Run, tmp_path: Path) -> None:
        before = contents(tmp_path)
        assert run("--github", "--gitlab", "--pre-commit", "--baseline")[0] == 1
        assert contents(tmp_path) == before

    def test_a_second_time_there_is_nothing_to_do(self, run: Run, tmp_path: Path) -> None:
        everything = ("--github", "--gitlab", "--pre-commit", "--baseline")
        write(tmp_path, {"pyproject.toml": "[project]\nname = 'x'\n"})
        assert run(*everything, "--write")[0] == 0
        written = contents(tmp_path)
        for again in ((*everything, "--write"), everything, ("--write",)):
            status, out, err = run(*again)
            assert (status, out) == (0, "")
            assert "Nothing to do." in err
        assert contents(tmp_path) == written

    def test_what_is_shown_is_a_patch_that_makes_just_what_is_written(self, run: Run, tmp_path: Path) -> None:
        write(tmp_path, {"pyproject.toml": "[project]", ".pre-commit-config.yaml": "repos:\r\n- repo: x\r\n"})
        arguments = ("--github", "--gitlab", "--pre-commit", "--baseline")
        before = contents(tmp_path)
        _, patch, _ = run(*arguments)
        run(*arguments, "--write")
        written = contents(tmp_path)
        for name in written:
            (tmp_path / name).unlink()
        write(tmp_path, {name: data.decode() for name, data in before.items()})
        subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True, timeout=20)
        assert contents(tmp_path) == written

    @pytest.mark.parametrize("path", [WORKFLOW, ".gitlab/klaudit.yml"])
    def test_files_of_others_are_left_alone(self, run: Run, tmp_path: Path, path: str) -> None:
        write(tmp_path, {path: "mine\n"})
        _, _, err = run("--github", "--gitlab", "--write")
        assert (tmp_path / path).read_text(encoding="utf-8") == "mine\n"
        assert path in err

    def test_a_workflow_that_runs_klaudit_is_enough(self, run: Run, tmp_path: Path) -> None:
        write(tmp_path, {".github/workflows/ci.yml": "jobs: {a: {steps: [{run: klaudit scan}]}}\n"})
        assert WORKFLOW not in run("--write")[1]

    def test_a_link_out_of_the_repository_is_not_written_through(self, run: Run, tmp_path: Path) -> None:
        outside = tmp_path.parent / (tmp_path.name + "-outside")
        outside.mkdir()
        (tmp_path / ".github").symlink_to(outside, target_is_directory=True)
        status, _, err = run("--github", "--write")
        assert (status, "leads out of the tree" in err) == (2, True)
        assert list(outside.iterdir()) == []
        assert not (tmp_path / "klaudit.toml").exists()  # all or nothing


CONFIGURED = {
    "[tool.klaudit]\nselect = ['KLA1']\n": "[tool.klaudit]\nbaseline = \"klaudit-baseline.json\"\nselect = ['KLA1']\n",
    "a = 1\r\n[tool.klaudit] # why\r\n": 'a = 1\r\n[tool.klaudit] # why\r\nbaseline = "klaudit-baseline.json"\r\n',
    "[tool.klaudit]": '[tool.klaudit]\nbaseline = "klaudit-baseline.json"\n',
}
BY_HAND = ["[tool]\nklaudit = {select = ['KLA1']}\n", "[tool.klaudit.framework-versions]\nverl = '0.4.0'\n"]


class TestSettings:
    @pytest.mark.parametrize("before", CONFIGURED)
    def test_a_baseline_is_named_in_what_is_there(self, run: Run, tmp_path: Path, before: str) -> None:
        write(tmp_path, {"pyproject.toml": before})
        run("--baseline", "--write")
        assert (tmp_path / "pyproject.toml").read_bytes().decode() == CONFIGURED[before]

    @pytest.mark.parametrize("before", BY_HAND)
    def test_or_is_to_be_added_by_hand(self, run: Run, tmp_path: Path, before: str) -> None:
        write(tmp_path, {"pyproject.toml": before})
        _, _, err = run("--baseline", "--write")
        assert (tmp_path / "pyproject.toml").read_text(encoding="utf-8") == before
        assert 'add `baseline = "klaudit-baseline.json"` to the settings by hand' in err

    @pytest.mark.parametrize("before", ["", "[project]\nname = 'x'", "a = 1\r\n", "[tool.ruff]\nx = 1\n"])
    def test_a_section_is_added_at_the_end(self, run: Run, tmp_path: Path, before: str) -> None:
        write(tmp_path, {"pyproject.toml": before})
        run("--write")
        after = (tmp_path / "pyproject.toml").read_bytes().decode()
        assert after.startswith(before)
        assert after.count("\n") == (after.count("\r\n") or after.count("\n"))
        assert load(tmp_path / "pyproject.toml").options.fail_on == "warning"

    @pytest.mark.parametrize("before", ["[tool]\n'klaudit' = 1\n", "tool = 1\n", "[broken"])
    def test_a_file_that_cannot_be_added_to_is_left(self, run: Run, tmp_path: Path, before: str) -> None:
        write(tmp_path, {"pyproject.toml": before})
        status, _, _ = run("--write")
        assert status in (0, 2)
        assert (tmp_path / "pyproject.toml").read_text(encoding="utf-8") == before


class TestTemplates:
    def test_the_hook_is_that_of_the_manifest(self) -> None:
        (repository,) = yaml.safe_load(template("pre-commit.yml"))
        manifest = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_bytes())}
        (hook,) = repository["hooks"]
        assert hook.pop("additional_dependencies") == [f"klaudit=={__version__}"]
        assert hook == {key: value for key, value in manifest["klaudit"].items() if key in hook}

    def test_the_workflow_is_the_reusable_one_with_its_defaults(self) -> None:
        """Two files, since a repository cannot be told the address of ours; one text."""
        own = yaml.safe_load(template("github.yml", BRANCH="main"))["jobs"]["klaudit"]
        shared = yaml.safe_load((ROOT / WORKFLOW).read_bytes())["jobs"]["klaudit"]
        assert own["permissions"] == shared["permissions"]
        for mine, theirs in zip(own["steps"], shared["steps"], strict=True):
            assert {key: mine.get(key) for key in ("name", "uses", "run", "id")} == {
                key: theirs.get(key) for key in ("name", "uses", "run", "id")
            }
            assert _without_inputs(theirs.get("if")) == mine.get("if")
            for key, value in mine.get("env", {}).items():
                assert theirs["env"][key] == value or "inputs." in theirs["env"][key], key

    @pytest.mark.parametrize(
        ("name", "schema"), [("github.yml", "vendor.github-workflows"), ("gitlab.yml", "vendor.gitlab-ci")]
    )
    def test_they_are_valid(self, tmp_path: Path, name: str, schema: str) -> None:
        file = tmp_path / name
        file.write_text(template(name, BRANCH="main"), encoding="utf-8")
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout


def _without_inputs(condition: Any) -> Any:
    return re.sub(r"inputs\.[\w-]+ && ", "", condition) if condition else condition
