"""The policy-gradient term beside a penalty: where the advantage stands in it, with which sign, and on what shape it acts.

No shapes are known here, but one thing is: where an advantage is multiplied, entry by entry, with a function of log pi alone, the two can
be multiplied, so that a penalty of log pi's shape can be deducted from what is multiplied there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from klaudit.code import names as words
from klaudit.fixes.codemods.joint import Holds, Joint, Steps, steps
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.proposal import CannotMendError
from klaudit.fixes.codemods.ratio import LogRatio
from klaudit.fixes.codemods.text import Code

_CHOOSING = frozenset({"min", "max", "minimum", "maximum", "where", "clamp", "clip"})
_ENTRY_BY_ENTRY = words.vocabulary(
    "exp clamp clip clamp_min clamp_max min max minimum maximum where float to clone neg type_as"
)
_VIEWS = frozenset({"unsqueeze", "view", "reshape", "expand", "expand_as", "detach", "to", "float", "type_as"})
_ADVANTAGE = frozenset({"advantage", "advantages", "adv", "advs"})
_NOT_A_RATIO = (
    "the advantage is not multiplied with a ratio of these log-probabilities token by token, so that their shapes are not "
    "known to fit"
)
_MOST_STEPS = 200
_MOST_NAMES = 20


@dataclass(frozen=True, slots=True)
class Use:
    """`whole` is what is multiplied (`advantages.unsqueeze(1)`), `advantage` what it is a view of.

    `sign` says whether the term grows with log pi where the advantage is positive; `is_weighted` whether a function of log pi is seen to
    multiply it.
    """

    whole: ast.expr
    advantage: ast.expr
    statement: ast.stmt
    sign: int
    is_weighted: bool


@dataclass(slots=True)
class PolicyTerm:
    """`sign` is that of ratio * advantage in the operand of the sum; `way` leads from the operand to the products."""

    way: Steps
    uses: list[Use] = field(default_factory=list)

    @property
    def sign(self) -> int:
        return self.way.sign * self.uses[0].sign


def policy_term(code: Code, names: Names, joint: Joint, ratio: LogRatio) -> PolicyTerm | None:
    """None where no advantage or reward is in reach.  Raises CannotMendError where one is, but its term cannot be followed."""

    wanted = next(
        (each for each in (is_advantage, is_reward) if names.reaches(joint.rest, joint.statement, each)), None
    )
    if wanted is None:
        return None

    def holds(expression: ast.expr, at: ast.stmt) -> bool:
        return names.reaches(expression, at, wanted)

    tracer = _Tracer(code, names, ratio, holds)
    way = steps(names, joint.rest, joint.statement, holds, tracer.is_product)
    term = PolicyTerm(way)
    tracer.collect(way.core, way.at, way_sign=1, factors=(), uses=term.uses)
    if not term.uses:
        raise CannotMendError("the advantage does not multiply a function of log pi where the code can be followed")
    if len({ast.dump(use.advantage) for use in term.uses}) > 1 or len({ast.dump(use.whole) for use in term.uses}) > 1:
        raise CannotMendError("the policy term takes the advantage in more than one form")
    if not any(use.is_weighted for use in term.uses):
        raise CannotMendError(_NOT_A_RATIO)
    if len({use.sign for use in term.uses}) > 1:
        raise CannotMendError("the advantage enters the policy term with both signs")
    return term


def is_reward(node: ast.AST) -> bool:
    """A name, key or attribute that speaks of an advantage, a reward or a return."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
            pass
        case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load()):
            pass
        case _:
            return False
    return words.is_reward(name) and not words.is_loss(name) and not words.is_mask(name) and not words.is_metric(name)


def is_advantage(node: ast.AST) -> bool:
    """One that speaks of an advantage: where there is one, rewards and returns beside it are the business of a value loss."""
    return is_reward(node) and not _ADVANTAGE.isdisjoint(words.words(_identifier(node)))


def _identifier(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return ""


def view_of_advantage(node: ast.expr) -> ast.expr | None:
    """The advantage that an expression is a view of: `advantages[:, None]`, `advantages.unsqueeze(1)`, `advantages`."""
    while not is_reward(node):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _VIEWS:
                node = value
            case ast.Subscript(value=value, slice=index) if _only_adds_axes(index):
                node = value
            case _:
                return None
    return node


def _only_adds_axes(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(part, ast.Constant) and (part.value is None or part.value is Ellipsis))
        or (isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None)
        for part in parts
    )


class _Tracer:
    def __init__(self, code: Code, names: Names, ratio: LogRatio, holds: Holds) -> None:
        self._code = code
        self._names = names
        self._ratio = ratio
        self._holds = holds
        self._left = _MOST_STEPS

    def is_product(self, node: ast.AST) -> bool:
        """Where averages end: the advantage itself is a factor, or a choice between terms is made."""
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return view_of_advantage(left) is not None or view_of_advantage(right) is not None
            case ast.Call(func=function):
                return _called(function) in _CHOOSING and not (
                    isinstance(function, ast.Attribute) and function.attr in ("min", "max") and not node.args
                )
        return False

    def collect(
        self,
        node: ast.expr,
        at: ast.stmt,
        way_sign: int,
        factors: tuple[tuple[ast.expr, ast.stmt], ...],
        uses: list[Use],
    ) -> None:
        """All places of the advantage below a node, over products, choices and assignments."""
        self._left -= 1
        if self._left < 0:
            raise CannotMendError("the policy term is too long to be followed")
        advantage = view_of_advantage(node)
        if advantage is not None:
            slopes = [self._slope(*factor) for factor in factors]
            for (factor, _), slope in zip(factors, slopes, strict=True):
                way_sign *= _sign(factor) if not slope else 1 if slope > 0 else -1
            weights = [_without_sign(factor) for (factor, _), slope in zip(factors, slopes, strict=True) if not slope]
            if any(slopes):
                if len(slopes) - len(weights) > 1 or not all(map(_is_one, weights)):
                    raise CannotMendError(
                        "the policy term is weighted by more than the ratio, and its advantage with it"
                    )
            elif not all(map(_is_bound, weights)):
                raise CannotMendError(_NOT_A_RATIO)
            uses.append(Use(node, advantage, self._code.statement(node), way_sign, is_weighted=any(slopes)))
            return
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                self.collect(inner, at, -way_sign, factors, uses)
            case ast.Name(id=name):
                ways = self._names.alternatives(name, at)
                if ways is None or any(way.value is None for way in ways):
                    raise CannotMendError(f"`{name}` is computed in a way that cannot be followed, or elsewhere")
                for way in ways:
                    if way.value is not None:
                        self.collect(way.value, way.statement, way_sign, factors, uses)
            case ast.BinOp(left=left, op=ast.Mult(), right=right) if self._holds(left, at) != self._holds(right, at):
                inner, other = (left, right) if self._holds(left, at) else (right, left)
                self.collect(inner, at, way_sign, (*factors, (other, at)), uses)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right) if self._holds(
                left, at
            ) != self._holds(right, at):
                turned = isinstance(op, ast.Sub) and self._holds(right, at)
                self.collect(
                    left if self._holds(left, at) else right, at, -way_sign if turned else way_sign, factors, uses
                )
            case ast.Call(func=function) if _called(function) in _CHOOSING:
                given = [*([function.value] if isinstance(function, ast.Attribute) else []), *node.args]
                if _called(function) == "where":
                    given = given[-2:]
                terms = [each for each in given if self._holds(each, at)]
                for each in terms:
                    self.collect(each, at, way_sign, factors, uses)
            case ast.Call(func=function):
                raise CannotMendError(f"the policy term is computed by {ast.unparse(function)}(), not here")
            case _:
                raise CannotMendError("the advantage enters the policy term in a form that is not known")

    def _slope(self, node: ast.expr, at: ast.stmt, depth: int = 0) -> int:
        """How a value that is computed from log pi entry by entry, and on policy changes as much as it does, changes with it.

        1 or -1 for log pi itself and differences to it, 2 or -2 for a ratio, by whether it grows or falls; 0 where nothing of this is seen.
        """
        if self._ratio.is_same(node):
            return int(self._is_still_the_same(at))
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self._slope(inner, at, depth)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                one, other = self._slope(left, at, depth), self._slope(right, at, depth)
                other = -other if isinstance(op, ast.Sub) else other
                return 0 if one and other else one or other
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                if _is_one(_without_sign(right)):
                    return self._slope(left, at, depth) * _sign(right)
                return self._slope(right, at, depth) * _sign(left) if _is_one(_without_sign(left)) else 0
            case ast.Name(id=name) if depth < _MOST_NAMES:
                binding = self._names.definition(name, at)
                if binding is not None and binding.value is not None:
                    return self._slope(binding.value, binding.statement, depth + 1)
            case ast.Call(func=function, args=args) if (name := _called(function)) in _ENTRY_BY_ENTRY:
                given = [*([function.value] if isinstance(function, ast.Attribute) else []), *args]
                given = given[-2:] if name == "where" else given
                slopes = {slope for each in given if (slope := self._slope(each, at, depth))}
                slope = slopes.pop() if len(slopes) == 1 else 0
                if name == "exp":
                    return 2 * slope if abs(slope) == 1 else 0
                return -slope if name == "neg" else slope
        return 0

    def _is_still_the_same(self, at: ast.stmt) -> bool:
        """log pi has not been given another value between here and the formula."""
        place = self._code.statement(self._ratio.policy)
        inner = {each.id for each in ast.walk(self._ratio.policy) if isinstance(each, ast.Name)}
        return not any(self._names.changes_between(name, at, place) for name in inner)


def _sign(node: ast.expr) -> int:
    """-1 for what is written with an odd number of minus signs in front of its factors."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_sign(inner)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            return _sign(left) * _sign(right)
    return 1


def _without_sign(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return node


def _is_bound(node: ast.expr) -> bool:
    """A number or setting: a bound that a choice between terms makes of the advantage alone."""
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.Attribute) and words.is_coefficient(ast.unparse(node))
    )


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _called(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
