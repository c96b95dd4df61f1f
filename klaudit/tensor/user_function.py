"""A penalty function in a user's file: `FILE.py:FUNCTION`, interpreted from its source or, on request, run.

Interpreting runs nothing: the evaluator of the code analysis computes value and slope.  Running imports the file in a process of its own
with a time and a memory limit; it is not a sandbox, the code runs with the user's rights.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from klaudit.model import Placement
from klaudit.tensor.errors import TensorError
from klaudit.tensor.fingerprint_type import Fingerprint

Arguments: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Target:
    """A function of a file, by dotted name, with values for the parameters that are not log-probabilities."""

    path: Path
    function: str
    arguments: Arguments

    @classmethod
    def parse(cls, text: str, assignments: tuple[str, ...] = ()) -> Target:
        """From `FILE.py:FUNCTION` and `NAME=VALUE` assignments; a VALUE that is no Python literal is a string.  Raises TensorError."""
        path, separator, function = text.rpartition(":")
        if not separator or not path or not function.replace(".", "").isidentifier():
            raise TensorError(f"{text!r} is not FILE.py:FUNCTION")
        file = Path(path)
        if not file.is_file():
            raise TensorError(f"no such file: {path}")
        return cls(file, function, dict(map(_assignment, assignments)))


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use: seconds of wall time and bytes of memory beyond what PyTorch itself takes."""

    seconds: float = 30.0
    memory: int = 2 << 30


def run(target: Target, placement: Placement, limits: Limits = Limits()) -> Fingerprint:
    """Import the file in a subprocess and fingerprint the function there.

    Raises TensorError where that fails, takes too long, needs too much memory or dies.
    """
    request = json.dumps(
        {
            "path": str(target.path.resolve()), "function": target.function, "arguments": dict(target.arguments),
            "placement": placement, "memory": limits.memory,
        }
    )  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "klaudit.tensor.child"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(request, timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise TensorError(f"{target.function} did not finish within {limits.seconds:g} s (--time-limit)") from None
    except BaseException:
        _kill(process)
        raise
    return _answer(target, process.returncode, output, errors)


def _answer(target: Target, status: int, output: str, errors: str) -> Fingerprint:
    try:
        answer: dict[str, Any] = json.loads(output)
    except json.JSONDecodeError:
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        last = errors.strip().splitlines()[-1:] or ["no message"]
        raise TensorError(f"running {target.function} ended with {how}: {last[0]}") from None
    if "error" in answer:
        raise TensorError(str(answer["error"]))
    return Fingerprint.from_json(answer["fingerprint"])


def _kill(process: subprocess.Popen[str]) -> None:
    """The process and whatever it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()


def _assignment(text: str) -> tuple[str, object]:
    name, separator, value = text.partition("=")
    if not separator or not name.isidentifier():
        raise TensorError(f"{text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
