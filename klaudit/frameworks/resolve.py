"""Launch -> effective settings -> terms -> set-up, for one version of the framework."""

from __future__ import annotations

from msgspec.structs import replace

from klaudit.frameworks.launch import Launch
from klaudit.frameworks.resolution import Resolution, TermState
from klaudit.frameworks.terms import term_of
from klaudit.frameworks.versions import parse_version
from klaudit.model import FrameworkVersion, Setup, Unknown, Verdict
from klaudit.theory import Row, judge_sum


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
    states = (term_of(resolution, rule, stopped) for rule in trainer.terms if resolution.version in rule.versions)
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


def _effective_row(state: TermState) -> Row:
    """The row as it acts here: a term that its framework makes something else of has a weight in words alone."""
    if state.term.score_weight == state.row.weight_text:
        return state.row
    return replace(state.row, weight=None, weight_text=state.term.score_weight)


def _setup(resolution: Resolution, version: str | None) -> Setup:
    launch = resolution.launch
    active = [state for state in resolution.terms if state.term.active]
    unknown = [state for state in resolution.terms if state.term.active is None]
    total = judge_sum((_effective_row(state), state.term.coefficient, state.term.verdict) for state in active)
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
