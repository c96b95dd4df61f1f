"""The effective settings of one launch under one version of its framework, and the terms that they make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import Struct
from packaging.version import Version

from klaudit.frameworks.conditions import Known, Lookup, holds
from klaudit.frameworks.launch import Consumed, Launch
from klaudit.frameworks.rules import Case, Default, Fault, Name, SettingSpec, TermRule, Word
from klaudit.frameworks.values import as_typed, is_on
from klaudit.model import Evidence, Setting, Setup, Span, Term, Unknown, Value
from klaudit.theory import Row


class Effective(Struct, frozen=True):
    """The value of a setting that takes effect.  `name` is the spelling in use; `setting` is None for a shipped default."""

    id: str
    name: str
    value: Value
    setting: Setting | None
    default: Default | None
    unread: Setting | None = None  # set by hand, but this version does not read it

    @property
    def is_default(self) -> bool:
        """Whether the value is that of the shipped default."""
        return (
            self.default is not None
            and type(self.value) is type(self.default.value)
            and self.value == self.default.value
        )

    def evidence(self, note: str = "") -> Evidence:
        if self.setting is None:
            why = self.default.why if self.default else ""
            return Evidence(self.name, self.value, "default", None, None, None, note or why)
        place = self.setting.source or self.setting.value_span
        return Evidence(self.name, self.value, self.setting.origin, place.path, place.line, place, note)


class TermState(Struct, frozen=True):
    """A term with what the judges need to know about it beyond the report."""

    rule: TermRule
    term: Term
    row: Row
    on: Known
    switches: tuple[Effective, ...]
    estimator: Effective | None
    coefficient: Effective | None
    word: Word | None
    raises: str
    why: str
    group_std: Case | None
    ignored: Case | None
    length_averaged: Case | None
    consumed: Consumed | None = None  # what the tree's own code makes of it
    deciding: tuple[Effective, ...] = ()  # what decides the estimator where its own setting does not

    @property
    def is_broken(self) -> bool:
        """The code in the tree takes the penalty's gradient away, or turns it or its ratio round: no setting mends that."""
        code = self.consumed
        return code is not None and (
            code.sign < 0
            or code.estimator == "reversed-k3"
            or (self.term.placement == "loss" and code.gradient == "none")
        )


@dataclass(slots=True)
class Resolution:
    """One launch under one version."""

    launch: Launch
    version: Version
    terms: tuple[TermState, ...] = ()
    faults: tuple[tuple[Fault, Known], ...] = ()
    stale: tuple[Case, ...] = ()
    setup: Setup = field(init=False)
    _values: dict[str, Effective] = field(default_factory=dict)
    _pending: set[str] = field(default_factory=set)
    _spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __getitem__(self, id: str) -> Effective:
        """The effective value of a setting by id."""
        if id not in self._values:
            if id in self._pending:  # a default that hangs on itself
                return Effective(id, id, Unknown((id,)), None, None)
            self._pending.add(id)
            self._values[id] = self._resolve(id)
            self._pending.discard(id)
        return self._values[id]

    def lookup(self) -> Lookup:
        """How conditions of the rules ask for values here."""
        return Lookup(self._value, self._is_set)

    def first(self, cases: Iterable[Case]) -> tuple[Case | None, Known, dict[str, None]]:
        """The first case that holds for this version; (case, None, ..) where that hangs on an unknown value."""
        for case in cases:
            if self.version not in case.versions:
                continue
            lookup = self.lookup()
            known = holds(case.when, lookup)
            if known is not False:
                return case, known, lookup.asked
        return None, False, {}

    def first_as_shipped(self, cases: Iterable[Case]) -> tuple[Case | None, Known, tuple[str, ...]]:
        """The first case that holds where a config that cannot be seen leaves what nothing else sets as it ships, and what it leaves."""
        left: dict[str, None] = {}

        def value(name: str) -> Value:
            if name.startswith("$") or not isinstance(self[name].value, Unknown):
                return self._value(name)
            effective = self[name]
            if effective.setting is None or effective.setting.origin != "default" or effective.default is None:
                return effective.value
            hidden = effective.value.hangs_on if isinstance(effective.value, Unknown) else ()
            left[f"{', '.join(hidden)} leaves {effective.name} at {effective.default.value}"] = None
            return effective.default.value

        for case in cases:
            if self.version not in case.versions:
                continue
            known = holds(case.when, Lookup(value, self._is_set))
            if known is not False:
                return case, known, tuple(left)
        return None, False, tuple(left)

    def spelling(self, id: str) -> str:
        """How the setting is written in this version."""
        spec = self.launch.trainer.settings[id]
        names = [name.name for name in spec.names if self._applies(name)]
        return names[0] if names else spec.names[0].name if spec.names else id

    def in_code(self, path: tuple[str, ...]) -> Value:
        """The value of what code calls `config.actor.strategy`; Unknown where that is no setting, or could be several."""
        for at in range(len(path)):
            tail = path[at:]
            found = [id for id, parts in self._spelled() if parts[-len(tail) :] == tail]
            if found:
                values = [self[id].value for id in found]
                return values[0] if all(value == values[0] for value in values) else Unknown((".".join(tail),))
            if len(tail) > 1 and (setting := self.launch.configuration.get(".".join(tail))) is not None:
                return setting.value
        return Unknown((".".join(path),))

    def _spelled(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        if not self._spellings:
            self._spellings = tuple(
                (id, tuple(self.spelling(id).lstrip("-").replace("-", "_").split(".")))
                for id in self.launch.trainer.settings
            )
        return self._spellings

    def _value(self, name: str) -> Value:
        match name:
            case "$entry-point":
                return self.launch.target
            case "$config":
                return self.launch.config_name
            case "$imports":
                return list(self.launch.imports)
        return self[name].value

    def _is_set(self, name: str) -> bool:
        return self[name].setting is not None and self[name].setting.origin != "default"  # type: ignore[union-attr]

    def _applies(self, case: Case) -> bool:
        return self.version in case.versions and (case.when is None or holds(case.when, self.lookup()) is True)

    def _resolve(self, id: str) -> Effective:
        spec = self.launch.trainer.settings[id]
        default = next((each for each in spec.defaults if self._default_applies(each)), None)
        setting, name = self._setting(spec)
        if default is not None and default.fixed:
            return Effective(id, self.spelling(id), default.value, None, default, unread=setting)
        if setting is None:
            return Effective(id, self.spelling(id), default.value if default else None, None, default)
        value = (
            name.const
            if name.has_const and is_on(setting.value)
            else as_typed(setting.value, spec, self.launch.trainer.typed)
        )
        return Effective(id, setting.name, value, setting, default)

    def _default_applies(self, default: Default) -> bool:
        if default.config and self.launch.config_name not in default.config:
            return False
        return self._applies(default)

    def _setting(self, spec: SettingSpec) -> tuple[Setting | None, Name]:
        found: tuple[Setting | None, Name] = (None, spec.names[0] if spec.names else Name(name=spec.id))
        for name in spec.names:
            if self._applies(name) and (setting := self.launch.configuration.get(name.name)) is not None:
                if name.has_const and not is_on(setting.value):
                    continue
                if found[0] is None or _order(setting) >= _order(found[0]):
                    found = (setting, name)
        return found


def _order(setting: Setting) -> tuple[int, int]:
    place: Span = setting.span
    return (0 if setting.origin == "default" else 1 if setting.origin == "file" else 2, place.start)
