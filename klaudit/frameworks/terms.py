"""One KL term of a launch: what its rule, the effective settings and the code in the tree make of it."""

from __future__ import annotations

import math

from klaudit.frameworks.conditions import Known, holds
from klaudit.frameworks.launch import Consumed
from klaudit.frameworks.resolution import Effective, Resolution, TermState
from klaudit.frameworks.rules import Case, TermRule, Word
from klaudit.frameworks.values import as_number, is_same_word
from klaudit.frameworks.versions import parse_version
from klaudit.model import EstimatorName, Evidence, Gradient, Term, Unknown, Verdict
from klaudit.theory import cut, look_up


def term_of(resolution: Resolution, rule: TermRule, stopped: str) -> TermState | None:
    lookup = resolution.lookup()
    on = holds(rule.when, lookup)
    switches = tuple(resolution[name] for name in lookup.asked if not name.startswith("$"))
    estimator, word, estimator_name, raises, why = _estimator(resolution, rule)
    coefficient, amount = _coefficient(resolution, rule)
    gradient, biased, gradient_case = _gradient(resolution, rule, word)
    row = look_up(estimator_name, rule.placement, gradient)
    ignored, is_ignored, _ = resolution.first(rule.ignored)
    left: tuple[str, ...] = ()
    if is_ignored is None and on and amount is not None:
        ignored, is_ignored, left = resolution.first_as_shipped(rule.ignored)
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
        if consumed.cut:
            code_row = cut(code_row, consumed.live)
        if code_row != row:
            row, biased, estimator_name = code_row, "", consumed.estimator
        if word is None:
            raises = why = ""  # a word that no release knows, but this code does
    own_word = (
        consumed is None and word is None and bool(raises) and on is not False and _is_of_tree(resolution, estimator)
    )
    if own_word:
        raises = why = ""

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
    facts += resolution.launch.facts if active is not False else ()
    facts += [f"judged as if {each}" for each in left if active]
    if own_word:
        facts.append(f"{_chosen(estimator, None)} is a word of the code in the tree: what it penalises is not known")
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
        consumed, _deciding(resolution, rule) if estimator is None else (),
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


def _is_of_tree(resolution: Resolution, estimator: Effective | None) -> bool:
    """Whether an estimator's word that no release knows means something to the code in the tree."""
    launch = resolution.launch
    if launch.code is None or estimator is None or not isinstance(estimator.value, str):
        return False
    vocabulary = launch.trainer.vocabularies[launch.trainer.settings[estimator.id].vocabulary or ""]
    known = frozenset(str(word.value) for word in vocabulary.words if resolution.version in word.versions)
    # `kl+` beside `kl`: what the one ending is to known words it is to others
    endings = {word.removeprefix(each) for word in known for each in known if word.startswith(each)}
    bare = {estimator.value.removesuffix(end) for end in endings if not end.isalnum()}
    return any(launch.code.gives_meaning(word, known) for word in sorted(bare | {estimator.value}))


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
        if resolution.version in word.versions and is_same_word(word.value, effective.value, vocabulary.ignore_case):
            if word.when is not None and holds(word.when, resolution.lookup()) is not True:
                continue
            return effective, word, word.estimator, word.raises, word.why
    return effective, None, "unknown", vocabulary.otherwise_raises, vocabulary.otherwise_why


def _deciding(resolution: Resolution, rule: TermRule) -> tuple[Effective, ...]:
    """What an estimator that no setting names hangs on, words of estimators before flags."""
    _, known, asked = resolution.first(rule.estimator)
    settings = resolution.launch.trainer.settings
    names = sorted((name for name in asked if not name.startswith("$")), key=lambda name: not settings[name].vocabulary)
    return tuple(resolution[name] for name in names) if known else ()


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


def _hashable(evidence: list[Evidence]) -> bool:
    return not any(isinstance(item.value, list | dict) for item in evidence)
