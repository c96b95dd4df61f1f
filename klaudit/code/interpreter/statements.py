"""Statements: straight-line code in order, both sides of a branch joined, a loop's body once."""

from __future__ import annotations

import ast
from collections.abc import Callable

from klaudit.code import names
from klaudit.code.conditions import ALWAYS, NEVER, Condition, Truth, both, either, negated
from klaudit.code.graph import Node
from klaudit.code.interpreter.adapters import is_switched_by, switch
from klaudit.code.interpreter.calls import Calls
from klaudit.code.interpreter.machine import Frame
from klaudit.code.interpreter.makers import gradient_is_off, is_no_gradient
from klaudit.code.modules import FunctionInfo, class_info, imported_names
from klaudit.code.values import Alternatives, ClassObject, Closure, Literal, Mapping, Path, Sequence, Value

_TRY_GROUP: type[ast.Try] = getattr(ast, "TryStar", ast.Try)  # `except*`, from Python 3.11 on


class Interpreter(Calls):
    """Runs functions."""

    def run_root(
        self, info: FunctionInfo, enclosing: dict[str, Value] | None = None, receiver: Value | None = None
    ) -> Frame:
        """Run a function with its parameters unknown.  Raises BudgetError."""
        if receiver is None and info.owner is not None:
            receiver = Path("self", "self")
        parameters = self.parameters_as_called(info, receiver)
        for value in parameters.values():
            if isinstance(value, Path):
                self.note_default(value)
        frame = Frame(info.module, info, parameters, enclosing, receiver, without_gradient=gradient_is_off(info))
        self.running = [info.syntax]
        self.run(frame)
        return frame

    def run_module(self, statements: list[ast.stmt]) -> Frame:
        """Run top-level statements of the main module."""
        frame = Frame(self.program.main, None, {})
        self.block(statements, frame)
        return frame

    def run(self, frame: Frame) -> Value:
        assert frame.info is not None
        syntax = frame.info.syntax
        if isinstance(syntax, ast.Lambda):
            return self.evaluate(syntax.body, frame)
        self.block(syntax.body, frame)
        arms = [(condition, value) for condition, value, _ in frame.returns]
        if not arms:
            return Literal(None)
        return arms[0][1] if len(arms) == 1 else self._returned(arms)

    def _returned(self, arms: list[tuple[Condition, Value]]) -> Value:
        """The first return that is reached; tuples of one length item by item."""
        lengths = {len(value.items) if isinstance(value, Sequence) and not value.grows else -1 for _, value in arms}
        if len(lengths) == 1 and -1 not in lengths:
            columns = zip(*(value.items for _, value in arms if isinstance(value, Sequence)), strict=True)
            conditions = [condition for condition, _ in arms]
            return Sequence([self._returned(list(zip(conditions, column, strict=True))) for column in columns])
        if all(isinstance(value, Node) for _, value in arms):
            return self.graph.choice([(condition, value) for condition, value in arms if isinstance(value, Node)])
        return Alternatives(tuple(arms[:12]))

    def block(self, statements: list[ast.stmt], frame: Frame) -> bool:
        """Run statements; True where control leaves the block (return, raise, break, continue)."""
        self.deeper()
        try:
            return any(self.statement(statement, frame) for statement in statements)
        finally:
            self.shallower()

    def statement(self, statement: ast.stmt, frame: Frame) -> bool:
        self.step()
        if isinstance(statement, ast.Assign):
            value = self.evaluate(statement.value, frame)
            for target in statement.targets:
                self.assign(target, value, frame, statement.value)
        elif isinstance(statement, ast.AnnAssign):
            if statement.value is not None:
                self.assign(statement.target, self.evaluate(statement.value, frame), frame, statement.value)
        elif isinstance(statement, ast.AugAssign):
            self._augmented(statement, frame)
        elif isinstance(statement, ast.Expr):
            self._expression_statement(statement.value, frame)
        elif isinstance(statement, ast.Return):
            value = self.evaluate(statement.value, frame) if statement.value is not None else Literal(None)
            if frame.without_gradient:
                value = self.without_gradient(value)
            frame.returns.append((both(frame.path), value, self.site(statement, frame)))
            return True
        elif isinstance(statement, ast.If):
            return self._if(statement, frame)
        elif isinstance(statement, ast.For | ast.AsyncFor):
            self.assign(statement.target, self.element(self.evaluate(statement.iter, frame)), frame)
            self.block(statement.body, frame)
            return self.block(statement.orelse, frame) if statement.orelse else False
        elif isinstance(statement, ast.While):
            self.block(statement.body, frame)
        elif isinstance(statement, ast.With | ast.AsyncWith):
            return self._with(statement, frame)
        elif isinstance(statement, ast.Try | _TRY_GROUP):
            return self._try(statement, frame)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            self._define(statement, frame)
        elif isinstance(statement, ast.ClassDef):
            self._define_class(statement, frame)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            self._import(statement, frame)
        elif isinstance(statement, ast.Match):
            return self._cases(self.evaluate(statement.subject, frame), statement.cases, frame)
        return isinstance(statement, ast.Raise | ast.Break | ast.Continue)

    def _try(self, statement: ast.Try, frame: Frame) -> bool:
        """As if nothing were raised."""
        ended = self.block(statement.body, frame)
        if not ended and statement.orelse:
            ended = self.block(statement.orelse, frame)
        return self.block(statement.finalbody, frame) or ended if statement.finalbody else ended

    def _expression_statement(self, syntax: ast.expr, frame: Frame) -> None:
        """A call for its effect; in-place tensor methods give the name they are called on a new value."""
        value = self.evaluate(syntax, frame)
        if isinstance(syntax, ast.Call) and isinstance(syntax.func, ast.Attribute):
            method = syntax.func.attr
            if "adapter" in method:
                chosen = self.evaluate(syntax.args[0], frame) if syntax.args else None
                switched = switch(method, chosen)
                frame.adapter_switched = frame.adapter_switched if switched is None else switched
            if method.endswith("_") and not method.endswith("__") and isinstance(value, Node):
                self._store_in_place(syntax.func.value, value, frame)

    def _store_in_place(self, target: ast.expr, value: Node, frame: Frame) -> None:
        while isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
            target = target.value
        if isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
            self.assign(target, value, frame)

    def _define(self, statement: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        outer = f"{frame.info.qualified}." if frame.info else ""
        info = FunctionInfo(
            frame.module, statement, f"{outer}{statement.name}", inside=frame.info.inside if frame.info else None
        )
        surroundings = _surroundings(frame)
        frame.names[statement.name] = Closure(info, surroundings, frame.receiver)
        self.local_functions.append((info, surroundings, frame.receiver))

    def _define_class(self, statement: ast.ClassDef, frame: Frame) -> None:
        """A class made inside a function, as a factory of trainers does: its methods are functions of their own."""
        info = class_info(frame.module, statement)
        frame.names[statement.name] = ClassObject(info)
        self.local_functions += [(method, _surroundings(frame), None) for method in info.methods.values()]

    def _import(self, statement: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        for alias, dotted in imported_names(statement):
            frame.module.imports.setdefault(alias, dotted)
            frame.names[alias] = self.global_value(alias, frame.module)

    # --- assignment --------------------------------------------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Value, frame: Frame, written: ast.AST | None = None) -> None:
        """Give a value to a target; `written` is the expression it comes from."""
        site = self.site(written or target, frame)
        if isinstance(target, ast.Name):
            value = self.part_named(target.id, value, written)
            frame.names[target.id] = self.settled(target.id, value, frame, site)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value, frame, written)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, frame)
            self._store(owner, target.attr, f".{target.attr}", value, target, frame)
        elif isinstance(target, ast.Subscript):
            self._assign_item(target, value, frame)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, frame)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, frame: Frame, written: ast.AST | None) -> None:
        if isinstance(value, Alternatives):  # `a, b = f()` where only one way out of f gives a pair
            pairs = [arm for _, arm in value.arms if isinstance(arm, Sequence) and len(arm.items) == len(target.elts)]
            value = pairs[0] if len(pairs) == 1 else value
        for at, part in enumerate(target.elts):
            if isinstance(value, Sequence) and value.items:
                item = value.items[at] if at < len(value.items) and not value.grows else value.items[-1]
            elif isinstance(value, Path):
                name = value.name if at == _place_of_log_probability(value.name) and not _is_entropy(part) else ""
                item = Path(f"{value.text}[{at}]", name, value.model, value.reason, value.detached)
            else:
                item = value if isinstance(value, Node | Alternatives) else Path(f"<item {at}>", "")
            each = isinstance(written, ast.Tuple) and len(written.elts) == len(target.elts)
            self.assign(part, item, frame, written.elts[at] if each and isinstance(written, ast.Tuple) else written)

    def _assign_item(self, target: ast.Subscript, value: Value, frame: Frame) -> None:
        owner = self.evaluate(target.value, frame)
        key = None if isinstance(target.slice, ast.Slice) else self.evaluate(target.slice, frame)
        if isinstance(owner, Mapping | Path) and isinstance(key, Literal) and isinstance(key.value, str):
            self._store(owner, key.value, f"['{key.value}']", value, target, frame)
        elif isinstance(owner, Node):  # part of a tensor is overwritten
            written = self.as_node(value)
            if written.roles and (owner.is_scalar or (written.bears_kl and not owner.bears_kl)):
                self._store_in_place(target.value, written, frame)
        elif isinstance(owner, Sequence) and isinstance(value, Node):
            owner.items.append(value)
            owner.grows = True
            self.note_stored(ast.unparse(target.value), value, frame, self.site(target, frame))
        elif isinstance(value, Node):
            self.note_stored(ast.unparse(target.value), value, frame, self.site(target, frame))

    def _store(
        self, owner: Value, key: str, suffix: str, value: Value, target: ast.Attribute | ast.Subscript, frame: Frame
    ) -> None:
        site = self.site(target, frame)
        container = ast.unparse(target.value)
        if isinstance(value, Node) and names.is_metric(container):
            self.note("metric", value, f"{container}{suffix}", frame, site)
            if frame.without_gradient:
                value = self.without_gradient(value)
        else:
            value = self.settled(key, value, frame, site)
        if isinstance(owner, Mapping):
            owner.entries[key] = value
        elif isinstance(owner, Path):
            self.heap[f"{owner.text}{suffix}"] = value
            if not names.is_metric(container):
                self.leave(key, value)

    def _augmented(self, statement: ast.AugAssign, frame: Frame) -> None:
        target = statement.target
        current = self.evaluate(target, frame)
        value = self.arithmetic(
            statement.op, current, self.evaluate(statement.value, frame), self.site(statement, frame)
        )
        self._store_in_place(target, self.as_node(value), frame)

    # --- branches ----------------------------------------------------------------------------------------------------------------

    def _if(self, statement: ast.If, frame: Frame) -> bool:
        condition = self.condition(statement.test, frame)
        if condition == ALWAYS:
            return self.block(statement.body, frame)
        if condition == NEVER:
            return self.block(statement.orelse, frame)
        return self._branch(
            condition, lambda: self.block(statement.body, frame), lambda: self.block(statement.orelse, frame), frame
        )

    def _branch(self, condition: Condition, body: Callable[[], bool], orelse: Callable[[], bool], frame: Frame) -> bool:
        before, heap = frame.names, self.heap
        frame.names, self.heap = dict(before), dict(heap)
        frame.path.append(condition)
        ended = body()
        then_names, then_heap = frame.names, self.heap
        frame.names, self.heap = dict(before), dict(heap)
        frame.path[-1] = negated(condition)
        other_ended = orelse()
        frame.path.pop()
        if ended and not other_ended:
            joined, joined_heap = self.guarded(negated(condition), before, frame.names), self.heap
        elif other_ended and not ended:
            joined, joined_heap = self.guarded(condition, before, then_names), then_heap
        else:
            joined = self.joined(condition, then_names, frame.names)
            joined_heap = self.joined(condition, then_heap, self.heap)
        before.clear()  # closures over these names see what they hold now
        before.update(joined)
        heap.clear()
        heap.update(joined_heap)
        frame.names, self.heap = before, heap
        return ended and other_ended

    def _cases(self, subject: Value, cases: list[ast.match_case], frame: Frame) -> bool:
        """A match statement as the chain of branches it is."""
        if not cases:
            return False
        condition = self._matches(subject, cases[0].pattern, frame)
        if condition == ALWAYS:
            return self.block(cases[0].body, frame)
        return self._branch(
            condition, lambda: self.block(cases[0].body, frame), lambda: self._cases(subject, cases[1:], frame), frame
        )

    def _matches(self, subject: Value, pattern: ast.pattern, frame: Frame) -> Condition:
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            return ALWAYS
        if isinstance(pattern, ast.MatchOr):
            return either(self._matches(subject, part, frame) for part in pattern.patterns)
        if isinstance(pattern, ast.MatchValue):
            return self.equality(subject, self.evaluate(pattern.value, frame), ast.unparse(pattern))
        if isinstance(pattern, ast.MatchSingleton):
            return self.equality(subject, Literal(pattern.value), ast.unparse(pattern))
        return Truth(f"matches {ast.unparse(pattern)}")

    def _with(self, statement: ast.With | ast.AsyncWith, frame: Frame) -> bool:
        off, adapter = 0, 0
        for item in statement.items:
            text = ast.unparse(item.context_expr)
            off += is_no_gradient(text)
            adapter += is_switched_by(text)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self.evaluate(item.context_expr, frame), frame)
        frame.without_gradient += off
        frame.adapter_off += adapter
        try:
            return self.block(statement.body, frame)
        finally:
            frame.without_gradient -= off
            frame.adapter_off -= adapter


def _surroundings(frame: Frame) -> dict[str, Value]:
    return frame.names if frame.enclosing is None else _Chained(frame.names, frame.enclosing)


class _Chained(dict[str, Value]):
    """Names of a function inside a function inside a function: the inner ones first."""

    def __init__(self, inner: dict[str, Value], outer: dict[str, Value]) -> None:
        super().__init__()
        self._inner, self._outer = inner, outer

    def __contains__(self, name: object) -> bool:
        return name in self._inner or name in self._outer

    def __getitem__(self, name: str) -> Value:
        return self._inner[name] if name in self._inner else self._outer[name]


def _place_of_log_probability(maker: str) -> int | None:
    """Which of several results is the log-probability, going by the name of what made them (`logps_and_entropies`)."""
    if not names.is_log_probability(maker):
        return None
    return int(0 <= maker.find("entrop") < maker.find("log"))


def _is_entropy(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and "entrop" in target.id
