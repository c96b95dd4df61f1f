"""`# klaudit: ignore[KLA101] why`: what a comment says, and what is wrong with one that says it badly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from klaudit.corrections import did_you_mean
from klaudit.findings import catalogue
from klaudit.patterns import rare

MARKER = b"klaudit:"
Verb: TypeAlias = Literal["ignore", "ignore-file", "ignore-start", "ignore-end"]
VERBS: tuple[Verb, ...] = get_args(Verb)
META = frozenset({"KLA001", "KLA002"})  # about the comments themselves

_HEAD = re.compile(r"(?:\A|(?<=[ \t]))#+[ \t]*klaudit:[ \t]*")
_VERB = re.compile(r"[A-Za-z][A-Za-z_-]*")
_LIST = re.compile(r"[ \t]*\[([^\]]*)(\]?)")
_NAME = re.compile(r"[^\s,]+")
# what other tools are told in the same comment is no reason
_OF_OTHERS = rare(
    r"(?<=\s)#+\s*(?:(?:checkov|fmt|isort|mypy|pragma|pylint|pyrefly|pyright|ruff|skipcq|ty|type|yapf|zizmor)\s*:"
    r"|(?:flake8|nolint|noqa|nosec|nosemgrep|NOSONAR|shellcheck|yamllint)\b)"
)
_BEFORE_REASON = rare(r"[ \t]*(?:--|[-:\u2013\u2014])?[ \t]*")
_SAYS_SOMETHING = re.compile(r"\w")
_LONGEST_SHOWN = 60
_MOST_NAMES = 100


class Named(Struct, frozen=True):
    """A rule as the comment writes it, at `start`..`end` of the comment; `rule` is its id, empty where a comment cannot name it."""

    start: int
    end: int
    word: str
    rule: str

    @property
    def problem(self) -> str:
        """Why a comment cannot name this; empty where it can."""
        return "" if self.rule else _problem(self.word)


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
        if other := _OF_OTHERS.search(comment, head.end(), stop):
            stop = other.start()
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
    matches = islice(_NAME.finditer(comment, *found.span(1)), _MOST_NAMES + 1) if found is not None else ()
    names = tuple(map(_named, matches))
    if len(names) > _MOST_NAMES:
        return Directive(start, end, problem=f"it names more than {_MOST_NAMES} rules")
    if not names and verb != "ignore-end":
        return Directive(start, end, problem=f"it names no rule: write `klaudit: {verb}[KLA101] and why`")
    reason = comment[found.end() if found is not None else word.end() : end]
    separator = _BEFORE_REASON.match(reason)
    reason = reason[separator.end() if separator else 0 :].strip()
    return Directive(start, end, verb, names, reason if _SAYS_SOMETHING.search(reason) else "")


def _named(match: re.Match[str]) -> Named:
    word = match.group()
    known = catalogue.names()
    rule = known.get(word) or word.upper()
    return Named(match.start(), match.end(), word, rule if rule in known.values() and rule not in META else "")


def _problem(word: str) -> str:
    """What is wrong with a word that is no rule.  Prefixes are refused: they would also hide what later rules find."""
    known = catalogue.names()
    rule = known.get(word) or word.upper()
    if rule in META:
        return f"{rule} is about comments, and no comment suppresses it: `ignore` and `per-file-ignores` do"
    if rule == "ALL" or any(each.startswith(rule) for each in known.values()):
        return f"`{_short(word)}` is many rules: name each one"
    return f"unknown rule `{_short(word)}`{did_you_mean(word[:_LONGEST_SHOWN], [*known, *known.values()])}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
