"""The penalty inside group statistics, by the share of right answers and by beta; groups of 8, computed over all of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.tensor.markdown import Cell, table
from klaudit.tensor.gradients import distance
from klaudit.tensor.groups import Groups, Normalisation, constant_reward_rms, degenerate_share, penalty_gradient
from klaudit.tensor.instances import categorical

BETAS = (1e-3, 1e-2, 1e-1)


def sections() -> Iterator[str]:
    outcomes = categorical(0.2, count=1)
    policy, reference = outcomes.policy[0, 0, 0].exp(), outcomes.reference[0, 0, 0].exp()
    d = policy.log() - reference.log()
    deviation = float((policy * d.square()).sum() - (policy * d).sum() ** 2) ** 0.5
    true = policy * d - policy * (policy * d).sum()
    groups = Groups.all(len(policy), 8)
    order = policy.argsort()

    def multiplier(task: torch.Tensor, beta: float, normalisation: Normalisation) -> str:
        found = distance(penalty_gradient(groups, policy, reference, task, beta, normalisation) / beta, true)
        return f"{float(found.multiplier):.4g} (cos {float(found.cosine):.2f})"

    rows: list[list[Cell]] = []
    for right in (1, 2, 4, 5, 6, 8):
        task = torch.zeros_like(policy)
        task[order[:right]] = 1.0
        share = float((policy * task).sum())
        by_beta = [multiplier(task, beta, "std") for beta in BETAS]
        rows.append([f"{share:.3f}", degenerate_share(policy, task, 8), *by_beta, multiplier(task, 1e-2, "mean")])
    head = ["right", "constant groups", *(f"std, beta {beta:g}" for beta in BETAS), "mean only"]
    yield (
        f"## Group statistics: what beta is multiplied with\n\nG = 8, d deviates by {deviation:.2f} nats (an outcome is a sequence)\n\n"
        + table(head, rows)
    )
    rms: list[list[Cell]] = [
        [f"{beta:g}", *(constant_reward_rms(groups, policy, reference, beta, how) for how in ("std", "mean"))]
        for beta in (1e-4, *BETAS)
    ]
    yield "## Root mean square advantage where the task reward is constant\n\n" + table(
        ["beta", "std", "mean only"], rms
    )
    sizes: list[list[Cell]] = []
    for size in (2, 4, 8, 16):
        every = Groups.all(4 if size == 16 else 8, size)
        few = categorical(0.2, count=1, vocabulary=every.counts.shape[1])
        pi, ref = few.policy[0, 0, 0].exp(), few.reference[0, 0, 0].exp()
        own = pi * (pi.log() - ref.log()) - pi * (pi * (pi.log() - ref.log())).sum()
        found = [
            distance(penalty_gradient(every, pi, ref, torch.zeros_like(pi), 1.0, how), own)
            for how in ("mean", "leave-one-out")
        ]
        sizes.append([str(size), *(float(each.multiplier) for each in found)])
    yield "## Baselines: what beta is multiplied with\n\n" + table(["G", "group mean", "leave one out"], sizes)
