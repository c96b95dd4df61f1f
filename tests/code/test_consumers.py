"""Launches of forks: what the framework's source in the tree does with their penalty counts, whatever its release does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from klaudit.code.analyses import Analyses
from klaudit.code.result import Formula
from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.model import Finding, Report, Setup
from klaudit.readers.source import Source
from tests.fixture_cases import FOLDER

ACTOR, ALGOS, TRAINER = (
    "verl/workers/actor/dp_actor.py",
    "verl/trainer/ppo/core_algos.py",
    "verl/trainer/ppo/ray_trainer.py",
)
WRONG, RIGHT = "policy_loss - kl_loss", "policy_loss + kl_loss"
LOG_PROBS = 'logprob=log_prob, ref_logprob=data["ref_log_prob"]'

Fork = Callable[..., Report]


@pytest.fixture
def fork(tmp_path: Path) -> Fork:
    """A scan of the vendored trainer, the sign put right, after some replacements (path, old, new)."""

    def scanned(*changes: tuple[str, str, str], below: str = "") -> Report:
        root = tmp_path / "tree" / below
        shutil.copytree(FOLDER / "code-vendored-trainer" / "input", root)
        for path, old, new in ((ACTOR, WRONG, RIGHT), *changes):
            text = (root / path).read_text()
            assert old in text
            (root / path).write_text(text.replace(old, new) if old else new)
        return scan([str(tmp_path / "tree")], Options(jobs=1))

    return scanned


def of(report: Report, script: str) -> tuple[Setup, dict[str, Finding]]:
    """The set-up of a script and its findings on gradients, by rule."""
    (setup,) = (each for each in report.setups if each.path.endswith(script))
    found = {each.rule: each for each in report.findings if each.span.path.endswith(script) and each.rule != "KLA107"}
    return setup, found


def test_code_that_does_what_the_release_does_changes_nothing(fork: Fork) -> None:
    setup, found = of(fork(), "fsdp.sh")
    assert (setup.verdict, setup.score_weight) == ("biased", "0.001 - 0.001*exp(-d)")
    assert list(found) == ["KLA101"]
    assert found["KLA101"].fix.title
    assert not any("overrules" in fact for term in setup.terms for fact in term.facts)


def test_a_launch_names_the_code_that_reads_its_setting(fork: Fork) -> None:
    setup, _ = of(fork(), "fsdp.sh")
    steps = [each for each in setup.terms[0].evidence if each.origin == "code"]
    assert [each.path for each in steps] == [ACTOR, ACTOR]
    assert all("kl_loss_type=low_var_kl reaches `core_algos.kl_penalty()`" in each.note for each in steps)
    setup, _ = of(fork(below="again"), "again/scripts/megatron.sh")
    assert {each.path for each in setup.terms[0].evidence if each.origin == "code"} == {
        "again/verl/workers/actor/megatron_actor.py"
    }


@pytest.mark.parametrize("below", ["", "third_party/fork"])
def test_a_turned_sign(fork: Fork, below: str) -> None:
    report = fork((ACTOR, RIGHT, WRONG), below=below)
    setup, found = of(report, "fsdp.sh")
    assert setup.terms[0].coefficient == -0.001
    assert setup.score_weight == "0.001*exp(-d) - 0.001"
    assert list(found) == ["KLA301"]
    assert f"{ACTOR}:22" in found["KLA301"].message
    assert found["KLA301"].fix.safety == "none"
    assert list(of(report, "megatron.sh")[1]) == ["KLA101"]  # the other worker adds it


def test_a_detached_penalty(fork: Fork) -> None:
    report = fork((ACTOR, "masked_mean(kld, mask)", "masked_mean(kld.detach(), mask)"))
    setup, found = of(report, "fsdp.sh")
    assert (setup.terms[0].gradient, setup.verdict, setup.score_weight) == ("none", "no-gradient", "0")
    assert list(found) == ["KLA303"]
    assert found["KLA303"].fix.safety == "none"


def test_no_gradient_around_the_estimator(fork: Fork) -> None:
    change = (ALGOS, "def kl_penalty(", "@torch.no_grad()\ndef kl_penalty(")
    assert list(of(fork(change), "fsdp.sh")[1]) == ["KLA303"]


def test_swapped_arguments(fork: Fork) -> None:
    swapped = 'logprob=data["ref_log_prob"], ref_logprob=log_prob'
    setup, found = of(fork((ACTOR, LOG_PROBS, swapped)), "fsdp.sh")
    assert setup.terms[0].estimator == "reversed-k3"
    assert list(found) == ["KLA302"]
    assert found["KLA302"].fix.safety == "none"


def test_another_body_under_the_same_name(fork: Fork) -> None:
    change = (ALGOS, "return torch.exp(log_ratio) - log_ratio - 1", "return 0.5 * log_ratio**2")
    report = fork(change)
    setup, found = of(report, "fsdp.sh")
    assert (setup.terms[0].estimator, setup.verdict) == ("k2", "unbiased-per-token")
    assert "KLA101" not in found
    assert of(report, "megatron.sh")[0].terms[0].estimator == "k2"  # one function serves both


def test_a_word_that_no_release_knows(fork: Fork) -> None:
    changes = ((ALGOS, '"low_var_kl"', '"k3_of_ours"'), ("scripts/fsdp.sh", "low_var_kl", "k3_of_ours"))
    setup, found = of(fork(*changes), "fsdp.sh")
    assert (setup.terms[0].estimator, setup.terms[0].active) == ("k3", True)
    assert "KLA101" in found


_OF_OURS = "x = torch.nn.functional.softplus(logprob - ref_logprob) + mystery(logprob)"


@pytest.mark.parametrize(
    "branch",
    [
        f'    if kl_penalty == "ours":\n        {_OF_OURS}\n        return x\n',
        f"    if kl_penalty in ['ours', 'ours_clipped']:\n        {_OF_OURS}\n        return x\n",
        f'    match kl_penalty:\n        case "ours" | "theirs":\n            {_OF_OURS}\n            return x\n',
        '    table = {"ours": mystery}\n    if kl_penalty in table:\n        return table[kl_penalty](logprob, ref_logprob)\n',
        f'    if kl_penalty not in ("ours", "kl"):\n        raise ValueError(kl_penalty)\n    {_OF_OURS}\n    return x\n',
    ],
)
@pytest.mark.parametrize("script", ["fsdp.sh", "megatron.sh"])
def test_a_word_of_the_tree_that_nobody_can_classify_is_no_error(fork: Fork, branch: str, script: str) -> None:
    changes = ((ALGOS, '    if kl_penalty == "kl"', f'{branch}    if kl_penalty == "kl"'),)
    setup, found = of(fork(*changes, (f"scripts/{script}", "low_var_kl", "ours")), script)
    assert "KLA203" not in found
    assert (setup.terms[0].estimator, setup.terms[0].active, setup.verdict) == ("unknown", True, "unknown")
    assert any("is a word of the code in the tree" in fact for fact in setup.terms[0].facts)


@pytest.mark.parametrize(
    "branch",
    [
        "",
        '    "ours"\n',
        '    if kl_penalty == "ours":\n        raise NotImplementedError\n',
        '    if kl_penalty == "ours" or kl_penalty in ("ours", "b"):\n        raise ValueError("ours")\n',
        '    match kl_penalty:\n        case "ours":\n            raise NotImplementedError\n',
        '    if kl_penalty == "ours_too":\n        return logprob\n',
    ],
)
def test_a_word_that_the_tree_refuses_too_is_an_error(fork: Fork, branch: str) -> None:
    changes = ((ALGOS, '    if kl_penalty == "kl"', f'{branch}    if kl_penalty == "kl"'),)
    setup, found = of(fork(*changes, ("scripts/fsdp.sh", "low_var_kl", "ours")), "fsdp.sh")
    assert "KLA203" in found
    assert setup.terms[0].active is False


def test_a_reward_that_adds_the_penalty(fork: Fork) -> None:
    setup, found = of(fork((TRAINER, "- kl_ctrl.value", "+ kl_ctrl.value")), "reward.sh")
    (reward,) = (term for term in setup.terms if term.placement == "reward")
    assert reward.coefficient == -0.01
    assert "KLA301" in found


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (ALGOS, "return torch.exp(log_ratio) - log_ratio - 1", "return ours(log_ratio)"),  # nobody sees what it is
        (ACTOR, "self.config.kl_loss_type", "self.kind"),  # the tie is gone
        (ACTOR, 'data["ref_log_prob"]', 'data["rollout_log_probs"]'),  # a KL to another policy
        (
            "verl/workers/fsdp_workers.py",
            "from verl.workers.actor import DataParallelPPOActor",
            "from elsewhere import *",
        ),
    ],
)
def test_what_is_not_beyond_doubt_changes_nothing(fork: Fork, path: str, old: str, new: str) -> None:
    setup, found = of(fork((ACTOR, RIGHT, WRONG), (path, old.replace(RIGHT, WRONG), new)), "fsdp.sh")
    assert (setup.terms[0].estimator, setup.terms[0].coefficient) == ("k3", 0.001)
    assert list(found) == ["KLA101"]


K1 = "return logprob - ref_logprob\n"


def told(setup: Setup) -> list[str]:
    return [each.note for term in setup.terms for each in term.evidence if each.origin == "code"]


@pytest.mark.parametrize(
    ("clamp", "live"),
    [
        ("clamp(max=0.2)", "d < 0.2"),
        ("clamp_max(0.2)", "d < 0.2"),
        ("clamp_min(-1.5)", "d > -1.5"),
        ("clamp(min=0)", "d > 0"),
        ("clamp(-1, 1)", "-1 < d < 1"),
    ],
)
def test_a_clamp_near_the_reference_is_another_form(fork: Fork, clamp: str, live: str) -> None:
    setup, found = of(fork((ALGOS, K1, f"return (logprob - ref_logprob).{clamp}\n")), "reward.sh")
    (reward,) = (term for term in setup.terms if term.placement == "reward")
    assert (reward.estimator, reward.verdict) == ("k1", "biased")
    assert reward.score_weight == f"d where {live}, constant elsewhere"
    assert any(f"(k1, clamped: constant outside {live})" in note for note in told(setup))
    assert any("overrules" in fact for fact in reward.facts)
    assert list(found) == ["KLA104"]


@pytest.mark.parametrize(("clamp", "live"), [("clamp(max=10)", "d < 10"), ("clamp(-20, 20)", "-20 < d < 20")])
def test_a_clamp_far_from_the_reference_is_told(fork: Fork, clamp: str, live: str) -> None:
    setup, found = of(fork((ALGOS, K1, f"return (logprob - ref_logprob).{clamp}\n")), "reward.sh")
    assert setup.verdict == "unbiased"
    assert any(f"(k1, clamped: constant outside {live})" in note for note in told(setup))
    assert found == {}


def test_what_a_clamp_does_to_a_gradient_is_told(fork: Fork) -> None:
    setup, _ = of(fork(), "fsdp.sh")
    assert any("(k3, clamped: no gradient outside -20 < d < 20)" in note for note in told(setup))
    near = (ALGOS, "min=-20.0, max=20.0", "min=-0.5, max=0.5")
    assert of(fork(near, below="again"), "again/scripts/fsdp.sh")[0].score_weight.endswith(
        "where -0.5 < d < 0.5, 0 elsewhere)"
    )


def test_what_a_launch_is_told_needs_no_graph(fork: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have analysed the code, which passes no graphs on."""

    def bare(self: Analyses, source: Source) -> tuple[Formula, ...]:
        return tuple(
            replace(formula, variants=tuple(replace(variant, node=None) for variant in formula.variants))
            for formula in self.of(source).formulas
        )

    monkeypatch.setattr(Analyses, "formulas_in", bare)
    change = (ALGOS, K1, "return (logprob - ref_logprob).clamp(max=10)\n")
    report = fork(change)
    assert any("(k3, clamped: no gradient outside -20 < d < 20)" in note for note in told(of(report, "fsdp.sh")[0]))
    assert any("(k1, clamped: constant outside d < 10)" in note for note in told(of(report, "reward.sh")[0]))


def test_a_bound_on_the_average_is_no_clamp_of_tokens(fork: Fork) -> None:
    """The mean over tokens estimates a KL: where it is bounded says nothing of a token's d."""
    average = (ACTOR, "masked_mean(kld, mask)", "masked_mean(kld, mask).clamp(max=0.1)")
    bare = (ALGOS, "torch.clamp(ref_logprob - logprob, min=-20.0, max=20.0)", "ref_logprob - logprob")
    setup, _ = of(fork(average, bare), "fsdp.sh")
    assert setup.terms[0].score_weight == "1 - exp(-d)"
    assert told(setup) and not any("clamped" in note for note in told(setup))


def test_two_formulas_that_differ_say_nothing(fork: Fork) -> None:
    both = "policy_loss + kl_loss * self.config.kl_loss_coef\n            else:\n                policy_loss = policy_loss - core_algos.kl_penalty("
    both += LOG_PROBS + ", kl_penalty=self.config.kl_loss_type).mean() * self.config.kl_loss_coef"
    setup, _ = of(
        fork(
            (ACTOR, RIGHT + " * self.config.kl_loss_coef", both), (ACTOR, "if self.config.use_kl_loss:", "if self.x:")
        ),
        "fsdp.sh",
    )
    assert setup.terms[0].coefficient == 0.001


def test_a_version_that_is_told_counts(fork: Fork, tmp_path: Path) -> None:
    fork((ACTOR, RIGHT, WRONG))
    report = scan([str(tmp_path / "tree")], Options(jobs=1, framework_versions={"verl": "0.3.0.post1"}))
    assert of(report, "fsdp.sh")[0].terms[0].coefficient == 0.001


def test_a_trainer_that_has_the_method_anew_is_another(fork: Fork) -> None:
    derived = (
        "verl/workers/fsdp_workers.py",
        "from verl.workers.actor import DataParallelPPOActor\n",
        "from verl.workers.actor import DataParallelPPOActor as Theirs\n\n"
        "        class DataParallelPPOActor(Theirs):\n            def update_policy(self, batches, optimizer):\n                ours(batches)\n",
    )
    setup, _ = of(fork((ACTOR, RIGHT, WRONG), derived), "fsdp.sh")
    assert setup.terms[0].coefficient == 0.001


@pytest.mark.parametrize(
    "text",
    [
        "if c.a == 1:\n    x = 1\n" + "elif c.a == 2:\n    from verl.workers import fsdp_workers\n" * 400,
        "ActorRolloutRefWorker = " + ".".join(["fsdp_workers"] * 500),
        "ActorRolloutRefWorker" + "(" * 20_000,
        "\n".join(
            f"def f{at}():\n    from verl.workers.fsdp_workers import ActorRolloutRefWorker\n    return f{at + 1}()"
            for at in range(500)
        ),
        "ActorRolloutRefWorker = \0",
    ],
)
def test_hostile_files_on_the_way(fork: Fork, tmp_path: Path, text: str) -> None:
    setup, _ = of(fork(("verl/workers/__init__.py", "", text)), "fsdp.sh")
    assert setup.terms[0].coefficient == 0.001


MAIN = "verl/trainer/main_ppo.py"
PATH_OF_STRATEGY = "config.actor_rollout_ref.actor.strategy"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            f'if {PATH_OF_STRATEGY} == "fsdp"',
            'strategy = config.actor_rollout_ref.actor.get("strategy", "x")\n    if strategy == "fsdp"',
        ),
        (f'if {PATH_OF_STRATEGY} == "fsdp"', f'if {PATH_OF_STRATEGY} in {{"fsdp", "fsdp2"}}'),
        (
            f'if {PATH_OF_STRATEGY} == "fsdp"',
            f'if not ({PATH_OF_STRATEGY} == "megatron" or config["actor_rollout_ref"]["actor"]["strategy"] is None)',
        ),
        ("def main(", 'def other(strategy):\n    strategy = "megatron"\n\n\ndef main('),
    ],
)
def test_tests_on_the_way_are_evaluated(fork: Fork, old: str, new: str) -> None:
    report = fork((ACTOR, RIGHT, WRONG), (MAIN, old, new))
    assert of(report, "fsdp.sh")[0].terms[0].coefficient == -0.001
    assert of(report, "megatron.sh")[0].terms[0].coefficient == 0.001


def test_a_test_that_nobody_can_tell_leaves_both_open(fork: Fork) -> None:
    report = fork((ACTOR, RIGHT, WRONG), (MAIN, f'{PATH_OF_STRATEGY} == "fsdp"', "ours(config)"))
    assert of(report, "megatron.sh")[0].terms[0].coefficient == 0.001
    assert of(report, "fsdp.sh")[0].terms[0].coefficient == -0.001  # the other branch is shut by its own test
