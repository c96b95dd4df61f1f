"""Conditions on settings that are not known: under every assignment they hold as Python says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from klaudit.code.conditions import (
    ALWAYS,
    NEVER,
    OTHER,
    Affix,
    Assignment,
    Condition,
    Constant,
    OneOf,
    Subject,
    Truth,
    allowed,
    assignments,
    both,
    can_hold,
    choosers,
    either,
    negated,
    plain,
    subjects,
    told,
    united,
)

KIND, ON = Subject("kind"), "on"
VALUES: tuple[Constant, ...] = ("k1", "k2", "k3+", None, OTHER)


def _leaf(value: Constant) -> Condition:
    return OneOf(KIND, frozenset({value}))


LEAVES = st.one_of(
    st.sampled_from([ALWAYS, NEVER, Truth(ON), Affix(KIND, True, "+")]),
    st.sampled_from(VALUES[:-1]).map(_leaf),
    st.frozensets(st.sampled_from(VALUES[:-1]), min_size=1).map(lambda values: OneOf(KIND, values)),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(negated),
        st.lists(inner, min_size=1, max_size=3).map(both),
        st.lists(inner, min_size=1, max_size=3).map(either),
    ),
    max_leaves=6,
)
ASSIGNMENTS = st.fixed_dictionaries({"kind": st.sampled_from(VALUES), ON: st.booleans()})


@given(CONDITIONS, ASSIGNMENTS)
def test_not(condition: Condition, assignment: Assignment) -> None:
    holds, turned = condition.holds(assignment), negated(condition).holds(assignment)
    assert turned is (None if holds is None else not holds)
    assert negated(negated(condition)).holds(assignment) is holds


@given(st.lists(CONDITIONS, max_size=4), ASSIGNMENTS)
def test_and_or(conditions: list[Condition], assignment: Assignment) -> None:
    truths = [condition.holds(assignment) for condition in conditions]
    if None not in truths:
        assert both(conditions).holds(assignment) is all(truths)
        assert either(conditions).holds(assignment) is any(truths)


@given(CONDITIONS, CONDITIONS)
def test_assignments_are_those_that_the_condition_allows(one: Condition, other: Condition) -> None:
    for assignment in assignments((one,), other):
        assert other.holds(assignment) is not False
    if not can_hold(both((one, other))):
        assert not any(one.holds(a) is True and other.holds(a) is True for a in assignments((one, other)))


@given(CONDITIONS)
def test_every_value_that_is_told_apart_is_tried(condition: Condition) -> None:
    tried = list(assignments((condition,)))
    for text, values in subjects((condition,)).items():
        assert {assignment[text] for assignment in tried} == values


def test_what_an_assignment_does_not_name_is_open() -> None:
    assert _leaf("k1").holds({}) is None
    assert both((_leaf("k1"), NEVER)).holds({}) is False
    assert either((_leaf("k1"), ALWAYS)).holds({}) is True


def test_string_methods_on_the_way() -> None:
    lowered = OneOf(KIND.then("lower", ()), frozenset({"k3"}))
    assert lowered.holds({"kind": "K3"}) is True
    assert lowered.holds({"kind": "k1"}) is False
    assert lowered.holds({"kind": None}) is False


def test_suffixes_make_values_of_their_own() -> None:
    conditions = (_leaf("k3"), Affix(KIND, True, "+"))
    assert "k3+" in subjects(conditions)["kind"]


def test_what_chooses_between_two() -> None:
    assert choosers(_leaf("k1"), _leaf("k3")) == {"kind"}
    assert choosers(_leaf("k1"), Truth(ON)) == set()
    assert choosers(both((_leaf("k1"), Truth(ON))), both((_leaf("k3"), Truth(ON)))) == {"kind"}
    assert allowed(negated(_leaf("k1")), {"kind": {"k1", "k3"}}) == {"kind": {"k3"}}


def test_what_contradicts_itself_is_not_told() -> None:
    on, other = Truth("on"), Truth("other")
    assert told(negated(either((both((on, negated(on))), negated(on))))) == "on"
    assert told(both((other, either((on, negated(on)))))) == "other"
    assert told(both((on, negated(on)))) == "never"


@given(CONDITIONS, ASSIGNMENTS)
def test_what_is_told_holds_where_the_condition_does(condition: Condition, assignment: Assignment) -> None:
    assert plain(condition).holds(assignment) == condition.holds(assignment)


def test_ways_of_which_one_is_always_taken() -> None:
    a, b, c = Truth("a"), Truth("b"), Truth("c")
    assert united([a, negated(a)]) == ALWAYS
    assert united([both((a, b)), both((a, negated(b)))]) == a
    assert united([a, both((negated(a), b)), both((negated(a), negated(b)))]) == ALWAYS
    assert united([a, both((a, b))]) == a
    assert united([a, b]) is None
    assert united([a, both((negated(a), b))]) is None
    assert united([both((a, c)), both((negated(a), c)), c]) == c


@given(st.lists(CONDITIONS, min_size=1, max_size=4), ASSIGNMENTS)
def test_what_ways_are_united_to_holds_when_one_of_them_does(ways: list[Condition], assignment: Assignment) -> None:
    if (whole := united(ways)) is not None:
        assert whole.holds(assignment) == either(ways).holds(assignment)
