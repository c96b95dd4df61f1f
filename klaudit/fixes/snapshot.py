"""A tree as it trains: every launch of every file with its terms and settings, to be compared with the same tree after edits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from klaudit.frameworks.launch import Launch
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.resolve import resolve
from klaudit.model import Problem, Setup, Term, Value
from klaudit.readers.source import UnreadableError
from klaudit.scanner import Scanner
from klaudit.tree import TooLargeError


@dataclass(frozen=True, slots=True)
class Identity:
    framework: str
    trainer: str
    kind: str
    target: str
    config_name: str
    symbol: str
    assumes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trained:
    """One launch: what identifies it whatever its settings, and what it trains with."""

    identity: Identity
    setup: Setup
    refusals: tuple[tuple[str, str], ...]
    settings: dict[str, Value]

    @property
    def effect(self) -> tuple[object, ...]:
        return (self.setup.verdict, self.setup.algorithm, tuple(map(effect_of, self.setup.terms)), self.refusals)


def trained(resolution: Resolution) -> Trained:
    """What a launch trains with; of its settings those set by hand."""
    launch = resolution.launch
    configuration = launch.configuration
    settings = {}
    for name in dict.fromkeys(configuration.explicit_names()):
        setting = configuration.get(name)
        settings[name] = setting.value if setting is not None else None
    return Trained(_identity(launch), resolution.setup, tuple(configuration.refusals), settings)


def effect_of(term: Term) -> tuple[object, ...]:
    return (
        term.placement, term.estimator, term.gradient, term.coefficient, term.active, term.verdict, term.score_weight,
        term.normalised_by_group_std,
    )  # fmt: skip


class Launches:
    """The launches of a tree by file and place, read again when they are asked for: few are, and all at once would fill memory."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._known: dict[str, list[Resolution]] = {}

    def of(self, path: str, at: int) -> Resolution:
        """Raises what reading the file may raise."""
        if path not in self._known:
            self._known[path] = list(resolutions(self._scanner, path))
        return self._known[path][at]


def resolutions(scanner: Scanner, path: str) -> Iterator[Resolution]:
    """The launches of a file, in order, duplicates and all.  Raises what reading the file may raise."""
    return map(resolve, scanner.gather(path).launches)


def problem_of(path: str, error: Exception) -> Problem:
    """A file that could not be read, as a row of errors."""
    if isinstance(error, RecursionError):
        return Problem(path, None, "nested too deeply")
    if not isinstance(error, READING):
        message = f"internal error, please report it: {type(error).__name__}: {error}"
        return Problem(path, None, message)
    return Problem(path, getattr(error, "line", None), getattr(error, "strerror", None) or str(error))


READING = (UnreadableError, TooLargeError, OSError, RecursionError)


def _identity(launch: Launch) -> Identity:
    return Identity(
        launch.framework.id,
        launch.trainer.id,
        launch.kind,
        launch.target,
        launch.config_name,
        launch.symbol,
        launch.assumes,
    )
