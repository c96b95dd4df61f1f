"""Launch -> effective settings -> terms -> set-up, for one version of the framework."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import Struct
from packaging.version import Version

from klaudit.frameworks.conditions import Known, Lookup, holds
from klaudit.frameworks.launch import Consumed, Launch
from klaudit.frameworks.rules import Case, Default, Fault, Name, SettingSpec, TermRule, Word
from klaudit.frameworks.versions import parse_version
from klaudit.model import (
    EstimatorName,
    Evidence,
    FrameworkVersion,
    Gradient,
    Setting,
    Setup,
    Span,
    Term,
    Unknown,
    Value,
    Verdict,
)
from klaudit.theory import Row, judge_sum, look_up

_TRUE, _FALSE = frozenset({"true", "yes", "on", "1", "y", "t"}), frozenset({"false", "no", "off", "0", "n", "f"})


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
            if name.has_const and _is_on(setting.value)
            else _typed(setting.value, spec, self.launch.trainer.typed)
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
                if name.has_const and not _is_on(setting.value):
                    continue
                if found[0] is None or _order(setting) >= _order(found[0]):
                    found = (setting, name)
        return found


def resolve(launch: Launch, version: str | None = None) -> Resolution:
    """What `launch` trains with under `version` (default: the detected one)."""
    resolution = Resolution(launch, parse_version(version or launch.version.value))
    trainer = launch.trainer
    faults = []
    for fault in trainer.faults:
        case, known, _ = resolution.first((fault,))
        if case is not None:
            faults.append((fault, known))
    resolution.faults = tuple(faults)
    stale = (resolution.first((case,)) for case in trainer.stale)
    resolution.stale = tuple(case for case, known, _ in stale if case is not None and known)
    stopped = next((fault.why for fault, known in faults if fault.stops and known), "") or _refusal(resolution)
    states = (_term(resolution, rule, stopped) for rule in trainer.terms if resolution.version in rule.versions)
    resolution.terms = tuple(state for state in states if state is not None)
    resolution.setup = _setup(resolution, version)
    return resolution


def _refusal(resolution: Resolution) -> str:
    """Why the launch stops because of what we judge.  What else it may stop for (a path to be filled in) is not ours to say."""
    launch = resolution.launch
    names: dict[str, bool] = {}  # whether the version knows the spelling
    for spec in launch.trainer.settings.values():
        for name in spec.names:
            names[name.name] = names.get(name.name, False) or resolution.version in name.versions
    for refused, why in launch.configuration.refusals:
        if not refused or refused in names:
            return why
    if launch.trainer.unknown_flags == "refused" or launch.kind == "code":
        for given in launch.configuration.explicit_names():
            if names.get(given) is False:
                return f"{launch.framework.title} {resolution.version} has no setting {given}"
    return ""


def _setup(resolution: Resolution, version: str | None) -> Setup:
    launch = resolution.launch
    active = [state for state in resolution.terms if state.term.active]
    unknown = [state for state in resolution.terms if state.term.active is None]
    total = judge_sum((state.row, state.term.coefficient, state.term.verdict) for state in active)
    verdict: Verdict = "unknown" if unknown else total.verdict
    algorithm = resolution[launch.trainer.algorithm].value if launch.trainer.algorithm else launch.trainer.id
    return Setup(
        path=launch.head.path,
        span=launch.head,
        kind=launch.kind,
        framework=launch.framework.id,
        version=launch.version
        if version is None
        else FrameworkVersion(version, launch.version.source, launch.version.allowed),
        entry_point=launch.target,
        algorithm="unknown" if isinstance(algorithm, Unknown) else str(algorithm),
        symbol=launch.symbol,
        assumes=launch.assumes,
        score_weight="unknown" if unknown else total.weight_text,
        verdict=verdict,
        terms=tuple(state.term for state in resolution.terms),
    )


def _term(resolution: Resolution, rule: TermRule, stopped: str) -> TermState | None:
    lookup = resolution.lookup()
    on = holds(rule.when, lookup)
    switches = tuple(resolution[name] for name in lookup.asked if not name.startswith("$"))
    estimator, word, estimator_name, raises, why = _estimator(resolution, rule)
    coefficient, amount = _coefficient(resolution, rule)
    gradient, biased, gradient_case = _gradient(resolution, rule, word)
    row = look_up(estimator_name, rule.placement, gradient)
    ignored, is_ignored, _ = resolution.first(rule.ignored)
    crash, crashes, _ = resolution.first(rule.raises)
    group_std, in_group_std, _ = resolution.first(rule.group_std)
    averaged, is_averaged, _ = resolution.first(rule.length_averaged)
    if crash is not None and crashes:
        raises, why = getattr(crash, "raises", ""), crash.why
    consumed = _consumed(resolution, rule, estimator, coefficient) if on is not False and amount != 0 else None
    known_row, known_amount = row, amount
    if consumed is not None:
        amount = _turned(amount, coefficient, consumed)
        code_row = look_up(consumed.estimator, rule.placement, consumed.gradient)
        if code_row != row:
            row, biased, estimator_name = code_row, "", consumed.estimator
        if word is None:
            raises = why = ""  # a word that no release knows, but this code does

    active, why_inactive = _activity(rule, on, amount, coefficient, bool(is_ignored), stopped, raises, why)
    if active and is_ignored is None:
        active = None
    verdict: Verdict = row.verdict
    if biased:
        verdict = "biased"
    elif row.verdict == "unbiased" and in_group_std is not False:
        verdict = "rescaled" if in_group_std else "unknown"
    if verdict in ("unbiased", "unbiased-per-token") and consumed is not None and consumed.sign < 0:
        verdict = "biased"
    if is_ignored and on is not False and not stopped and amount != 0:
        verdict = "ignored"
    elif active is False:
        verdict = "inactive"
    evidence = [effective.evidence() for effective in (*switches, estimator, coefficient) if effective is not None]
    if gradient_case is not None and gradient_case.why:
        evidence.append(Evidence("gradient", gradient, "default", None, None, None, gradient_case.why))
    facts = [case.why for case in rule.facts if row == known_row and resolution.first((case,))[1]]
    if consumed is not None:
        sentence = f"{_chosen(estimator, coefficient)} {consumed.told(rule.placement)}"
        for span in (consumed.formula, consumed.joined):
            evidence.append(Evidence(consumed.text, None, "code", span.path, span.line, span, sentence))
        if row != known_row or amount != known_amount:
            facts.append(
                f"the code in the tree overrules what is known of {resolution.launch.framework.title}: {sentence}"
            )
    term = Term(
        placement=rule.placement,
        estimator=estimator_name,
        gradient=row.gradient,
        coefficient=amount,
        active=active,
        score_weight=biased or row.weight_text,
        verdict=verdict,
        evidence=tuple(dict.fromkeys(evidence)) if _hashable(evidence) else tuple(evidence),
        normalised_by_group_std=in_group_std,
        why_inactive=why_inactive,
        facts=tuple(facts),
    )
    return TermState(
        rule, term, row, on, switches, estimator, coefficient, word, raises, why,
        group_std if in_group_std else None, ignored if is_ignored else None, averaged if is_averaged else None,
        consumed,
    )  # fmt: skip


def _consumed(
    resolution: Resolution, rule: TermRule, estimator: Effective | None, coefficient: Effective | None
) -> Consumed | None:
    """What the code in the tree makes of a term: it is of the launch's own version and no other."""
    launch = resolution.launch
    if launch.code is None or resolution.version != parse_version(launch.version.value):
        return None
    choosing = estimator.name if estimator is not None else _usual(resolution, rule)
    weighing = coefficient.name if coefficient is not None else ""
    return launch.code.consumed(rule.placement, choosing, weighing, resolution.in_code)


def _usual(resolution: Resolution, rule: TermRule) -> str:
    """The estimator's setting, where what is known of the release decides without it."""
    settings = (choice.setting for choice in rule.estimator if resolution.version in choice.versions and choice.setting)
    return next(map(resolution.spelling, settings), "")


def _turned(amount: float | None, coefficient: Effective | None, consumed: Consumed) -> float | None:
    """The coefficient with the sign that the code gives it, whatever sign is known of the release."""
    given = as_number(coefficient.value) if coefficient is not None else None
    if amount is None:
        return None
    return math.copysign(amount, consumed.sign if given is None else given * consumed.sign)


def _chosen(estimator: Effective | None, coefficient: Effective | None) -> str:
    """The setting that the code is tied to."""
    effective = estimator or coefficient
    return "the penalty" if effective is None else f"{effective.name}={effective.value}"


def _activity(
    rule: TermRule,
    on: Known,
    amount: float | None,
    coefficient: Effective | None,
    ignored: bool,
    stopped: str,
    raises: str,
    why: str,
) -> tuple[bool | None, str]:
    """Whether the term takes part in training, and why not."""
    if on is False:
        return False, "switched off"
    if stopped:
        return False, f"the launch stops before training: {stopped}"
    if raises:
        return False, f"raises {raises}" + (f" ({why})" if why else "")
    if ignored:
        return False, "never read here"
    if amount == 0:
        return False, "coefficient 0"
    if amount is not None and amount < 0 and rule.negative_coefficient == "off":
        return False, "a coefficient below 0 switches it off"
    if on is None:
        return None, ""
    if coefficient is not None and amount is None:
        if not isinstance(coefficient.value, Unknown):
            return None, f"{coefficient.name} is not a number"
        if coefficient.setting is not None and coefficient.setting.origin == "default":
            return None, ""  # whatever a config says that nobody can see: it may well be 0
    return True, ""


def _estimator(resolution: Resolution, rule: TermRule) -> tuple[Effective | None, Word | None, EstimatorName, str, str]:
    """The estimator setting, its vocabulary word, the estimator, and what the framework raises on it (with why)."""
    choice, known, _ = resolution.first(rule.estimator)
    if choice is None or known is None:
        return None, None, "unknown", "", ""
    setting_id: str = getattr(choice, "setting", "")
    if not setting_id:
        return None, None, getattr(choice, "fixed", "unknown"), "", ""
    effective = resolution[setting_id]
    if isinstance(effective.value, Unknown):
        return effective, None, "unknown", "", ""
    spec = resolution.launch.trainer.settings[setting_id]
    vocabulary = resolution.launch.trainer.vocabularies[spec.vocabulary or ""]
    for word in vocabulary.words:
        if resolution.version in word.versions and _same_word(word.value, effective.value, vocabulary.ignore_case):
            if word.when is not None and holds(word.when, resolution.lookup()) is not True:
                continue
            return effective, word, word.estimator, word.raises, word.why
    return effective, None, "unknown", vocabulary.otherwise_raises, vocabulary.otherwise_why


def _coefficient(resolution: Resolution, rule: TermRule) -> tuple[Effective | None, float | None]:
    choice, known, _ = resolution.first(rule.coefficient)
    if choice is None or known is None:
        return None, None
    scale = float(getattr(choice, "scale", 1.0))
    setting_id: str = getattr(choice, "setting", "")
    if not setting_id:
        fixed = getattr(choice, "fixed", None)
        return None, None if fixed is None else fixed * scale
    effective = resolution[setting_id]
    amount = as_number(effective.value)
    return effective, None if amount is None else amount * scale


def _gradient(resolution: Resolution, rule: TermRule, word: Word | None) -> tuple[Gradient, str, Case | None]:
    case, known, _ = resolution.first(rule.gradient)
    if rule.placement == "reward":
        return ("score", getattr(case, "biased", ""), case) if known else ("score", "", None)
    if case is not None and known:
        return getattr(case, "gradient", "pathwise"), getattr(case, "biased", ""), case
    return (word.gradient if word and word.gradient else "pathwise"), "", None


# --- values -----------------------------------------------------------------------------------------------------------------------------


def as_number(value: Value) -> float | None:
    """The value as a finite number; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _typed(value: Value, spec: SettingSpec, typed: bool) -> Value:
    if spec.type in ("bool", "switch") or (
        typed and isinstance(value, str) and spec.type == "any" and _is_switch(spec)
    ):
        if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
            return value.lower() in _TRUE
        return value
    if spec.type in ("float", "int") and isinstance(value, str):
        number = as_number(value)
        return value if number is None else int(number) if spec.type == "int" and number.is_integer() else number
    return value


def _is_switch(spec: SettingSpec) -> bool:
    return any(isinstance(default.value, bool) for default in spec.defaults)


def _is_on(value: Value) -> bool:
    return not isinstance(value, Unknown) and (
        bool(value) if not isinstance(value, str) else value.lower() not in _FALSE
    )


def _same_word(word: Value, value: Value, ignore_case: bool) -> bool:
    if isinstance(word, bool) or isinstance(value, bool):
        return word is value
    if ignore_case and isinstance(word, str) and isinstance(value, str):
        return word.lower() == value.lower()
    return word == value or str(word) == str(value)


def _order(setting: Setting) -> tuple[int, int]:
    place: Span = setting.span
    return (0 if setting.origin == "default" else 1 if setting.origin == "file" else 2, place.start)


def _hashable(evidence: list[Evidence]) -> bool:
    return not any(isinstance(item.value, list | dict) for item in evidence)
