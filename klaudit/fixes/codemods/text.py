"""A module as text to be edited: nodes with their bytes, statements with their lines, and edits of nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from klaudit.fixes.page import CannotEditError, Page
from klaudit.model import Edit, Span
from klaudit.readers.python.syntax import parse
from klaudit.readers.source import Source

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
Positioned: TypeAlias = ast.expr | ast.stmt

_REST_OF_LINE = re.compile(rb"[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)")
_BETWEEN_STRINGS = re.compile(rb'"\s*,\s*"')
_FARTHEST = 2_000  # bytes that are looked back over for a comment
_INNER_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)


class Code:
    """One module or the Python cells of a notebook.  Offsets are into `data`; edits are of the file on disk."""

    def __init__(self, source: Source) -> None:
        """Raises UnreadableError for what is not Python or nested too deeply, CannotEditError for what cannot be edited."""
        code, self._page = _python(source)
        self._file = source.data
        self._is_notebook = source.path.endswith(".ipynb")
        self._parsed = parse(code)
        self._is_recoded = self._parsed.source is not code
        self.tree = self._parsed.tree
        self.data = self._parsed.data
        self.newline = "\r\n" if b"\r\n" in self.data else "\n"

    # --- nodes -------------------------------------------------------------------------------------------------------------------

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def _by_place(self) -> dict[tuple[int, int], Positioned]:
        """The innermost expression of each place; a statement only where no expression is as long."""
        found: dict[tuple[int, int], Positioned] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.expr | ast.stmt):
                span = self._parsed.span(*self.extent(node))
                place = (span.start, span.end)
                if isinstance(node, ast.expr) or place not in found:
                    found[place] = node
        return found

    def at(self, span: Span | None) -> Positioned | None:
        """The node that stands at a span of the file."""
        if span is None or span.path != self._page.path:
            return None
        return self._by_place.get((span.start, span.end))

    def extent(self, node: Positioned) -> tuple[int, int]:
        return self._parsed.start(node), self._parsed.end(node)

    def text(self, node: Positioned) -> str:
        start, end = self.extent(node)
        return self.data[start:end].decode("utf-8", "replace")

    def operand(self, node: ast.expr) -> str:
        """An expression as it can stand beside an operator: in parentheses where it is more than one thing, on one line."""
        text = " ".join(self.text(node).split()) if "#" not in self.text(node) else ast.unparse(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def function(self, node: ast.AST) -> Function:
        """The function (or module) whose names a node sees first."""
        for above in self.ancestors(node):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                return above
        return self.tree

    def statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def is_in_inner_scope(self, node: ast.AST) -> bool:
        """Names around it may be those of a lambda or comprehension, which no statement can use."""
        for above in self.ancestors(node):
            if isinstance(above, ast.stmt):
                return False
            if isinstance(above, _INNER_SCOPES):
                return True
        return False

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which one stands."""
        parent = self.parents[statement]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        raise CannotEditError("the statement stands in a form that is not known to be safe to change")

    def contains(self, outer: Positioned, inner: Positioned) -> bool:
        (start, end), (first, last) = self.extent(outer), self.extent(inner)
        return start <= first and last <= end

    # --- edits -------------------------------------------------------------------------------------------------------------------

    def edit(self, start: int, end: int, text: str) -> Edit:
        """Raises CannotEditError where the text cannot be spelled in the encoding of the file."""
        if self._is_recoded and not text.isascii():
            raise CannotEditError("the file is not in UTF-8, and what would be written is not ASCII")
        span = self._parsed.span(start, end)
        if not text and self._is_notebook and self.data[start - 1 : start] == b"\n":
            following = self._parsed.span(end, end).start
            if _BETWEEN_STRINGS.fullmatch(self._file, span.end, following):
                return Edit(self._page.path, span.start, following, "")  # whole lines, each a string of its own
        first = self._page.at(span.start)
        return self._page.edit(first, self._page.end(first, span.end), text)

    def replace(self, node: ast.expr, text: str) -> Edit:
        return self.edit(*self.extent(node), text)

    def in_place_of(self, node: ast.expr, text: str) -> Edit:
        """Replaces an expression by a sum or product, in parentheses where its surroundings could take it apart."""
        start, end = self.extent(node)
        parent = self.parents[node]
        is_alone = isinstance(parent, ast.Assign | ast.AnnAssign | ast.Return | ast.keyword)
        is_enclosed = self.data[:start].rstrip()[-1:] == b"(" and self.data[end:].lstrip()[:1] == b")"
        return self.edit(start, end, text if is_alone or is_enclosed else f"({text})")

    def replace_enclosed(self, node: ast.expr, name: str) -> Edit:
        """Replaces an expression by a name, with the parentheses that only the expression needed."""
        start, end = self.extent(node)
        before, after = self.data[:start].rstrip(), self.data[end:].lstrip()
        is_grouped = (
            before[-1:] == b"(" and after[:1] == b")" and isinstance(self.parents[node], ast.BinOp | ast.UnaryOp)
        )
        if not is_grouped:
            return self.edit(start, end, name)
        return self.edit(len(before) - 1, len(self.data) - len(after) + 1, name)

    def indent(self, statement: ast.stmt) -> str:
        """Raises CannotEditError where the statement shares its line with another one."""
        start, end = self.extent(statement)
        before = self.data[self.data.rfind(b"\n", 0, start) + 1 : start]
        if before.strip() or _REST_OF_LINE.match(self.data, end) is None:
            raise CannotEditError("the statement shares its line with another one")
        return before.decode()

    def lines(self, statement: ast.stmt) -> tuple[int, int]:
        """The lines of a statement, to the start of the next.  Raises CannotEditError where it shares one."""
        indent = self.indent(statement)
        start, end = self.extent(statement)
        rest = _REST_OF_LINE.match(self.data, end)
        return start - len(indent.encode()), rest.end() if rest is not None else end

    def body_start(self, block: ast.With) -> int:
        """Where the line after the header of a `with` begins."""
        return self.data.index(b"\n", self.extent(block.items[-1].context_expr)[1]) + 1

    def insert_before(self, statement: ast.stmt, lines: Sequence[str]) -> Edit:
        """New lines above a statement and the comment that belongs to it, indented as it is."""
        indent = self.indent(statement)
        start = self.extent(statement)[0]
        comment = re.compile(rb"(?:^" + indent.encode() + rb"#[^\n]*\n)+" + indent.encode() + rb"\Z", re.MULTILINE)
        above = comment.search(self.data, max(start - _FARTHEST, 0), start)
        if above is not None:
            start = above.start() + len(indent.encode())
        return self.edit(start, start, "".join(f"{line}{self.newline}{indent}" for line in lines))

    def remove(self, statement: ast.stmt) -> Edit:
        """Takes a statement away with its lines; one that is alone in an `if` takes the `if` with it."""
        block = self.block(statement)
        if len(block) > 1:
            return self.edit(*self.lines(statement), "")
        parent = self.parents[statement]
        if isinstance(parent, ast.If) and block is parent.body and not parent.orelse and not self._is_elif(parent):
            return self.remove(parent)
        return self.edit(*self.extent(statement), "pass")

    def _is_elif(self, branch: ast.If) -> bool:
        return self.data.startswith(b"elif", self.extent(branch)[0])


def _python(source: Source) -> tuple[Source, Page]:
    if not source.path.endswith(".ipynb"):
        return source, Page(source)
    from klaudit.readers.notebook import read_notebook

    python = read_notebook(source).python
    if python is None:
        raise CannotEditError("the notebook holds no Python")
    return python.source, Page.of(source)
