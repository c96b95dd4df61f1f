"""Scratch repositories with a pull request, as a CI service checks them out."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.integrations.actions_runner import Run, Step

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "action.yml"
LAUNCH = (
    "python3 -m verl.trainer.main_ppo \\\n  algorithm.adv_estimator=grpo \\\n  actor_rollout_ref.actor.use_kl_loss=True \\\n"
    "  actor_rollout_ref.actor.kl_loss_type=low_var_kl\n"
)


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))


class Project:
    """A repository with a pull request: old code on main, what is new on top, and a checkout as actions/checkout leaves it."""

    def __init__(self, folder: Path, old: dict[str, str], new: dict[str, str], depth: int | None = 1) -> None:
        origin = folder / "origin"
        origin.mkdir()
        git(origin, "init")
        write(origin, old)
        git(origin, "add", "-A")
        git(origin, "commit", "--allow-empty", "-m", "old")
        self.base = git(origin, "rev-parse", "HEAD")
        write(origin, new)
        git(origin, "add", "-A")
        git(origin, "commit", "--allow-empty", "-m", "new")
        self.workspace = folder / "work"
        shallow = () if depth is None else (f"--depth={depth}",)
        git(folder, "clone", *shallow, origin.as_uri(), str(self.workspace))
        self.temp = folder / "temp"
        self.temp.mkdir()

    def run(self, python: str | None, event: dict[str, Any] | None = None, **inputs: str) -> tuple[Run, dict[str, str]]:
        """Runs the action; `python` stands in for its installation, which takes a while."""
        github = {
            "repository": "octo/project",
            "event_name": "pull_request",
            "event": {"pull_request": {"base": {"sha": self.base}}} if event is None else event,
        }
        names = {name.replace("_", "-"): value for name, value in inputs.items()}
        run = Run(self.workspace, self.temp, github, names, ROOT)
        if python is not None:
            run.replaced["Install klaudit"] = Step("Install klaudit", "success", outputs={"python": python})
        return run, run.action(ACTION)


MODULES = (
    "venv",
    "ensurepip",
    "pip",
    "klaudit",
    "click",
    "json",
    "msgspec",
    "sitecustomize",
    "usercustomize",
    "yaml",
    "site",
)


def trap(folder: Path) -> str:
    """A module that leaves a trace where it is imported."""
    return f"open({str(folder / 'ran')!r}, 'a').write(__name__)\n"
