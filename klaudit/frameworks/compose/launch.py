"""Overrides on a base, in Hydra's and OmegaConf's struct mode: what a launch's command line makes of a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from klaudit.frameworks.compose.configuration import Base, Configuration, Own
from klaudit.frameworks.compose.found import DeadEndError, UnresolvedError
from klaudit.frameworks.compose.interpolation import malformed
from klaudit.frameworks.compose.items import Leaf, from_value
from klaudit.frameworks.compose.merging import MAX_MERGED, RefusedError, Work
from klaudit.frameworks.compose.overrides import Override
from klaudit.model import Problem, Unknown


def launch(
    base: Base,
    overrides: Sequence[Override],
    *,
    environment: Mapping[str, str | None] | None = None,
    problems: Sequence[Problem] = (),
) -> Configuration:
    """The base with overrides applied in order; the first one that the program would not accept makes it `refused`.

    Settings after that one are still applied, so that the rest can be judged.
    """
    applied = _Launch(base, environment)
    for override in overrides:
        applied.take(override)
    return Configuration(
        applied.work.root,
        own=applied.own,
        base=base,
        problems=(*problems, *applied.problems),
        refused=applied.refused,
        refusals=applied.refusals,
        hangs_on=tuple(dict.fromkeys(applied.hangs_on)),
        environment=environment,
    )


class _Launch:
    def __init__(self, base: Base, environment: Mapping[str, str | None] | None) -> None:
        self._base = base
        self.work = Work(base.root, environment)
        self.own: list[Own] = []
        self.problems: list[Problem] = []
        self.refused: str | None = None
        self.refusals: list[tuple[str, str]] = []
        self.hangs_on: list[str] = []

    def take(self, override: Override) -> None:
        problem = override.parsed.problem
        if problem is not None:
            if override.parsed.hangs_on:
                self.hangs_on.extend(override.parsed.hangs_on)
                self.problems.append(override.complaint(f"{override.parsed.text}: {problem}"))
                return
            self._refuse(override, problem)
            return
        try:
            self._apply(override)
        except RefusedError as error:
            self._refuse(override, str(error))
        except DeadEndError as error:
            if not self._base.unseen:
                self._refuse(override, f"{override.key} hangs on {error}, which cannot be resolved")
        except UnresolvedError:
            pass  # whether the program accepts it cannot be known

    def _apply(self, override: Override) -> None:
        name, value, parsed = override.key, override.value, override.parsed
        is_free = (
            name == "hydra" or name.startswith("hydra.") or self._may_exist(name)
        )  # Hydra's own config is not modelled
        if parsed.prefix == "~":
            if not is_free:
                self.work.remove(name, value)
            return
        item = from_value(value, override)
        if "${" in parsed.text and (wrong := malformed(item, MAX_MERGED)) is not None:
            raise RefusedError(wrong[1])
        self.own.append(Own(name, item))
        adds = is_free or parsed.prefix != ""
        if parsed.prefix == "+" and not is_free and self._is_set(name) and isinstance(item, Leaf):
            raise RefusedError(f"{name} is already in the config: without +, or with ++, {parsed.text} would change it")
        try:
            self.work.update(name, item, adds=adds)
        except RefusedError as error:
            if adds or "there is no" not in str(error):
                raise
            raise RefusedError(f"{error}: only +{parsed.text} would add it") from None

    def _is_set(self, name: str) -> bool:
        try:
            current = self.work.current(name)
        except DeadEndError:
            raise
        except UnresolvedError:
            return False
        return current is not None and not isinstance(current, Unknown)

    def _may_exist(self, name: str) -> bool:
        """Whether a key that we do not see may exist all the same."""
        base = self._base
        if base.refused is not None:  # a composition that broke off lacks the keys of what was to follow
            return True
        if base.is_closed and not base.unseen:
            return False
        packages = [unseen.package for unseen in base.unseen]
        return not base.is_closed or any(not each or f"{name}.".startswith(f"{each}.") for each in packages)

    def _refuse(self, override: Override, reason: str) -> None:
        self.refused = self.refused or reason
        self.refusals.append((override.key, reason))
        self.problems.append(override.complaint(f"refused: {reason}"))
