"""Where each configuration ends: exact descent of -reward + beta*penalty, on a bandit and on a tree of sequences, to convergence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.tensor.markdown import Cell, table
from klaudit.tensor.backend import seeded
from klaudit.tensor.gradients import expected_gradient
from klaudit.tensor.inner_steps import Bandit, Loss, descended, in_loss, penalty_distances, rewarded
from klaudit.tensor.outcomes import Outcomes
from klaudit.tensor.surrogates import Surrogate, loss, reward, sequence_loss, total

STEPS, RATE = 1500, 0.5
CONFIGURATIONS: tuple[tuple[str, Surrogate], ...] = (
    ("k1 in reward", reward("k1")),
    ("k2 in loss", loss("k2", "pathwise")),
    ("attached ratio times k3 in loss", loss("k3", "importance-weighted")),
    ("k2 of the sequence's sum in loss", sequence_loss("k2")),
    ("k1 in both", total((1.0, reward("k1")), (1.0, loss("k1", "pathwise")))),
    ("k3 in both", total((1.0, reward("k3")), (1.0, loss("k3", "pathwise")))),
    ("k3 in loss", loss("k3", "pathwise")),
    ("abs in loss", loss("abs", "pathwise")),
    ("k1 in loss", loss("k1", "pathwise")),
    ("k2 in reward", reward("k2")),
    ("k3 in reward", reward("k3")),
)


@dataclass(frozen=True, slots=True)
class Tree:
    """All sequences of `length` tokens, a softmax at every prefix: rewards (N,), reference logits (prefixes, V)."""

    tokens: Tensor
    prefixes: Tensor
    rewards: Tensor
    reference: Tensor

    @classmethod
    def drawn(cls, vocabulary: int, length: int, seed: int = 0) -> Tree:
        generator = seeded(seed)
        sequences = list(itertools.product(range(vocabulary), repeat=length))
        known: dict[tuple[int, ...], int] = {}
        prefixes = [[known.setdefault(sequence[:t], len(known)) for t in range(length)] for sequence in sequences]
        rewards = torch.rand(len(sequences), generator=generator, dtype=torch.float64)
        reference = torch.randn(len(known), vocabulary, generator=generator, dtype=torch.float64)
        return cls(torch.tensor(sequences), torch.tensor(prefixes), rewards, reference)

    def outcomes(self, logits: Tensor) -> Outcomes:
        """On-policy; the parameters are all logits."""
        count, vocabulary = logits.shape
        table_, ref = (torch.log_softmax(each, -1)[self.prefixes][None] for each in (logits, self.reference))
        own = torch.nn.functional.one_hot(self.prefixes, count).double()  # (N, T, prefixes)
        inner = torch.eye(vocabulary, dtype=torch.float64) - table_[0].exp()[..., None, :]  # (N, T, V, V)
        jacobian = torch.einsum("ntc,ntvp->ntvcp", own, inner).flatten(-2)[None]
        mask = torch.ones(1, *self.tokens.shape, dtype=torch.float64)
        return Outcomes(self.tokens[None], mask, table_, ref, table_, jacobian, torch.empty(0)).on_policy()


def sections() -> Iterator[str]:
    yield _endings("## Where descent ends: bandit, V = 8, beta = 0.2", Tree.drawn(8, 1), 0.2)
    yield _endings("## Where descent ends: tree, V = 3, 3 tokens, beta = 0.5", Tree.drawn(3, 3), 0.5)
    yield _inner_steps()


def _endings(title: str, tree: Tree, beta: float) -> str:
    log_ref = tree.outcomes(tree.reference)
    base = log_ref.weights[0]
    best = torch.softmax(base.log() + tree.rewards / beta, 0)
    rows: list[list[Cell]] = []
    for name, configuration in CONFIGURATIONS:
        policy = _converged(tree, configuration, beta)
        forward = float((base * (base.log() - policy.log())).sum())
        kl = float((policy * (policy.log() - base.log())).sum())
        gain = float((policy * tree.rewards).sum())
        rows.append([name, float((policy - best).abs().sum() / 2), gain, kl, forward, gain - beta * kl])
    return f"{title}\n\n" + table(
        ["configuration", "TV to the optimum", "reward", "KL(pi||ref)", "KL(ref||pi)", "reward - beta*KL(pi||ref)"],
        rows,
    )


def _converged(tree: Tree, configuration: Surrogate, beta: float) -> Tensor:
    """Outcome probabilities (N,) after natural-gradient steps, which converge geometrically wherever plain ones do."""
    logits = tree.reference.clone()
    objective = total((-1.0, lambda outcomes: tree.rewards * outcomes.log_pi.sum(-1)), (beta, configuration))
    for _ in range(STEPS):
        outcomes = tree.outcomes(logits)
        gradient = expected_gradient(objective, outcomes)[0].reshape(logits.shape)
        if not bool(torch.isfinite(gradient).all()):  # collapsed: ref/pi has overflown
            break
        visits = torch.zeros(len(logits), dtype=torch.float64)
        visits.index_add_(0, tree.prefixes.flatten(), outcomes.weights[0][:, None].expand_as(tree.prefixes).flatten())
        natural = gradient / (torch.softmax(logits, -1) * visits[:, None]).clamp(min=1e-300)
        logits = logits - RATE * natural.clamp(-1, 1)
        logits = logits - logits.logsumexp(-1, keepdim=True)
    return tree.outcomes(logits).weights[0].clamp(min=1e-300)


def _inner_steps() -> str:
    losses: tuple[tuple[str, Loss], ...] = (
        ("k1 in reward, frozen, clipped", rewarded("k1", clip=True)),
        ("k1 in reward, frozen, not clipped", rewarded("k1", clip=False)),
        ("k2 in loss", in_loss("k2", "pathwise")),
        ("attached ratio times k3 in loss", in_loss("k3", "importance-weighted")),
        ("detached ratio times k3 in loss", in_loss("k3", "detached-ratio")),
        ("k3 in loss", in_loss("k3", "pathwise")),
        ("k1 in loss", in_loss("k1", "pathwise")),
    )
    bandit = Bandit.drawn()
    best = torch.softmax(bandit.log_ref + bandit.reward / 0.2, -1)
    rows: list[list[Cell]] = []
    for name, form in losses:
        found = penalty_distances(form, bandit)
        by_step = [
            f"{float(found[step].bias.median()):.2f} ({float(found[step].cosine.nanmedian()):.2f})"
            for step in (0, 1, 3, 7)
        ]
        variation = (descended(form, bandit).exp() - best).abs().sum(-1) / 2
        rows.append([name, *by_step, float(variation.median())])
    head = ["configuration", "step 0", "step 1", "step 3", "step 7", "TV to the optimum after 300 rollouts"]
    return (
        "## Steps on one rollout: bias (cosine) of the penalty's gradient\n\n20 bandits, V = 8, beta = 0.2\n\n"
        + table(head, rows)
    )
