"""What a helper that makes log-probabilities does to them last, read off its text: it is known by its name and not run.

Only what every way out of the helper shows is believed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from klaudit.code import names
from klaudit.code.modules import FunctionInfo

_MAX_STEPS = 200  # expressions looked at for one helper
_DETACHING = frozenset({"detach", "detach_", "stop_gradient", "item", "tolist", "numpy"})
_LIKELIHOODS = frozenset({"log_softmax", "gather", "log_prob", "take_along_axis", "take_along_dim"})


class Made(Struct, frozen=True):
    """`detached`: no gradient leaves the helper.  `negated`: what it gives is minus the log-probability."""

    detached: bool = False
    negated: bool = False


def gradient_is_off(info: FunctionInfo) -> int:
    """1 for a function decorated to run without gradient."""
    decorators = getattr(info.syntax, "decorator_list", [])
    return int(any(is_no_gradient(ast.unparse(node)) for node in decorators))


def is_no_gradient(text: str) -> bool:
    return "no_grad" in text or "inference_mode" in text or text.replace(" ", "").endswith("set_grad_enabled(False)")


def made_by(info: FunctionInfo) -> Made:
    """What the helper does to the log-probability that it gives."""
    if isinstance(info.syntax, ast.Lambda):
        return Made()
    body = _Body(info.syntax)
    given = [(_first(value), off) for value, off in body.returned]
    return Made(
        bool(gradient_is_off(info)) or (bool(given) and all(off or body.is_detached(value) for value, off in given)),
        bool(given) and all(body.is_negated(value) for value, _ in given),
    )


class _Body:
    """The returns and assignments of a function, each with whether it stands where no gradient is kept."""

    def __init__(self, syntax: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.returned: list[tuple[ast.expr, bool]] = []
        self.assigned: dict[str, list[tuple[ast.expr | None, bool]]] = {}
        self._steps_left = _MAX_STEPS
        for statement, off in _statements(syntax.body):
            if isinstance(statement, ast.Return) and statement.value is not None:
                self.returned.append((statement.value, off))
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    self._assign(target, statement.value, off)
            elif isinstance(statement, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
                self._assign(statement.target, None, off)

    def _assign(self, target: ast.expr, value: ast.expr | None, off: bool) -> None:
        if isinstance(target, ast.Name):
            self.assigned.setdefault(target.id, []).append((value, off))
        else:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    self.assigned.setdefault(node.id, []).append((None, off))

    def is_detached(self, value: ast.expr) -> bool:
        """No gradient passes through any way in which the value is made."""
        self._steps_left -= 1
        if self._steps_left < 0:
            return False
        if isinstance(value, ast.Name):
            made = self.assigned.get(value.id, [])
            return bool(made) and all(off or (source is not None and self.is_detached(source)) for source, off in made)
        if isinstance(value, ast.IfExp):
            return self.is_detached(value.body) and self.is_detached(value.orelse)
        if isinstance(value, ast.BinOp):
            return self.is_detached(value.left) and self.is_detached(value.right)
        if isinstance(value, ast.Call) and _called(value) in _DETACHING:
            return True
        inner = _inner(value)
        return inner is not None and self.is_detached(inner)

    def is_negated(self, value: ast.expr) -> bool:
        """Minus something that is seen to be a log-probability."""
        self._steps_left -= 1
        if self._steps_left < 0:
            return False
        if isinstance(value, ast.UnaryOp):
            return isinstance(value.op, ast.USub) and self._is_likelihood(value.operand)
        source = self._source(value)
        return source is not None and self.is_negated(source)

    def _is_likelihood(self, value: ast.expr) -> bool:
        self._steps_left -= 1
        if self._steps_left < 0:
            return False
        if isinstance(value, ast.Call) and _called(value) in _LIKELIHOODS:
            return True
        if isinstance(value, ast.Name) and names.is_log_probability(value.id) and value.id not in self.assigned:
            return True
        source = self._source(value)
        return source is not None and self._is_likelihood(source)

    def _source(self, value: ast.expr) -> ast.expr | None:
        """What a value is a view, a sum or a mean of, or what its name was given, where that is one thing."""
        if isinstance(value, ast.Name):
            made = self.assigned.get(value.id, [])
            return made[0][0] if len(made) == 1 else None
        return _inner(value)


def _statements(block: list[ast.stmt]) -> Iterator[tuple[ast.stmt, bool]]:
    """Those of a function in order, without those of functions inside; whether no gradient is kept where each stands."""
    waiting = [(statement, False) for statement in reversed(block)]
    while waiting:
        statement, off = waiting.pop()
        yield statement, off
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.With | ast.AsyncWith):
            off = off or any(is_no_gradient(ast.unparse(item.context_expr)) for item in statement.items)
        parts = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")]
        parts += [handler.body for handler in getattr(statement, "handlers", [])]
        parts += [case.body for case in getattr(statement, "cases", [])]
        waiting += [(inner, off) for part in reversed(parts) for inner in reversed(part)]


def _first(value: ast.expr) -> ast.expr:
    """Of several things that are returned, the one that is named like a log-probability, else the first."""
    if not isinstance(value, ast.Tuple) or not value.elts:
        return value
    return next((item for item in value.elts if names.is_log_probability(ast.unparse(item))), value.elts[0])


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rsplit(".", 1)[-1]


def _inner(value: ast.expr) -> ast.expr | None:
    """What a method is called on, a function of a library is given first, or an item is taken of."""
    if isinstance(value, ast.Subscript | ast.Starred):
        return value.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        owner = value.func.value
        is_library = isinstance(owner, ast.Name) and owner.id in _LIBRARIES
        return (value.args[0] if value.args else None) if is_library else owner
    return None


_LIBRARIES = names.vocabulary("torch F jnp jax np mx lax")
