"""FILE.py:FUNCTION interpreted from its source: nothing runs, and it agrees with running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.model import Placement
from klaudit.tensor.child import _load, bound
from klaudit.tensor.errors import TensorError
from klaudit.tensor.fingerprints import fingerprint
from klaudit.tensor.interpretation import interpret
from klaudit.tensor.user_function import Target

SOURCE = """
import torch
from torch import Tensor
from neighbour import clipped

def k1(logprob, ref_logprob):
    return logprob - ref_logprob

def k2(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return 0.5 * (logp - ref_logp) ** 2

def k3(logprobs, ref_logprobs):
    log_ratio = ref_logprobs - logprobs
    return log_ratio.exp() - 1 - log_ratio

def clamped(logprob, ref_logprob):
    kl = ref_logprob - logprob
    return torch.clamp(torch.exp(kl) - kl - 1, min=-10, max=10)

def clamped_before(logprob, ref_logprob):
    return clipped(logprob, ref_logprob)

def straight_through(logprob, ref_logprob):
    forward, backward = k3(logprob, ref_logprob), k2(logprob, ref_logprob)
    return backward - backward.detach() + forward.detach()

def weighted(logprob, ref_logprob, old_logprob):
    return torch.exp(logprob - old_logprob) * k3(logprob, ref_logprob)

def weighted_detached(logprob, ref_logprob, old_logprob):
    return torch.exp(logprob - old_logprob).detach() * k2(logprob, ref_logprob)

@torch.no_grad()
def silent(logprob, ref_logprob):
    return k3(logprob, ref_logprob)

def absolute(logprob, ref_logprob, kl_penalty="abs", scale=1.0):
    if kl_penalty == "abs":
        return (logprob - ref_logprob).abs() * scale
    if kl_penalty in ("k2", "mse"):
        return k2(logprob, ref_logprob) * scale
    raise NotImplementedError(kl_penalty)

class Trainer:
    def penalty(self, logprob, ref_logprob):
        return logprob - ref_logprob

def nothing(logprob, ref_logprob):
    return logprob * 2

def foreign(logprob, ref_logprob, thing):
    return (logprob - ref_logprob) * thing.somewhere(logprob)

raise SystemExit("this file was run")
"""
NEIGHBOUR = """
import torch

def clipped(logprob, ref_logprob):
    x = torch.clamp(ref_logprob - logprob, -5, 5)
    return torch.expm1(x) - x
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    (folder / "neighbour.py").write_text(NEIGHBOUR)
    (folder / "penalties.py").write_text(SOURCE)
    return folder / "penalties.py"


@pytest.fixture(scope="module")
def runnable(file: Path) -> Path:
    path = file.with_name("runnable.py")
    path.write_text(SOURCE.replace('raise SystemExit("this file was run")', ""))
    return path


FUNCTIONS = (
    "k1", "k2", "k3", "clamped", "clamped_before", "straight_through", "weighted", "weighted_detached", "silent", "absolute",
)  # fmt: skip


@pytest.mark.parametrize("placement", ["loss", "reward"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_interpreting_and_running_agree(function: str, placement: Placement, file: Path, runnable: Path) -> None:
    interpreted = interpret(Target(file, function, {}), placement)
    run = fingerprint(bound(_load(runnable, function), {}), placement)
    for attribute in ("estimator", "gradient", "variant", "score_weight", "descends", "verdict"):
        assert getattr(interpreted, attribute) == getattr(run, attribute), attribute
    assert (interpreted.clamp is None) == (run.clamp is None)
    if interpreted.clamp is not None:
        assert interpreted.clamp == pytest.approx(run.clamp, abs=1e-3)
    for (d, value, weight), (_, other_value, other_weight) in zip(interpreted.samples, run.samples, strict=True):
        assert (value, weight) == pytest.approx((other_value, other_weight), rel=1e-9, abs=1e-12), d


def test_arguments_choose_the_branch(file: Path) -> None:
    assert interpret(Target(file, "absolute", {"kl_penalty": "mse"}), "loss").estimator == "k2"
    assert interpret(Target(file, "Trainer.penalty", {}), "reward").verdict == "unbiased"


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("absolute", {"kl_penalty": "k3+"}, r"returns nothing with kl_penalty=k3\+ .* may raise"),
        ("nothing", {}, "depends on the reference"),
        ("absent", {}, "has no function absent"),
        ("k1", {"typo": 1}, "no parameter typo; there are logprob, ref_logprob"),
        ("absolute", {"scale": [1]}, "only a number"),
        ("foreign", {}, "cannot be interpreted"),
    ],
)
def test_what_cannot_be_interpreted(function: str, arguments: dict[str, object], message: str, file: Path) -> None:
    with pytest.raises(TensorError, match=message):
        interpret(Target(file, function, arguments), "loss")


@pytest.mark.parametrize("source", ["def f(:\n", "\x00", "\xff\xfe"])
def test_unreadable_files(source: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(source.encode("latin-1"))
    with pytest.raises(TensorError, match=r"bad\.py"):
        interpret(Target(path, "f", {}), "loss")
