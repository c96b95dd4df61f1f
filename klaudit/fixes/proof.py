"""Proof of a plan: the edited tree, read again by the same engine, trains as promised and otherwise as before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from klaudit.fixes.migration import Migration
from klaudit.fixes.rereading import Reading
from klaudit.fixes.snapshot import Identity, Trained
from klaudit.frameworks.rules import CodeChange
from klaudit.model import Setup, Value

Snapshot = Mapping[str, Reading]


@dataclass(frozen=True, slots=True)
class Failure:
    """A launch that does not train as it should after the edits."""

    path: str
    at: int
    why: str


def failures(
    before: Snapshot,
    after: Snapshot,
    migrations: Iterable[Migration],
    said: Mapping[tuple[str, int], frozenset[str]] | None = None,
) -> list[Failure]:
    """What is wrong with the tree after the edits of `migrations`; empty where they are proven.

    `said` names, for launches that are to stay as they are, the settings that are now said there although they were so before.
    """
    wanted = {(each.path, each.at): each for each in migrations}
    migrated = {path for path, _ in wanted}
    found: list[Failure] = []
    for path, now in after.items():
        olds, news = before[path].launches, now.launches
        if olds is news and path not in migrated:
            continue  # nothing that it draws on was edited
        if [_identity(old, wanted.get((path, at))) for at, old in enumerate(olds)] != [new.identity for new in news]:
            found.append(Failure(path, -1, "the file would no longer hold the same launches"))
            continue
        for at, (old, new) in enumerate(zip(olds, news, strict=True)):
            migration = wanted.get((path, at))
            may_be_said = (said or {}).get((path, at), frozenset())
            why = _unlike(old, new, may_be_said) if migration is None else _unmet(migration, old, new)
            if why:
                found.append(Failure(path, at, why))
    return found


def reached(after: Setup, target: str, amount: float | None) -> str:
    """Why a set-up is not what `target` promises, with the coefficient `amount`; empty where it is."""
    running = [term for term in after.terms if term.active is not False]
    if target == "no-kl":
        return f"{running[0].estimator} in the {running[0].placement} would remain" if running else ""
    if len(running) != 1:
        return "no KL term would be active" if not running else "more than one KL term would be active"
    term = running[0]
    if term.active is None:
        return "whether the KL term is active could not be known"
    if target == "k1-in-reward" and (term.placement, term.estimator, term.verdict) != ("reward", "k1", "unbiased"):
        return f"the result would be {term.estimator} in the {term.placement}, {term.verdict}"
    if term.verdict not in ("unbiased", "unbiased-per-token"):
        return f"the result would be {term.estimator} in the {term.placement}, {term.verdict}"
    if term.coefficient != amount:
        return f"the coefficient would become {term.coefficient}, not {amount}"
    return ""


def _identity(old: Trained, migration: Migration | None) -> Identity:
    """What identifies a launch after its migration, which may have another class for it."""
    if migration is None or migration.code is None or not migration.code.becomes:
        return old.identity
    code = migration.code
    known = old.identity
    return replace(
        known, trainer=code.becomes, target=_renamed(known.target, code), symbol=_renamed(known.symbol, code)
    )


def _renamed(name: str, code: CodeChange) -> str:
    above, dot, last = name.rpartition(".")
    return above + dot + code.classes.get(last, last)


def _unmet(migration: Migration, old: Trained, new: Trained) -> str:
    is_in_code = migration.code is not None and migration.code.template
    why = reached(new.setup, "no-kl" if is_in_code else migration.target, migration.amount)
    if why:
        return why
    if len(new.refusals) > len(old.refusals):
        return new.refusals[-1][1]
    return _other_settings(old, new, migration.names)


def _unlike(old: Trained, new: Trained, said: frozenset[str]) -> str:
    if old.effect != new.effect:
        return "its KL terms would change"
    return _other_settings(old, new, said)


def _other_settings(old: Trained, new: Trained, may_change: frozenset[str]) -> str:
    for name in dict.fromkeys((*old.settings, *new.settings)):
        if name not in may_change and not _same(old.settings.get(name), new.settings.get(name)):
            return f"{name} would change"
    return ""


def _same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and one == other
