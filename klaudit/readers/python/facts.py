"""What the walk over a module notes down: nodes with their places, nothing evaluated."""

from __future__ import annotations

import ast

from msgspec import Struct, field

from klaudit.readers.python.scopes import Change, Place, Scope


class Site(Struct):
    """A node and where it stands; `target` is the name that it is bound to, `owner` the function that it is an argument of."""

    node: ast.expr
    place: Place
    target: str | None = None
    owner: ast.expr | None = None


class ClassSite(Struct):
    node: ast.ClassDef
    place: Place
    scope: Scope


class Facts(Struct):
    """What the walk found, in no particular order."""

    scope: Scope
    calls: list[Site] = field(default_factory=list)
    dicts: list[Site] = field(default_factory=list)
    sequences: list[Site] = field(default_factory=list)
    texts: list[Site] = field(default_factory=list)
    classes: list[ClassSite] = field(default_factory=list)
    functions: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, Place]] = field(default_factory=list)
    constructors: list[Scope] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    aliases: list[tuple[str, ast.expr]] = field(default_factory=list)  # names bound to what other names may be
    imports: list[tuple[str, str]] = field(default_factory=list)
