"""What is worth reading: the screen passes whatever could hold a penalty and little else."""

from __future__ import annotations

import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaudit.code.judge import findings, setups
from klaudit.code.modules import Program
from klaudit.code.names import holder
from klaudit.code.result import CodeResult
from klaudit.code.roles import REFERENCE
from klaudit.code.screen import hits, is_test, may_matter, screen
from klaudit.readers.source import Source
from tests.code.snippets import findings_of, result_of
from tests.code.test_forms import IN_LOSS, LOSS, REWARDS, TRAPS

CASES = [LOSS.replace("{kl}", text) for text, _, _ in IN_LOSS.values()]
CASES += [code for code, _, _ in REWARDS.values()] + list(TRAPS.values())


@pytest.mark.parametrize("code", CASES, ids=range(len(CASES)))
def test_the_screen_changes_no_finding(code: str) -> None:
    assert findings(result_of(code, prefilter=False)) == findings(result_of(code, prefilter=True))


PASSED = {
    "both words in one function": "def f(logp, ref):\n    return logp - ref\n",
    "a reference's name": "def f(a, base_action_log_probs):\n    return a - base_action_log_probs\n",
    "an adapter": "def f(self):\n    with self.model.disable_adapter():\n        return self.logps()\n",
    "short names": "def f(lp, ref_lp):\n    return lp - ref_lp\n",
    "a call of a helper": "def f(self, a, b):\n    return self.loss + kl_penalty(a, b)\n",
    "capitals": "def f(LOGP, REF):\n    return LOGP - REF\n",
    "the top level": "logp = model(x)\nref_logp = reference(x)\nloss = logp - ref_logp\n",
}
STOPPED = {
    "no log-probability": "def f(self, ref):\n    return self.loss + ref\n",
    "no reference": "def f(logp, old_logp):\n    return (logp - old_logp).exp()\n",
    "in different functions": "def f(logp):\n    return logp\n\ndef g(ref):\n    return ref\n",
    "in different methods": "class A:\n    def f(self, logp):\n        return logp\n\n    def g(self, ref):\n        return ref\n",
    "nothing": "print('hello')\n",
    "inside other words": "def f(slp, preferred, tickle):\n    return help(slp, refund, blp)\n",
    "empty": "",
}


@pytest.mark.parametrize("name", PASSED)
def test_what_is_read(name: str) -> None:
    assert may_matter(PASSED[name].encode())


@pytest.mark.parametrize("name", STOPPED)
def test_what_is_not_read(name: str) -> None:
    assert not may_matter(STOPPED[name].encode())


_NAMES = st.sampled_from(
    ["log", "p", "_p", "it", "_softmax", "lik", "_likelihood", "lprob", "lp", "lps", "ref", "base_", "_action_", "kl", "x", "_", "X", "1", "\n", "(", "."]
)  # fmt: skip


@given(st.lists(_NAMES, max_size=10).map("".join))
def test_log_probabilities_and_references_are_where_their_words_are(text: str) -> None:
    """As plain loops over the text say it."""
    lowered = text.lower()
    words = ("logp", "log_p", "logit", "log_softmax", "lprob", "loglik", "log_likelihood")
    at_words = {at for at in range(len(lowered)) if lowered.startswith(words, at)}
    short = {match.start() for match in re.finditer(r"(?<![a-z])lps?(?![a-z])", lowered)}
    found = hits(text.encode())
    assert found.log_probability == tuple(sorted(at_words | short))
    for at in found.log_probability:
        (name,) = (each for each in re.finditer(r"\w+", lowered) if each.start() <= at < each.end())
        assert at in found.reference or holder(name[0]) != REFERENCE


def test_only_functions_that_speak_of_both_are_run() -> None:
    code = """
    class Trainer:
        def loss(self, logp, ref_logp):
            return logp - ref_logp

        def step(self, batch):
            return self.kl_loss(batch)

        def save(self, path):
            return path
    """
    found = screen(Program(Source("a.py", textwrap.dedent(code).encode()), lambda path: None).main)
    assert [info.qualified for info in found.direct] == ["Trainer.loss"]
    assert [info.qualified for info in found.passing] == ["Trainer.step"]


@pytest.mark.parametrize(
    "path", ["tests/a.py", "pkg/test/a.py", "pkg/test_loss.py", "pkg/loss_test.py", "conftest.py", "testing/a.py"]
)
def test_tests_are_known_by_their_path(path: str) -> None:
    assert is_test(path)
    assert findings_of(LOSS.replace("{kl}", IN_LOSS["k3"][0]), path=path) == ()


@pytest.mark.parametrize("path", ["latest.py", "contest/a.py", "pkg/testimony.py", "attest_loss.py"])
def test_others_are_not(path: str) -> None:
    assert not is_test(path)


# code in which a function that names neither a log-probability nor a reference has its part in a penalty
ELSEWHERE = {
    "a caller with names of its own": """
        class Actor:
            def train(self, data):
                every = max(1, len(data) // self.args.steps)
                for batch in data:
                    self.step(batch, every)

            def step(self, batch, accumulation_steps):
                k = self.model(batch).logp - batch.ref_logp
                loss = (self.pg(batch) + self.args.beta * k) / accumulation_steps
                loss.backward()
    """,
    "a caller that gives the coefficient": """
        class Actor:
            def train(self, batch):
                self.loss(batch, self.model(batch), self.args.beta).backward()

            def loss(self, batch, out, coef):
                return self.pg(batch) + coef * (out.logp - batch.ref_logp).mean()
    """,
    "a caller that chooses": """
        def train(batch, args):
            objective(batch, model(batch), args.kind, args.beta).backward()

        def objective(batch, out, kind, coef):
            d = out.logp - batch.ref_logp
            loss = pg(batch) + coef * (d if kind == "one" else 0.5 * d**2).mean()
            return loss
    """,
    "a caller that adds what it is given": """
        class Actor:
            def train(self, batch):
                loss = self.pg(batch) + self.args.beta * self.distance(batch).mean()
                loss.backward()

            def distance(self, batch):
                return self.model(batch).logp - batch.ref_logp
    """,
    "two callers": """
        def first(batch, args):
            objective(batch, model(batch), args.first).backward()

        def second(batch, args):
            objective(batch, model(batch), args.second).backward()

        def objective(batch, out, coef):
            loss = pg(batch) + coef * (out.logp - batch.ref_logp).mean()
            return loss
    """,
    "the top level of a script": """
        class Objective(Module):
            def forward(self, batch):
                logp, ref_logp = self.model(batch), self.ref_model(batch)
                return self.surrogate(batch, logp) + self.beta * (logp - ref_logp)

        if __name__ == "__main__":
            objective = Objective(network)
            value = objective(data)
            value.mean().backward()
    """,
    "an object that several functions fill": """
        def steps(self, data):
            for batch in data:
                experience = self.experience(batch).to("cpu")
                rewards = batch.scores - self.kl_coef * experience.kl
                yield rewards

        def experience(self, batch):
            kl = compute_kl(batch.logp, batch.ref_logp)
            return Experience(batch, kl=kl)

        def compute_kl(logp, ref_logp):
            return logp - ref_logp
    """,
}


@pytest.mark.parametrize("which", ELSEWHERE)
def test_what_functions_without_the_words_add_is_seen(which: str) -> None:
    one, other = (result_of(ELSEWHERE[which], prefilter=prefilter) for prefilter in (True, False))
    assert _shown(one) == _shown(other)
    assert {formula.placement for formula in one.formulas} <= {"loss", "reward", "unknown"} and one.formulas


def _shown(result: CodeResult) -> list[tuple[object, ...]]:
    return [
        (formula.span, formula.symbol, formula.placement, formula.knobs, formula.chosen_by, formula.atoms, formula.sink)
        for formula in result.formulas
    ]


def test_a_coefficient_is_called_what_the_caller_calls_it() -> None:
    (formula,) = result_of(ELSEWHERE["a caller that gives the coefficient"]).formulas
    assert [knob.name for knob in formula.knobs] == ["self.args.beta"]


def test_a_log_ratio_that_tells_answers_apart_is_no_penalty() -> None:
    """The loss of a reward model whose score is a log-ratio."""
    code = """
    import torch.nn.functional as F

    class RewardModel:
        def score(self, batch):
            return batch["logp"] - batch["ref_logp"]

        def update(self, batch):
            loss = F.binary_cross_entropy(torch.sigmoid(self.beta * self.score(batch).sum(-1)), batch["correct"])
            loss.backward()
    """
    for prefilter in (True, False):
        assert setups(result_of(code, prefilter=prefilter)) == ()


def test_the_likelihood_of_labels_is_no_penalty() -> None:
    code = """
    class ProcessReward(Module):
        def forward(self, tokens, labels):
            scores = self.beta * (self.logps(self.model, tokens) - self.logps(self.ref_model, tokens))
            loss = labels * logsigmoid(scores) + (1.0 - labels) * logsigmoid(-scores)
            return loss.mean()

    scorer = ProcessReward(network)
    loss = scorer(tokens, labels)
    loss.backward()
    """
    for prefilter in (True, False):
        assert setups(result_of(code, prefilter=prefilter)) == ()


DEEP = "x" + ".a" * 400
TOO_MUCH = {
    "nobody's": (f"def f(x):\n    return {DEEP}\n", 0),
    "a loss": (f"def f(x, logp, ref_logp):\n    y = {DEEP}\n    return logp - ref_logp\n", 1),
}


@pytest.mark.parametrize("which", TOO_MUCH)
def test_only_what_is_worth_reading_can_be_too_much(which: str) -> None:
    """Without the prefilter every function is run, and the ones that matter to nobody are no problem."""
    code, told = TOO_MUCH[which]
    for prefilter in (True, False):
        assert len(result_of(code, prefilter=prefilter).problems) == told
