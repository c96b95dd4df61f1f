"""The plainest system: settings given by hand, in order, over a base."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from klaudit.frameworks.launch import Configuration
from klaudit.model import Setting, Span, Unknown


def _as_is(name: str) -> str:
    return name


class LayeredConfiguration:
    """`given` over `base`; the last setting of a name wins.  `normalise` maps the spellings of one name to one key."""

    def __init__(
        self,
        given: Iterable[Setting],
        base: Mapping[str, Setting] | None = None,
        *,
        normalise: Callable[[str], str] = _as_is,
    ) -> None:
        self._given = tuple(given)
        self._normalise = normalise
        self._base = {normalise(name): setting for name, setting in (base or {}).items()}
        self._by_name: dict[str, list[Setting]] = {}
        for setting in self._given:
            self._by_name.setdefault(normalise(setting.name), []).append(setting)

    @property
    def refusals(self) -> tuple[tuple[str, str], ...]:
        return ()

    def get(self, name: str) -> Setting | None:
        name = self._normalise(name)
        found = self._by_name.get(name)
        return found[-1] if found else self._base.get(name)

    def given(self, name: str) -> tuple[Setting, ...]:
        return tuple(self._by_name.get(self._normalise(name), ()))

    def explicit_names(self) -> tuple[str, ...]:
        return tuple(setting.name for setting in self._given)


class Refused:
    """Another configuration whose launch stops before training."""

    def __init__(self, configuration: Configuration, why: str, setting: str = "") -> None:
        self._configuration = configuration
        self.refusals: tuple[tuple[str, str], ...] = ((setting, why),)

    def get(self, name: str) -> Setting | None:
        return self._configuration.get(name)

    def given(self, name: str) -> tuple[Setting, ...]:
        return self._configuration.given(name)

    def explicit_names(self) -> Sequence[str]:
        return self._configuration.explicit_names()


class Unseen:
    """Another configuration below which lies a file that the tree does not hold: what is not set above it is unknown."""

    def __init__(self, configuration: Configuration, what: str, place: Span) -> None:
        self._configuration = configuration
        self._what = what
        self._place = place

    @property
    def refusals(self) -> Sequence[tuple[str, str]]:
        return self._configuration.refusals

    def get(self, name: str) -> Setting | None:
        found = self._configuration.get(name)
        return found or Setting(name, Unknown((self._what,)), self._place, self._place, "default")

    def given(self, name: str) -> tuple[Setting, ...]:
        return self._configuration.given(name)

    def explicit_names(self) -> Sequence[str]:
        return self._configuration.explicit_names()
