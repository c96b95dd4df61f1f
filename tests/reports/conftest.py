"""A small report of every kind of row, made by hand, and files for its excerpts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from klaudit.model import (
    Edit,
    Evidence,
    Finding,
    Fix,
    FrameworkVersion,
    Problem,
    Report,
    Setup,
    Span,
    Term,
    Unknown,
    Withheld,
)
from klaudit.readers.source import Source
from klaudit.reports import View

FILES = {
    "examples/run.sh": """\
#!/bin/bash
KL=0.001

python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    actor_rollout_ref.actor.use_kl_loss=True \\
\tactor_rollout_ref.actor.kl_loss_coef=$KL \\
    actor_rollout_ref.actor.kl_loss_type=low_var_kl "$@"
""",
    "conf/ppo.yaml": """\
algorithm:
  use_kl_in_reward: true   # 奖励中的 KL
  kl_penalty: low_var_kl
  kl_ctrl: {kl_coef: ${oc.env:COEF}}
""",
    "train.ipynb": '{"cells": [{"source": ["config = GRPOConfig(beta=0.04)"]}]}\n',
}


def span(path: str, text: str, cell: int | None = None) -> Span:
    source = Source(path, FILES[path].encode(), cell=cell)
    start = source.data.index(text.encode())
    return source.span(start, start + len(text.encode()))


def _verl_loss_term() -> Term:
    def given(setting: str, value: object, text: str, origin: str = "override") -> Evidence:
        where = span("examples/run.sh", text)
        return Evidence(setting, value, origin, where.path, where.line, where)  # type: ignore[arg-type]

    return Term(
        placement="loss",
        estimator="k3",
        gradient="pathwise",
        coefficient=0.001,
        active=True,
        score_weight="1 - exp(-d)",
        verdict="biased",
        evidence=(
            given("actor_rollout_ref.actor.use_kl_loss", True, "actor_rollout_ref.actor.use_kl_loss=True"),
            given("actor_rollout_ref.actor.kl_loss_coef", 0.001, "KL=0.001", "variable"),
            given(
                "actor_rollout_ref.actor.kl_loss_type", "low_var_kl", "actor_rollout_ref.actor.kl_loss_type=low_var_kl"
            ),
            Evidence("algorithm.kl_ctrl.type", "fixed", "default", None, None),
        ),
    )


def _setups() -> tuple[Setup, ...]:
    loss = _verl_loss_term()
    off = Term(
        placement="reward",
        estimator="k1",
        gradient="score",
        coefficient=0.001,
        active=False,
        score_weight="0",
        verdict="inactive",
        evidence=(Evidence("algorithm.use_kl_in_reward", False, "default", "verl/ppo_trainer.yaml", 34),),
        why_inactive="use_kl_in_reward is false",
    )
    launch = Setup(
        path="examples/run.sh",
        span=span("examples/run.sh", "python3 -m verl.trainer.main_ppo"),
        kind="launch",
        framework="verl",
        version=FrameworkVersion("0.9.1", "requirement", ">=0.9", "requirements.txt", 2),
        entry_point="verl.trainer.main_ppo",
        algorithm="grpo",
        symbol="",
        assumes=(),
        score_weight="0.001 - 0.001*exp(-d)",
        verdict="biased",
        terms=(loss, off),
    )
    where = span("conf/ppo.yaml", "kl_coef: ${oc.env:COEF}")
    unknown = Term(
        placement="reward",
        estimator="k3",
        gradient="score",
        coefficient=None,
        active=None,
        score_weight="exp(-d) - 1 + d",
        verdict="biased",
        evidence=(
            Evidence(
                "algorithm.kl_ctrl.kl_coef", Unknown(("COEF",), "${oc.env:COEF}"), "file", where.path, where.line, where
            ),
        ),
        normalised_by_group_std=True,
        facts=("clamped to [-10, 10]",),
    )
    config = Setup(
        path="conf/ppo.yaml",
        span=span("conf/ppo.yaml", "algorithm:"),
        kind="config",
        framework="verl",
        version=FrameworkVersion("0.9.1", "assumed"),
        entry_point="",
        algorithm="ppo",
        symbol="",
        assumes=("N > 1",),
        score_weight="beta*(exp(-d) - 1 + d)",
        verdict="biased",
        terms=(unknown,),
    )
    code = Setup(
        path="train.ipynb",
        span=span("train.ipynb", "GRPOConfig(beta=0.04)", cell=0),
        kind="code",
        framework="trl",
        version=FrameworkVersion("1.9.0", "lockfile", "", "uv.lock", 120),
        entry_point="trl.GRPOTrainer",
        algorithm="grpo",
        symbol="trl.GRPOConfig",
        assumes=(),
        score_weight="0",
        verdict="inactive",
        terms=(),
    )
    return (config, launch, code)


def _findings() -> tuple[Finding, ...]:
    loss = _verl_loss_term()
    place = span("examples/run.sh", "actor_rollout_ref.actor.kl_loss_type=low_var_kl")
    entry = span("conf/ppo.yaml", "kl_penalty: low_var_kl")
    return (
        Finding(
            rule="KLA102",
            name="k3-in-reward",
            severity="error",
            confidence="medium",
            span=entry,
            message="k3 in the reward, unknown coefficient: descends KL(pi||ref) - KL(ref||pi)",
            why="k3 is deducted from the reward, which descends KL(pi||ref) - KL(ref||pi), unbounded below",
            fix=Fix("safe", "set algorithm.kl_penalty=kl", (Edit("conf/ppo.yaml", entry.start + 12, entry.end, "kl"),)),
            fingerprint="abc",
            related=(
                Evidence(
                    "algorithm.use_kl_in_reward",
                    True,
                    "file",
                    "conf/ppo.yaml",
                    2,
                    span("conf/ppo.yaml", "use_kl_in_reward: true"),
                ),
            ),
        ),
        Finding(
            rule="KLA101",
            name="k3-in-loss",
            severity="warning",
            confidence="high",
            span=place,
            message="k3 in the loss, coefficient 0.001: score weight w(d) = 1 - exp(-d), descends KL(ref||pi), not KL(pi||ref)",
            why="k3 is differentiated inside the loss, so training descends KL(ref||pi), not the stated KL(pi||ref)",
            fix=Fix(
                "unsafe",
                "set algorithm.use_kl_in_reward=True algorithm.norm_adv_by_std_in_grpo=False; remove actor_rollout_ref.actor.use_kl_loss",
            ),
            fingerprint="def",
            related=loss.evidence,
        ),
    )


@pytest.fixture
def report() -> Report:
    return Report(
        setups=_setups(),
        findings=_findings(),
        errors=(
            Problem("broken.yaml", 3, "found a tab where indentation is expected"),
            Problem(
                "odd.py", None, "internal error, please report it: KeyError: 'x'\nTraceback:\n  File \"x.py\"\x1b[0m"
            ),
        ),
        files_seen=1042,
        files_parsed=17,
        seconds=0.5234,
        by_rule={"KLA101": 1, "KLA102": 1},
    )


@pytest.fixture
def empty_report() -> Report:
    return Report(setups=(), findings=(), errors=(), files_seen=3, files_parsed=0, seconds=0.01)


@pytest.fixture
def view() -> View:
    sources = {path: Source(path, text.encode()) for path, text in FILES.items()}
    return View(source=sources.get)


@pytest.fixture
def expected() -> Callable[[str, str], None]:
    """Compares with a file of expected output, or rewrites it where UPDATE_EXPECTED is set."""

    def compare(name: str, text: str) -> None:
        file = Path(__file__).parent / "expected" / name
        if os.environ.get("UPDATE_EXPECTED"):
            file.write_text(text, encoding="utf-8", newline="\n")
        assert text == file.read_text(encoding="utf-8")

    return compare


NASTY = (
    "</details><img src=x onerror=alert(1)>",
    "@org/team #12 GH-7 :smile: deadbeef1234567 www.evil.example a@evil.example",
    "[click](https://evil.example) ![](https://evil.example/x.png) <https://evil.example>",
    "`a` ``b`` | c \\| d \\\\| e |",
    "::error file=x,line=1::forged",
    "x\n::add-mask::secret\r\n::stop-commands::token",
    "##[add-mask]secret ##vso[task.setvariable variable=x]y ##teamcity[x]",
    "%0A::set-output name=x::y",
    "\x1b]0;title\x07\x1b[31mred\x1b[0m \x00 \x0b \u202etxet \u2028 \ufeff \ufffe",
    "\ud800 \udc80 lone",
    "]]> <!-- --> <![CDATA[ &amp; &#0; \" '",
    "x" * 5_000,
    "\U0001d518\U0001f600 奖励",
    "- [ ] # heading\n\n| a |\n|---|\n",
    "",
)


@pytest.fixture(params=NASTY, ids=range(len(NASTY)))
def nasty(request: pytest.FixtureRequest) -> str:
    """What a scanned file may hold to be shown as something that it is not."""
    return str(request.param)


def filled_with(text: str) -> Report:
    """A report that holds the text wherever text can stand, also in names of files."""
    path = text.replace("/", "_") or "p"
    where = Span(path, 0, 1, 1, 1, 1, 2)
    evidence = Evidence(text, text, "override", path, 1, where, text)
    term = Term("loss", "k3", "pathwise", 0.1, True, text, "biased", (evidence,), False, text, (text,))
    version = FrameworkVersion(text, "requirement", text, path, 1)
    setup = Setup(path, where, "launch", text, version, text, text, text, (text,), text, "biased", (term,))
    fix = Fix("safe", text, (Edit(path, 0, 1, text),))
    findings = tuple(
        Finding("KLA101", "k3-in-loss", severity, "medium", where, text or "m", text, fix, text, (evidence,), where)
        for severity in ("error", "warning", "note")
    )
    withheld = Withheld(findings[0], "suppression", text, path, 1)
    problems = (Problem(path, 1, text or "m"), Problem(path, None, f"internal error: {text}\nTraceback {text}"))
    return Report((setup,), findings, problems, 2, 1, 0.1, {"KLA101": 3}, (withheld,), (text,))


@pytest.fixture
def nasty_report(nasty: str) -> Report:
    return filled_with(nasty)


@pytest.fixture
def nasty_view(nasty: str) -> View:
    """The files of `nasty_report` hold the same."""
    data = nasty.encode("utf-8", "surrogatepass")
    return View(source=lambda path: Source(path, data), blob="https://forge.example/o/r/blob/abc/", verbose=True)


@pytest.fixture
def gated(report: Report) -> Report:
    """The report, with findings that the gate took out, and what it has to say besides."""
    first, second = report.findings
    withheld = (
        Withheld(first, "suppression", "ablation of table 3", "conf/ppo.yaml", 3),
        Withheld(second, "suppression"),
        Withheld(second, "baseline", "", "klaudit-baseline.json", 7),
    )
    return replace(report, findings=(second,), withheld=withheld, remarks=("1 entry of the baseline is stale",))
