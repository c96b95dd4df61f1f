"""Command-line options that a module declares: argparse's `add_argument`, click's `@option`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from msgspec import Struct, field

from klaudit.model import Setting, Unknown, Value
from klaudit.readers.document import ArgumentSpec, ConfigObject
from klaudit.readers.python.evaluate import Evaluator
from klaudit.readers.python.facts import Facts, Site
from klaudit.readers.python.functions import keywords
from klaudit.readers.python.names import callee_name, dotted, root_and_path
from klaudit.readers.python.results import Constant, Items, Opaque, Pair, Result, Text, value_of
from klaudit.readers.python.scopes import Place, reaching
from klaudit.readers.python.symbols import annotation_symbols, defining

_GROUPS = ("add_argument_group", "add_mutually_exclusive_group", "ArgumentGroup", "argument_group", "group")
_PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args")
_HOLDERS = frozenset({"args", "opt", "opts", "options", "flags", "cli_args", "hparams", "self.args", "params"})
_NO_VALUE = ("help", "version")
_IMPLIED: dict[str, Value] = {"store_true": False, "store_false": True}
_TYPES: dict[str, Callable[[str], Value]] = {"float": float, "int": int, "str": str, "bool": bool}


class _Option(Struct):
    spec: ArgumentSpec
    settings: tuple[Setting, ...]
    start: int  # of the default, or of the whole declaration
    end: int


class _Parser(Struct):
    name: str
    symbol: str
    scope: str
    start: int
    end: int
    options: list[_Option] = field(default_factory=list)


class OptionReader:
    """The parsers of one module and their options."""

    def __init__(self, evaluator: Evaluator, facts: Facts) -> None:
        self.evaluator = evaluator
        self.module = evaluator.module
        self.facts = facts
        self._parsers: dict[tuple[int, str], _Parser] | None = None
        self._declares = any(
            isinstance(site.node, ast.Call) and callee_name(site.node.func) == "add_argument" for site in facts.calls
        )

    def read(self) -> list[ConfigObject]:
        """One object for each parser that has options."""
        found = []
        for parser in self._all().values():
            if parser.options:
                settings = tuple(setting for option in parser.options for setting in option.settings)
                span = self.module.span(parser.start, parser.end)
                specs = tuple(option.spec for option in parser.options)
                found.append(
                    ConfigObject(
                        "arguments", parser.symbol, settings, span, parser.name, arguments=specs, scope=parser.scope
                    )
                )
        return found

    def option_read(self, parts: tuple[str, ...], place: Place) -> Opaque | None:
        """What `args.beta` hangs on, where `args` holds parsed options; None where it does not."""
        root, path = root_and_path(parts)
        if not path or not self._declares:
            return None
        parsers = self._parsed_by(root, place)
        if parsers is None:
            return None
        dest = ".".join(path)
        found = [option for parser in parsers for option in parser.options if option.spec.dest == dest]
        if len(found) != 1:
            return None
        spec = found[0].spec
        default = spec.default.text or "unknown" if isinstance(spec.default, Unknown) else repr(spec.default)
        return Opaque((f"{spec.flags[0]} (default {default})",), found[0].start, found[0].end, ".".join(parts))

    def _parsed_by(self, root: str, place: Place) -> list[_Parser] | None:
        """The parsers whose result a name may hold."""
        binding = defining(root, place, self.evaluator.runs)
        call = binding.value if binding is not None else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _PARSES:
            if binding is not None and binding.kind == "element" and binding.element != 0:
                return None
            key = self._key(call.func.value, place)
            parser = self._all().get(key[0]) if key is not None else None
            if parser is not None:
                return [parser]
        if root in _HOLDERS or isinstance(call, ast.Call):
            return list(self._all().values())
        return None

    def _all(self) -> dict[tuple[int, str], _Parser]:
        if self._parsers is None:
            self._parsers = {}  # defaults that read other options see none
            found: dict[tuple[int, str], _Parser] = {}
            for site in sorted(self.facts.calls, key=lambda site: site.place.position):
                self._add(site, found)
            for function, place in self.facts.functions:
                self._decorated(function, place, found)
            self._parsers = found
        return self._parsers

    def _add(self, site: Site, found: dict[tuple[int, str], _Parser]) -> None:
        call = site.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return
        if call.func.attr not in ("add_argument", "set_defaults"):
            return
        key = self._key(call.func.value, site.place)
        if key is None:
            return
        identity, name, symbol = key
        parser = found.get(identity)
        start, end = self.module.start(call), self.module.end(call)
        if parser is None:
            parser = found[identity] = _Parser(name, symbol, site.place.scope.name, start, end)
        parser.end = max(parser.end, end)
        if call.func.attr == "set_defaults":
            self._set_defaults(parser, call, site.place)
            return
        option = self._option(call, site.place)
        if option is not None:
            parser.options.append(option)

    def _key(self, node: ast.expr, place: Place) -> tuple[tuple[int, str], str, str] | None:
        """Identity, name and class of the parser that an expression stands for; argument groups count as their parser."""
        for _ in range(10):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute) and node.func.attr in _GROUPS:
                    node = node.func.value
                    continue
                return (id(node), ""), "", self.evaluator.qualified(node.func, place)
            parts = dotted(node)
            if parts is None:
                return None
            name = ".".join(parts)
            root, path = root_and_path(parts)
            reached = reaching(root, place, self.evaluator.runs) if not path else None
            binding = reached.binding if reached is not None else None
            if binding is None or binding.value is None:
                types = (
                    annotation_symbols(binding.node.annotation, place, self.evaluator.runs)
                    if binding is not None and isinstance(binding.node, ast.arg)
                    else ()
                )
                holder = id(place.scope) if place.scope.kind != "inner" else 0
                return (holder, name), name, types[0] if types else name
            call = binding.value
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in _GROUPS
                and reached is not None
            ):
                node, place = call.func.value, Place(reached.place.scope, binding.block, binding.position)
                continue
            symbol = self.evaluator.qualified(call.func, place) if isinstance(call, ast.Call) else name
            return (id(binding), ""), name, symbol
        return None

    def _option(self, call: ast.Call, place: Place) -> _Option | None:
        flags = []
        for argument in call.args:
            text = self.evaluator.evaluate(argument, place)
            if not isinstance(text, Text) or text.known is None:
                return None
            flags.append(text.known)
        given = {pair.key: pair for pair in keywords(self.evaluator, call, place)[0]}
        dashed = [flag for flag in flags if flag.startswith("-")]
        dest = _known(given.get("dest"))
        if dest is None and flags:
            longest = next((flag for flag in flags if flag.startswith("--")), flags[0])
            dest = longest.lstrip("-").replace("-", "_") if dashed else longest
        action = _known(given.get("action")) or (
            self._spelled(given.get("action")).rpartition(".")[2] if "action" in given else ""
        )
        if not flags or not dest or action in _NO_VALUE:
            return None
        if action == "BooleanOptionalAction":
            flags += [f"--no-{flag[2:]}" for flag in dashed if flag.startswith("--")]
        return self._made(call, tuple(flags), dest, action, given)

    def _made(self, call: ast.Call, flags: tuple[str, ...], dest: str, action: str, given: dict[str, Pair]) -> _Option:
        start, end = self.module.start(call), self.module.end(call)
        kind = self._spelled(given.get("type"))
        default = given.get("default")
        value = _IMPLIED.get(action) if default is None else self._default(default, kind)
        choices = given.get("choices")
        known_choices = (
            choices.value.items
            if choices is not None and isinstance(choices.value, Items) and not choices.value.open
            else None
        )
        spec = ArgumentSpec(
            flags=flags,
            dest=dest,
            default=value,
            span=self.module.span(start, end),
            type=kind,
            action=action,
            nargs=self._spelled(given.get("nargs")),
            choices=tuple(value_of(choice) for choice in known_choices) if known_choices is not None else None,
            required="required" in given and value_of(given["required"].value) is True,
        )
        value_start, value_end = (default.value_start, default.value_end) if default is not None else (start, end)
        settings = self._settings(
            spec, start, end, value_start, value_end, default.value if default is not None else None
        )
        return _Option(spec, settings, value_start, value_end)

    def _settings(
        self, spec: ArgumentSpec, start: int, end: int, value_start: int, value_end: int, default: Result | None
    ) -> tuple[Setting, ...]:
        span, value_span = self.module.span(start, end), self.module.span(value_start, value_end)
        source = None
        if default is not None and not value_start <= default.start <= value_end:
            source = self.module.span(default.start, default.end)
        raw = self.module.spelling(value_start, value_end) if default is not None else ""
        names = [
            flag.lstrip("-")
            for flag in spec.flags
            if not flag.startswith("--no-") or spec.action != "BooleanOptionalAction"
        ]
        return tuple(Setting(name, spec.default, span, value_span, "default", source, raw) for name in names)

    def _set_defaults(self, parser: _Parser, call: ast.Call, place: Place) -> None:
        for pair in keywords(self.evaluator, call, place)[0]:
            for index, option in enumerate(parser.options):
                if option.spec.dest == pair.key:
                    old = option.spec
                    value = self._default(pair, old.type)
                    spec = ArgumentSpec(
                        old.flags, old.dest, value, old.span, old.type, old.action, old.nargs, old.choices, old.required
                    )
                    settings = self._settings(spec, pair.start, pair.end, pair.value_start, pair.value_end, pair.value)
                    parser.options[index] = _Option(spec, settings, pair.value_start, pair.value_end)

    def _default(self, pair: Pair, kind: str) -> Value:
        value = _converted(pair.value, kind)
        if isinstance(value, Unknown) and not value.text:
            return Unknown(value.hangs_on, self.module.spelling(pair.value_start, pair.value_end))
        return value

    def _spelled(self, pair: Pair | None) -> str:
        if pair is None:
            return ""
        known = _known(pair)
        return known if known is not None else self.module.spelling(pair.value_start, pair.value_end)

    # --- click -------------------------------------------------------------------------------------------------------

    def _decorated(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, place: Place, found: dict[tuple[int, str], _Parser]
    ) -> None:
        options = []
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and isinstance(decorator.func, (ast.Attribute, ast.Name)):
                symbol = self.evaluator.qualified(decorator.func, place)
                if symbol.rpartition(".")[2] in ("option", "argument") and decorator.args:
                    option = self._click_option(decorator, place)
                    if option is not None:
                        options.append(option)
        if options:
            start, end = self.module.start(function.decorator_list[0]), self.module.end(function.decorator_list[-1])
            found[id(function), ""] = _Parser(function.name, "click.command", place.scope.name, start, end, options)

    def _click_option(self, call: ast.Call, place: Place) -> _Option | None:
        texts = [self.evaluator.evaluate(argument, place) for argument in call.args]
        declared = [text.known for text in texts if isinstance(text, Text) and text.known is not None]
        given = {pair.key: pair for pair in keywords(self.evaluator, call, place)[0]}
        flags = [part.strip() for flag in declared if flag.startswith("-") for part in flag.split("/")]
        names = [name for name in declared if not name.startswith("-")]
        if not flags and not names:
            return None
        dest = (
            names[0]
            if names
            else next((f for f in flags if f.startswith("--")), flags[0]).lstrip("-").replace("-", "_")
        )
        is_flag = any("/" in flag for flag in declared) or (
            "is_flag" in given and value_of(given["is_flag"].value) is True
        )
        return self._made(call, tuple(flags or names), dest, "store_true" if is_flag else "", given)


def _known(pair: Pair | None) -> str | None:
    if pair is None:
        return None
    if isinstance(pair.value, Text):
        return pair.value.known
    return str(pair.value.value) if isinstance(pair.value, Constant) else None


def _converted(default: Result, kind: str) -> Value:
    """The default as the program sees it: argparse runs `type` over a string default."""
    value = value_of(default)
    convert = _TYPES.get(kind)
    if isinstance(value, str) and convert is not None:
        try:
            return convert(value)
        except ValueError:
            return Unknown((f"{kind}({value!r})",), value)
    return value
