"""The program under reading: modules parsed once, what they define and import, and how an imported name leads to another file."""

from __future__ import annotations

import ast
import builtins
import posixpath
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct, field

from klaudit.code import names
from klaudit.model import Span
from klaudit.readers.python import syntax
from klaudit.readers.source import Source, UnreadableError

MAX_MODULES = 60  # followed from one file

Loader = Callable[[str], Source | None]
FunctionSyntax = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class FunctionInfo(Struct, frozen=True, eq=False):
    """A function where it is defined; `owner` is the class it is a method of, `inside` the class whose `self` it sees."""

    module: Module
    syntax: FunctionSyntax
    qualified: str
    owner: ClassInfo | None = None
    inside: ClassInfo | None = None

    @property
    def name(self) -> str:
        return self.qualified.rsplit(".", 1)[-1]


@dataclass(frozen=True, eq=False)
class ClassInfo:
    module: Module
    syntax: ast.ClassDef
    methods: dict[str, FunctionInfo]
    bases: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.syntax.name

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Annotated names of the body in order: what a dataclass takes."""
        return tuple(
            statement.target.id
            for statement in self.syntax.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        )

    @cached_property
    def set_in_init(self) -> dict[str, ast.expr]:
        """What `__init__` assigns to attributes of self; the first assignment counts."""
        written: dict[str, ast.expr] = {}
        init = self.methods.get("__init__")
        for statement in ast.walk(init.syntax) if init else ():
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                    for part, value in _paired(target, statement.value):
                        if (
                            isinstance(part, ast.Attribute)
                            and isinstance(part.value, ast.Name)
                            and part.value.id == "self"
                        ):
                            written.setdefault(part.attr, value)
        return written


class Module(Struct, eq=False):
    """One file: its syntax tree and the names of its top level."""

    index: int
    parsed: syntax.Module
    functions: dict[str, FunctionInfo] = field(default_factory=dict)
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)  # alias -> dotted name; relative ones start with dots
    assigned: dict[str, ast.expr] = field(default_factory=dict)
    imports_all_of: list[str] = field(default_factory=list)

    @property
    def source(self) -> Source:
        """The text, in UTF-8 whatever the file's own encoding."""
        return self.parsed.source

    @property
    def syntax(self) -> ast.Module:
        return self.parsed.tree

    def offset(self, line: int, column: int) -> int:
        """Byte offset of a line (from 1) and a column in UTF-8 bytes, as `ast` counts them."""
        starts = self.parsed.line_starts
        return starts[min(line, len(starts)) - 1] + column

    def extent(self, syntax: ast.AST) -> tuple[int, int]:
        """First and last byte of a statement or expression; those of a statement include its decorators."""
        line, column = getattr(syntax, "lineno", 1), getattr(syntax, "col_offset", 0)
        if decorators := getattr(syntax, "decorator_list", None):
            line, column = min((node.lineno, node.col_offset - 1) for node in decorators)
        end_line, end_column = getattr(syntax, "end_lineno", line), getattr(syntax, "end_col_offset", column)
        return self.offset(line, max(column, 0)), self.offset(end_line, end_column)

    def span(self, syntax: ast.AST) -> Span:
        return self.parsed.span(*self.extent(syntax))

    def text(self, syntax: ast.AST) -> str:
        start, end = self.extent(syntax)
        return self.source.data[start:end].decode("utf-8", "replace")

    def top_level(self) -> Iterator[FunctionInfo]:
        """Functions and methods that are not inside another function."""
        yield from self.functions.values()
        for info in self.classes.values():
            yield from info.methods.values()


class Program:
    """The file under analysis and those of the same tree that it imports, loaded when a name leads there."""

    def __init__(self, source: Source, load: Loader) -> None:
        self._load = load
        self._by_path: dict[str, Module | None] = {}
        self.modules: list[Module] = []
        self._calls: dict[int, dict[str, list[ast.Call]]] = {}
        self.main = self._add(source)

    def _add(self, source: Source) -> Module:
        module = Module(len(self.modules), syntax.parse(source))
        _index(module)
        self.modules.append(module)
        self._by_path[source.path] = module
        return module

    def module_at(self, path: str) -> Module | None:
        if path not in self._by_path:
            self._by_path[path] = None
            source = self._load(path) if len(self.modules) < MAX_MODULES else None
            if source is not None:
                with suppress(UnreadableError):  # the scan reports it where that file itself is read
                    self._add(source)
        return self._by_path[path]

    def module_named(self, dotted: str, importer: Module) -> Module | None:
        """The module of the tree that an import in `importer` names."""
        folder = posixpath.dirname(importer.source.path)
        if dotted.startswith("."):
            name = dotted.lstrip(".")
            for _ in range(len(dotted) - len(name) - 1):
                folder = posixpath.dirname(folder)
            return self._in_folder(folder, name)
        first = dotted.partition(".")[0]
        parts = folder.split("/") if folder else []
        tried = [
            "/".join(parts[:at]) for at, part in enumerate(parts) if part == first
        ]  # inside the package of that name
        for base in (*reversed(tried), folder, "", "src"):
            if module := self._in_folder(base, dotted):
                return module
        return None

    def _in_folder(self, folder: str, dotted: str) -> Module | None:
        path = posixpath.join(folder, dotted.replace(".", "/")) if dotted else folder
        return self.module_at(f"{path}.py") or self.module_at(posixpath.join(path, "__init__.py"))

    def look_up(
        self, module: Module, name: str, depth: int = 0
    ) -> FunctionInfo | ClassInfo | Module | ast.expr | str | None:
        """What a top-level name of a module is: defined there, imported from the tree, or the dotted name of a library."""
        if name in module.functions:
            return module.functions[name]
        if name in module.classes:
            return module.classes[name]
        if name in module.imports and depth < 5:
            return self.imported(module, module.imports[name], depth)
        if name in module.assigned or depth == 5 or hasattr(builtins, name):
            return module.assigned.get(name)
        for dotted in module.imports_all_of:
            other = self.module_named(dotted, module)
            if other is not None and (found := self.look_up(other, name, depth + 1)) is not None:
                return found
        return None

    def imported(
        self, module: Module, dotted: str, depth: int = 0
    ) -> FunctionInfo | ClassInfo | Module | ast.expr | str | None:
        """What a dotted name that `module` imports is: of the tree, or the name itself."""
        if found := self.module_named(dotted, module):
            return found
        parent, _, symbol = dotted.rpartition(".")
        if dotted.startswith(".") and not parent.strip("."):
            parent = dotted[: len(dotted) - len(symbol)]
        if parent and symbol and (found := self.module_named(parent, module)):
            return self.look_up(found, symbol, depth + 1) or dotted
        grand, _, owner = parent.rpartition(".")
        if grand.strip(".") and (found := self.module_named(grand, module)):  # package.module.Class.method
            holder = self.look_up(found, owner, depth + 1)
            if isinstance(holder, ClassInfo):
                return self.method(holder, symbol) or dotted
        return dotted

    def calls(self, module: Module, name: str) -> list[ast.Call]:
        """The calls of a module that spell a function's name, or a class's, as the last part of what they call."""
        text = f"{name}(".encode("utf-8", "surrogatepass")
        if module.source.data.count(text) <= module.source.data.count(b"def " + text):
            return []
        if module.index not in self._calls:
            self._calls[module.index] = _calls_by_name(module.syntax)
        return self._calls[module.index].get(name, [])

    def home_of(self, assigned: ast.expr, name: str, module: Module) -> tuple[str, Module]:
        """The name that a top-level expression is given, and the module it stands in; those given where it is nowhere."""
        for home in self.modules:
            for target, value in home.assigned.items():
                if value is assigned:
                    return target, home
        return name, module

    def class_named(self, module: Module, dotted: str) -> ClassInfo | None:
        """The class that a base-class expression names, followed through imports."""
        first, _, rest = dotted.partition(".")
        found = self.look_up(module, first)
        for part in rest.split(".") if rest else ():
            if not isinstance(found, Module):
                return None
            found = self.look_up(found, part)
        return found if isinstance(found, ClassInfo) else None

    def method(self, info: ClassInfo, name: str, depth: int = 0) -> FunctionInfo | None:
        """A method of a class or of the nearest base class whose code is in the tree."""
        if name in info.methods:
            return info.methods[name]
        if depth < 5 and names.may_concern_a_penalty(name):
            for base in info.bases:
                base_info = self.class_named(info.module, base)
                if (
                    base_info is not None
                    and base_info is not info
                    and (found := self.method(base_info, name, depth + 1))
                ):
                    return found
        return None


def _calls_by_name(tree: ast.Module) -> dict[str, list[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found.setdefault(name, []).append(node)
    return found


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`a, b = 1, 2` as two assignments; a tuple that is not spelled out is given to nobody."""
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
    elif (
        isinstance(value, ast.Tuple | ast.List)
        and len(value.elts) == len(target.elts)
        and not any(isinstance(each, ast.Starred) for each in (*target.elts, *value.elts))
    ):
        yield from zip(target.elts, value.elts, strict=True)


def _index(module: Module) -> None:
    waiting: list[ast.stmt] = list(reversed(module.syntax.body))
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions[statement.name] = FunctionInfo(module, statement, statement.name)
        elif isinstance(statement, ast.ClassDef):
            module.classes[statement.name] = class_info(module, statement)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            names_of = dict(imported_names(statement))
            if (everything := names_of.pop("*", "")) and everything.endswith("*"):
                module.imports_all_of.append(everything[:-1].rstrip(".") or everything[:-1])
            module.imports.update(names_of)
        elif (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            module.assigned[statement.targets[0].id] = statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            module.assigned[statement.target.id] = statement.value
        elif isinstance(statement, (ast.If, ast.Try)):
            waiting.extend(reversed(statement.body + statement.orelse))


def class_info(module: Module, syntax: ast.ClassDef) -> ClassInfo:
    methods: dict[str, FunctionInfo] = {}
    info = ClassInfo(module, syntax, methods, tuple(ast.unparse(base) for base in syntax.bases if _is_dotted(base)))
    for statement in syntax.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            methods[statement.name] = FunctionInfo(module, statement, f"{syntax.name}.{statement.name}", info, info)
    return info


def imported_names(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """(alias, dotted name) of every name that an import statement binds."""
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
        else:
            prefix = "." * statement.level + (statement.module or "")
            dot = "" if not prefix or prefix.endswith(".") else "."
            yield alias.asname or alias.name, f"{prefix}{dot}{alias.name}"


def _is_dotted(expression: ast.expr) -> bool:
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return isinstance(expression, ast.Name)
