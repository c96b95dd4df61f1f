"""What to watch after a migration: what follows from the formulas, and rules of thumb that are marked as such."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from klaudit.fixes.migration import Migration


class Advice(Struct, frozen=True):
    """`source` says where it is from: what the score weight implies, or whose rule of thumb it is."""

    text: str
    source: str


_FORMULA = "follows from the score weight"
_THUMB = "rule of thumb of guides to KL in RL training, which give no source or measurement for it"
_PUBLISHED = (
    "rule of thumb of guides to KL in RL training; the runs of Shah et al., A Comedy of Estimators (arXiv 2512.21852), are summarised as "
    "best at 0.05 and 0.1 with RLOO, and as 0.005 for asynchronous Dr. GRPO"
)

_STD = Advice(
    "group-std normalisation is switched off: inside it the penalty would be rescaled until its coefficient had no effect. "
    "Advantages are no longer of unit scale, so that the learning rate may need another look",
    _FORMULA,
)
_KEPT_STD = Advice(
    "group-std normalisation stays on: it rescales the task reward, and a penalty in the reward would be rescaled with it, which is "
    "why the penalty stays in the loss",
    _FORMULA,
)
_AGGREGATION = Advice(
    "the same coefficient is another strength now: in the loss it weighs a mean over tokens, in the reward the sum over a response",
    _FORMULA,
)
_STALE = Advice(
    "a rewarded k1 is fixed at rollout: exact in the first update on a batch, less so in each further one",
    _FORMULA,
)
_TO_REWARD = (
    _AGGREGATION,
    _STALE,
    Advice(
        "retune the coefficient: start at 0.05 to 0.2 where it was tiny, and watch KL(pi||ref) of a response: 2 to 10 nats are usual",
        _PUBLISHED,
    ),
    Advice(
        "start with 50 to 70 % of the learning rate, gradient clipping at 1.0, and larger batches if the reward is noisy",
        _THUMB,
    ),
    Advice("if the reward drops early, the coefficient is too large", _THUMB),
)
_PER_TOKEN = Advice(
    "the gradient is that of KL(pi||ref) per token: a token gets no credit for the KL of later tokens, as k1 in the reward would give it",
    _FORMULA,
)


def advice(migrations: Iterable[Migration]) -> tuple[Advice, ...]:
    """What the user should know of these migrations, each remark once."""
    told: dict[Advice, None] = {}
    for migration in migrations:
        told |= dict.fromkeys(_of(migration))
    return tuple(told)


def _of(migration: Migration) -> tuple[Advice, ...]:
    if migration.at < 0:
        return ()  # the notes of a rewrite say what follows from that rewrite
    if migration.target == "k1-in-reward":
        rescued = (_STD,) if migration.rescued else ()
        was_in_loss = any(term.active and term.placement == "loss" for term in migration.before.terms)
        return (*rescued, *(_TO_REWARD if was_in_loss else ()))
    if migration.target == "no-kl":
        return ()
    normalised = any(term.normalised_by_group_std for term in migration.before.terms)
    return (_PER_TOKEN, _KEPT_STD) if normalised else (_PER_TOKEN,)
