"""Which later statements have changed an object by the time it is used, and under which conditions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

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
    binding, holder = found.binding, found.place.scope
    if binding is None:
        return result
    views = _views(use, holder)
    elsewhere: list[Change] = []
    for change in evaluator.changes_of(name):
        if not _means(change.scope, name, holder):
            continue
        view = views.get(id(change.scope))
        if view is None:
            elsewhere.append(change)
            continue
        after = binding.position if change.scope is holder else -1
        loop = shared_loop(change.block, view.place.block)
        comes_round = loop is not None and (change.scope is not holder or loop not in binding.block.ancestors())
        if comes_round and (change.position > view.place.position or change.how not in _SAME_WHEN_REPEATED):
            elsewhere.append(change)
        if not after < change.position <= view.place.position:
            continue
        certain = happens(change.block, view.place, evaluator.runs)
        if certain is not False:
            condition = condition_of(change.block, view.place.block) if certain is None else ()
            if view.called is not None and change.position > view.called.defined:
                condition = (*condition, f"{view.called.name}()")  # it may be called before
            result = mutated(evaluator, result, change, condition)
    for change in elsewhere:  # they may come after everything else
        names = (f"{change.scope.name}()",) if id(change.scope) not in views else condition_of(change.block, use.block)
        result = mutated(evaluator, result, change, names)
    return result


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
