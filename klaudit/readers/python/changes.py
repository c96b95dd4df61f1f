"""Which later statements have changed an object by the time it is used, and under which conditions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from klaudit.readers.python.mutations import mutated
from klaudit.readers.python.names import names_in
from klaudit.readers.python.results import Result, unique
from klaudit.readers.python.scopes import EVER, Block, Change, Place, Reaching, Scope, happens, shared_loop

if TYPE_CHECKING:
    from klaudit.readers.python.evaluate import Evaluator

_SAME_WHEN_REPEATED = ("=", "update", "|=", "setdefault", "merge_with", "del", "clear")


def with_changes(evaluator: Evaluator, result: Result, name: str, found: Reaching, use: Place) -> Result:
    """The object bound to `name` with every change that has happened to it at the place of use.

    Changes made by functions other than those around the use may have happened.
    """
    binding = found.binding
    if binding is None:
        return result
    certain, uncertain = _history(evaluator, name, found, use)
    known_steps, known = evaluator.progress.get(id(binding), ([], result))
    if certain[: len(known_steps)] == known_steps:  # the object as an earlier use saw it
        result, steps = known, certain[len(known_steps) :]
    else:
        steps = certain
    for change, condition in steps:
        result = mutated(evaluator, result, change, condition)
    evaluator.progress[id(binding)] = (certain, result)
    for change, condition in uncertain:
        result = mutated(evaluator, result, change, condition)
    return result


_Step: TypeAlias = "tuple[Change, tuple[str, ...]]"
Progress: TypeAlias = "tuple[list[_Step], Result]"  # the changes an object has seen, and what it is after them


def _history(evaluator: Evaluator, name: str, found: Reaching, use: Place) -> tuple[list[_Step], list[_Step]]:
    """The changes before a use in order, each with what it hangs on, and those that may come at any time."""
    binding, holder = found.binding, found.place.scope
    assert binding is not None
    views = _views(use, holder)
    steps: list[_Step] = []
    any_time: list[_Step] = []
    for change in evaluator.changes_of(name):
        if not _means(change.scope, name, holder):
            continue
        view = views.get(id(change.scope))
        if view is None:
            any_time.append((change, (f"{change.scope.name}()",)))
            continue
        after = binding.position if change.scope is holder else -1
        loop = shared_loop(change.block, view.place.block)
        comes_round = loop is not None and (change.scope is not holder or loop not in binding.block.ancestors())
        if comes_round and (change.position > view.place.position or change.how not in _SAME_WHEN_REPEATED):
            any_time.append((change, condition_of(change.block, use.block)))
        if not after < change.position <= view.place.position:
            continue
        verdict = happens(change.block, view.place, evaluator.runs)
        if verdict is not False:
            condition = condition_of(change.block, view.place.block) if verdict is None else ()
            if view.called is not None and change.position > view.called.defined:
                condition = (*condition, f"{view.called.name}()")  # it may be called before
            steps.append((change, condition))
    return steps, any_time


class _Called(NamedTuple):
    """A function that holds the use, and where it is defined: it runs at any time after that."""

    name: str
    defined: int


class _View(NamedTuple):
    """A use as seen from a scope around it."""

    place: Place
    called: _Called | None


def _views(use: Place, last: Scope) -> dict[int, _View]:
    """The use as seen from each scope around it, up to the one that holds the binding."""
    place, called = use, None
    views = {id(place.scope): _View(place, called)}
    while place.scope is not last and place.scope.site is not None:
        site, name = place.scope.site, place.scope.name
        if place.scope.kind == "function":
            place, called = Place(site.scope, site.scope.root, EVER), _Called(name, site.position)
        else:
            place = site
        views[id(place.scope)] = _View(place, called)
    return views


def _means(scope: Scope, name: str, holder: Scope) -> bool:
    """Whether `name` in `scope` is the one that `holder` binds."""
    inner: Scope | None = scope
    while inner is not None and inner is not holder:
        declared = inner.outer_names.get(name)
        if declared == "global":
            return holder.kind == "module"
        if name in inner.bindings and declared is None:
            return False
        inner = inner.parent
    return inner is holder


def condition_of(block: Block, use: Block | None = None) -> tuple[str, ...]:
    """The names that decide whether `block` runs, given that `use` does."""
    holding = use.ancestors() if use is not None else []
    names: list[str] = []
    for part in block.ancestors():
        if part in holding:
            break
        if part.test is not None:
            names.extend(names_in(part.test))
        elif isinstance(part.owner, ast.For | ast.AsyncFor):
            names.extend(names_in(part.owner.iter))
        elif isinstance(part.owner, ast.While):
            names.extend(names_in(part.owner.test))
        elif isinstance(part.owner, ast.Match):
            names.extend(names_in(part.owner.subject))
        elif part.kind == "handler":
            names.append("an exception")
    return unique(names) or ("a condition",)
