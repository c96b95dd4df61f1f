"""Changes of the Python code that makes a trainer: another class in its place, or a subclass written beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from klaudit.fixes import items
from klaudit.fixes.page import CannotEditError, Page
from klaudit.frameworks.load import shipped_rules
from klaudit.frameworks.rules import CodeChange
from klaudit.model import Edit


def trainer_edits(page: Page, change: CodeChange, config: int, coefficient: str) -> list[Edit]:
    """The edits of one file.  `config` is where its configuration is made, `coefficient` the text that goes to a generated class.

    Raises CannotEditError where the code does more with these classes than to make one trainer of them.
    """
    module = _Module(page)
    call = module.only_call_of(change.trainer)
    module.refuse_arguments(call, change.refused)
    if change.template:
        if len(module.calls_of(module.called_at(config))) > 1:
            raise CannotEditError("which configuration goes to the trainer cannot be told: the file makes several")
        return module.put_between(call, change, coefficient)
    return [edit for old, new in change.classes.items() for edit in module.rename(old, new)]


class _Module:
    def __init__(self, page: Page) -> None:
        self._page = page
        try:
            self._tree = ast.parse(page.data)
        except (SyntaxError, ValueError, RecursionError):
            raise CannotEditError("the code is not plain Python (magics of a notebook?)") from None
        self._lines = _line_starts(page.data)
        self._parents = {child: node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)}

    # --- what stands there --------------------------------------------------------------------------------------------

    def calls_of(self, name: str) -> list[ast.Call]:
        return [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Call) and _last(node.func) in self._known_as(name)
        ]

    def only_call_of(self, name: str) -> ast.Call:
        calls = self.calls_of(name)
        if len(calls) != 1:
            raise CannotEditError(
                f"the file makes {len(calls)} {name}s, and which one is meant cannot be told"
                if calls
                else f"no {name} is made in this file"
            )
        return calls[0]

    def called_at(self, offset: int) -> str:
        """The name of the class that is called at a byte of the page."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and self._start(node) == offset:
                return _last(node.func)
        raise CannotEditError("the configuration is not made by a call of its class")

    def refuse_arguments(self, call: ast.Call, refused: tuple[str, ...]) -> None:
        for keyword in call.keywords:
            if keyword.arg is None:
                raise CannotEditError("the trainer is called with `**`: what it is given cannot be seen")
            if keyword.arg in refused:
                raise CannotEditError(f"the trainer is given {keyword.arg}, which the other one does not take")

    # --- edits --------------------------------------------------------------------------------------------------------

    def rename(self, old: str, new: str) -> Iterator[Edit]:
        """Every mention of a class.  One that is more than an import, a call or an annotation raises CannotEditError."""
        if any(_mentions(node, new) for node in ast.walk(self._tree)):
            raise CannotEditError(f"{new} is used in this file already")
        for node in ast.walk(self._tree):
            if isinstance(node, ast.alias) and node.name == old:
                yield self._edit(node.lineno, node.col_offset, len(old), new)
            elif isinstance(node, ast.Name | ast.Attribute) and _last(node) == old and self._is_own(node, old):
                self._must_be_plain(node, old)
                assert node.end_lineno is not None and node.end_col_offset is not None
                yield self._edit(node.end_lineno, node.end_col_offset - len(old), len(old), new)

    def put_between(self, call: ast.Call, change: CodeChange, coefficient: str) -> list[Edit]:
        """The template's class before the statement of the call, which then makes one of them."""
        modules, text, name = _template(change.template)
        if any(_mentions(node, name) for node in ast.walk(self._tree)):
            raise CannotEditError(f"{name} is defined in this file already")
        statement = self._top_level(call)
        start = (
            self._page.data.rfind(b"\n", 0, min([self._start(statement), *map(self._start, _decorators(statement))]))
            + 1
        )
        base = self._page.data[self._start(call.func) : self._end(call.func)].decode("utf-8")
        needed = "".join(f"import {name}\n" for name in modules if not self._imports(name))
        written = text.replace(f"({change.trainer})", f"({base})", 1) + "\n\n"
        if b"\r\n" in self._page.data:
            needed, written = needed.replace("\n", "\r\n"), written.replace("\n", "\r\n")
        last = [*call.args, *(keyword.value for keyword in call.keywords)][-1]
        first = call.keywords[-1] if call.keywords else last
        end = self._end(last)
        top = self._first_import()
        return [
            *([self._page.edit(top, top, needed)] if needed and top < start else []),
            self._page.edit(start, start, written if top < start else needed + "\n\n" + written),
            self._page.edit(self._start(call.func), self._end(call.func), name),
            items.insert(self._page, self._start(first), end, [f"{change.coefficient}={coefficient}"]),
        ]

    # --- help ---------------------------------------------------------------------------------------------------------

    def _known_as(self, name: str) -> set[str]:
        """The class's own name, and what imports call it here."""
        aliases = (node for node in ast.walk(self._tree) if isinstance(node, ast.alias))
        return {name, *(each.asname for each in aliases if each.name == name and each.asname)}

    def _is_own(self, node: ast.Name | ast.Attribute, name: str) -> bool:
        """Whether a bare name is what is imported under it; with `as`, only the import itself spells the class."""
        if isinstance(node, ast.Attribute):
            return True
        return any(
            isinstance(each, ast.alias) and each.name == name and each.asname is None for each in ast.walk(self._tree)
        )

    def _must_be_plain(self, node: ast.expr, name: str) -> None:
        parent = self._parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return
        if isinstance(parent, ast.arg | ast.AnnAssign) and parent.annotation is node:
            return
        if isinstance(parent, ast.ClassDef):
            raise CannotEditError(f"{parent.name} derives from {name}: what it overrides would have to change too")
        raise CannotEditError(f"line {node.lineno} does something else with {name} than to call it")

    def _top_level(self, node: ast.AST) -> ast.stmt:
        while not isinstance(self._parents.get(node), ast.Module):
            node = self._parents[node]
        assert isinstance(node, ast.stmt)
        return node

    def _imports(self, name: str) -> bool:
        return any(
            isinstance(node, ast.Import) and any(each.name == name for each in node.names) for node in self._tree.body
        )

    def _first_import(self) -> int:
        """Where the first import stands that others may precede."""
        for node in self._tree.body:
            if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__"):
                return self._page.data.rfind(b"\n", 0, self._start(node)) + 1
        return len(self._page.data)

    def _edit(self, line: int, column: int, length: int, text: str) -> Edit:
        start = self._at(line, column)
        return self._page.edit(start, start + length, text)

    def _start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        return self._at(node.lineno, node.col_offset)

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        return self._lines[line - 1] + column


def _line_starts(data: bytes) -> list[int]:
    """Where each line begins, as the parser counts them; a byte order mark is not part of the first."""
    starts = [3 if data.startswith(b"\xef\xbb\xbf") else 0]
    at = 0
    for line in data.splitlines(keepends=True):  # \r alone ends one too
        at += len(line)
        starts.append(at)
    return starts


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _mentions(node: ast.AST, name: str) -> bool:
    match node:
        case ast.alias():
            return name in (node.name, node.asname)
        case ast.Name():
            return node.id == name
        case ast.Attribute():
            return node.attr == name
        case ast.ClassDef() | ast.FunctionDef():
            return node.name == name
    return False


def _template(file: str) -> tuple[list[str], str, str]:
    """The modules that a template uses by name, the text of its class, and the name of that."""
    text = Path(shipped_rules(), "templates", file).read_text(encoding="utf-8")
    body = ast.parse(text).body
    modules = [each.name for node in body if isinstance(node, ast.Import) for each in node.names]
    defined = next(node for node in body if isinstance(node, ast.ClassDef))
    return modules, "".join(text.splitlines(keepends=True)[defined.lineno - 1 : defined.end_lineno]), defined.name


def _decorators(statement: ast.stmt) -> list[ast.expr]:
    return (
        statement.decorator_list if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
    )
