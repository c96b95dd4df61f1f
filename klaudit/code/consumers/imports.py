"""Who imports a name and who mentions it: file by file, with the tests around both."""

from __future__ import annotations

import ast
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from klaudit.code.consumers.guards import Guard
from klaudit.readers.python.syntax import parse
from klaudit.readers.source import Source, UnreadableError

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_IMPORT = re.compile(rb"\n[ \t]*(?:from|import)\b([^\n]*)")
_WORD = re.compile(rb"[\w\x80-\xff]+")


class Place(Struct, frozen=True):
    """A top-level name of a file."""

    path: str
    name: str


class Use(Struct, frozen=True):
    """A name that leads to another one, where the guards let it.

    `method` is the method that mentions it, for a class; `overrides` are the methods that a class derived from it has anew, None for
    what is no derived class.  `is_import`: the name is only bound there, for others to import.
    """

    place: Place
    guards: tuple[Guard, ...]
    method: str = ""
    overrides: frozenset[str] | None = None
    is_import: bool = False


class Imports:
    """Who imports and mentions a name, file by file: each file is parsed once, and only when it is asked about."""

    def __init__(self, load: Callable[[str], Source | None]) -> None:
        self._load = load
        self._trees: dict[str, ast.Module | None] = {}
        self._uses: dict[tuple[str, Place], tuple[Use, ...]] = {}
        self._words: dict[str, frozenset[bytes]] = {}

    def words(self, path: str) -> frozenset[bytes]:
        """The words after `from` and `import` in a file: the names of all modules that it imports are among them."""
        if path not in self._words:
            source = self._load(path)
            lines = _IMPORT.findall(b"\n" + source.data) if source is not None else ()
            self._words[path] = frozenset(_WORD.findall(b" ".join(lines)))
        return self._words[path]

    def uses(self, path: str, place: Place) -> tuple[Use, ...]:
        """The names of one file that lead to one."""
        key = (path, place)
        if key not in self._uses:
            self._uses[key] = tuple(self._found(path, place))
        return self._uses[key]

    def methods_at(self, place: Place, lines: Iterable[int]) -> frozenset[str]:
        """The methods of a class that stand on some lines of its file."""
        source = self._load(place.path)
        tree = self._tree(source) if source is not None else None
        classes = (node for node in tree.body if isinstance(node, ast.ClassDef)) if tree is not None else ()
        methods = [each for node in classes if node.name == place.name for each in node.body]
        wanted = tuple(lines)
        return frozenset(
            each.name
            for each in methods
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and any(_covers(each, line) for line in wanted)
        )

    def _found(self, path: str, place: Place) -> Iterator[Use]:
        source = self._load(path)
        if source is None or place.name.encode() not in source.data:
            return
        if (tree := self._tree(source)) is not None:
            yield from _uses_in(tree, source.data, (place.name.encode(), module_word(place.path)), place, path)

    def _tree(self, source: Source) -> ast.Module | None:
        if source.path not in self._trees:
            self._trees[source.path] = None
            with suppress(UnreadableError):  # the scan reports it where that file itself is read
                self._trees[source.path] = parse(source).tree
        return self._trees[source.path]


def module_word(path: str) -> bytes:
    """What an import of a file calls it: its name, or its folder's for a package."""
    return os.fsencode(posixpath.basename(_stem(path)))


class _Site(Struct, frozen=True):
    """The innermost statement of a line: `parts` are its own expressions, without the statements inside; `definition` is the top-level
    class or function around it, and `owner` the top-level name that it helps to define."""

    statement: ast.stmt
    parts: tuple[ast.AST, ...]
    definition: ast.stmt | None
    owner: str
    guards: tuple[Guard, ...]
    method: str


class _Bindings(Struct):
    """In one scope: names that stand for the wanted one, and modules that hold it, each with the guards of its import."""

    names: dict[str, tuple[Guard, ...]]
    modules: dict[str, tuple[Guard, ...]]


def _uses_in(tree: ast.Module, data: bytes, words: Iterable[bytes], place: Place, path: str) -> Iterator[Use]:
    """In one file: the definitions that mention the name, where it is bound there, and the file itself for those who import it on."""
    sites = _sites_of(words, tree, data)
    bound: dict[ast.stmt | None, _Bindings] = {}
    for site in sites:
        if isinstance(site.statement, ast.Import | ast.ImportFrom):
            _bind(site, path, place, bound.setdefault(site.definition, _Bindings({}, {})))
    everywhere = bound.setdefault(None, _Bindings({}, {}))
    aliases = {alias.encode() for each in bound.values() for alias in (*each.names, *each.modules)}
    sites += _sites_of([alias for alias in aliases if not any(word in alias for word in words)], tree, data)
    seen: set[tuple[Place, tuple[int, ...], str, frozenset[str] | None]] = set()
    found = [Use(Place(path, name), guards, is_import=True) for name, guards in everywhere.names.items()]
    if path == place.path:
        everywhere.names[place.name] = ()
    for site in sites:
        scopes = [everywhere, bound[site.definition]] if site.definition in bound else [everywhere]
        for scope in scopes:
            found += [
                Use(Place(path, site.owner), (*guards, *site.guards), site.method, _methods(site.statement))
                for guards in _mentioned(site, scope, place.name)
            ]
    for use in found:
        key = (use.place, tuple(id(guard.test) for guard in use.guards), use.method, use.overrides)
        if use.place != place and key not in seen:
            seen.add(key)
            yield use


def _methods(statement: ast.stmt) -> frozenset[str] | None:
    """What a class statement, which mentions a name as its base, defines instead of the base; what calls that as well is no such thing."""
    if not isinstance(statement, ast.ClassDef):
        return None
    functions = (each for each in statement.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(each.name for each in functions if not _calls_super(each))


def _calls_super(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`super().name(...)` inside the method `name`."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == method.name
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "super"
        for node in ast.walk(method)
    )


# --- statements by line ------------------------------------------------------------------------------------------------------------------


def _sites_of(words: Iterable[bytes], tree: ast.Module, data: bytes) -> list[_Site]:
    lines = {line for word in words for line in _lines_with(word, data)}
    return list({id(site.statement): site for line in sorted(lines) for site in _sites(tree, line)}.values())


def _lines_with(word: bytes, data: bytes) -> Iterator[int]:
    line, at, found = 1, 0, data.find(word)
    while found >= 0:
        line += data.count(b"\n", at, found)
        at = found
        yield line
        found = data.find(word, found + len(word))


def _sites(tree: ast.Module, line: int) -> Iterator[_Site]:
    """The statements of a line, innermost first."""
    for top in _top_level(tree.body):
        if _covers(top, line):
            definition = top if isinstance(top, _Definition) else None
            yield from _inside(top, line, definition, _owner(top))


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Top-level statements, those below `if` and `try` included."""
    waiting = list(body)
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.If | ast.Try):
            waiting += [inner for block in _blocks(statement) for inner in block]
        else:
            yield statement


def _inside(statement: ast.stmt, line: int, definition: ast.stmt | None, owner: str) -> Iterator[_Site]:
    guards: tuple[Guard, ...] = ()
    method = ""
    scope = definition  # the innermost function: a local name means what it is assigned there
    while True:
        inner = _child(statement, line)
        if inner is None:
            break
        if statement is definition and isinstance(statement, ast.ClassDef):
            method = getattr(inner, "name", "")
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            scope = statement
        if isinstance(statement, ast.If):
            guards = (*guards, Guard(statement.test, inner in statement.body, scope))
        statement = inner
    yield _Site(statement, tuple(_own_parts(statement)), definition, owner, guards, method)


def _child(statement: ast.stmt, line: int) -> ast.stmt | None:
    return next((inner for block in _blocks(statement) for inner in block if _covers(inner, line)), None)


def _blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements right inside a statement."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """What a statement evaluates besides the statements inside it: a test, decorators, bases, defaults, but no annotations."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (*statement.decorator_list, *statement.args.defaults, *filter(None, statement.args.kw_defaults))
        return
    annotation = statement.annotation if isinstance(statement, ast.AnnAssign) else None
    for child in ast.iter_child_nodes(statement):
        if child is not annotation and not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child


def _covers(statement: ast.stmt, line: int) -> bool:
    first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
    last = statement.end_lineno or first
    return bool(first <= line <= last)


def _owner(statement: ast.stmt) -> str:
    """The top-level name that a statement defines."""
    if isinstance(statement, _Definition):
        return statement.name
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return ""


# --- imports and mentions ----------------------------------------------------------------------------------------------------------------


def _bind(site: _Site, path: str, place: Place, bound: _Bindings) -> None:
    """What an import makes of the name."""
    node = site.statement
    if isinstance(node, ast.Import):
        for alias in node.names:
            if _is_file(alias.name.replace(".", "/"), place.path):
                bound.modules[alias.asname or alias.name] = site.guards
    elif isinstance(node, ast.ImportFrom):
        module = _module(node, path)
        for alias in node.names:
            if _is_file(f"{module}/{alias.name}".removeprefix("/"), place.path):
                bound.modules[alias.asname or alias.name] = site.guards
            elif _is_file(module, place.path) and alias.name in (place.name, "*"):
                bound.names[place.name if alias.name == "*" else alias.asname or alias.name] = site.guards


def _module(node: ast.ImportFrom, path: str) -> str:
    """The folder or file, without suffix, that an import names; relative ones from the importing file."""
    name = (node.module or "").replace(".", "/")
    if not node.level:
        return name
    folder = posixpath.dirname(path)
    for _ in range(node.level - 1):
        folder = posixpath.dirname(folder)
    return posixpath.join(folder, name) if name else folder


def _stem(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__")


def _is_file(module: str, path: str) -> bool:
    """Whether a module, given as a path without suffix, is that file; imports of packages may start at any folder."""
    stem = _stem(path)
    return bool(module) and (stem == module or ("/" in module and stem.endswith("/" + module)))


def _mentioned(site: _Site, bound: _Bindings, name: str) -> Iterator[tuple[Guard, ...]]:
    """The guards of the import behind every mention in a statement."""
    if isinstance(site.statement, ast.Import | ast.ImportFrom) or not (bound.names or bound.modules):
        return
    for part in site.parts:
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and node.id in bound.names and isinstance(node.ctx, ast.Load):
                yield bound.names[node.id]
            elif isinstance(node, ast.Attribute) and node.attr == name and bound.modules:
                owner = _dotted(node.value)
                if owner in bound.modules:
                    yield bound.modules[owner]


def _dotted(expression: ast.expr) -> str:
    """`package.module` as it is written; empty for what is no such path."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    return ".".join(reversed([*parts, expression.id])) if isinstance(expression, ast.Name) else ""
