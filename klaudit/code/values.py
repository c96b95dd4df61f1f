"""What an expression can be besides a tensor: paths into objects that are not known here, functions, classes, containers, text."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct, field

from klaudit.code.conditions import Condition, Constant, Subject
from klaudit.code.graph import Node
from klaudit.code.modules import ClassInfo, FunctionInfo, Module

MAX_ITEMS = 256  # of a list or tuple; no formula is spread over more


class Literal(Struct, frozen=True):
    """A string, True, False, None (numbers are nodes)."""

    value: Constant


class Path(Struct, frozen=True):
    """An object that comes from outside: `data.batch['ref_log_prob']`, a parameter, the result of a call that is not followed.

    `name` is the identifier that says most about it.  `model` is whose model computed it, where a call shows that.
    `default` is the value of a parameter that is not given; `steps` are string methods applied since.
    """

    text: str
    name: str
    model: int | None = None
    reason: str = ""
    detached: bool = False
    default: Value | None = None
    subject: Subject | None = None

    @property
    def as_subject(self) -> Subject:
        return self.subject or Subject(self.text)


class Sequence(Struct):
    """A list or tuple.  `grows`: elements are appended in a loop, so that it stands for any number of them."""

    items: list[Value]
    grows: bool = False

    def joined(self, other: Sequence) -> Sequence:
        return Sequence([*self.items, *other.items][:MAX_ITEMS], self.grows or other.grows)


class Mapping(Struct):
    """A dictionary.  `rest` is where entries come from that were not seen to be put in: `**kwargs` that are handed on."""

    entries: dict[str, Value]
    name: str = ""
    rest: Path | None = None


class Alternatives(Struct):
    """One value per condition; the first that holds counts."""

    arms: tuple[tuple[Condition, Value], ...]

    @property
    def is_comparison(self) -> bool:
        """True or False: what is compared element by element makes a mask."""
        return all(isinstance(value, Literal) and isinstance(value.value, bool) for _, value in self.arms)


class Closure(Struct):
    """A function with what it is called with so far and the names around it."""

    info: FunctionInfo
    enclosing: dict[str, Value] | None = None
    receiver: Value | None = None
    args: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)


class Operation(Struct):
    """A library function or tensor method by name, and the tensor it was looked up on."""

    dotted: str
    receiver: Value | None = None
    args: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)


class ClassObject(Struct, frozen=True):
    info: ClassInfo


class Instance(Struct):
    """An object of a class whose code is read; attributes are filled as they are looked up."""

    info: ClassInfo
    text: str
    args: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)


class Namespace(Struct, frozen=True):
    """An imported module of the same tree."""

    module: Module


class Imported(Struct, frozen=True):
    """Something that a module imports, looked up only when it is called with what matters: reading the other file costs most."""

    module: Module
    dotted: str

    @property
    def name(self) -> str:
        return self.dotted.rsplit(".", 1)[-1]


class Distribution(Struct):
    """torch.distributions.Categorical and its kin: what its logits are."""

    logits: Node


Value: TypeAlias = (
    Node
    | Literal
    | Path
    | Sequence
    | Mapping
    | Alternatives
    | Closure
    | Operation
    | ClassObject
    | Instance
    | Namespace
    | Imported
    | Distribution
)


class Arguments(Struct):
    """What a call is given."""

    positional: list[Value]
    keywords: dict[str, Value]
    syntax: ast.Call | None = None
    rest: Path | None = None  # keywords that are handed on, of which nothing is known here

    def get(self, index: int, *names: str) -> Value | None:
        """The argument at a position (from 0, the receiver not counted) or under one of the names."""
        if index < len(self.positional):
            return self.positional[index]
        return next((self.keywords[name] for name in names if name in self.keywords), None)

    def all(self) -> Iterable[Value]:
        yield from self.positional
        yield from self.keywords.values()
