"""What is worth reading: the screen passes whatever could hold a penalty and little else."""

from __future__ import annotations

import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaudit.code.judge import findings
from klaudit.code.modules import Program
from klaudit.code.names import holder
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
