"""The hooks, run by pre-commit itself in a scratch repository, from a checkout of klaudit as it is here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from klaudit.discover import suffixes

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
SHIPPED = ("klaudit", "rules", "tools", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
LAUNCH = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True"
    " actor_rollout_ref.actor.kl_loss_type=low_var_kl\n"
)
FILES = {
    "run.sh": LAUNCH,
    "sub/train": "#!/usr/bin/env bash\n" + LAUNCH,
    "jobs/with_config.slurm": "trl grpo --config shared/base.yaml\n",
    "shared/base.yaml": "beta: 0.02\nmodel_name_or_path: x\n",
    "requirements.txt": "trl==0.17.0\n",
    "third_party/old.sh": LAUNCH,
    "Makefile": LAUNCH,
    "klaudit.toml": 'exclude = ["third_party/"]\n',
    "clean.py": "print(1)\n",
}


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def hooks() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    return found


class Workplace:
    """A repository that uses the hooks of a copy of this one."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "klaudit"
        self.source.mkdir()
        for name in SHIPPED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.source / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, self.source / name)
        git(self.source, "init")
        git(self.source, "add", "-A")
        git(self.source, "commit", "-m", "klaudit")
        self.folder = folder / "project"
        self.folder.mkdir()
        git(self.folder, "init")
        config = {
            "repos": [
                {
                    "repo": str(self.source),
                    "rev": git(self.source, "rev-parse", "HEAD"),
                    "hooks": [{"id": hook["id"]} for hook in hooks()],
                }
            ]
        }
        for name, text in {**FILES, ".pre-commit-config.yaml": yaml.safe_dump(config)}.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        git(self.folder, "add", "-A")
        self._environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._environment |= {"PRE_COMMIT_HOME": str(folder / "home"), "PRE_COMMIT_COLOR": "never"}

    def run(self, hook: str, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", hook, *arguments],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace(tmp_path_factory.mktemp("pre_commit"))


def test_the_hook_finds_and_the_fix_mends(workplace: Workplace) -> None:
    """One environment for all of it: pre-commit builds it from the package index, which takes most of the time."""
    status, text = workplace.run("klaudit", "--all-files")
    assert status == 1, text
    found = re.findall(r"(?m)^(\S+?):\d+:\d+ (KLA101) ", text)
    assert found == [("jobs/with_config.slurm", "KLA101"), ("run.sh", "KLA101"), ("sub/train", "KLA101")]
    assert "set-up jobs/with_config.slurm:1 a launch of trl 0.17.0" in text  # the whole repository has a say
    for left_out in ("third_party/old.sh:", "Makefile:"):
        assert left_out not in text
    assert text.count("files looked at") == 1  # one process for all files

    status, text = workplace.run("klaudit", "--files", "clean.py", "third_party/old.sh", "Makefile")
    assert (status, "Passed" in text) == (0, True), text

    status, text = workplace.run("klaudit-fix", "--files", "run.sh", "third_party/old.sh")
    assert (status, "files were modified by this hook" in text) == (1, True), text
    assert "use_kl_in_reward=True" in (workplace.folder / "run.sh").read_text(encoding="utf-8")
    assert (workplace.folder / "third_party/old.sh").read_text(encoding="utf-8") == LAUNCH
    git(workplace.folder, "add", "-A")
    assert workplace.run("klaudit", "--files", "run.sh")[0] == 0
    assert workplace.run("klaudit-fix", "--files", "run.sh")[0] == 0


def test_the_manifest_is_valid() -> None:
    done = subprocess.run([sys.executable, "-m", "pre_commit", "validate-manifest", MANIFEST], check=False, timeout=60)
    assert done.returncode == 0


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: str(hook["id"]))
def test_every_kind_of_file_is_passed(hook: dict[str, Any]) -> None:
    pattern = re.compile(hook["files"])
    for suffix in suffixes.SUFFIXES:
        assert pattern.search(f"a/b.c{suffix}"), suffix
    assert pattern.search("a/train") and pattern.search("train") and pattern.search("a/B.YAML")
    for name in ("a.md", "a.txt", "a.py.orig", "b/.gitignore", "a.shx"):
        assert not pattern.search(name), name
    assert hook["require_serial"] is True
    assert "--force-exclude" in hook["entry"] and "--jobs 1" in hook["entry"]
