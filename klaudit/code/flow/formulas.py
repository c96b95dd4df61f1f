"""From a run of one function to its formulas: sinks taken apart, each formula classified per choice of settings, placed and graded."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from klaudit.code import names
from klaudit.code.conditions import (
    ALWAYS,
    Condition,
    parts_of,
    subjects,
    told,
)
from klaudit.code.flow.averages import averaged_over
from klaudit.code.flow.passage import Passage
from klaudit.code.flow.places import Placed, placed
from klaudit.code.flow.returned import place_of_returned
from klaudit.code.flow.sinks import Target
from klaudit.code.flow.terms import is_external
from klaudit.code.flow.variants import variants as variants_of
from klaudit.code.flow.variants import with_choosers
from klaudit.code.graph import Node, Op, Site, reachable
from klaudit.code.interpreter.machine import BudgetError, Machine
from klaudit.code.interpreter.picking import SAMPLED_TOKENS
from klaudit.code.modules import FunctionInfo, Program
from klaudit.code.notation import written
from klaudit.code.result import AtomSeen, Formula, KlDiv, Knob, Place, Role, Variant
from klaudit.code.roles import OLD, POLICY, REFERENCE
from klaudit.model import Confidence, Span

_SIGMOIDS = frozenset({Op.SIGMOID, Op.LOGSIGMOID, Op.SOFTPLUS})
_MOST_TOLD = 2  # of the conditions that a division by the spread hangs on
_LONGEST_TOLD = 60
_ROLES: dict[int, Role] = {POLICY: "log pi", OLD: "log pi_old", REFERENCE: "log pi_ref"}

MAX_FORMULAS = 64  # of one function; each is set against each other


def formulas(machine: Machine, found: list[Target], info: FunctionInfo | None, *, called: bool) -> list[Formula]:
    """The formulas of one function, or of the top level (None).

    `called`: other code of the file calls the function, so what it returns is judged there.
    """
    symbol = info.qualified if info else ""
    extent = info.module.extent(info.syntax) if info else (0, len(machine.program.main.source.data))
    cache: dict[tuple[Node, Condition, bool], tuple[Variant, ...]] = {}
    made: list[tuple[Condition, Formula]] = []
    nodes: list[Node] = []
    for item in placed(machine, found, called=called):
        condition = item.occurrence.passage.condition
        trains = item.place in ("loss", "reward") or item.is_returned
        key = (item.occurrence.node, condition, trains)
        if key not in cache:
            cache[key] = variants_of(item.occurrence.node, condition, machine.defaults, limits=trains)
        if cache[key]:
            if item.place == "metric" and item.occurrence.node.op is Op.DIV:
                continue  # one statistic over another
            if all(variant.what.estimator == "unknown" for variant in cache[key]) and (
                _is_ratio(item) or _is_likelihood_of_labels(item.occurrence.node)
            ):
                item = replace(item, place="unknown")  # no penalty
            if item.is_returned:
                item = replace(item, place=place_of_returned(item, cache[key], info, machine.graph))
            made.append((condition, _formula(machine, item, cache[key], symbol, extent)))
            nodes.append(item.occurrence.node)
            if len(made) > MAX_FORMULAS:
                raise BudgetError(f"more than {MAX_FORMULAS} formulas, by the settings that choose among them")
    copies = set(_told_twice([formula for _, formula in made], nodes))
    return with_choosers([each for at, each in enumerate(made) if at not in copies], machine.defaults)


def _told_twice(made: list[Formula], nodes: list[Node]) -> Iterator[int]:
    """A penalty that is the reward and, multiplied by the policy's ratio, the whole loss: the place that shows a wrong sign is kept."""
    for loss, formula in enumerate(made):
        if formula.placement != "loss" or any(variant.what.gradient != "score" for variant in formula.variants):
            continue
        inside = reachable([nodes[loss]])
        rewards = [at for at, other in enumerate(made) if other.placement == "reward" and nodes[at] in inside]
        is_wrong = any(formula.has_wrong_sign(variant.what) for variant in formula.variants)
        yield from rewards if is_wrong or not rewards else (loss,)


def _is_ratio(item: Placed) -> bool:
    """Something that is known, but not what it is weighted by: a ratio against the reference that an advantage multiplies."""
    node = item.occurrence.node
    return bool(item.occurrence.passage.unknown_factors) and node.is_pure and not is_external(node)


def _is_likelihood_of_labels(node: Node) -> bool:
    """The log-ratio is an implicit reward, of which log sigmoid(x) and log sigmoid(-x) are the likelihoods of two labels."""
    given = [part.args[0] for part in reachable([node]) if part.op in _SIGMOIDS and part.args[0].bears_kl]
    return len(given) > 1


def _formula(
    machine: Machine, item: Placed, variants: tuple[Variant, ...], symbol: str, extent: tuple[int, int]
) -> Formula:
    program, (node, passage) = machine.program, (item.occurrence.node, item.occurrence.passage)
    sites = [site for site in passage.path if site.module == program.main.index]
    home = node.site or passage.path[-1]
    anchor = home if home.module == program.main.index else sites[-1] if sites else item.target.called_at or home
    calls = [
        site
        for site in sites
        if site.syntax in machine.followed and extent[0] <= program.main.extent(site.syntax)[0] < extent[1]
    ]
    call = calls[-1] if calls and calls[-1] is not anchor else None
    joined = passage.joined_at
    formula = Formula(
        span=_span(program, anchor),
        text=_text(program, anchor),
        symbol=symbol,
        home=_span(program, home),
        difference=_difference(program, node),
        joined=_span(program, joined) if joined is not None and joined.module == program.main.index else None,
        sink=_span(program, item.target.site),
        placement=item.place,
        sink_kind=item.target.what,
        variants=tuple(replace(variant, home=_span(program, home)) for variant in variants),
        atoms=_atoms(node),
        factor=-passage.factor if item.place == "reward" and item.target.place == "loss" else passage.factor,
        knobs=_knobs(passage),
        condition="" if passage.condition == ALWAYS else told(passage.condition),
        settings=tuple(sorted(subjects((passage.condition,)))),
        detached=passage.detached or not node.live,
        sink_is_live=item.target.may_be_live,
        attached=item.attached,
        standalone=not passage.beside_others,
        normalised_by_spread=passage.divided_by_spread,
        group_std=_group_std(item),
        averaged=averaged_over(node, passage.averages) if item.place == "reward" else "",
        through_unknown=passage.through_unknown,
        external=node.text if is_external(node) else "",
        path=tuple(dict.fromkeys(_span(program, site) for site in reversed(passage.path))),
        confidence="high",
        call=(_span(program, call), _text(program, call)) if call else None,
        log_of_softmax=_log_of_softmax(machine, node),
        kl_div=_kl_div(machine, node),
        is_sampled=_is_sampled(node, passage),
        judged_elsewhere=home.module != program.main.index and _joins_elsewhere(program, passage, call),
        is_own=bool(symbol) and _is_within(program, extent, anchor),
        only_calls=not _is_within(program, extent, home)
        and not _is_within(program, extent, joined)
        and not _has_literal(call),
    )
    return replace(formula, confidence=_confidence(formula, item.target))


def _group_std(item: Placed) -> str | None:
    """When the penalty is divided by the spread of its group: "" where it always is, None where it never is."""
    if not item.by_group_std:
        return None
    if not item.not_by_group_std:
        return ""
    divided = [parts_of(condition) for condition in item.by_group_std]
    others = [parts_of(condition) for condition in item.not_by_group_std]
    telling = sorted(map(str, frozenset.intersection(*divided) - frozenset.intersection(*others)))
    equal = {text.partition(" = ")[0] for text in telling}
    telling = [
        text for text in telling if len(text) <= _LONGEST_TOLD and text.partition(" != ")[0] not in equal - {text}
    ]
    return " and ".join(telling[:_MOST_TOLD]) or "its settings say so"


def _joins_elsewhere(program: Program, passage: Passage, call: Site | None) -> bool:
    """The sum with the rest of the loss or reward stands in another file, which the formula does not reach through this one.

    Nor does the call from here choose by a literal.
    """
    if passage.joined_at is None or passage.joined_at.module == program.main.index:
        return False
    way = passage.path  # from the sink down to the formula
    below = way[way.index(passage.joined_at) :] if passage.joined_at in way else ()
    return not any(site.module == program.main.index for site in below) and not _has_literal(call)


def _has_literal(call: Site | None) -> bool:
    """The call may choose an estimator by name."""
    given = call.syntax if call is not None else None
    values = [*given.args, *(keyword.value for keyword in given.keywords)] if isinstance(given, ast.Call) else []
    return any(isinstance(value, ast.Constant) and isinstance(value.value, str) for value in values)


def _is_within(program: Program, extent: tuple[int, int], site: Site | None) -> bool:
    """Whether something stands in the function; what stands nowhere counts as there."""
    if site is None:
        return True
    return site.module == program.main.index and extent[0] <= program.main.extent(site.syntax)[0] < extent[1]


def _confidence(formula: Formula, target: Target) -> Confidence:
    doubts = 0
    doubts += not target.certain
    doubts += any(variant.what.estimator == "unknown" and not variant.what.direction for variant in formula.variants)
    doubts += any("set against" in atom.reason or names.is_bare_reference(atom.text) for atom in formula.atoms)
    doubts += 2 * bool(formula.through_unknown)
    doubts += any(knob.is_guess and not knob.inverse and not names.is_of_settings(knob.name) for knob in formula.knobs)
    return "high" if not doubts else "medium" if doubts == 1 else "low"


def _knobs(passage: Passage) -> tuple[Knob, ...]:
    coefficients, divisors = list(passage.coefficients), list(passage.divisors)
    if passage.centred:  # (x - mean(x)) * n / (n - 1) is x less the mean of the others
        for divisor in passage.divisors:
            number = _one_more_than(divisor)
            same = next((each for each in coefficients if number is not None and _is_same(each, number)), None)
            if same is not None:
                coefficients.remove(same)
                divisors.remove(divisor)
    return (
        *map(_knob, coefficients),
        *(replace(_knob(part), inverse=True) for part in divisors),
        *(replace(_knob(part), is_guess=True) for part in passage.unknown_factors),
        *(replace(_knob(part), is_guess=True, inverse=True) for part in passage.unknown_divisors),
    )


def _is_same(one: Node, other: Node, depth: int = 3) -> bool:
    """Two scalars that are written alike: what is not known is read anew each time it is used."""
    return one is other or (
        depth > 0
        and (one.op, one.text, one.number, one.conditions) == (other.op, other.text, other.number, other.conditions)
        and bool(one.text or one.args)
        and len(one.args) == len(other.args)
        and all(_is_same(left, right, depth - 1) for left, right in zip(one.args, other.args, strict=True))
    )


def _one_more_than(node: Node) -> Node | None:
    """`n` of `n - 1` or `max(n - 1, 1)`."""
    if node.op is Op.MAX:
        node = next((arg for arg in node.args if arg.op is not Op.NUMBER), node)
    if node.op is not Op.ADD:
        return None
    rest = [arg for arg in node.args if arg.op is not Op.NUMBER]
    numbers = [arg.number for arg in node.args if arg.op is Op.NUMBER]
    return rest[0] if len(rest) == 1 and numbers == [-1.0] else None


def _knob(node: Node) -> Knob:
    while node.op is Op.DETACH:
        node = node.args[0]
    parts = reachable([node])
    if node.text or len(parts) == 1:
        text = node.text
    elif any(part.op is Op.CHOICE for part in parts):
        text = " or ".join(sorted({part.text for part in parts if part.op in (Op.SCALAR, Op.ATOM)}))
    else:
        text = f"({written(node, {})})"
    return Knob(text, node.number)


def _atoms(node: Node) -> tuple[AtomSeen, ...]:
    found: dict[tuple[int, str], AtomSeen] = {}
    for part in reachable([node]):
        if part.op is Op.ATOM and part.roles in _ROLES:
            seen = AtomSeen(_ROLES[part.roles], part.text, part.reason, part.roles == POLICY and not part.live)
            found.setdefault((part.roles, part.text), seen)
    return tuple(found.values())


def _log_of_softmax(machine: Machine, node: Node) -> Span | None:
    """Where a logarithm of a softmax enters the formula (log_softmax is exact where this underflows)."""
    for part in reachable([node]):
        if part.op is Op.ATOM and part in machine.graph.from_log_of_softmax:
            return _span(machine.program, machine.graph.from_log_of_softmax[part])
        if (
            part.op is Op.LOG
            and part.site is not None
            and any(_is_probability(inner) for inner in (part.args[0], *part.args[0].args))
        ):
            return _span(machine.program, part.site)
    return None


def _is_probability(node: Node) -> bool:
    return node.op is Op.SOFTMAX or (node.op is Op.EXP and node.args[0].op in (Op.LOGSOFTMAX, Op.ATOM))


def _is_log_probability(node: Node) -> bool:
    return node.op in (Op.LOGSOFTMAX, Op.LOG) or (node.op is Op.ATOM and not node.vocabulary)


def _kl_div(machine: Machine, node: Node) -> KlDiv | None:
    for part in reachable([node]):
        if part.op is Op.KLDIV and part.site is not None:
            given, target = part.args
            wrong = []
            if _is_probability(given):
                wrong.append("the first argument is a probability, and it takes a log-probability")
            if part.text and _is_probability(target):
                wrong.append("log_target=True with a target that is a probability")
            if not part.text and _is_log_probability(target):
                wrong.append("the target is a log-probability, and without log_target=True it takes a probability")
            if any(
                outer.op is Op.REDUCE and outer.text == "mean" and outer.args[0] is part for outer in reachable([node])
            ):
                wrong.append("reduction='mean' also divides by the vocabulary; 'batchmean' or a sum over it does not")
            return KlDiv(_span(machine.program, part.site), tuple(wrong))
    return None


def _is_sampled(node: Node, passage: Passage) -> bool:
    """Some tensor is known to hold the sampled tokens' log-probabilities, or nothing suggests the whole vocabulary."""
    parts = reachable([node])
    if any(part.op is Op.ATOM and part.reason.startswith(SAMPLED_TOKENS) for part in parts):
        return True
    return not passage.summed_last and not any(part.op is Op.KLDIV for part in parts)


def _difference(program: Program, node: Node) -> Span | None:
    """Where the policy's and the reference's log-probability are first set against each other."""
    for part in reachable([node]):
        if part.op is Op.ADD and part.bears_kl and part.site is not None and part.site.module == program.main.index:
            return _span(program, part.site)
    return None


def _span(program: Program, site: Site) -> Span:
    return program.modules[site.module].span(site.syntax)


def _text(program: Program, site: Site) -> str:
    return program.modules[site.module].text(site.syntax)


def places(found: Iterable[Formula]) -> set[Place]:
    return {formula.placement for formula in found}
