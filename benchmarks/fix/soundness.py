"""Whether edited files still are what they were: scripts parse in bash, data differs in the intended keys alone, code compiles."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tomlkit
import yaml

from benchmarks.fix.launches import flat

_SHELL = (".sh", ".bash", ".slurm", ".sbatch")


def faults(before: Path, after: Path, paths: Iterable[str]) -> list[str]:
    """What is wrong with the edited files `paths` of a tree, one line each."""
    found = []
    for path in paths:
        if path.endswith(_SHELL):
            done = subprocess.run(["bash", "-n", after / path], capture_output=True, text=True, check=False)
            was = subprocess.run(["bash", "-n", before / path], capture_output=True, text=True, check=False)
            if done.returncode and not was.returncode:
                found.append(f"{path}: {done.stderr.strip()}")
            continue
        try:
            _load(path, (after / path).read_text(encoding="utf-8"))
        except Exception as error:
            found.append(f"{path}: {type(error).__name__}: {error}")
    return found


def changed_keys(before: Path, after: Path, path: str) -> set[str]:
    """The dotted names that differ in a file of data."""
    old, new = (dict(flat(_load(path, (tree / path).read_text(encoding="utf-8")))) for tree in (before, after))
    return {name for name in {*old, *new} if old.get(name, ...) != new.get(name, ...)}


def _load(path: str, text: str) -> Any:
    match path.rpartition(".")[2]:
        case "yaml" | "yml":
            documents = list(yaml.safe_load_all(text))
            return documents[0] if len(documents) == 1 else dict(enumerate(documents))
        case "json" | "ipynb":
            return json.loads(text)
        case "toml":
            return tomlkit.parse(text).unwrap()
        case "py":
            compile(text, path, "exec")
    return None
