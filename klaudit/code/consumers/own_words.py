"""Words that a framework's source in the tree gives a meaning beside those that its releases know."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator

from klaudit.readers.python.syntax import parse
from klaudit.readers.source import Source, UnreadableError

MAX_FILES = 20  # that hold the word, in one package


def gives_meaning(
    word: str, known: Collection[str], files: Iterable[str], load: Callable[[str], Source | None]
) -> bool:
    """Whether a module of `files` has `word` where it has one of the `known` words, and not only to refuse it.

    A test, a key of a table, a choice of a parser or the name that a decorator registers: all are texts of just these letters.
    """
    needles = word.encode()
    looked_at = 0
    for path in files:
        source = load(path)
        if source is None or needles not in source.data:
            continue
        looked_at += 1
        if looked_at > MAX_FILES:
            return False
        try:
            tree = parse(source).tree
        except UnreadableError:  # the scan reports it where that file itself is read
            continue
        texts = _texts(tree)
        if word in texts and not texts.isdisjoint(known):
            return True
    return False


def _texts(tree: ast.AST) -> set[str]:
    """The texts of a module that are no messages, and whose choice does not end in an error."""
    found: set[str] = set()
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                found.add(node.value)
        elif not isinstance(node, ast.Raise | ast.JoinedStr):
            left.extend(_parts(node))
    return found


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a node, but for the values that a branch refuses."""
    if isinstance(node, ast.If) and _refuses(node.body) and _picks(node.test):
        yield from node.orelse
    elif not (isinstance(node, ast.match_case) and _refuses(node.body)) and not _is_docstring(node):
        yield from ast.iter_child_nodes(node)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _refuses(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Raise)


def _picks(test: ast.expr) -> bool:
    """`kind == "full"`, `kind in ("full", "exact")`, and not `kind not in (...)`."""
    if isinstance(test, ast.BoolOp):
        return all(map(_picks, test.values))
    return isinstance(test, ast.Compare) and all(isinstance(each, ast.Eq | ast.In) for each in test.ops)
