"""What the files of a release say of its settings.  Python is parsed, never imported; YAML is composed by Hydra itself."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


class MissingSourceError(Exception):
    """The file, or one that it builds on, is not in the release."""


class UnreadableSourceError(Exception):
    """The file is there, but what was asked for is not in it or cannot be read."""


class NotLiteral:
    """A value that the source computes; `text` is its expression."""

    def __init__(self, text: str) -> None:
        self.text = text


@dataclass(frozen=True, slots=True)
class Stated:
    """What a source says of one setting.  `required`: there, but without a default."""

    value: Any = None
    choices: tuple[Any, ...] = ()
    switch: bool = False
    required: bool = False


Statements = dict[str, Stated]


# --- YAML ---------------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def composed(root: Path, folder: str, config: str) -> Statements:
    """Every leaf of a primary config, composed with Hydra as the program would without overrides."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import MissingConfigException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    file = root / folder / f"{config.removesuffix('.yaml')}.yaml"
    if not file.is_file():
        raise MissingSourceError(str(file.relative_to(root)))
    plain = OmegaConf.load(file)
    overrides = []
    if search := OmegaConf.select(plain, "hydra.searchpath"):
        overrides = [f"hydra.searchpath=[{','.join(_search_path(root, folder, each) for each in search)}]"]
    if "defaults" in plain:
        GlobalHydra.instance().clear()
        with warnings.catch_warnings(), initialize_config_dir(str((root / folder).resolve()), version_base=None):
            warnings.simplefilter("ignore")
            try:
                plain = compose(config.removesuffix(".yaml"), overrides=overrides)
            except MissingConfigException as error:
                raise MissingSourceError(f"{error.missing_cfg_file}, which {folder}/{config} builds on") from None
            except Exception as error:  # Hydra raises many kinds, and each means that this config cannot be composed
                raise UnreadableSourceError(f"{folder}/{config}: {' '.join(str(error).split())}") from None
    statements: Statements = {}
    for key, raw in _leaves(OmegaConf.to_container(plain, resolve=False), ()):
        name = ".".join(key)
        value = raw
        if isinstance(raw, str) and "${" in raw:
            try:
                value = OmegaConf.select(plain, name)
            except OmegaConfBaseException:
                value = NotLiteral(raw)
        statements[name] = Stated(value, required=raw == "???")
    return statements


def _search_path(root: Path, folder: str, entry: str) -> str:
    """pkg://a.b and file://a/b as a folder of the release; the latter is relative to where the program is started: its top or beside
    the config folder."""
    kind, _, place = entry.partition("://")
    if kind == "pkg":
        return f"file://{root.resolve() / place.replace('.', '/')}"
    path = root / place
    return f"file://{(path if path.is_dir() else root / folder / '..' / place).resolve()}"


def _leaves(node: Any, key: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(node, dict) and node:
        for name, child in node.items():
            yield from _leaves(child, (*key, str(name)))
    elif key:
        yield key, node


# --- Python -------------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _module(root: Path, path: str) -> ast.Module:
    file = root / path
    if not file.is_file():
        raise MissingSourceError(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        try:
            return ast.parse(file.read_bytes(), path)
        except (SyntaxError, ValueError) as error:
            raise UnreadableSourceError(f"{path}: {error}") from None


def dataclass_fields(root: Path, path: str, symbol: str) -> Statements:
    """The fields of a class, of its bases, and (dotted) of the dataclasses that its fields hold, as far as the release defines them."""
    return _fields(root, path, symbol, depth=0)


def _fields(root: Path, path: str, symbol: str, depth: int) -> Statements:
    found = _find_class(root, path, symbol, depth=0)
    if found is None:
        raise UnreadableSourceError(f"{path}: no class {symbol}")
    path, node = found
    statements: Statements = {}
    if depth > 6:
        return statements
    for base in reversed(node.bases):
        if isinstance(base, ast.Name) and _find_class(root, path, base.id, depth=0):
            statements.update(_fields(root, path, base.id, depth + 1))
    for item in node.body:
        if not (isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)):
            continue
        name = item.target.id
        stated = _field(item)
        if stated is None:
            continue
        statements[name] = stated
        inner = next((n.id for n in ast.walk(item.annotation) if isinstance(n, ast.Name) and n.id[:1].isupper()), "")
        if isinstance(stated.value, NotLiteral) and inner and _find_class(root, path, inner, depth=0):
            nested = _fields(root, path, inner, depth + 1)
            statements.update({f"{name}.{key}": stated for key, stated in nested.items()})
    return statements


def _find_class(root: Path, path: str, name: str, depth: int) -> tuple[str, ast.ClassDef] | None:
    """The class in the module or where the module imports it from."""
    module = _module(root, path)
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return path, node
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and depth < 4:
            original = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), None)
            for other in _import_paths(root, path, node) if original else ():
                if found := _find_class(root, other, original or name, depth + 1):
                    return found
    return None


def _import_paths(root: Path, path: str, node: ast.ImportFrom) -> Iterator[str]:
    parts = list(Path(path).parts[: -node.level]) if node.level else []
    parts += (node.module or "").split(".") if node.module else []
    base = "/".join(parts)
    yield from (other for other in (f"{base}.py", f"{base}/__init__.py") if (root / other).is_file())


def _field(item: ast.AnnAssign) -> Stated | None:
    """None for a field that cannot be set (init=False)."""
    choices = _literal_choices(item.annotation)
    value = item.value
    if value is None:
        return Stated(choices=choices, required=True)
    if isinstance(value, ast.Call) and _last_name(value.func) in ("field", "Field"):
        keywords = {keyword.arg: keyword.value for keyword in value.keywords}
        if "init" in keywords and _literal(keywords["init"]) is False:
            return None
        if default := keywords.get("default") or (value.args[0] if value.args else None):
            value = default
        elif factory := keywords.get("default_factory"):
            empties: dict[str, Any] = {"list": [], "dict": {}}
            empty = empties.get(_last_name(factory))
            return Stated(NotLiteral(ast.unparse(factory)) if empty is None else empty, choices)
        else:
            return Stated(choices=choices, required=True)
    return Stated(_literal(value), choices)


def _literal_choices(annotation: ast.expr) -> tuple[Any, ...]:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Subscript) and _last_name(node.value) == "Literal":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return tuple(part.value for part in parts if isinstance(part, ast.Constant))
    return ()


def arguments(root: Path, path: str, symbol: str) -> Statements:
    """Every `add_argument("--name", default=..., choices=...)` of a module, or of one function or class of it."""
    statements: Statements = {}
    for node in ast.walk(_scope(root, path, symbol)):
        if not (isinstance(node, ast.Call) and _last_name(node.func) == "add_argument"):
            continue
        flags = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        action = _literal(keywords["action"]) if "action" in keywords else ""
        switch = action in ("store_true", "store_false")
        default = (
            _literal(keywords["default"]) if "default" in keywords else (action == "store_false" if switch else None)
        )
        choices = _literal(keywords["choices"]) if "choices" in keywords else ()
        required = "required" in keywords and _literal(keywords["required"]) is True
        for flag in flags:
            statements[flag.lstrip("-")] = Stated(
                default, () if isinstance(choices, NotLiteral) else tuple(choices), switch, required
            )
    return statements


def words(root: Path, path: str, symbol: str, variable: str) -> frozenset[str]:
    """The text constants that a function compares with (==, !=, in, match, startswith, endswith, the keys of a table it indexes).

    With `variable`, only comparisons with a name, attribute or key of that name.
    """
    found: set[str] = set()
    for node in ast.walk(_scope(root, path, symbol)):
        if isinstance(node, ast.Compare) and _is_about(node.left, variable):
            for operator, right in zip(node.ops, node.comparators, strict=True):
                if isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn):
                    found.update(_texts(right))
        elif isinstance(node, ast.Match) and _is_about(node.subject, variable):
            for case in node.cases:
                found.update(
                    text
                    for part in ast.walk(case.pattern)
                    if isinstance(part, ast.MatchValue)
                    for text in _texts(part.value)
                )
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_about(node.func.value, variable)
        ):
            if node.func.attr in ("endswith", "startswith"):
                found.update(text for argument in node.args for text in _texts(argument))
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict) and _is_about(node.slice, variable):
            found.update(text for key in node.value.keys if key is not None for text in _texts(key))
    return frozenset(found)


def text(root: Path, path: str, symbol: str) -> str:
    """The text of a file, or of one function or class of a Python file."""
    file = root / path
    if not file.is_file():
        raise MissingSourceError(path)
    whole = file.read_text(encoding="utf-8", errors="replace")
    return (ast.get_source_segment(whole, _scope(root, path, symbol)) or "") if symbol else whole


def _scope(root: Path, path: str, symbol: str) -> ast.AST:
    scope: ast.AST = _module(root, path)
    for part in filter(None, symbol.split(".")):
        kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        inner = next((node for node in ast.walk(scope) if isinstance(node, kinds) and node.name == part), None)
        if inner is None:
            raise UnreadableSourceError(f"{path}: no {symbol}")
        scope = inner
    return scope


def _is_about(node: ast.expr, variable: str) -> bool:
    return not variable or variable in (_last_name(node), _last_key(node))


def _last_key(node: ast.expr) -> str:
    """The text key of `config["x"]` or `config.get("x", ..)`."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        node = node.args[0]
    elif isinstance(node, ast.Subscript):
        node = node.slice
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _texts(node: ast.expr) -> list[str]:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        return NotLiteral(ast.unparse(node))
