"""Names and where they get their values: scopes, blocks that may or may not run, and which binding reaches a use."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

EVER = 1 << 62  # the position of uses that come when everything at the scope's own level has run

ScopeKind: TypeAlias = Literal["module", "function", "class", "inner"]
BlockKind: TypeAlias = Literal["body", "arm", "loop", "tried", "handler"]
BindingKind: TypeAlias = Literal["value", "element", "import", "class", "function", "parameter", "other"]


class Block(Struct, eq=False):
    """Statements that run together.

    An `arm` runs when `test` comes out as `wanted`; arms of one `owner` exclude each other.  What is `tried` may stop half-way and go
    on after its `handler`.
    """

    kind: BlockKind
    parent: Block | None = None
    owner: ast.stmt | None = None
    test: ast.expr | None = None
    wanted: bool = True
    leaves: bool = False  # its last statement returns or raises: what it binds is never seen after it

    def ancestors(self) -> list[Block]:
        """Itself and what holds it, innermost first."""
        found: list[Block] = []
        block: Block | None = self
        while block is not None:
            found.append(block)
            block = block.parent
        return found


class Binding(Struct, eq=False):
    """One binding of a name.  `value` is the bound expression (`element` of it where a tuple is unpacked); `symbol` what is imported."""

    name: str
    kind: BindingKind
    position: int
    block: Block
    value: ast.expr | None = None
    element: int = 0
    symbol: str = ""
    node: ast.AST | None = None
    elsewhere: bool = False  # by a function that declares the name global: it happens whenever that is called


class Change(Struct, eq=False):
    """Something done to an object through a name: `x += v`, `x["a"]["b"] = v`, `x.a = v`, `x.append(v)`, `x.update(v)`.

    `path` is what stands between the name and the change; `how` the operator or method, `=` for an assignment.
    """

    root: str
    path: tuple[str, ...]
    how: str
    position: int
    scope: Scope
    block: Block
    values: tuple[ast.expr, ...]
    keywords: tuple[ast.keyword, ...]
    node: ast.stmt | ast.expr


class Scope(Struct, eq=False):
    """A module, function, class body, or an `inner` one (comprehension, lambda), which runs where it stands."""

    kind: ScopeKind
    name: str
    parent: Scope | None
    site: Place | None  # where it stands in its parent
    root: Block
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer_names: dict[str, Literal["global", "nonlocal"]] = field(default_factory=dict)  # as declared

    def bind(self, binding: Binding) -> None:
        scope = self
        declared = self.outer_names.get(binding.name)
        if declared is not None:
            while scope.parent is not None:
                scope = scope.parent
                if declared == "nonlocal" and scope.kind == "function" and binding.name in scope.bindings:
                    break
            binding.elsewhere = True
            binding.block = scope.root
        scope.bindings.setdefault(binding.name, []).append(binding)


class Place(NamedTuple):
    """A point of use."""

    scope: Scope
    block: Block
    position: int


def position_of(node: ast.expr | ast.stmt) -> int:
    return (node.lineno << 24) + node.col_offset


def end_of(node: ast.expr | ast.stmt) -> int:
    return ((node.end_lineno or node.lineno) << 24) + (node.end_col_offset or 0)


class Reaching(NamedTuple):
    """The binding that a use sees; None with `candidates` where it may be any of several, or where conditions decide."""

    binding: Binding | None
    candidates: tuple[Binding, ...]
    place: Place  # the use, as seen from the scope that holds the bindings


Runs: TypeAlias = Callable[[Block, Scope], "bool | None"]


def reaching(name: str, place: Place, runs: Runs) -> Reaching | None:
    """Which binding of `name` a use at `place` sees; None where nothing in the module binds it.

    `runs` says whether a block runs, None where that cannot be known.
    """
    scope = place.scope
    used_in, is_global = scope, False
    while True:
        bindings = scope.bindings.get(name)
        if scope.outer_names:
            is_global = is_global or scope.outer_names.get(name) == "global"
        if bindings is not None:
            passed_over = is_global or name in scope.outer_names or (scope.kind == "class" and scope is not used_in)
            if not passed_over or scope.kind == "module":
                return _within(bindings, place, runs)
        if scope.site is None:
            return None
        deferred = scope.kind == "function"
        place = Place(scope.site.scope, scope.site.scope.root, EVER) if deferred else scope.site
        scope = place.scope


def _within(bindings: list[Binding], place: Place, runs: Runs) -> Reaching:
    if len(bindings) == 1:
        only = bindings[0]
        if only.block.parent is None and only.position <= place.position and not only.elsewhere:
            return Reaching(only, (), place)  # bound once, at its scope's own level: most names are
    best: Binding | None = None
    perhaps: list[Binding] = []
    elsewhere = [binding for binding in bindings if binding.elsewhere and binding.position <= place.position]
    own = [binding for binding in bindings if not binding.elsewhere]
    for binding in reversed(own):  # bindings stand in the order of writing: what precedes the last certain one is over
        if binding.position > place.position:
            continue
        certain = happens(binding.block, place, runs)
        if certain:
            best = binding
            break
        if certain is None:
            perhaps.append(binding)
    perhaps.reverse()
    if any(block.kind == "loop" for block in place.block.ancestors()):
        for binding in own:
            if binding.position > place.position:
                loop = shared_loop(binding.block, place.block)
                if loop is not None and (best is None or loop not in best.block.ancestors()):
                    perhaps.append(binding)  # it comes round again
    if place.position == EVER and best is not None and best.kind not in ("import", "class", "function"):
        live = [b for b in bindings if happens(b.block, place, runs) is not False]
        if len(live) > 1:  # the function may be called between any two of them
            return Reaching(None, tuple(live), place)
    if perhaps or elsewhere:
        return Reaching(None, tuple([best, *perhaps, *elsewhere] if best else [*perhaps, *elsewhere]), place)
    return Reaching(best, (), place)


def happens(block: Block, place: Place, runs: Runs) -> bool | None:
    """Whether what stands in `block` has happened at a later `place` of the same scope."""
    holding = place.block.ancestors()
    inside: Block | None = None
    certain: bool | None = True
    while block not in holding:
        if block.leaves:
            return False
        verdict = runs(block, place.scope)
        if verdict is False:
            return False
        if verdict is None:
            certain = None
        inside = block
        if block.parent is None:
            return None  # a block of another scope
        block = block.parent
    if inside is not None and inside.owner is not None:
        at = holding.index(block)
        other = holding[at - 1] if at > 0 else None
        if other is not None and other.owner is inside.owner and other is not inside and inside.kind != "tried":
            return False  # the other arm
    return certain


def shared_loop(block: Block, other: Block) -> Block | None:
    """The innermost loop around both."""
    holding = other.ancestors()
    return next((b for b in block.ancestors() if b.kind == "loop" and b in holding), None)
