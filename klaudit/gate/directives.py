"""`# klaudit: ignore[KLA101] why`: what a comment says, and what is wrong with one that says it badly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from klaudit.configuration_file import did_you_mean
from klaudit.findings import catalogue

MARKER = b"klaudit:"
Verb: TypeAlias = Literal["ignore", "ignore-file", "ignore-start", "ignore-end"]
VERBS: tuple[Verb, ...] = get_args(Verb)
META = frozenset({"KLA001", "KLA002"})  # about the comments themselves

_HEAD = re.compile(r"(?:\A|(?<=[ \t]))#+[ \t]*klaudit:[ \t]*")
_VERB = re.compile(r"[A-Za-z][A-Za-z_-]*")
_LIST = re.compile(r"[ \t]*\[([^\]]*)(\]?)")
_NAME = re.compile(r"[^\s,]+")
_BEFORE_REASON = re.compile(r"[ \t]*(?:--|[-:\u2013\u2014])?[ \t]*")
_LONGEST_SHOWN = 60


class Named(Struct, frozen=True):
    """A rule as the comment writes it, at `start`..`end` of the comment; `rule` is its id, empty where `problem` says what is wrong."""

    start: int
    end: int
    rule: str
    problem: str = ""


class Directive(Struct, frozen=True):
    """What stands at `start`..`end` of a comment.  Where `problem` is not empty it is not understood, and does nothing."""

    start: int
    end: int
    verb: Verb = "ignore"
    names: tuple[Named, ...] = ()
    reason: str = ""
    problem: str = ""

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(name.rule for name in self.names if name.rule)


def directives(comment: str) -> Iterator[Directive]:
    """Those of one comment, in order; `comment` begins with its `#`.  What follows the rules is the reason."""
    heads = list(_HEAD.finditer(comment))
    for at, head in enumerate(heads):
        stop = heads[at + 1].start() if at + 1 < len(heads) else len(comment)
        yield _directive(comment, head.start(), head.end(), stop)


def _directive(comment: str, start: int, at: int, stop: int) -> Directive:
    end = start + len(comment[start:stop].rstrip())
    word = _VERB.match(comment, at, stop)
    verb = next((verb for verb in VERBS if word is not None and word.group() == verb), None)
    if word is None or verb is None:
        shown = word.group() if word is not None else comment[at:end]
        hint = did_you_mean(shown[:_LONGEST_SHOWN], VERBS)
        return Directive(start, end, problem=f"`{_short(shown)}` is nothing klaudit knows{hint}")
    found = _LIST.match(comment, word.end(), stop)
    if found is not None and not found[2]:
        return Directive(start, end, problem=f"the `]` after `{verb}[` is missing")
    names = tuple(_named(match) for match in _NAME.finditer(comment, *found.span(1))) if found is not None else ()
    if not names and verb != "ignore-end":
        return Directive(start, end, problem=f"it names no rule: write `klaudit: {verb}[KLA101] and why`")
    reason = comment[found.end() if found is not None else word.end() : end]
    separator = _BEFORE_REASON.match(reason)
    return Directive(start, end, verb, names, reason[separator.end() if separator else 0 :].strip())


def _named(match: re.Match[str]) -> Named:
    rule, problem = _rule(match.group())
    return Named(match.start(), match.end(), rule, problem)


def _rule(word: str) -> tuple[str, str]:
    """The id that a word names, or what is wrong with it.  Prefixes are refused: they would also hide what later rules find."""
    known = catalogue.names()
    ids = known.values()
    rule = known.get(word) or (word.upper() if word.upper() in ids else "")
    if rule in META:
        return "", f"{rule} is about comments, and no comment suppresses it: `ignore` and `per-file-ignores` do"
    if rule:
        return rule, ""
    if any(each.startswith(word.upper()) for each in ids) or word.upper() == "ALL":
        return "", f"`{_short(word)}` is many rules: name each one"
    return "", f"unknown rule `{_short(word)}`{did_you_mean(word[:_LONGEST_SHOWN], [*known, *ids])}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
