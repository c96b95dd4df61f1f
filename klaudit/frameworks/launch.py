"""A launch: one thing in the tree that trains, or configures a training, of a known framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct, field

from klaudit.frameworks.rules import EntryPoint, Framework, Trainer
from klaudit.model import EstimatorName, FrameworkVersion, Gradient, Placement, Setting, SetupKind, Span, Value
from klaudit.readers.document import Word


class Configuration(Protocol):
    """What a configuration system made of defaults, files and overrides: the effective settings, each with its place."""

    @property
    def refusals(self) -> Sequence[tuple[str, str]]:
        """Why the program stops before training: `(name of the setting, reason)`, the name empty for the program as a whole."""

    def get(self, name: str) -> Setting | None:
        """The effective setting of a dotted name or flag; None where nothing in the tree sets it."""

    def given(self, name: str) -> tuple[Setting, ...]:
        """What was set for this name by hand (overrides, keywords, keys of the file itself), in order; the last one counts."""

    def explicit_names(self) -> Sequence[str]:
        """The names of all that was set by hand, in order."""


class Consumed(Struct, frozen=True):
    """What the code that a launch runs makes of one of its terms, where that is beyond doubt.

    `sign` is -1 where it drives the policy away from the reference.  `formula` is the expression or the call that leads to it, `text`
    quotes that, `joined` is the sum with the rest of the loss or reward.  `live` is the range of d outside which a clamp is in force,
    empty without one; `cut` where that ends so near the reference that what is left is another form.
    """

    estimator: EstimatorName
    gradient: Gradient
    sign: int
    formula: Span
    joined: Span
    text: str
    live: str = ""
    cut: bool = False

    def told(self, placement: Placement) -> str:
        """`reaches kl_penalty() at algos.py:12 (k3) and enters the loss at actor.py:40`, with what is odd about it."""
        verb = "is " + ("subtracted from" if placement == "loss" else "added to") if self.sign < 0 else "enters"
        lost = " without gradient" if placement == "loss" and self.gradient == "none" else ""
        formula, joined = (f"{span.path}:{span.line}" for span in (self.formula, self.joined))
        beyond = "no gradient" if placement == "loss" else "constant"
        form = f"{self.estimator}, clamped: {beyond} outside {self.live}" if self.live else self.estimator
        return f"reaches `{self.text}` at {formula} ({form}) and {verb} the {placement} at {joined}{lost}"


class Code(Protocol):
    """The framework's source in the tree, as far as a launch runs it."""

    def consumed(
        self, placement: Placement, estimator: str, coefficient: str, ask: Callable[[tuple[str, ...]], Value]
    ) -> Consumed | None:
        """A term by the names of the settings of its estimator and coefficient (empty without one); None where nothing is certain.

        `ask` gives the value of a setting as code spells it, by its parts; Unknown where nothing says it.
        """

    def gives_meaning(self, word: str, known: frozenset[str]) -> bool:
        """Whether it has a word beside words that releases know, so that it is no error to choose it."""


class Launch(Struct, frozen=True):
    """`target` is the module, script, program, class or file that identifies it; `config_name` the primary config, where there is one.

    `head` is the place that stands for the launch as a whole (the entry point's word, the class name, the file's first key).
    """

    framework: Framework
    trainer: Trainer
    entry_point: EntryPoint | None
    kind: SetupKind
    target: str
    config_name: str
    head: Span
    symbol: str
    assumes: tuple[str, ...]
    configuration: Configuration
    imports: tuple[str, ...]
    version: FrameworkVersion
    stray: tuple[Word, ...] = field(default=())  # what stands below the command as if it belonged to it
    words: tuple[Word, ...] = field(default=())  # the arguments of the command, in order
    facts: tuple[str, ...] = ()  # to be told with what it trains
    code: Code | None = None  # what it runs, where that lies in the tree
