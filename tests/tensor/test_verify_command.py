"""`klaudit verify` on the command line: what it prints, what it writes, how it ends."""

from __future__ import annotations

import builtins
import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from klaudit.cli import verify as module
from klaudit.tensor import json_output, text
from klaudit.tensor import verification as whole
from klaudit.tensor.claims import Claim
from klaudit.tensor.verification import Verification

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, verification: Verification) -> Run:
    """Runs the command; the whole verification is computed once for all tests."""
    monkeypatch.setattr(whole, "verify", lambda device, seed, progress: verification)

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(module.command, [str(argument) for argument in arguments])

    return invoke


def test_the_theory_holds_within_seconds(verification: Verification) -> None:
    assert verification.broken == ()
    assert len(verification.claims) > 250
    assert verification.seconds < 60  # on a loaded machine; a few on a quiet one


def test_text(run: Run) -> None:
    result = run()
    assert result.exit_code == 0
    assert result.output.startswith("klaudit verify: device cpu (1 thread), float64, seed 0")
    assert (
        f"{len(whole.verify(None, seed=0, progress=print).claims)} statements of the theory asserted, all hold"
        in result.output
    )
    assert "KL(pi||ref) (semi-gradient)" in result.output


def test_json(run: Run) -> None:
    result = run("--format", "json")
    plain = json.loads(result.output)
    assert plain["format"] == "klaudit-verify/1"
    assert plain["device"] == "cpu (1 thread)" and plain["dtype"] == "float64"
    for row in plain["rows"]:
        assert {
            "estimator",
            "placement",
            "gradient",
            "regime",
            "value_bias",
            "gradient_bias",
            "cosine",
            "variance_ratio",
        } <= row.keys()
        assert {"descends", "verdict", "exact", "interval"} <= row.keys()
        assert row["exact"] or set(row["interval"]) == {"low", "high", "level"}
    regimes = " ".join(row["regime"] for row in plain["rows"])
    for wanted in (
        "on-policy",
        "stale policy",
        "importance-weighted",
        "sequence",
        "group of 8",
        "PPO, inner step 7",
        "minimal model",
    ):
        assert wanted in regimes


def test_unbiased_rows_are_exact_in_the_output(verification: Verification) -> None:
    for row in verification.rows:
        whole_sequences = row.verdict == "unbiased" and not row.configuration.endswith("group-mean")
        if row.exact and (whole_sequences or (row.verdict == "unbiased-per-token" and row.regime.startswith("token"))):
            assert row.gradient_bias < 1e-10, row


def test_drift_fails_the_command(monkeypatch: pytest.MonkeyPatch, verification: Verification) -> None:
    drifted = replace(verification, claims=(*verification.claims, Claim("k9-in-loss", "descends nothing", 0.5, 1e-10)))
    monkeypatch.setattr(whole, "verify", lambda device, seed, progress: drifted)
    result = CliRunner().invoke(module.command, [])
    assert result.exit_code == 1
    assert "DRIFT k9-in-loss: descends nothing: 0.5, at most 1e-10" in result.output


def test_a_number_that_is_not_finite_is_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    from klaudit.tensor import regimes

    broken = regimes.groups

    def spoilt(laboratory: object, seed: int) -> object:
        for row in broken(laboratory, seed):
            yield replace(row, gradient_bias=float("nan"))

    monkeypatch.setattr(regimes, "groups", spoilt)
    monkeypatch.setattr(whole, "toy_rows", lambda seed, device: iter(()))
    found = whole.verify(torch.device("cpu"))
    assert any("every number is finite" in claim.says for claim in found.broken)
    assert "DRIFT k1-in-reward-group-mean" in text.of_verification(found)
    json.loads(json_output.of_verification(found))


def test_an_interval_that_misses_the_theory_is_drift(verification: Verification) -> None:
    sampled = [claim for claim in verification.claims if "interval" in claim.says]
    assert len(sampled) == 16
    assert not replace(sampled[0], residual=sampled[0].bound * 1.01).holds


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    result = CliRunner().invoke(module.command, [])
    assert result.exit_code == 2
    assert "pip install 'klaudit[tensor]'" in result.output


def test_the_command_line_itself_needs_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *rest: object) -> object:
        if name.split(".")[0] == "torch":
            raise ImportError(name)
        return original(name, *rest)

    original = builtins.__import__
    for name in [
        name
        for name in sys.modules
        if name.split(".")[0] == "torch" or name.startswith(("klaudit.tensor", "klaudit.cli.verify"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    assert importlib.import_module("klaudit.cli.verify").command.name == "command"
    importlib.import_module("klaudit.tensor")
    importlib.import_module("klaudit.theory")


def test_plot(run: Run, tmp_path: Path) -> None:
    assert run("--plot", tmp_path / "bias.svg").exit_code == 0
    assert "Variance of a sample" in (tmp_path / "bias.svg").read_text()
    result = run("--plot", tmp_path / "bias.bmp")
    assert result.exit_code == 2 and ".svg or .png" in result.output


def test_rollouts(run: Run, tmp_path: Path) -> None:
    logp = -torch.rand(20, 8, generator=torch.Generator().manual_seed(0))
    torch.save(
        {"logp": logp, "reference": logp - 0.1 * torch.randn(20, 8, generator=torch.Generator().manual_seed(1))},
        tmp_path / "r.pt",
    )
    result = run("--logprobs", tmp_path / "r.pt", "--key", "ref_logp=reference", "--plot", tmp_path / "d.svg")
    assert result.exit_code == 0, result.output
    assert "r.pt: 20 sequences, 160 tokens" in result.output and "k3-in-loss" in result.output
    assert (tmp_path / "d.svg").exists()
    plain = json.loads(run("--logprobs", tmp_path / "r.pt", "--key", "ref_logp=reference", "--format", "json").output)
    assert plain["format"] == "klaudit-rollouts/1" and plain["tokens"] == 160
    missing = run("--logprobs", tmp_path / "r.pt")
    assert missing.exit_code == 2 and "has no ref_logp" in missing.output


def test_scale(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from klaudit.tensor import scale

    monkeypatch.setattr(scale, "VOCABULARY", 500)
    monkeypatch.setattr(scale.Size, "for_device", lambda device, tokens, memory: scale.Size(tokens or 3, 500))
    result = run("--scale", "--tokens", 2)
    assert result.exit_code == 0, result.output
    assert "float64, 2 tokens x 500 logits" in result.output and "reduced size" in result.output
    assert json.loads(run("--scale", "--format", "json").output)["broken"] == []


def test_a_function_that_is_run(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def kl(logp, ref_logp):\n    return (logp - ref_logp) ** 2 / 2\n")
    result = run(f"{path}:kl", "--run")
    assert result.exit_code == 0, result.output
    assert "running the code of" in result.output
    assert "k2 in loss (pathwise): w(d) = d, descends KL(pi||ref): unbiased-per-token" in result.output
    assert run(f"{path}:kl", "--run", "--placement", "reward").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run"], "--run goes with FILE.py:FUNCTION"),
        (["--tokens", "3"], "--tokens goes with --scale"),
        (["--key", "a=b"], "--key goes with --logprobs"),
        (["--scale", "--logprobs", "x.pt"], "exclude each other"),
        (["--scale", "--plot", "x.svg"], "--plot does not go with --scale"),
        (["x.py"], "is not FILE.py:FUNCTION"),
        (["--logprobs", "x.pt", "--key", "beta=x"], "should look like ref_logp=KEY"),
        (["--logprobs", "absent.pt"], "cannot read absent.pt"),
        (["--seed", "-1"], "--seed"),
        (["--device", "tpu"], "auto, cpu, cuda, mps"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, run: Run) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_memory_that_is_short_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from klaudit.tensor import scale

    for error in (
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ):

        def fail(*given: object, error: Exception = error, **more: object) -> None:
            raise error

        monkeypatch.setattr(scale, "check_scale", fail)
        result = run("--scale", "--tokens", 1)
        assert result.exit_code == 2 and "out of memory" in result.output


def test_numbers_that_are_not_finite_become_null() -> None:
    assert json_output._dumped({"a": [float("nan"), float("inf"), 1.0]}) == json.dumps(
        {"a": [None, None, 1.0]}, indent=2
    )
    assert text._number(None) == text._number(float("nan")) == "-"
