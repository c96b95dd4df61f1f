"""What a branch hangs on, as small formulas over named subjects (`self.config.kl_type`), evaluated under assignments of constants.

Settings cannot be known from the code alone.  A condition keeps which values of which subject lead down which branch, so that a
formula can be judged once per choice: `kl_type in ("k3", "low_var_kl")` gives k3, `use_kl_loss` switches it on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import TypeAlias

from msgspec import Struct

Constant: TypeAlias = None | bool | int | float | str
Assignment: TypeAlias = Mapping[str, Constant]

OTHER = "<other>"  # stands for every value that no test names
MAX_ASSIGNMENTS = 96
MAX_PARTS = 4_000  # of a condition that is kept; those of real trainers have below 3,500, and nearly all below 60

_TEXT_METHODS = {
    "lower": str.lower, "upper": str.upper, "strip": str.strip, "rstrip": str.rstrip, "lstrip": str.lstrip,
    "removesuffix": str.removesuffix, "removeprefix": str.removeprefix, "replace": str.replace,
}  # fmt: skip
TEXT_METHODS = frozenset(_TEXT_METHODS)


class Subject(Struct, frozen=True, cache_hash=True):
    """A value that is not known here, by its path, and what string methods were applied to it since."""

    text: str
    steps: tuple[tuple[str, tuple[Constant, ...]], ...] = ()

    def value(self, assignment: Assignment) -> Constant:
        """Its value under an assignment that names it."""
        value = assignment[self.text]
        for method, arguments in self.steps:
            if isinstance(value, str):
                value = _TEXT_METHODS[method](value, *arguments)  # type: ignore[operator]
        return value

    def then(self, method: str, arguments: tuple[Constant, ...]) -> Subject:
        return Subject(self.text, (*self.steps, (method, arguments)))


class Condition(Struct, frozen=True, cache_hash=True):
    """True, false or open (None) under an assignment."""

    def holds(self, assignment: Assignment) -> bool | None:
        raise NotImplementedError

    def parts(self) -> tuple[Condition, ...]:
        return ()


class OneOf(Condition, frozen=True, cache_hash=True):
    """The subject equals one of the values."""

    subject: Subject
    values: frozenset[Constant]

    def holds(self, assignment: Assignment) -> bool | None:
        if self.subject.text not in assignment:
            return None
        return self.subject.value(assignment) in self.values

    def __str__(self) -> str:
        values = sorted(map(shown, self.values))
        return (
            f"{self.subject.text} = {values[0]}"
            if len(values) == 1
            else f"{self.subject.text} in ({', '.join(values)})"
        )


class Affix(Condition, frozen=True, cache_hash=True):
    """The subject starts or ends with a text."""

    subject: Subject
    end: bool
    text: str

    def holds(self, assignment: Assignment) -> bool | None:
        if self.subject.text not in assignment:
            return None
        value = self.subject.value(assignment)
        if not isinstance(value, str):
            return False
        return value.endswith(self.text) if self.end else value.startswith(self.text)

    def __str__(self) -> str:
        return f"{self.subject.text} {'ends' if self.end else 'starts'} with {self.text!r}"


class Truth(Condition, frozen=True, cache_hash=True):
    """The subject, or a test that is not understood, is true."""

    text: str

    def holds(self, assignment: Assignment) -> bool | None:
        return bool(assignment[self.text]) if self.text in assignment else None

    def __str__(self) -> str:
        return self.text


class Not(Condition, frozen=True, cache_hash=True):
    inner: Condition

    def holds(self, assignment: Assignment) -> bool | None:
        held = self.inner.holds(assignment)
        return None if held is None else not held

    def parts(self) -> tuple[Condition, ...]:
        return (self.inner,)

    def __str__(self) -> str:
        if isinstance(self.inner, OneOf) and len(self.inner.values) == 1:
            return str(self.inner).replace(" = ", " != ", 1)
        return f"not {_bracketed(self.inner)}"


class Both(Condition, frozen=True, cache_hash=True):
    """Every part holds; without parts, always."""

    conditions: tuple[Condition, ...]

    def holds(self, assignment: Assignment) -> bool | None:
        held = [condition.holds(assignment) for condition in self.conditions]
        return False if False in held else None if None in held else True

    def parts(self) -> tuple[Condition, ...]:
        return self.conditions

    def __str__(self) -> str:
        return " and ".join(map(_bracketed, self.conditions)) or "always"


class Either(Condition, frozen=True, cache_hash=True):
    """Some part holds; without parts, never."""

    conditions: tuple[Condition, ...]

    def holds(self, assignment: Assignment) -> bool | None:
        held = [condition.holds(assignment) for condition in self.conditions]
        return True if True in held else None if None in held else False

    def parts(self) -> tuple[Condition, ...]:
        return self.conditions

    def __str__(self) -> str:
        return " or ".join(map(_bracketed, self.conditions)) or "never"


def _bracketed(condition: Condition) -> str:
    return f"({condition})" if isinstance(condition, Both | Either) and condition.conditions else str(condition)


ALWAYS = Both(())
NEVER = Either(())


def known(truth: bool) -> Condition:
    return ALWAYS if truth else NEVER


def negated(condition: Condition) -> Condition:
    if isinstance(condition, Not):
        return condition.inner
    if condition == ALWAYS:
        return NEVER
    return ALWAYS if condition == NEVER else Not(condition)


def both(conditions: Iterable[Condition]) -> Condition:
    kept: dict[Condition, None] = {}
    for condition in conditions:
        if condition == NEVER:
            return NEVER
        for part in condition.conditions if isinstance(condition, Both) else (condition,):
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else Both(tuple(kept))


def parts_of(condition: Condition) -> frozenset[Condition]:
    """The conditions that all have to hold; none for what always holds."""
    if condition == ALWAYS:
        return frozenset()
    return frozenset(condition.conditions) if isinstance(condition, Both) else frozenset({condition})


def united(ways: Iterable[Condition]) -> Condition | None:
    """What all of several conditions share, where one of them holds whenever that does (`a and b`, `a and not b`); else None."""
    left = {parts_of(way) for way in ways}
    while len(left) > 1:
        joined = next(
            (
                (one, other)
                for one in left
                for other in left
                if one < other
                or (len(one - other) == 1 == len(other - one) and _are_opposite(one - other, other - one))
            ),
            None,
        )
        if joined is None:
            return None
        one, other = joined
        left = (left - {one, other}) | {one & other}
    (parts,) = left
    return both(sorted(parts, key=str)) if parts else ALWAYS


def _are_opposite(one: frozenset[Condition], other: frozenset[Condition]) -> bool:
    (first,), (second,) = one, other
    return first == negated(second)


def either(conditions: Iterable[Condition]) -> Condition:
    kept: dict[Condition, None] = {}
    for condition in conditions:
        if condition == ALWAYS:
            return ALWAYS
        for part in condition.conditions if isinstance(condition, Either) else (condition,):
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else Either(tuple(kept))


def told(condition: Condition) -> str:
    """A condition for a reader, without what contradicts itself or goes without saying (`(a and not a) or b`)."""
    return str(condition if is_large(condition) else plain(condition))


def plain(condition: Condition) -> Condition:
    if isinstance(condition, Not):
        return negated(plain(condition.inner))
    if not isinstance(condition, Both | Either):
        return condition
    combine, nothing = (both, NEVER) if isinstance(condition, Both) else (either, ALWAYS)
    found = combine(map(plain, condition.conditions))
    parts = set(found.parts()) if isinstance(found, Both | Either) else set()
    return nothing if any(negated(part) in parts for part in parts) else found


def is_large(condition: Condition) -> bool:
    """It is put together of more than MAX_PARTS: what hangs on so much is told by nobody, and doubles with every further test."""
    waiting, count = [condition], 0
    while waiting:
        count += 1
        if count > MAX_PARTS:
            return True
        waiting.extend(waiting.pop().parts())
    return False


def subjects(conditions: Iterable[Condition]) -> dict[str, set[Constant]]:
    """What each subject is compared with; for a subject that is only asked for its truth, True and False."""
    compared: dict[str, set[Constant]] = {}
    asked: set[str] = set()
    suffixes: dict[str, set[str]] = {}
    waiting = list(conditions)
    while waiting:
        condition = waiting.pop()
        waiting.extend(condition.parts())
        if isinstance(condition, OneOf):
            compared.setdefault(condition.subject.text, {OTHER}).update(condition.values)
        elif isinstance(condition, Affix):
            compared.setdefault(condition.subject.text, {OTHER})
            suffixes.setdefault(condition.subject.text, set()).add(condition.text)
        elif isinstance(condition, Truth):
            asked.add(condition.text)
    for text, affixes in suffixes.items():
        compared[text] |= {f"{value}{affix}" for value in compared[text] if isinstance(value, str) for affix in affixes}
    for text in asked - compared.keys():
        compared[text] = {True, False}
    return compared


def assignments(conditions: Iterable[Condition], given: Condition = ALWAYS) -> Iterator[dict[str, Constant]]:
    """Every combination of the values that the conditions tell apart and that `given` allows; at most MAX_ASSIGNMENTS."""
    conditions = tuple(conditions)
    told_apart = subjects((*conditions, given))
    texts = sorted(subjects(conditions))
    choices = [
        sorted(told_apart[text], key=lambda value: (value == OTHER, value is False, str(value))) for text in texts
    ]
    for values in islice(product(*choices), MAX_ASSIGNMENTS):
        assignment = dict(zip(texts, values, strict=True))
        if given.holds(assignment) is not False:
            yield assignment


def choosers(one: Condition, other: Condition) -> set[str]:
    """The subjects that decide between two conditions: those whose values differ in the two without overlap."""
    shared = subjects((one,)).keys() & subjects((other,)).keys()
    if not shared:
        return set()
    told_apart = subjects((one, other))
    first, second = (allowed(condition, told_apart) for condition in (one, other))
    deciding = {text for text in shared if first[text] and second[text] and first[text].isdisjoint(second[text])}
    return deciding or _jointly_deciding(one, other, shared)


def _jointly_deciding(one: Condition, other: Condition, shared: set[str]) -> set[str]:
    """The same for parts that speak of several subjects at once: no assignment satisfies those of both conditions."""
    parts = [
        part
        for condition in (one, other)
        for part in _conjuncts(condition)
        if len(subjects((part,)).keys() & shared) > 1
    ]
    told_apart = subjects(parts)
    if len(parts) < 2 or math.prod(len(values) for values in told_apart.values()) > MAX_ASSIGNMENTS * 8:
        return set()
    texts = sorted(told_apart)
    for values in product(*(told_apart[text] for text in texts)):
        assignment = dict(zip(texts, values, strict=True))
        if all(part.holds(assignment) for part in parts):
            return set()
    return {text for text in texts if OTHER in told_apart[text]} or set(texts)


def _conjuncts(condition: Condition) -> tuple[Condition, ...]:
    return condition.conditions if isinstance(condition, Both) else (condition,)


def can_hold(condition: Condition) -> bool:
    """False where the parts of a condition leave some subject no value."""
    return all(allowed(condition, subjects((condition,))).values())


def allowed(condition: Condition, told_apart: Mapping[str, set[Constant]]) -> dict[str, set[Constant]]:
    """Of the values of each subject, those that the parts of a condition which speak of it alone allow."""
    found = {text: set(values) for text, values in told_apart.items()}
    for part in _conjuncts(condition):
        texts = subjects((part,)).keys()
        if len(texts) == 1 and (text := next(iter(texts))) in found:
            found[text] = {value for value in found[text] if part.holds({text: value}) is not False}
    return found


def shown(value: Constant) -> str:
    """As a reader would write it: numbers that are whole without a point."""
    if isinstance(value, str):
        return "anything else" if value == OTHER else value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)
