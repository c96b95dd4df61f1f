"""A penalty of the loss -> k1, detached, deducted from the advantage of the policy term beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code.result import Formula
from klaudit.fixes.codemods.joint import Joint, Steps, leads_to, steps
from klaudit.fixes.codemods.leftovers import leftovers
from klaudit.fixes.codemods.names import Names, free_names
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
    if code.at(formula.joined) is None:
        if formula.standalone:
            raise NoAdvantageError("no advantage or reward is in reach: the penalty is all of this loss")
        raise CannotMendError("the penalty joins the policy term in another file")
    names = Names(code, code.function(code.at(formula.joined)))  # type: ignore[arg-type]
    joint = Joint.of(code, names, formula)
    guess = log_ratio(code, formula)
    reasons: list[CannotMendError] = []
    for ratio in (
        guess,
        guess.turned(),
    ):  # which of the two is the policy's is seen by what the advantage is multiplied with
        try:
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
        target = self._statement()
        guards = self._guards(target)
        coefficient = self._coefficient(way)
        penalty = self._available(target, guards, coefficient)
        name, is_fresh = self._name(target)
        lines = self._lines(name, is_fresh, guards, coefficient, penalty)
        edits = [self._code.insert_before(target, lines)]
        if name != self._code.text(self._first.whole):
            edits += [self._code.replace(node, name) for node in self._taken(target)]
        edits += self._removal(free_names(_parsed(f"{coefficient}({penalty})")))
        beta = coefficient.removesuffix(" * ")
        return Proposal(
            target=TARGET,
            title=f"deduct {f'{beta} * ' if beta else ''}k1, detached, from {name} and take the penalty out of the loss",
            edits=tuple(edits),
            promise=Promise("reward", "k1", is_unbiased=True, keeps_coefficient=keeps_coefficient, inside=_number(way)),
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

    def _sign_of_rest(self) -> int:
        return -1 if self._joint.is_first and isinstance(self._joint.node.op, ast.Sub) else 1

    # --- where ------------------------------------------------------------------------------------------------------------------

    def _statement(self) -> ast.stmt:
        """The first statement that takes the advantage, in a block that the others stand in as well."""
        code, statements = self._code, [use.statement for use in self._term.uses]
        first = min(statements, key=lambda each: code.extent(each)[0])
        while not all(self._names.encloses(first, each) for each in statements):
            above = code.parents[first]
            if not isinstance(above, ast.stmt) or above is self._names.function:
                raise CannotMendError("the advantage is taken in places of which none stands above the others")
            first = above
        if not self._is_elsewhere_only_when(first):
            raise CannotMendError("the policy term is computed in a branch or loop that the penalty stands outside of")
        return first

    def _is_elsewhere_only_when(self, place: ast.stmt) -> bool:
        """Whatever encloses the policy term encloses the penalty too, so that nothing is left without one."""
        around = {id(each) for each in self._code.ancestors(self._joint.statement)}
        for above in self._code.ancestors(place):
            if above is self._names.function:
                break
            if id(above) not in around and not isinstance(above, ast.With | ast.AsyncWith):
                return False
        return True

    def _guards(self, place: ast.stmt) -> list[str]:
        """Tests under which the penalty is in force and that do not hold for the policy term already."""
        code, around = self._code, {id(each) for each in self._code.ancestors(place)}
        guards: dict[str, None] = {}
        for statement in (self._joint.statement, code.statement(self._ratio.node)):
            inner: ast.AST = statement
            for above in code.ancestors(statement):
                if above is self._names.function or id(above) in around:
                    break
                if isinstance(above, ast.If):
                    guards[code.text(above.test) if inner in above.body else f"not ({code.text(above.test)})"] = None
                elif not isinstance(above, ast.With | ast.AsyncWith):
                    raise CannotMendError(
                        "the penalty is added in a loop or a try that the policy term stands outside of"
                    )
                inner = above
        for guard in guards:
            if "\n" in guard or any(
                isinstance(n, ast.NamedExpr | ast.Await | ast.Yield) for n in ast.walk(_parsed(guard))
            ):
                raise CannotMendError("the condition of the penalty cannot be said a second time")
        return list(reversed(guards))

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

    # --- what -------------------------------------------------------------------------------------------------------------------

    def _coefficient(self, way: Steps) -> str:
        """`beta * `, `beta / n * `, empty for 1."""
        text = ""
        for node, divides in way.coefficients:
            operand = self._code.operand(node)
            if divides:
                text = f"{text or '1'} / {operand}"
            else:
                text = f"{text} * {operand}" if text else operand
        return f"{text} * " if text else ""

    def _available(self, place: ast.stmt, guards: list[str], coefficient: str) -> str:
        """log pi - log pi_ref as it can be written at a place.  Raises CannotMendError where something is not known there yet."""
        given = self._names.given_at(place, frozenset(ast.unparse(_parsed(guard)) for guard in guards))
        formula = self._code.statement(self._ratio.node)
        for text in (*guards, *((coefficient + "1",) if coefficient else ())):
            for name in sorted(free_names(_parsed(text))):
                self._check_given(name, place, given, self._joint.statement)
        sides = [self._written(each, place, given, formula) for each in (self._ratio.policy, self._ratio.reference)]
        return " - ".join(side + self._ratio.cast for side in sides)

    def _written(self, node: ast.expr, place: ast.stmt, given: frozenset[str], origin: ast.stmt) -> str:
        """An expression, or what its name stands for where that is set only later and has no effects."""
        binding = self._names.definition(node.id, origin) if isinstance(node, ast.Name) else None
        is_late = isinstance(node, ast.Name) and self._names.bindings(node.id) and node.id not in given
        if is_late and binding is not None and binding.value is not None and _is_lookup(binding.value):
            for name in sorted(free_names(binding.value)):
                self._check_given(name, place, given, binding.statement)
            return self._code.operand(binding.value)
        for name in sorted(free_names(node)):
            self._check_given(name, place, given, origin)
        return self._code.operand(node)

    def _check_given(self, name: str, place: ast.stmt, given: frozenset[str], origin: ast.stmt) -> None:
        if self._names.bindings(name) and name not in given:
            raise CannotMendError(f"`{name}` is set only after the advantage has been used")
        if self._names.changes_between(name, place, origin):
            raise CannotMendError(f"`{name}` changes between the policy term and the penalty")

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


def _number(way: Steps) -> float:
    """What the numbers among the coefficients make together."""
    total = 1.0
    for node, divides in way.coefficients:
        value = _value(node)
        total = total / value if divides and value else total * value
    return total


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return abs(float(value))
        case ast.UnaryOp(operand=inner):
            return _value(inner)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left) * _value(right)
        case ast.BinOp(left=left, op=ast.Div(), right=right) if _value(right):
            return _value(left) / _value(right)
    return 1.0


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _identifier(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return node.id if isinstance(node, ast.Name) else "advantage"


def _is_lookup(node: ast.expr) -> bool:
    """Reading it a second time gives the same: keys, attributes, `.get("key")` of plain objects."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=value):
            return _is_lookup(value)
        case ast.Subscript(value=value, slice=key):
            return _is_lookup(value) and isinstance(key, ast.Constant | ast.Name)
        case ast.Call(func=ast.Attribute(value=value, attr="get"), args=args, keywords=[]):
            return _is_lookup(value) and all(isinstance(each, ast.Constant) for each in args)
    return False


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
