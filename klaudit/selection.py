"""Which rules and findings are wanted: by id, by prefix of an id, or by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from klaudit.configuration import Options
from klaudit.globs import any_of

EVERYTHING = "ALL"
PREFIX = "KLA"


def matches(selector: str, rule: str, name: str) -> bool:
    """Whether a selector (`KLA101`, `KLA1`, `k3-in-loss`, `ALL`) means the rule with this id and name, whatever its case."""
    return _weight(selector, rule, name) is not None


def unknown_selectors(selectors: Iterable[str], rules: Mapping[str, str]) -> list[str]:
    """Those that mean no rule of `rules` (id -> name), in their order."""
    return [s for s in selectors if not any(matches(s, rule, name) for rule, name in rules.items())]


@dataclass(frozen=True, slots=True)
class Selection:
    """The wanted findings of a scan: what `select` takes in and `ignore` does not; of the two the more specific counts."""

    select: tuple[str, ...]
    ignore: tuple[str, ...]
    per_file: tuple[tuple[Callable[[str], bool], tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, options: Options, root: str) -> Selection:
        """`root` is the absolute folder that findings' paths are relative to."""
        per_file = tuple((any_of((item.globs,), root), item.selectors) for item in options.per_file_ignores)
        return cls(options.select, options.ignore, per_file)

    def wants_rule(self, rule: str, name: str) -> bool:
        """Whether a rule is wanted anywhere at all."""
        taken = 0 if not self.select else _best(self.select, rule, name)
        if taken is None:
            return False
        dropped = _best(self.ignore, rule, name)
        return dropped is None or taken > dropped

    def wants(self, rule: str, name: str, path: str) -> bool:
        """Whether a finding of that rule in that file is wanted."""
        if not self.wants_rule(rule, name):
            return False
        return not any(is_in(path) and _best(selectors, rule, name) is not None for is_in, selectors in self.per_file)


def _best(selectors: Iterable[str], rule: str, name: str) -> int | None:
    weights = [weight for s in selectors if (weight := _weight(s, rule, name)) is not None]
    return max(weights, default=None)


def _weight(selector: str, rule: str, name: str) -> int | None:
    """How specific a selector is for a rule, None where it does not mean it."""
    upper = selector.upper()
    if upper == EVERYTHING:
        return 0
    if upper.startswith(PREFIX) and rule.startswith(upper):
        return len(upper)
    return len(rule) if selector.lower().replace("_", "-") == name else None
