"""Edits stay where they belong, over generated files of each kind: what another reader makes of the rest is as before, comments too."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import tomlkit
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaudit.configuration import Options
from klaudit.fixes.edits import apply, by_path
from klaudit.fixes.migration import Request
from klaudit.fixes.planning import plan

Read: TypeAlias = Callable[[str], dict[str, Any]]

ACTOR = "actor_rollout_ref.actor."
INTENDED = {
    f"{ACTOR}use_kl_loss", f"{ACTOR}kl_loss_coef", f"{ACTOR}kl_loss_type", "algorithm.use_kl_in_reward",
    "algorithm.kl_ctrl.kl_coef", "algorithm.norm_adv_by_std_in_grpo",
}  # fmt: skip
OTHERS = ["trainer.project", "data.path", "actor_rollout_ref.actor.clip", "algorithm.gamma"]
NOTES = st.sampled_from(["", "", "# é: a=b", "# use_kl_loss=True"])
ENDS = st.sampled_from(["\n", "\r\n"])


@st.composite
def entries(draw: st.DrawFn) -> list[tuple[str, Any, str]]:
    """(name, value, comment) of one set-up with k3 in the loss, among others, in any order."""
    own: list[tuple[str, Any]] = [
        (f"{ACTOR}use_kl_loss", True),
        ("algorithm.adv_estimator", draw(st.sampled_from(["grpo", "gae"]))),
    ]
    if draw(st.booleans()):
        own.append((f"{ACTOR}kl_loss_coef", draw(st.sampled_from([0.001, 0.02, 1]))))
    if draw(st.booleans()):
        own.append((f"{ACTOR}kl_loss_type", draw(st.sampled_from(["low_var_kl", "k3"]))))
    others = [(name, draw(st.sampled_from([1, 0.5, "a_b", "x/y"]))) for name in draw(st.sets(st.sampled_from(OTHERS)))]
    return [(name, value, draw(NOTES)) for name, value in draw(st.permutations([*own, *others]))]


def nested(listed: list[tuple[str, Any, str]]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for name, value, _ in listed:
        *above, last = name.split(".")
        node = root
        for part in above:
            node = node.setdefault(part, {})
        node[last] = value
    return root


def flat(node: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(node, dict):
        return {name: node}
    return {
        key: value for inner, below in node.items() for key, value in flat(below, f"{name}.{inner}".strip(".")).items()
    }


def word(name: str, value: Any) -> str:
    return f"{name}={value}"


# --- files of each kind, and independent readers of them ------------------------------------------------------------------------------


def script(listed: list[tuple[str, Any, str]], end: str) -> str:
    lines = [f"  {word(name, value)}{f'   {note}' if note else ''}" for name, value, note in listed]
    return end.join(
        ["#!/bin/bash", "# start", "ARGS=(", *lines, ")", 'python3 -m verl.trainer.main_ppo "${ARGS[@]}" 2>&1', ""]
    )


def read_script(text: str) -> dict[str, Any]:
    array = text.partition("ARGS=(")[2].partition("\n)")[0]
    words = shlex.split(array, comments=True)
    return {name.lstrip("+"): value for name, _, value in (each.partition("=") for each in words)} | {
        "": text.partition("\n)")[2].strip()
    }


def yaml_file(listed: list[tuple[str, Any, str]], end: str) -> str:
    lines: list[str] = []

    def write(node: dict[str, Any], depth: int) -> None:
        for key, value in node.items():
            if isinstance(value, dict):
                lines.append("  " * depth + f"{key}:")
                write(value, depth + 1)
            else:
                note = next((note for name, _, note in listed if name.endswith(f".{key}")), "")
                lines.append("  " * depth + f"{key}: {json.dumps(value)}{f'  {note}' if note else ''}")

    write(nested(listed), 0)
    return end.join([*lines, ""])


def json_file(listed: list[tuple[str, Any, str]], end: str) -> str:
    return json.dumps(nested(listed), indent=2).replace("\n", end)


def toml_file(listed: list[tuple[str, Any, str]], end: str) -> str:
    return end.join(
        [*(f"{name} = {json.dumps(value)}{f' {note}' if note else ''}" for name, value, note in listed), ""]
    )


def command(listed: list[tuple[str, Any, str]], end: str) -> str:
    rows = [f"    {word(name, value)!r},{f'  {note}' if note else ''}" for name, value, note in listed]
    head = ["import subprocess", "", "command = [", "    'python3', '-m', 'verl.trainer.main_ppo',"]
    return end.join([*head, *rows, "]", "subprocess.run(command)", ""])


def read_command(text: str) -> dict[str, Any]:
    words = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {name: value for name, _, value in (each.partition("=") for each in words)}


def notebook(listed: list[tuple[str, Any, str]], end: str) -> str:
    lines = [
        "%%bash\n",
        "python3 -m verl.trainer.main_ppo \\\n",
        *(f"  {word(name, value)} \\\n" for name, value, _ in listed),
        "  trainer.n=1\n",
    ]
    cell = {
        "cell_type": "code",
        "execution_count": 3,
        "metadata": {},
        "outputs": [{"text": ["use_kl_loss=True\n"]}],
        "source": lines,
    }
    text = json.dumps(
        {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False
    )
    return text.replace("\n", end)


def read_notebook(text: str) -> dict[str, Any]:
    document = json.loads(text)
    cell = document["cells"][0]
    words = shlex.split("".join(cell.pop("source")).replace("\\\n", " "))
    return {name.lstrip("+"): value for name, _, value in (each.partition("=") for each in words)} | {"": document}


KINDS: dict[str, tuple[Callable[[list[tuple[str, Any, str]], str], str], Read]] = {
    "run.sh": (script, read_script),
    "own.yaml": (yaml_file, lambda text: flat(yaml.safe_load(text))),
    "own.json": (json_file, lambda text: flat(json.loads(text))),
    "own.toml": (toml_file, lambda text: flat(tomlkit.parse(text).unwrap())),
    "launch.py": (command, read_command),
    "train.ipynb": (notebook, read_notebook),
}


def comments(text: str) -> list[str]:
    return re.findall(r"# (?:é: a=b|use_kl_loss=True|start)", text)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(listed=entries(), end=ENDS)
def test_the_rest_stays(tmp_path: Path, name: str, listed: list[tuple[str, Any, str]], end: str) -> None:
    write, read = KINDS[name]
    if name == "run.sh":
        end = "\n"  # a carriage return would be part of the words
    text = write(listed, end)
    (tmp_path / "requirements.txt").write_text("verl==0.7.0\n")
    (tmp_path / name).write_bytes(text.encode())
    made = plan([str(tmp_path)], Options(), Request())
    (tmp_path / name).unlink()
    assert made.migrations, [each.why for each in made.unchanged]
    fixed = made.contents[name].decode()

    before, after = read(text), read(fixed)
    assert {key for key in {*before, *after} if before.get(key, ...) != after.get(key, ...)} <= INTENDED
    assert comments(fixed) == comments(text)
    assert ("\r\n" in fixed) == (end == "\r\n")
    assert end == "\n" or "\n" not in fixed.replace("\r\n", "")

    edits = by_path(edit for each in made.migrations for edit in each.edits)[name]
    assert apply(text.encode(), edits) == made.contents[name]
    kept = [text.encode()[one.end : other.start] for one, other in pairwise(edits)]
    at = 0
    for piece in (text.encode()[: edits[0].start], *kept, text.encode()[edits[-1].end :]):
        at = made.contents[name].index(piece, at) + len(piece)  # in order, byte for byte
