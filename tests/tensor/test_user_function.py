"""FILE.py:FUNCTION run in a process of its own: what it is, and everything that can go wrong in there."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from klaudit.tensor.child import _load, bound
from klaudit.tensor.errors import TensorError
from klaudit.tensor.user_function import Limits, Target, _kill, run

SOURCE = """
import os, time
import torch
from ratios_of_mine import difference
print("noise on standard output")

def chosen(logprob, ref_logprob, kl_penalty="k1"):
    d = difference(logprob, ref_logprob)
    return d if kl_penalty == "k1" else d.square() / 2

def slow(logp, ref_logp):
    time.sleep(60)

def hungry(logp, ref_logp):
    return logp - ref_logp + torch.zeros(1 << 33).sum()

def dying(logp, ref_logp):
    os.abort()

class Trainer:
    @staticmethod
    def penalty(logps, ref_logps):
        return (logps - ref_logps).abs()
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("user")
    (folder / "ratios_of_mine.py").write_text("def difference(a, b):\n    return a - b\n")
    path = folder / "penalties.py"
    path.write_text(SOURCE)
    return path


def of(file: Path, function: str, *assignments: str) -> Target:
    return Target.parse(f"{file}:{function}", assignments)


def test_it_is_imported_as_a_script_would_be_and_identified(file: Path) -> None:
    found = run(of(file, "chosen", "kl_penalty=k2"), "loss")
    assert (found.estimator, found.gradient, found.verdict) == ("k2", "pathwise", "unbiased-per-token")


@pytest.mark.parametrize(
    ("function", "seconds", "message"),
    [("slow", 1.0, "did not finish within 1 s"), ("hungry", 60.0, "memory"), ("dying", 60.0, "ended with signal 6")],
)
def test_what_goes_wrong_is_told(file: Path, function: str, seconds: float, message: str) -> None:
    with pytest.raises(TensorError, match=message):
        run(of(file, function), "loss", Limits(seconds))


def test_what_was_started_is_ended_too(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"import subprocess; print('up', flush=True); subprocess.run(['sh', '-c', 'sleep 0.5; touch {mark}'])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    _kill(process)
    time.sleep(0.7)
    assert not mark.exists()


def test_functions_are_found_by_dotted_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    assert _load(file, "Trainer.penalty").__name__ == "penalty"
    with pytest.raises(TensorError, match="has no absent"):
        _load(file, "absent")
    with pytest.raises(TensorError, match="is no function"):
        _load(file, "__name__")


@pytest.mark.parametrize("fault", ["raise ValueError('nothing here')", "raise SystemExit('nothing here')"])
def test_a_file_that_cannot_be_imported(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    path = tmp_path / "broken.py"
    path.write_text(f"{fault}\n")
    with pytest.raises(TensorError, match=r"importing broken.py raised \w+: nothing here"):
        _load(path, "k3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("penalties.py", "is not FILE"),
        ("nowhere.py:f", "no such file"),
        (":f", "is not FILE"),
        ("x.py:a b", "is not FILE"),
    ],
)
def test_targets_that_are_none(text: str, message: str) -> None:
    with pytest.raises(TensorError, match=message):
        Target.parse(text)


def test_values_are_literals_or_text(file: Path) -> None:
    target = of(file, "chosen", "a=3", "b=None", "c=low_var_kl", "d='x'")
    assert target.arguments == {"a": 3, "b": None, "c": "low_var_kl", "d": "x"}
    with pytest.raises(TensorError, match="NAME=VALUE"):
        of(file, "chosen", "kl_penalty")


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda logp, ref_logp: (logp, ref_logp), ("pi", "ref")),
        (lambda ref_logprob, logprob: (logprob, ref_logprob), ("pi", "ref")),
        (lambda a, b: (a, b), ("pi", "ref")),
        (lambda logp, old_logp, ref_logp: (logp, ref_logp, old_logp), ("pi", "ref", "old")),
        (lambda x, y, z: (x, y, z), ("pi", "ref", "old")),
        (lambda logp, ref_logp, mask=None: (logp, ref_logp), ("pi", "ref")),
    ],
)
def test_log_probabilities_are_told_by_name_then_by_order(fn, expected) -> None:
    assert bound(fn, {})(*expected) == expected


def test_a_parameter_without_a_value_is_named() -> None:
    with pytest.raises(TensorError, match="parameter kind needs a value: --argument kind="):
        bound(lambda logp, ref_logp, kind: kind, {})
    with pytest.raises(TensorError, match="no parameter typo; there are logp, ref_logp"):
        bound(lambda logp, ref_logp: logp, {"typo": 1})
    with pytest.raises(TensorError, match="cannot tell"):
        bound(lambda logp: logp, {})
