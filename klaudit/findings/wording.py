"""How findings speak of terms: where they point, what they quote, which change they propose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from klaudit.findings.judging import Draft
from klaudit.frameworks.migrate import Change, Impossible, best_change, broken_code
from klaudit.frameworks.resolution import Effective, Resolution, TermState
from klaudit.model import Evidence, Fix, Setting, Span, Unknown, Value
from klaudit.theory import REVERSE

_DEFAULT_TARGET = "k1-in-reward"


def place(resolution: Resolution, candidates: Iterable[Effective | None]) -> Span:
    """Where a finding points: the first candidate that is set by hand in the launch's own file, else the launch as a whole."""
    path = resolution.launch.head.path
    for effective in candidates:
        setting = effective.setting if effective is not None else None
        if setting is not None and setting.span.path == path and setting.origin != "default":
            return setting.span
    return resolution.launch.head


def loss_place(resolution: Resolution, state: TermState) -> Span:
    """A choice of placement: its switch first."""
    return place(resolution, (*state.switches, state.estimator, state.coefficient))


def estimator_place(resolution: Resolution, state: TermState) -> Span:
    """A choice of estimator: first its setting, or what decides in its stead."""
    return place(resolution, (state.estimator, *state.deciding, *state.switches, state.coefficient))


def describe(state: TermState) -> str:
    """`k3 in the loss, coefficient 0.001 (use_kl_loss=True, kl_loss_type=low_var_kl by default)`."""
    term = state.term
    amount = "unknown coefficient" if term.coefficient is None else f"coefficient {term.coefficient:g}"
    given = ", ".join(dict.fromkeys(map(quote, _parts(state))))
    return f"{term.estimator} in the {term.placement}, {amount}" + (f" ({given})" if given else "")


def _parts(state: TermState) -> Iterator[Effective]:
    """The settings that make a term what it is; each once."""
    told: set[str] = set()
    for each in (*state.switches, *state.deciding, state.estimator, state.coefficient):
        if each is not None and each.id not in told:
            told.add(each.id)
            yield each


def quote(effective: Effective) -> str:
    """`name=value`, and whether that is a default; of what cannot be set in this version, what it goes by instead."""
    if effective.default is not None and effective.default.fixed and effective.default.why:
        return f"{effective.name} cannot be set: {effective.default.why}"
    shown = f"{effective.name}={show(effective.value)}"
    return f"{shown} by default" if effective.setting is None or effective.setting.origin == "default" else shown


def show(value: Value) -> str:
    """A value as a person would write it."""
    if isinstance(value, Unknown):
        return "unknown (" + ", ".join(value.hangs_on) + ")"
    if value is None:
        return "null"
    if isinstance(value, str) and not value:
        return "''"
    return str(value)


def gradient_sentence(state: TermState) -> str:
    """What the term descends, and that it is not what the objective states."""
    row = state.row
    if state.term.score_weight != row.weight_text:  # the rules know better than the table
        why = next((each.note for each in state.term.evidence if each.setting == "gradient"), "")
        return f"score weight {state.term.score_weight}, not that of {REVERSE}" + (f": {why}" if why else "")
    text = f"score weight w(d) = {state.term.score_weight}"
    if row.descends:
        text += f", descends {row.descends}"
    if row.descends != REVERSE:
        text += f", not {REVERSE}"
    return text


def code_sentence(state: TermState) -> str:
    """What the code in the tree does with the term, and where."""
    return state.consumed.told(state.term.placement) if state.consumed is not None else ""


def evidence(state: TermState) -> tuple[Evidence, ...]:
    """The settings that decide the term, and the code that reads them where it lies in the tree."""
    settings = (each.evidence() for each in _parts(state))
    return (*settings, *(each for each in state.term.evidence if each.origin == "code" and each.value is None))


def proposal(resolution: Resolution) -> Fix:
    """The concrete change, from the recipes; without edits, which are made by `fix`."""
    if (broken := broken_code(resolution)) is not None:
        return Fix("none", f"mend the code: the penalty {broken}; no setting does")
    match best_change(resolution):
        case Change() as found:
            told = change_text(found, resolution)
            if found.recipe.target != _DEFAULT_TARGET:  # `klaudit fix` goes there only when it is asked to
                told += f" (`klaudit fix --target {found.recipe.target}`)"
            return Fix(found.recipe.safety, told)
        case Impossible(why):
            return Fix("none", f"no settings lead to k1 in the reward here: {why}")
    return Fix("none", "")


def spell(resolution: Resolution) -> Callable[[str, Value], str]:
    """How a setting is written where this launch is configured: `--flag value`, `key: value` or `a.b=c`."""
    launch = resolution.launch
    if launch.entry_point is not None and launch.entry_point.system == "flags":
        switches = {
            name.name for spec in launch.trainer.settings.values() if spec.type == "switch" for name in spec.names
        }
        return lambda name, value: (
            flag(name) if name in switches and value is True else f"{flag(name)} {_literal(value)}"
        )
    if launch.kind == "config":
        return lambda name, value: f"{name}: {_literal(value)}"
    return lambda name, value: f"{name}={_literal(value)}"


def flag(name: str) -> str:
    return f"--{name.lstrip('-')}"


def change_text(found: Change, resolution: Resolution) -> str:
    """`set a.b=c d.e=f; remove --x`."""
    written, parts = spell(resolution), []
    is_flags = resolution.launch.entry_point is not None and resolution.launch.entry_point.system == "flags"
    if found.write:
        parts.append("set " + " ".join(written(name, value) for name, value in found.write))
    if found.remove:
        parts.append("remove " + ", ".join(flag(name) if is_flags else name for name in found.remove))
    text = "; ".join(parts)
    if found.rescued_from_std:
        text += f" ({', '.join(found.rescued_from_std)}: otherwise group-std normalisation cancels the coefficient)"
    return text


def _literal(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else show(value)


def by_hand(resolution: Resolution, effective: Effective | None) -> Setting | None:
    """The setting, if it was written in the launch's own file or command."""
    if effective is None or effective.setting is None or effective.setting.origin == "default":
        return None
    setting = effective.setting
    return setting if setting.span.path == resolution.launch.head.path else None


def active(states: Sequence[TermState], placement: str) -> list[TermState]:
    return [state for state in states if state.term.active and state.term.placement == placement]


def sum_is_unbiased(resolution: Resolution) -> bool:
    """Several terms whose weights add up to that of KL(pi||ref): none of them is to blame alone."""
    count = sum(1 for state in resolution.terms if state.term.active)
    return count > 1 and resolution.setup.verdict in ("unbiased", "unbiased-per-token")


def key(resolution: Resolution, *parts: str) -> str:
    """What makes a finding the same one after lines moved."""
    launch = resolution.launch
    return ":".join((launch.target, launch.symbol, *launch.assumes, *parts))


def fault_drafts(resolution: Resolution, rule: str) -> Iterator[Draft]:
    """The faults of the framework's rules that are this finding."""
    for fault, known in resolution.faults:
        if fault.rule == rule and known:
            _, _, asked = resolution.first((fault,))
            names = dict.fromkeys((fault.setting, *asked))
            involved = [resolution[name] for name in names if name and not name.startswith("$")]
            yield Draft(
                place(resolution, involved),
                fault.why + (f": {fault.raises}" if fault.raises else ""),
                related=tuple(each.evidence() for each in involved),
                fix=Fix("none", fault.instead),
                key=key(resolution, rule, fault.setting or fault.why),
            )


def given(resolution: Resolution) -> Iterator[Effective]:
    """The settings of the trainer that were set by hand."""
    names = set(resolution.launch.configuration.explicit_names())
    for id, spec in resolution.launch.trainer.settings.items():
        if any(name.name in names for name in spec.names):
            yield resolution[id]
