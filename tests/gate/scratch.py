"""Scratch repositories, and launches to put into them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.model import Finding, Report

IDENTITY = (
    "-c",
    "user.name=t",
    "-c",
    "user.email=t@example.invalid",
    "-c",
    "commit.gpgsign=false",
    "-c",
    "init.defaultBranch=main",
)


def launch(*settings: str, estimator: str = "low_var_kl") -> str:
    """A script that trains with a penalty in the loss, one setting a line."""
    words = [
        "algorithm.adv_estimator=grpo",
        "actor_rollout_ref.actor.use_kl_loss=True",
        f"actor_rollout_ref.actor.kl_loss_type={estimator}",
    ]
    return " \\\n    ".join(["python3 -m verl.trainer.main_ppo", *words, *settings]) + "\n"


LAUNCH = launch()
BETTER = launch().replace("use_kl_loss=True", "use_kl_loss=False")


class Folder:
    """Files, and what a scan of them says."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """None takes a file away."""
        for name, content in files.items():
            path = self.root / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def scan(self, *paths: str, baseline: str | None = None, diff_base: str | None = None) -> Report:
        where = [str(self.root / path) for path in paths or (".",)]
        file = None if baseline is None else str(self.root / baseline)
        report = scan(where, Options(jobs=1, baseline=file, diff_base=diff_base))
        assert not [error for error in report.errors if "internal" in error.message], report.errors
        return report

    def new(self, ref: str = "HEAD", *paths: str) -> list[str]:
        """What counts since a commit."""
        return places(self.scan(*paths, diff_base=ref).findings)


class Repository(Folder):
    def __init__(self, root: Path, files: Mapping[str, str | bytes] | None = None, *init: str) -> None:
        super().__init__(root)
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", *init)
        if files is not None:
            self.commit(files)

    def git(self, *arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        command = ["git", *IDENTITY, "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | bytes | None] | None = None) -> str:
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a commit")
        return self.git("rev-parse", "HEAD")


def places(findings: tuple[Finding, ...]) -> list[str]:
    """`path:line rule` of findings on penalties."""
    return [f"{each.span.path}:{each.span.line} {each.rule}" for each in findings]
