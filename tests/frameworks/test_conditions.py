"""Conditions of framework facts: three-valued logic over settings, some of which cannot be known."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaudit.frameworks.conditions import Known, Lookup, holds
from klaudit.frameworks.rules import Condition
from klaudit.model import Unknown, Value

UNKNOWN = Unknown(("$COEF",))
VALUES: Mapping[str, Value] = {
    "yes": True,
    "no": False,
    "none": None,
    "zero": 0,
    "empty": "",
    "off": "off",  # a text: true in itself, whatever it says
    "word": "low_var_kl",
    "number": 0.5,
    "text_number": "1e-3",
    "large": 256,
    "huge": 10**400,  # more than a float holds
    "list": ["console", "wandb"],
    "unknown": UNKNOWN,
    "unknown_too": Unknown(("$TYPE",)),
}


def evaluate(condition: Condition | None, given_by_hand: tuple[str, ...] = ()) -> Known:
    return holds(condition, Lookup(VALUES.__getitem__, given_by_hand.__contains__))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, True),
        ({}, True),
        ({"yes": "truthy"}, True),
        ({"no": "truthy"}, False),
        ({"none": "falsy"}, True),
        ({"zero": "falsy"}, True),
        ({"empty": "falsy"}, True),
        ({"off": "truthy"}, True),
        ({"unknown": "truthy"}, None),
        ({"unknown": "falsy"}, None),
        ({"yes": True}, True),
        ({"yes": 1}, False),  # true is not 1
        ({"zero": False}, False),
        ({"zero": 0}, True),
        ({"none": None}, True),
        ({"word": "low_var_kl"}, True),
        ({"word": "kl"}, False),
        ({"unknown": "kl"}, None),
        ({"word": {"in": ["kl", "low_var_kl"]}}, True),
        ({"word": {"in": []}}, False),
        ({"huge": {"above": 0.5}}, True),
        ({"huge": {"below": 1}}, False),
        ({"word": {"not-in": ["kl", "k1"]}}, True),
        ({"list": {"in": ["wandb", "tensorboard"]}}, True),  # any of a list's items
        ({"list": {"not-in": ["wandb"]}}, False),
        ({"unknown": {"in": ["kl"]}}, None),
        ({"unknown": {"not-in": ["kl"]}}, None),
        ({"word": {"equals": "low_var_kl"}}, True),
        ({"number": {"above": 0}}, True),
        ({"number": {"above": 0.5}}, False),
        ({"number": {"below": 1}}, True),
        ({"number": {"above": 0, "below": 0.4}}, False),
        ({"text_number": {"above": 0}}, True),
        ({"word": {"above": 0}}, None),  # not a number: nothing is known
        ({"none": {"above": 0}}, None),
        ({"yes": {"above": 0}}, None),
        ({"unknown": {"above": 0}}, None),
        ({"large": {"above": {"setting": "number"}}}, True),
        ({"number": {"above": {"setting": "large"}}}, False),
        ({"number": {"above": {"setting": "unknown"}}}, None),
        ({"word": {"equals": {"setting": "word"}}}, True),
        ({"word": {"matches": "^low_"}}, True),
        ({"word": {"matches": "^var"}}, False),
        ({"number": {"matches": "5"}}, False),
        ({"unknown": {"matches": "x"}}, None),
    ],
)
def test_comparisons(condition: Condition, expected: Known) -> None:
    assert evaluate(condition) is expected


def test_set_means_given_by_hand() -> None:
    assert evaluate({"unknown": "set"}, ("unknown",)) is True
    assert evaluate({"word": "set"}) is False
    assert evaluate({"word": "unset"}) is True


KNOWN: tuple[tuple[Condition, Known], ...] = (
    ({"yes": "truthy"}, True),
    ({"no": "truthy"}, False),
    ({"unknown": "truthy"}, None),
)


@pytest.mark.parametrize(("left", "a"), KNOWN)
@pytest.mark.parametrize(("right", "b"), KNOWN)
def test_truth_tables(left: Condition, a: Known, right: Condition, b: Known) -> None:
    both = False if False in (a, b) else None if None in (a, b) else True
    either = True if True in (a, b) else None if None in (a, b) else False
    assert evaluate({"all": [dict(left), dict(right)]}) is both
    assert evaluate({"any": [dict(left), dict(right)]}) is either
    assert evaluate({"not": dict(left)}) is (None if a is None else not a)


def test_items_of_one_mapping_must_all_hold() -> None:
    assert evaluate({"yes": "truthy", "no": "truthy"}) is False
    assert evaluate({"unknown": "truthy", "no": "truthy"}) is False  # one that fails decides, whatever the others are
    assert evaluate({"unknown": "truthy", "yes": "truthy"}) is None


def test_the_settings_asked_for_are_remembered() -> None:
    lookup = Lookup(VALUES.__getitem__, lambda name: False)
    holds({"any": [{"word": "kl"}, {"number": {"below": {"setting": "large"}}}], "yes": "truthy"}, lookup)
    assert set(lookup.asked) == {"word", "number", "large", "yes"}


_leaves = st.sampled_from([dict(condition) for condition, _ in KNOWN])
_conditions = st.recursive(
    _leaves,
    lambda parts: st.one_of(
        st.builds(lambda items: {"any": items}, st.lists(parts, max_size=3)),
        st.builds(lambda items: {"all": items}, st.lists(parts, max_size=3)),
        st.builds(lambda item: {"not": item}, parts),
    ),
    max_leaves=6,
)


@given(_conditions)
def test_a_known_answer_does_not_hang_on_what_is_unknown(condition: Condition) -> None:
    """Whatever the unknown value turns out to be, a condition that was decided without it stays decided."""
    answer = evaluate(condition)
    outcomes = {
        holds(condition, Lookup({**VALUES, "unknown": value}.__getitem__, lambda name: False))
        for value in (True, False)
    }
    if answer is None:
        assert None not in outcomes
    else:
        assert outcomes == {answer}
