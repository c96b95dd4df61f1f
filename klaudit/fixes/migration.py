"""What `fix` makes of a launch: a migration with its edits, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field

from klaudit.frameworks.rules import CodeChange
from klaudit.model import Edit, Problem, Safety, Setup

TARGETS = ("k1-in-reward", "k2-in-loss", "straight-through", "importance-weighted", "no-kl")


class RequestError(ValueError):
    """A request that names what no rule knows."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for.  `unsafe` lets changes through that reach beyond the values of settings."""

    target: str = "k1-in-reward"
    keep_std: bool = False
    unsafe: bool = False
    choice: str = ""  # of several ways to the target, which the rules give names


@dataclass(frozen=True, slots=True)
class Migration:
    """One launch from `before` to `after` (None until it is proven).

    `at` is the place of the launch among those of its file; `rescued` are the settings that keep the penalty out of group-std
    normalisation; `notes` say what else the user should know of these edits.
    """

    path: str
    at: int
    before: Setup
    rules: tuple[str, ...]
    target: str
    title: str
    explanation: str
    rescued: tuple[str, ...]
    safety: Safety
    edits: tuple[Edit, ...]
    names: frozenset[str]
    amount: float | None
    after: Setup | None = None
    notes: tuple[str, ...] = ()
    code: CodeChange | None = None
    mentions: tuple[str, ...] = ()  # the files that `notes` name


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A launch with a finding that is not fixed; `instead` are commands or settings that would help, `mentions` files that `why` names."""

    setup: Setup
    rules: tuple[str, ...]
    why: str
    instead: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()


@dataclass(slots=True)
class Plan:
    """All migrations of a tree, proven together, and the edited files as they were read and as they will be."""

    root: str

    migrations: list[Migration] = field(default_factory=list)
    unchanged: list[Unchanged] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    originals: dict[str, bytes] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
