"""What the rules say that a setting is where nothing is set."""

from __future__ import annotations

from dataclasses import dataclass, field

from packaging.version import Version

from klaudit.frameworks.conditions import Lookup, holds
from klaudit.frameworks.rules import Case, Default, SettingSpec, Trainer
from klaudit.model import Unknown, Value


@dataclass(slots=True)
class Expected:
    """One trainer in one release, started with one primary config."""

    trainer: Trainer
    version: Version
    config: str
    _pending: set[str] = field(default_factory=set)

    def default(self, id: str) -> Default | None:
        """The default that counts.  Raises LookupError where that hangs on what only a launch can tell."""
        for default in self.trainer.settings[id].defaults:
            if default.config and self.config not in default.config:
                continue
            applies = self._holds(default)
            if applies is None:
                raise LookupError(id)
            if applies:
                return default
        return None

    def names(self, spec: SettingSpec) -> list[str]:
        """The spellings that this release reads."""
        return [name.name for name in spec.names if self._holds(name) is not False]

    def _holds(self, case: Case) -> bool | None:
        if self.version not in case.versions:
            return False
        return holds(case.when, Lookup(self._value, lambda name: False))

    def _value(self, name: str) -> Value:
        if name == "$config":
            return self.config
        if name.startswith("$") or name in self._pending:
            return Unknown((name,))
        self._pending.add(name)
        try:
            default = self.default(name)
        except LookupError:
            return Unknown((name,))
        finally:
            self._pending.discard(name)
        return None if default is None else default.value
