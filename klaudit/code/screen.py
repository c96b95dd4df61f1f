"""Which files and which functions are worth reading: those that speak of log-probabilities and of a reference, or pass on a KL.

Everything here looks at bytes only, substrings before expressions.  A function is read when both kinds of word stand inside it; the
screen must let through whatever the rest of the package could recognise, which is measured by scanning with and without it.
"""

from __future__ import annotations

import ast
import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from klaudit.code import names
from klaudit.code.roles import REFERENCE

if TYPE_CHECKING:
    from klaudit.code.modules import FunctionInfo, Module

SUFFIXES = (".py", ".ipynb")  # of files that can hold formulas
# After lower-casing.  Each expression begins with a fixed text, which makes the search for it as fast as one for that text.
_LOG = re.compile(rb"log(?:p|_p|it|_softmax|lik|_likelihood)")
_LP = re.compile(rb"lp(?:rob|(?<![a-z]lp)s?(?![a-z]))")
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_USES = (b"loss", b"reward", b"advantage", b"backward")
_REFERENCE = re.compile(rb"ref(?:s|erences?)?(?:(?![a-z])|(?=log|lp|model|policy|prob))")
_OTHERS = tuple(
    word + joint
    for word in (b"base", b"sft", b"init", b"initial", b"anchor", b"frozen", b"pretrained")
    for joint in (b"", b"_")
)
_CALLS_KL = re.compile(rb"kl\w*\s*\(")
# `REG_REGISTRY.get(kind)`, `LOSSES[kind]`: a function out of a table of the tree, which may be what compares the two
_PICKS = re.compile(rb"(?:REG|KL|LOSS|PENALT|ESTIMATOR|DIVERGENCE)\w*(?:\.get\(|\[)")
_TABLE_NAME = re.compile(rb"\w+$")
_UNIT = re.compile(rb"\n(?:@|def\b|async def\b|class\b)")
_METHOD = re.compile(rb"\n    (?:def\b|async def\b)")
_IN_NAMES = b"abcdefghijklmnopqrstuvwxyz0123456789_"
_STEP = 64  # bytes: hardly a name is longer


class Hits(Struct, frozen=True):
    """Where the words stand, as sorted byte offsets."""

    reference: tuple[int, ...]
    log_probability: tuple[int, ...]
    kl: tuple[int, ...]

    def both(self, start: int, end: int) -> bool:
        """A reference and a log-probability are spoken of in a range of bytes."""
        return _any(self.log_probability, start, end) and _any(self.reference, start, end)


def may_matter(data: bytes) -> bool:
    """Whether a Python file could hold or pass on a KL penalty, by its bytes alone."""
    lowered = data.lower()
    has_use = any(word in lowered for word in _USES)
    if has_use and _CALLS_KL.search(lowered) is not None:
        return True
    if not _has_log_probability(lowered):
        return False
    if has_use and _PICKS.search(data) is not None:
        return True
    found = _hits_in(lowered)
    return any(found.both(start, end) for start, end in _units(data))


def tables_picked_from(data: bytes, start: int = 0, end: int | None = None) -> tuple[str, ...]:
    """The names of tables that a range of bytes picks functions from."""
    found: dict[str, None] = {}
    for match in _PICKS.finditer(data, start, len(data) if end is None else end):
        first = _TABLE_NAME.search(data, max(match.start() - _STEP, 0), match.start())
        at = match.start() if first is None else first.start()
        name, _, _ = data[at : match.end()].replace(b"[", b".").partition(b".")
        found.setdefault(name.decode("ascii", "replace"))
    return tuple(found)


def is_test(path: str) -> bool:
    """A test computes formulas to compare them and trains nothing."""
    *folders, name = path.split("/")
    stem = name.removesuffix(".py")
    return (
        not _TEST_FOLDERS.isdisjoint(folders)
        or stem.startswith("test_")
        or stem.endswith("_test")
        or stem == "conftest"
    )


def hits(data: bytes) -> Hits:
    return _hits_in(data.lower())


class Screened(Struct, frozen=True):
    """The functions of a module: those that hold both words, those that only call or read something named KL, and the rest.

    The first are read; the others only where they use what those give.
    """

    direct: tuple[FunctionInfo, ...]
    passing: tuple[FunctionInfo, ...]
    rest: tuple[FunctionInfo, ...]
    top_level: tuple[ast.stmt, ...]
    top_level_matters: bool


def screen(module: Module) -> Screened:
    found = hits(module.source.data)
    direct: list[FunctionInfo] = []
    passing: list[FunctionInfo] = []
    rest: list[FunctionInfo] = []
    for info in module.top_level():
        start, end = module.extent(info.syntax)
        if found.both(start, end):
            direct.append(info)
        elif _any(found.kl, start, end):
            passing.append(info)
        else:
            rest.append(info)
    statements = _outside_definitions(module)
    inside = [module.extent(node) for node in statements]
    matters = any(_any(found.log_probability, *extent) for extent in inside) and any(
        _any(found.reference, *extent) for extent in inside
    )
    return Screened(tuple(direct), tuple(passing), tuple(rest), tuple(statements), matters)


def _outside_definitions(module: Module) -> list[ast.stmt]:
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [node for node in module.syntax.body if not isinstance(node, definitions)]


def touches_log_probabilities(info: FunctionInfo) -> bool:
    """Whether a function that is called speaks of a reference's log-probabilities, or makes log-probabilities out of logits."""
    return _touches(info.module.source.data, *info.module.extent(info.syntax))


@lru_cache(maxsize=2048)
def _touches(data: bytes, start: int, end: int) -> bool:
    body = data[start:end].lower()
    return b"log_softmax" in body or (_has_log_probability(body) and bool(_hits_in(body).reference))


def _has_log_probability(lowered: bytes) -> bool:
    return _LOG.search(lowered) is not None or _LP.search(lowered) is not None


def _hits_in(lowered: bytes) -> Hits:
    log_probability = sorted(match.start() for word in (_LOG, _LP) for match in word.finditer(lowered))
    reference = [match.start() for match in _REFERENCE.finditer(lowered) if _starts_word(lowered, match.start())]
    for model in (b"model", b"policy"):
        reference += [at for at in _places(lowered, model) if lowered.endswith(_OTHERS, 0, at)]
    reference += _places(lowered, b"disable_adapter") + _places(lowered, b"use_adapter")
    reference += _of_reference(lowered, log_probability)
    return Hits(tuple(sorted(reference)), tuple(log_probability), tuple(_places(lowered, b"kl")))


def _places(lowered: bytes, word: bytes) -> list[int]:
    places, at = [], lowered.find(word)
    while at != -1:
        places.append(at)
        at = lowered.find(word, at + len(word))
    return places


def _starts_word(lowered: bytes, at: int) -> bool:
    return at == 0 or not 97 <= lowered[at - 1] <= 122


def _of_reference(lowered: bytes, offsets: Iterable[int]) -> list[int]:
    """Those of the offsets, which ascend, around which an identifier names another model's log-probability (`base_action_log_probs`)."""
    found: list[int] = []
    end, is_reference = 0, False
    for at in offsets:
        if at >= end:
            start, end = _name_around(lowered, at)
            is_reference = names.holder(lowered[start:end].decode("ascii")) == REFERENCE
        if is_reference:
            found.append(at)
    return found


def _name_around(lowered: bytes, at: int) -> tuple[int, int]:
    """The range of the identifier that an offset stands in."""
    start = at
    while before := lowered[max(start - _STEP, 0) : start]:
        start -= len(before) - len(before.rstrip(_IN_NAMES))
        if start > 0 and lowered[start - 1] not in _IN_NAMES:
            break
    end = at
    while behind := lowered[end : end + _STEP]:
        end += len(behind) - len(behind.lstrip(_IN_NAMES))
        if end < len(lowered) and lowered[end] not in _IN_NAMES:
            break
    return start, end


def _units(data: bytes) -> list[tuple[int, int]]:
    """Byte ranges that no function reaches across: top-level statements between definitions, functions, and methods of classes."""
    starts = [0, *(match.start() for match in _UNIT.finditer(data)), len(data)]
    units: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(starts):
        if data.startswith((b"class", b"\nclass"), start):
            methods = [start, *(match.start() for match in _METHOD.finditer(data, start, end)), end]
            units += itertools.pairwise(methods)
        else:
            units.append((start, end))
    return units


def _any(offsets: tuple[int, ...], start: int, end: int) -> bool:
    at = bisect_left(offsets, start)
    return at < len(offsets) and offsets[at] < end
