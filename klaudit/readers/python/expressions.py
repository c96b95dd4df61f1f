"""The walk through expressions: which calls, dicts, lists and texts may hold settings.  It evaluates nothing."""

from __future__ import annotations

import ast
import re

from klaudit.patterns import rare
from klaudit.readers.python.facts import Facts, Site
from klaudit.readers.python.names import callee_name, dotted, root_and_path, root_of
from klaudit.readers.python.scopes import Binding, Block, Change, Place, Scope, end_of

_KEPT_CALLS = frozenset(
    {  # calls that matter without keywords
        "add_argument", "add_parser", "set_defaults", "option", "from_dict", "model_validate", "parse_obj",
        "system", "popen", "run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput",
        "create_subprocess_exec", "create_subprocess_shell", "execv", "execvp", "execl", "execlp", "run_cell_magic",
    }
)  # fmt: skip
_CHANGING = frozenset(
    {  # methods that change their object, and setattr()
        "append", "extend", "insert", "update", "setdefault", "merge_with", "setattr",
        "pop", "popitem", "clear", "remove", "sort", "reverse", "add", "discard", "appendleft", "extendleft",
    }
)  # fmt: skip
_KEPT_ENDINGS = ("Config", "Arguments", "Args", "Trainer", "Strategy", "Params", "Parser")
_FIRST_WORDS = rb"python[\d.]*|torchrun|accelerate|deepspeed|uv|ray|bash|sh|srun|sbatch|nohup|mpirun|env|cd|export|[A-Z_][A-Z0-9_]*=\S*"
_OPENING = rb"(?i:[rf]{0,2})(?:\"\"\"|'''|[\"'])(?:\s|\\\n)*"
_COMMAND_LINE = rare(  # a launcher and more, flags alone, `{some_args}`, or any program with a flag
    _OPENING
    + rb"(?:(?:" + _FIRST_WORDS + rb")\s+[\w./$-]|--[a-z][\w.-]*(?:\s|=)|\{\w*arg(?:ument)?s\w*\}[\s\"']"
    + rb"|[a-z][\w-]*(?:[ ][\w./-]+){0,2}[ ]--[a-z])"
)  # fmt: skip
_RUNNERS = rare(r"(?:^|_)(?:run|exec|execute|cmd|command|shell|launch|system|submit|call|popen)", re.IGNORECASE)
_FIRST_ELEMENTS = frozenset({ast.Constant, ast.JoinedStr, ast.Starred, ast.Attribute})
_WITH_OWN_NAMES = frozenset({ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Lambda})
_CHILDREN: dict[type[ast.expr], tuple[str, ...]] = {  # of those that are only passed through
    ast.Attribute: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.BinOp: ("left", "right"),
    ast.Compare: ("left", "comparators"),
    ast.BoolOp: ("values",),
    ast.UnaryOp: ("operand",),
    ast.IfExp: ("test", "body", "orelse"),
    ast.Starred: ("value",),
    ast.Slice: ("lower", "upper", "step"),
}
_TEXTS = (ast.Constant, ast.JoinedStr)
_COMMAND_TYPES = frozenset({ast.Constant, ast.JoinedStr, ast.BinOp, ast.Call})


class ExpressionWalker:
    """Notes sites into `facts`; `targets` names, by the id of an expression, what it is bound to."""

    def __init__(self, data: bytes, starts: list[int], facts: Facts) -> None:
        self.facts = facts
        self.targets: dict[int, str] = {}
        self.aliases: set[str] = set()  # names under which functions of interest are imported
        self._data = data
        self._starts = starts
        self._inner_dicts: set[int] = set()
        self._owners: dict[int, ast.expr] = {}  # by id of a list: the function it is an argument of

    def walk(self, root: ast.expr, place: Place) -> None:
        """Visits everything in `root`, which stands at `place`."""
        here: list[ast.expr] = [root]
        deferred: list[tuple[ast.expr, Place]] = []  # inside comprehensions and lambdas, whose names are their own
        while True:
            while here:
                node = here.pop()
                kind = type(node)
                if kind is ast.Name or kind is ast.Constant:
                    continue
                fields = _CHILDREN.get(kind)
                if fields is not None:
                    for name in fields:
                        child = getattr(node, name)
                        if type(child) is list:
                            here.extend(child)
                        elif child is not None:
                            here.append(child)
                elif isinstance(node, ast.Call):
                    self._call(node, place)
                    here.append(node.func)
                    here.extend(node.args)
                    for keyword in node.keywords:
                        here.append(keyword.value)
                elif isinstance(node, ast.Dict):
                    self._dict(node, place)
                    here.extend(node.values)
                elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
                    if node.elts and type(node.elts[0]) in _FIRST_ELEMENTS:
                        self.facts.sequences.append(
                            Site(node, place, self.targets.get(id(node)), self._owners.get(id(node)))
                        )
                    here.extend(node.elts)
                elif isinstance(node, ast.NamedExpr):
                    self._named(node, place)
                    here.append(node.value)
                elif kind in _WITH_OWN_NAMES:
                    deferred.extend(_inner(node, place))
                elif (
                    kind is not ast.JoinedStr
                ):  # inside, positions are not reliable before 3.12, and nobody configures anything
                    here.extend([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)])
            if not deferred:
                return
            following, place = deferred.pop()
            here = [following]

    def imported(self, local: str, symbol: str) -> None:
        """Notes under which name a module brings something in."""
        if local != symbol and symbol.rpartition(".")[2] in _KEPT_CALLS:
            self.aliases.add(local)

    def assigned(self, value: ast.expr, target: str, place: Place) -> None:
        """Notes that `value` is bound to `target`; a text that starts like a command line is a site of its own."""
        if type(value) is ast.Call and callee_name(value.func) == "partial":
            self.aliases.add(target)  # a call without keywords completes it
        self.targets[id(value)] = target
        if type(value) in _COMMAND_TYPES and self._is_command_line(value):
            self.facts.texts.append(Site(value, place, target))

    def change(
        self,
        root: str,
        path: tuple[str, ...],
        how: str,
        values: tuple[ast.expr, ...],
        node: ast.stmt | ast.expr,
        place: Place,
        keywords: tuple[ast.keyword, ...] = (),
    ) -> None:
        """Notes that something is done to the object under a name."""
        self.facts.changes.append(
            Change(root, path, how, end_of(node), place.scope, place.block, values, keywords, node)
        )

    def _changing_call(self, node: ast.Call, name: str, place: Place) -> None:
        """`x.append(v)` and its kind; `setattr(x, "a", v)` and `OmegaConf.update(x, "a.b", v)` as the assignments they are."""
        function = node.func
        setter = name == "setattr" and len(node.args) == 3
        if isinstance(function, ast.Attribute):
            setter = name == "update" and len(node.args) >= 3
            if not setter and (parts := dotted(function.value)) is not None:
                root, path = root_and_path(parts)
                self.change(root, path, name, tuple(node.args), node, place, tuple(node.keywords))
        if setter:
            holder, key, value = node.args[:3]
            parts = dotted(holder)
            if parts is not None and isinstance(key, ast.Constant) and isinstance(key.value, str):
                root, path = root_and_path((*parts, *key.value.split(".")))
                self.change(root, path, "=", (value,), node, place)
            elif (unknown := root_of(holder)) is not None:
                self.change(unknown, (), "?=", (value,), node, place)

    def _named(self, node: ast.NamedExpr, place: Place) -> None:
        scope = place.scope
        while scope.kind == "inner" and scope.parent is not None:
            scope = scope.parent
        scope.bind(Binding(node.target.id, "value", end_of(node), place.block, node.value))
        self.targets[id(node.value)] = node.target.id

    def _call(self, node: ast.Call, place: Place) -> None:
        function = node.func
        name = callee_name(function)
        if name in _CHANGING:
            self._changing_call(node, name, place)
        if node.keywords or name in _KEPT_CALLS or name in self.aliases or name.endswith(_KEPT_ENDINGS):
            self.facts.calls.append(Site(node, place, self.targets.get(id(node))))
            for keyword in node.keywords:
                if isinstance(keyword.value, ast.Dict) and (keyword.arg is None or name == "dict"):
                    self._inner_dicts.add(id(keyword.value))
                elif type(keyword.value) is ast.List:
                    self._owners[id(keyword.value)] = function
                elif keyword.arg == "entrypoint" and self._is_command_line(keyword.value):
                    self.facts.texts.append(Site(keyword.value, place))
        if node.args and type(node.args[0]) is ast.List:
            self._owners[id(node.args[0])] = function
        elif node.args and _RUNNERS.search(name) and not name[:1].isupper() and self._is_command_line(node.args[0]):
            self.facts.texts.append(Site(node.args[0], place))

    def _dict(self, node: ast.Dict, place: Place) -> None:
        named = False
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(value, ast.Dict):
                self._inner_dicts.add(id(value))
            named = named or (isinstance(key, ast.Constant) and isinstance(key.value, str))
        if named and id(node) not in self._inner_dicts:
            self.facts.dicts.append(Site(node, place, self.targets.get(id(node))))

    def _is_command_line(self, node: ast.expr) -> bool:
        """Whether an expression begins, in the source, with a text whose first word starts programs."""
        first = node
        while isinstance(first, ast.BinOp):
            first = first.left
        if isinstance(first, ast.Call):  # " ".join(["python", ...]), "python ...".format(...), dedent("...")
            function = first.func
            holder = function.value if isinstance(function, ast.Attribute) else None
            joins = isinstance(function, ast.Attribute) and function.attr == "join"
            if not joins and isinstance(holder, _TEXTS):
                first = holder
            elif len(first.args) == 1 and isinstance(first.args[0], ast.List) and first.args[0].elts:
                first = first.args[0].elts[0]
                return isinstance(first, _TEXTS) and _COMMAND_LINE.match(self._spelled(first) + b" x") is not None
            elif first.args:
                first = first.args[0]
        return isinstance(first, _TEXTS) and _COMMAND_LINE.match(self._spelled(first)) is not None

    def _spelled(self, node: ast.expr) -> bytes:
        line = min(node.lineno, len(self._starts))
        start = self._starts[line - 1] + node.col_offset
        return self._data[start : start + 200]


def _inner(node: ast.expr, place: Place) -> list[tuple[ast.expr, Place]]:
    """What stands inside a comprehension or lambda, in a scope where its own names are bound to what nobody knows."""
    scope = Scope("inner", place.scope.name, place.scope, place, Block("body"))
    inside = Place(scope, scope.root, place.position)
    if isinstance(node, ast.Lambda):
        a = node.args
        for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
            if argument is not None:
                scope.bind(Binding(argument.arg, "other", 0, scope.root))
        return [(node.body, inside)]
    parts: list[ast.expr] = []
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        for generator in node.generators:
            bind_other(generator.target, scope, scope.root, 0)
            parts += [generator.iter, *generator.ifs]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    return [(part, inside) for part in parts]


def bind_other(target: ast.expr, scope: Scope, block: Block, position: int) -> None:
    """Binds names that get values nobody can tell: loop variables, `with ... as`, starred parts."""
    targets = [target]
    while targets:
        part = targets.pop()
        if isinstance(part, ast.Name):
            scope.bind(Binding(part.id, "other", position, block))
        elif isinstance(part, (ast.Tuple, ast.List)):
            targets.extend(part.elts)
        elif isinstance(part, ast.Starred):
            targets.append(part.value)
