"""A penalty of the loss -> k1, detached, deducted from the advantage of the policy term beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code.result import Formula
from klaudit.fixes.codemods import coefficients
from klaudit.fixes.codemods.joint import Joint, Steps, leads_to, steps
from klaudit.fixes.codemods.leftovers import leftovers
from klaudit.fixes.codemods.names import Names, free_names
from klaudit.fixes.codemods.placing import Place, parsed
from klaudit.fixes.codemods.policy_term import PolicyTerm, Use, is_advantage, policy_term
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.ratio import LogRatio, log_ratio
from klaudit.fixes.codemods.text import Code
from klaudit.model import Edit

TARGET = "k1-in-reward"
_COMMENT = "# KL penalty: k1, detached, deducted from the advantage"
_PER_TOKEN = (
    "k1 is deducted from each token's own advantage: its gradient is that of KL(pi||ref) per token; a token gets no credit for the KL of "
    "later tokens, as it would with a sum over the response or return-to-go"
)
_CLIPPED = "it is clipped with the ratio now, as the advantage is"
_KEPT = "what was computed for metrics stays as it was"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class NoAdvantageError(CannotMendError):
    """Nothing in reach that a penalty could be deducted from."""


def to_reward(code: Code, formula: Formula, *, is_weighted: bool = False) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason, NoAdvantageError where no advantage is in reach, CannotEditError."""
    joined = code.at(formula.joined)
    if joined is None:
        if formula.standalone:
            raise NoAdvantageError("no advantage or reward is in reach: the penalty is all of this loss")
        raise CannotMendError("the penalty joins the policy term in another file")
    names = Names(code, code.function(joined))
    joint = Joint.of(code, names, formula)
    guess = log_ratio(code, formula)
    reasons: list[CannotMendError] = []
    for ratio in (guess, guess.turned()):
        try:  # which of the two is the policy's is seen by what the advantage is multiplied with
            term = policy_term(code, names, joint, ratio)
            if term is not None:
                yield _Move(code, names, formula, joint, ratio, term).proposal(keeps_coefficient=not is_weighted)
        except CannotMendError as error:
            reasons.append(error)
        else:
            if term is None:
                if any(is_advantage(node) for node in ast.walk(names.function)):
                    raise CannotMendError("the advantage is not in the sum that the penalty is added to")
                raise NoAdvantageError("no advantage or reward is in reach in this function")
    if len(reasons) == 2:
        raise reasons[0]


class _Move:
    def __init__(
        self, code: Code, names: Names, formula: Formula, joint: Joint, ratio: LogRatio, term: PolicyTerm
    ) -> None:
        self._code = code
        self._names = names
        self._formula = formula
        self._joint = joint
        self._ratio = ratio
        self._term = term

    def proposal(self, *, keeps_coefficient: bool) -> Proposal:
        nodes = (self._joint.node, self._ratio.node, *(use.whole for use in self._term.uses))
        if any(map(self._code.is_in_inner_scope, nodes)):
            raise CannotMendError(
                "the formula stands in a lambda or comprehension, above which nothing of it can be said"
            )
        way = self._way_of_penalty()
        self._check_signs(way)
        if self._term.way.around != way.around or self._term.way.coefficients:
            raise CannotMendError(
                "the policy term is averaged or weighted otherwise than the penalty, so that inside the advantage its coefficient would "
                f"mean something else: `{_shown(self._term.way)}` beside `{_shown(way)}`"
            )
        self._check_names(way)
        place = Place(self._code, self._names, self._joint, self._ratio, self._term.uses)
        target = place.statement
        coefficient = coefficients.written(self._code, way)
        penalty = place.log_ratio(coefficient)
        name, is_fresh = self._name(target)
        edits = [self._code.insert_before(target, self._lines(name, is_fresh, place.guards, coefficient, penalty))]
        if name != self._code.text(self._first.whole):
            edits += [self._code.replace(node, name) for node in self._taken(target)]
        edits += self._removal(free_names(parsed(f"{coefficient}({penalty})")))
        beta = coefficient.removesuffix(" * ")
        return Proposal(
            target=TARGET,
            title=f"deduct {f'{beta} * ' if beta else ''}k1, detached, from {name} and take the penalty out of the loss",
            edits=tuple(edits),
            promise=Promise(
                "reward", "k1", is_unbiased=True, keeps_coefficient=keeps_coefficient, inside=coefficients.number(way)
            ),
            notes=(_PER_TOKEN, _CLIPPED, _KEPT),
        )

    @property
    def _first(self) -> Use:
        return self._term.uses[0]

    def _way_of_penalty(self) -> Steps:
        is_formula = leads_to(self._code, self._formula)
        return steps(
            self._names,
            self._joint.penalty,
            self._joint.statement,
            lambda expression, at: self._names.reaches(expression, at, is_formula),
            is_formula,
        )

    def _check_signs(self, way: Steps) -> None:
        """A loss adds its penalty and subtracts ratio * advantage: the two signs are opposite wherever the sum stands."""
        if self._joint.sign * way.sign == self._sign_of_rest() * self._term.sign:
            raise CannotMendError(
                "penalty and policy term enter the loss with the same sign: one of them is turned round, or the sum is an objective to be "
                "maximised"
            )

    def _check_names(self, way: Steps) -> None:
        """Averages that read alike must be of the same masks."""
        for text in way.around:
            for name in free_names(parsed(text)) - {"_"}:
                if self._names.changes_between(name, self._term.way.at, way.at):
                    raise CannotMendError(f"`{name}` changes between the policy term and the penalty")

    def _sign_of_rest(self) -> int:
        return -1 if self._joint.is_first and isinstance(self._joint.node.op, ast.Sub) else 1

    # --- the advantage ----------------------------------------------------------------------------------------------------------

    def _name(self, place: ast.stmt) -> tuple[str, bool]:
        """The name that the policy term takes afterwards, and whether it is a new one.

        The advantage keeps its name where nothing else reads it from there on; in a loop that does not set it anew each time it would be
        reduced again and again.
        """
        advantage = self._first.advantage
        if (
            isinstance(advantage, ast.Name)
            and self._names.is_own(advantage.id)
            and not self._is_kept(advantage.id, place)
        ):
            return advantage.id, False
        base = _identifier(advantage)
        for name in (
            *(() if isinstance(advantage, ast.Name) else (base,)),
            f"penalised_{base}",
            f"kl_penalised_{base}",
        ):
            if name.isidentifier() and self._names.is_free(name):
                return name, True
        raise CannotMendError("no name is free for the advantage less its penalty")

    def _taken(self, place: ast.stmt) -> list[ast.expr]:
        """What becomes the advantage less its penalty: the factors of the policy term, and what is compared to see its sign."""
        start, whole = self._code.extent(place)[0], ast.dump(self._first.whole)
        taken = {use.whole: None for use in self._term.uses}
        for node in ast.walk(self._names.function):
            if isinstance(node, ast.Compare) and self._code.extent(node)[0] >= start:
                taken |= {each: None for each in (node.left, *node.comparators) if ast.dump(each) == whole}
        return list(taken)

    def _is_kept(self, name: str, place: ast.stmt) -> bool:
        start = self._code.extent(place)[0]
        taken = {id(node) for each in self._taken(place) for node in ast.walk(each)}
        if any(id(read) not in taken and self._code.extent(read)[0] >= start for read in self._names.reads(name)):
            return True
        if any(self._code.extent(each.statement)[0] >= start for each in self._names.bindings(name)):
            return True
        loops = [above for above in self._code.ancestors(place) if isinstance(above, _LOOPS)]
        loops = [loop for loop in loops if self._code.function(loop) is self._names.function]
        binding = self._names.definition(name, place)
        return bool(loops) and (binding is None or not self._code.contains(loops[0], binding.statement))

    # --- the text ---------------------------------------------------------------------------------------------------------------

    def _lines(self, name: str, is_fresh: bool, guards: list[str], coefficient: str, penalty: str) -> list[str]:
        whole = " ".join(self._code.text(self._first.whole).split())
        is_view = whole != name
        deducted = f"{coefficient}({penalty}).detach()"
        if not guards:
            return [_COMMENT, f"{name} = {whole} - {deducted}"]
        condition = guards[0] if len(guards) == 1 else " and ".join(f"({guard})" for guard in guards)
        first = [f"{name} = {whole}"] if is_fresh or is_view else []
        step = _step(self._code)
        return [*first, f"if {condition}:", f"{step}{_COMMENT}", f"{step}{name} = {name} - {deducted}"]

    def _removal(self, needed: set[str]) -> list[Edit]:
        """The penalty out of the sum, and what was computed for nothing else."""
        gone = leftovers(self._code, self._names, self._joint, needed)
        if self._joint.is_moved_onto_itself:
            return [self._code.remove(each) for each in _outermost(self._code, [*gone, self._joint.statement])]
        return [self._joint.without_penalty(self._code), *(self._code.remove(each) for each in gone)]


def _outermost(code: Code, statements: list[ast.stmt]) -> list[ast.stmt]:
    """Where all of an `if` goes, the `if` itself goes instead."""
    gone = list(dict.fromkeys(statements))
    for statement in list(gone):
        block, parent = code.block(statement), code.parents[statement]
        is_body = isinstance(parent, ast.If) and not parent.orelse and block is parent.body
        if is_body and isinstance(parent, ast.If) and len(block) > 1 and all(each in gone for each in block):
            gone = [*(each for each in gone if each not in block), parent]
    return list(dict.fromkeys(gone))


def _identifier(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return node.id if isinstance(node, ast.Name) else "advantage"


def _shown(way: Steps) -> str:
    parts = [*way.around, *(ast.unparse(node) for node, _ in way.coefficients)]
    return ", ".join(parts) if parts else "no averaging"


def _step(code: Code) -> str:
    """One level of indentation, as the file writes it."""
    for line in code.data.split(b"\n"):
        blank = line[: len(line) - len(line.lstrip(b" \t"))]
        if blank and line.strip():
            return blank.decode() if blank[:1] == b"\t" or len(blank) <= 4 else "    "
    return "    "
