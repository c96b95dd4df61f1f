"""Where a penalty can be deducted from the advantage, under which conditions, and how log pi and log pi_ref are written there."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from klaudit.fixes.codemods.joint import Joint
from klaudit.fixes.codemods.names import Names, free_names
from klaudit.fixes.codemods.policy_term import Use
from klaudit.fixes.codemods.proposal import CannotMendError
from klaudit.fixes.codemods.ratio import LogRatio
from klaudit.fixes.codemods.text import Code


class Place:
    """Above `statement`, the first that takes the advantage; `guards` are the tests under which the penalty is in force there."""

    def __init__(self, code: Code, names: Names, joint: Joint, ratio: LogRatio, uses: Sequence[Use]) -> None:
        """Raises CannotMendError where there is no such place."""
        self._code = code
        self._names = names
        self._joint = joint
        self._ratio = ratio
        self.statement = self._first([use.statement for use in uses])
        self.guards = self._guards()
        self._given = names.given_at(self.statement, frozenset(ast.unparse(parsed(guard)) for guard in self.guards))

    def log_ratio(self, coefficient: str) -> str:
        """log pi - log pi_ref as it can be written here.  Raises CannotMendError where something is not known here yet."""
        formula = self._code.statement(self._ratio.node)
        for text in (*self.guards, *((coefficient + "1",) if coefficient else ())):
            for name in sorted(free_names(parsed(text))):
                self._check(name, self._joint.statement)
        sides = [self._written(each, formula) for each in (self._ratio.policy, self._ratio.reference)]
        return " - ".join(side + self._ratio.cast for side in sides)

    def _first(self, statements: Sequence[ast.stmt]) -> ast.stmt:
        """The first statement that takes the advantage, in a block that the others stand in as well."""
        first = min(statements, key=lambda each: self._code.extent(each)[0])
        while not all(self._names.encloses(first, each) for each in statements):
            above = self._code.parents[first]
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

    def _guards(self) -> list[str]:
        """Tests under which the penalty is in force and that do not hold for the policy term already."""
        code, around = self._code, {id(each) for each in self._code.ancestors(self.statement)}
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
                isinstance(n, ast.NamedExpr | ast.Await | ast.Yield) for n in ast.walk(parsed(guard))
            ):
                raise CannotMendError("the condition of the penalty cannot be said a second time")
        return list(reversed(guards))

    def _written(self, node: ast.expr, origin: ast.stmt) -> str:
        """An expression, or what its name stands for where that is set only later and has no effects."""
        binding = self._names.definition(node.id, origin) if isinstance(node, ast.Name) else None
        is_late = isinstance(node, ast.Name) and self._names.bindings(node.id) and node.id not in self._given
        if is_late and binding is not None and binding.value is not None and _is_lookup(binding.value):
            for name in sorted(free_names(binding.value)):
                self._check(name, binding.statement)
            return self._code.operand(binding.value)
        for name in sorted(free_names(node)):
            self._check(name, origin)
        return self._code.operand(node)

    def _check(self, name: str, origin: ast.stmt) -> None:
        if self._names.bindings(name) and name not in self._given:
            raise CannotMendError(f"`{name}` is set only after the advantage has been used")
        if self._names.changes_between(name, self.statement, origin):
            raise CannotMendError(f"`{name}` changes between the policy term and the penalty")


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


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
