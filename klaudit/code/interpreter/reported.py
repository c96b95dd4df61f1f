"""Names that a function only reports: a reward that is logged and nothing else trains nobody."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code import names

METRIC_CALLS = frozenset(
    {"print", "log", "add_scalar", "record", "scalar", "debug", "info", "warning", "log_metric", "log_dict"}
)
_REPORTERS = frozenset(
    {"", "self", "accelerator", "self.accelerator", "fabric", "self.fabric", "mlflow", "swanlab", "run"}
)


def is_only_reported(name: str, function: ast.AST) -> bool:
    """Wherever the name is read, a statement for the logs reads it, or one that makes something else of it which is only reported."""
    statements = list(_simple_statements(function))
    waiting, seen = [name], {name}
    while waiting:
        current = waiting.pop()
        readers = [statement for statement, read in statements if current in read]
        if not readers:
            return False
        for statement in readers:
            if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
                made = {target.id for target in statement.targets if isinstance(target, ast.Name)}
                waiting.extend(made - seen)
                seen |= made
            elif not _is_report(statement):
                return False
    return True


def _simple_statements(function: ast.AST) -> Iterator[tuple[ast.stmt | ast.expr, frozenset[str]]]:
    """Statements without a body, and the expressions that those with one hang on, each with the names that it reads."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if (isinstance(node, ast.stmt) and hasattr(node, "body")) or isinstance(
            node, ast.ExceptHandler | ast.match_case | ast.withitem
        ):
            waiting.extend(ast.iter_child_nodes(node))
        elif isinstance(node, ast.stmt | ast.expr):
            inner = ast.walk(node)
            read = frozenset(part.id for part in inner if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))
            yield node, read


def _is_report(statement: ast.stmt | ast.expr) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        receiver, _, called = ast.unparse(statement.value.func).rpartition(".")
        keeps = any(isinstance(part, ast.NamedExpr) for part in ast.walk(statement))
        return not keeps and (names.is_metric(receiver) or (called in METRIC_CALLS and receiver in _REPORTERS))
    if isinstance(statement, ast.Assign):
        return all(names.is_metric(ast.unparse(target)) for target in statement.targets)
    return False
