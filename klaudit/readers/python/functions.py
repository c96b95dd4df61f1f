"""Calls whose outcome follows from their arguments: dict(), float(), os.environ.get(), "…".join(), and what makes config objects."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from klaudit.readers.python import partials, strings
from klaudit.readers.python.containers import merge
from klaudit.readers.python.objects import as_table
from klaudit.readers.python.results import (
    Constant,
    Fragment,
    Items,
    Made,
    Opaque,
    Pair,
    Result,
    Table,
    Text,
    hangs_on,
    unique,
)
from klaudit.readers.python.scopes import Place

if TYPE_CHECKING:
    from klaudit.readers.python.evaluate import Evaluator

FROM_DICT = ("from_dict", "from_kwargs", "model_validate", "parse_obj", "from_config", "structured")
DICT_MAKERS = (
    "create",
    "DictConfig",
    "ConfigDict",
    "EasyDict",
    "edict",
    "Munch",
    "Box",
    "AttrDict",
    "SimpleNamespace",
    "Namespace",
)
ENVIRONMENT = ("os.environ", "environ")
_CONVERSIONS: dict[str, Callable[[str | float], str | float]] = {"int": int, "float": float, "str": str}
_MAX_DIGITS = 400


def call(evaluator: Evaluator, node: ast.Call, place: Place) -> Result:
    """What a call returns, as far as its arguments say."""
    symbol = evaluator.qualified(node.func, place)
    last = symbol.rpartition(".")[2]
    if symbol == "dict":
        return _dict(evaluator, node, place)
    if symbol in ("int", "float", "str", "bool"):
        return _converted(evaluator, node, symbol, place)
    if symbol in ("list", "tuple", "set", "sorted") and not node.keywords and len(node.args) < 2:
        return _list(evaluator, node, place)
    if symbol in ("os.getenv", "getenv") or (
        last in ("get", "copy", "setdefault") and symbol.rpartition(".")[0] in ENVIRONMENT
    ):
        return _environment(evaluator, node, last, place)
    if symbol in ("copy.deepcopy", "copy.copy", "deepcopy", "copy", "shlex.quote", "str.strip") and len(node.args) == 1:
        return evaluator.evaluate(node.args[0], place)
    if symbol in ("os.path.join", "shlex.join", "textwrap.dedent", "dedent", "inspect.cleandoc"):
        return _text_function(evaluator, node, last, place)
    if symbol in ("vars", "dataclasses.asdict", "asdict") and len(node.args) == 1:
        made = evaluator.evaluate(node.args[0], place)
        return (
            as_table(made)
            if isinstance(made, Made)
            else made
            if isinstance(made, Table)
            else evaluator.opaque(node, place)
        )
    if symbol in ("dataclasses.replace", "copy.replace") and node.args:
        return _replaced(evaluator, node, place)
    if last in DICT_MAKERS and (last != "create" or "Conf" in symbol):
        return _dict(evaluator, node, place)
    if last in FROM_DICT and len(node.args) == 1:
        return _from_dict(evaluator, node, symbol.rpartition(".")[0], place)
    if isinstance(node.func, ast.Attribute) and not last[:1].isupper():
        result = _method(evaluator, node, node.func, place)
        return result if result is not None else _opaque_call(evaluator, node, symbol, place)
    if last[:1].isupper():
        pairs, unseen = keywords(evaluator, node, place)
        return Made(symbol, pairs, evaluator.module.start(node), evaluator.module.end(node), unseen)
    return partials.called(evaluator, node, place) or _opaque_call(evaluator, node, symbol, place)


def keywords(evaluator: Evaluator, node: ast.Call, place: Place) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """The keywords of a call, `**` unfolded, and what may add more."""
    pairs: list[Pair] = []
    unseen: list[str] = []
    for keyword in node.keywords:
        if keyword.arg is not None:
            pairs.append(evaluator.pair(keyword.arg, keyword, keyword.value, place))
        else:
            merge(evaluator.evaluate(keyword.value, place), pairs, unseen, may_override=False)
    return tuple(pairs), unique(unseen)


def _opaque_call(evaluator: Evaluator, node: ast.Call, symbol: str, place: Place) -> Opaque:
    opaque = evaluator.opaque(node, place)
    if symbol:
        opaque.hangs_on = unique((f"{symbol}()", *opaque.hangs_on[1:]))
    return opaque


def _dict(evaluator: Evaluator, node: ast.Call, place: Place) -> Result:
    pairs: list[Pair] = []
    unseen: list[str] = []
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    for argument in node.args:
        if evaluator.qualified(argument, place) in ENVIRONMENT:
            unseen.append("os.environ")
        else:
            merge(evaluator.evaluate(argument, place), pairs, unseen)
    given, more = keywords(evaluator, node, place)
    return Table((*pairs, *given), start, end, unique((*unseen, *more)))


def _converted(evaluator: Evaluator, node: ast.Call, kind: str, place: Place) -> Result:
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    if len(node.args) != 1 or node.keywords:
        return evaluator.opaque(node, place)
    inner = evaluator.evaluate(node.args[0], place)
    if isinstance(inner, Text) and kind == "str":
        return inner
    plain = inner.value if isinstance(inner, Constant) else inner.known if isinstance(inner, Text) else None
    if (plain is None and not isinstance(inner, Constant)) or (isinstance(plain, str) and len(plain) > _MAX_DIGITS):
        return Opaque(hangs_on([inner]), start, end)
    if kind == "bool":
        return Constant(bool(plain), inner.start, inner.end)
    try:
        converted = str(plain) if kind == "str" else _CONVERSIONS[kind](plain) if plain is not None else None
    except (ValueError, TypeError, OverflowError):
        return evaluator.opaque(node, place)
    if isinstance(converted, str):
        return Text((Fragment(converted, inner.start, inner.end),), inner.start, inner.end)
    return Constant(converted, inner.start, inner.end) if converted is not None else evaluator.opaque(node, place)


def _list(evaluator: Evaluator, node: ast.Call, place: Place) -> Result:
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    if not node.args:
        return Items((), start, end)
    inner = evaluator.evaluate(node.args[0], place)
    return inner if isinstance(inner, Items) else evaluator.opaque(node, place)


def _environment(evaluator: Evaluator, node: ast.Call, method: str, place: Place) -> Result:
    """An environment variable, taken to be unset as for a script run in an empty environment: then its fallback counts."""
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    if method == "copy":
        return Table((), start, end, ("os.environ",))
    name = evaluator.evaluate(node.args[0], place) if node.args else None
    known = name.known if isinstance(name, Text) else None
    if known is None:
        return evaluator.opaque(node, place)
    fallback = (
        node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "default"), None)
    )
    if _environment_set(evaluator, known, place):
        return Opaque((known,), start, end)
    return evaluator.evaluate(fallback, place) if fallback is not None else Constant(None, start, end)


def _environment_set(evaluator: Evaluator, name: str, place: Place) -> bool:
    """Whether the module itself sets the variable anywhere."""
    return name in evaluator.environment_names


def _text_function(evaluator: Evaluator, node: ast.Call, name: str, place: Place) -> Result:
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    arguments = [evaluator.evaluate(argument, place) for argument in node.args]
    if name in ("dedent", "cleandoc") and len(arguments) == 1 and isinstance(arguments[0], Text):
        return strings.dedented(arguments[0])
    if name == "join":
        parts = arguments[0].items if len(arguments) == 1 and isinstance(arguments[0], Items) else arguments
        return _join(Fragment("/" if node.args[1:] else " ", start, start), parts, start, end)
    return evaluator.opaque(node, place)


def _join(
    separator: Fragment | tuple[Fragment, ...], parts: tuple[Result, ...] | list[Result], start: int, end: int
) -> Result:
    between = Text((separator,) if isinstance(separator, Fragment) else separator, start, start)
    texts: list[Text] = []
    for part in parts:
        if texts:
            texts.append(between)
        texts.append(
            part
            if isinstance(part, Text)
            else Text(strings.field(part, "", part.start, part.end, "?"), part.start, part.end)
        )
    return strings.joined(texts, start, end)


def _replaced(evaluator: Evaluator, node: ast.Call, place: Place) -> Result:
    base = evaluator.evaluate(node.args[0], place)
    pairs, unseen = keywords(evaluator, node, place)
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    if isinstance(base, Made):
        return Made(base.symbol, (*base.pairs, *pairs), start, end, unique((*base.open, *unseen)))
    return Made("dataclasses.replace", pairs, start, end, unique((*hangs_on([base]), *unseen)))


def _from_dict(evaluator: Evaluator, node: ast.Call, symbol: str, place: Place) -> Result:
    inner = evaluator.evaluate(node.args[0], place)
    pairs: list[Pair] = []
    unseen: list[str] = []
    merge(inner, pairs, unseen)
    given, more = keywords(evaluator, node, place)
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    return Made(symbol, (*pairs, *given), start, end, unique((*unseen, *more)))


def _method(evaluator: Evaluator, node: ast.Call, function: ast.Attribute, place: Place) -> Result | None:
    """Methods of texts, lists and dicts; None for everything else."""
    if not isinstance(
        function.value, ast.Constant | ast.JoinedStr | ast.Name | ast.Call | ast.BinOp | ast.Dict | ast.Attribute
    ):
        return None
    holder = evaluator.evaluate(function.value, place)
    arguments = (
        [evaluator.evaluate(argument, place) for argument in node.args] if not isinstance(holder, Opaque) else []
    )
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    match holder, function.attr, arguments:
        case Text(), "join", [Items() as items]:
            return _join(holder.fragments, items.items, start, end)
        case Text(), "format", _ if strings.safe_template(strings.with_holes(holder)):
            pairs, _ = keywords(evaluator, node, place)
            return strings.formatted(holder, arguments, {pair.key: pair.value for pair in pairs})
        case Text(), "strip" | "lstrip" | "rstrip", []:
            return strings.stripped(holder, function.attr)
        case Text(), "split", []:
            return Items(tuple(strings.split(holder)), start, end)
        case Text(), "split", [Text() as separator] if separator.known:
            return Items(tuple(strings.split(holder, separator.known)), start, end)
        case Text(), "lower" | "upper", [] if holder.known is not None:
            changed = holder.known.lower() if function.attr == "lower" else holder.known.upper()
            return Text((Fragment(changed, holder.start, holder.end),), holder.start, holder.end)
        case ((Items() | Table()), "copy", []):
            return holder
        case Table(), "get", [Text() as key, *rest] if key.known is not None:
            found = next((pair.value for pair in reversed(holder.pairs) if pair.key == key.known), None)
            if found is not None or holder.open:
                return found
            return rest[0] if rest else Constant(None, start, end)
        case _:
            return None
