"""Names, attributes and items: what is known here, what was stored, and what comes from outside."""

from __future__ import annotations

import ast
import math

from msgspec.structs import replace

from klaudit.code import names
from klaudit.code.conditions import Condition, OneOf, Subject
from klaudit.code.graph import Node, Op, Site
from klaudit.code.interpreter.layers import LAYERS
from klaudit.code.interpreter.machine import MAX_ARMS, Frame
from klaudit.code.interpreter.members import Members
from klaudit.code.interpreter.picking import is_cut_of_sorted, is_index_of_tokens, picked
from klaudit.code.modules import ClassInfo, FunctionInfo, Module
from klaudit.code.options import default_of
from klaudit.code.registries import entries_of
from klaudit.code.roles import POLICY, REFERENCE
from klaudit.code.values import (
    Alternatives,
    ClassObject,
    Closure,
    Distribution,
    Imported,
    Instance,
    Literal,
    Mapping,
    Namespace,
    Operation,
    Path,
    Sequence,
    Value,
)  # fmt: skip

LIBRARIES = names.vocabulary(
    """
    torch transformers accelerate peft datasets vllm ray hydra omegaconf os sys re json time copy random typing
    logging wandb tqdm jax jnp np numpy math F th tf mx paddle nn optax distrax tfp scipy lax cp xp functional cupy
    distributions
    """
)
_CONSTANTS = {"e": math.e, "pi": math.pi, "inf": math.inf}  # of math, numpy, torch and their like
_TABLES = frozenset({"dict", "defaultdict", "OrderedDict", "Registry"})


class Access(Members):
    """Looks values up."""

    def instance_attribute(self, instance: Instance, name: str) -> Value:
        raise NotImplementedError

    def node(self, syntax: ast.expr, frame: Frame) -> Node:
        return self.as_node(self.evaluate(syntax, frame), self.site(syntax, frame))

    def site(self, syntax: ast.AST, frame: Frame) -> Site:
        return Site(frame.module.index, syntax)

    def outside(self, syntax: ast.AST) -> Path:
        """Something that has no meaning here, by its place."""
        return Path(f"<{type(syntax).__name__}:{getattr(syntax, 'lineno', 0)}:{getattr(syntax, 'col_offset', 0)}>", "")

    # --- names, attributes, items ------------------------------------------------------------------------------------------------

    def named(self, name: str, frame: Frame) -> Value:
        if name in frame.names:
            return frame.names[name]
        if frame.enclosing is not None and name in frame.enclosing:
            return frame.enclosing[name]
        return self.global_value(name, frame.module)

    def global_value(self, name: str, module: Module) -> Value:
        if name in module.imports and name not in module.functions and name not in module.classes:
            return self.imported(module, module.imports[name])
        return self.as_value(self.program.look_up(module, name), name, module)

    def imported(self, module: Module, dotted: str) -> Value:
        """A library's name as an operation, any other as something to look up when it is used."""
        return Operation(dotted) if dotted.partition(".")[0] in LIBRARIES else Imported(module, dotted)

    def resolved(self, value: Imported) -> Value:
        """What an imported name is, read from its own file."""
        found = self.program.imported(value.module, value.dotted)
        name, module = value.name, value.module
        if isinstance(found, ast.expr):  # what it mentions are names of the file that it stands in
            name, module = self.program.home_of(found, name, module)
        return self.as_value(found, name, module)

    def as_value(self, found: object, name: str, module: Module) -> Value:
        if isinstance(found, FunctionInfo):
            return Closure(found)
        if isinstance(found, ClassInfo):
            return ClassObject(found)
        if isinstance(found, Module):
            return Namespace(found)
        if isinstance(found, str):
            return Operation(found)
        if isinstance(found, ast.expr):
            return self.module_constant(name, found, module)
        return Operation(name) if name in LIBRARIES else Path(name, name)

    def module_constant(self, name: str, syntax: ast.expr, module: Module) -> Value:
        """A top-level assignment: constants, and tables of functions; anything else is an object from outside."""
        if isinstance(syntax, ast.Call):
            return self._made_by_call(name, syntax, module)
        if not isinstance(
            syntax, ast.Constant | ast.UnaryOp | ast.Dict | ast.List | ast.Tuple | ast.Lambda | ast.BinOp
        ):
            return Path(name, name)
        value = self.evaluate(syntax, Frame(module, None, {}))
        if isinstance(value, Node) and value.op is Op.NUMBER:
            return self.graph.scalar(name, value.number, Site(module.index, syntax))
        return self._filled(value, name, module) if isinstance(value, Mapping) else value

    def _made_by_call(self, name: str, syntax: ast.Call, module: Module) -> Value:
        called = ast.unparse(syntax.func).rsplit(".", 1)[-1]
        if called in LAYERS and isinstance(made := self.evaluate(syntax, Frame(module, None, {})), Operation):
            return made
        if called == "partial" or called in _TABLES:
            value = self.evaluate(syntax, Frame(module, None, {}))
            if called in _TABLES:
                return self._filled(value if isinstance(value, Mapping) else Mapping({}), name, module)
            return value
        return Path(name, name)

    def _filled(self, table: Mapping, name: str, module: Module) -> Mapping:
        """A top-level table with the functions that the module registers in it."""
        table.name = name
        for key, entry in entries_of(name, module).items():
            if isinstance(entry, FunctionInfo):
                table.entries[key] = Closure(entry)
            else:
                table.entries[key] = self.evaluate(entry, Frame(module, None, {}))
        return table

    def attribute(self, owner: Value, name: str, frame: Frame, syntax: ast.expr) -> Value:
        if _is_of_super(syntax) and (inherited := self._inherited(name, frame)) is not None:
            return Closure(inherited, receiver=frame.receiver)
        if isinstance(owner, Node):
            if name == "data":
                return self.graph.make(Op.DETACH, (owner,), self.site(syntax, frame))
            if name in ("shape", "device", "dtype", "ndim"):
                return self.graph.mask
            if name in ("values", "indices", "T", "mT"):
                return owner
            return Operation(name, owner)
        if isinstance(owner, Path):
            return self._attribute_of_path(owner, name, frame)
        if isinstance(owner, Operation):
            if name in _CONSTANTS and owner.receiver is None and "." not in owner.dotted:
                return self.graph.number(_CONSTANTS[name])
            return Operation(f"{owner.dotted}.{name}", owner.receiver)
        if isinstance(owner, Namespace):
            return self.global_value(name, owner.module)
        if isinstance(owner, Imported):
            if name == "get" and isinstance(table := self.resolved(owner), Mapping):
                return self.attribute(table, name, frame, syntax)
            return self.imported(owner.module, f"{owner.dotted}.{name}")
        if isinstance(owner, Instance):
            return self.instance_attribute(owner, name)
        if isinstance(owner, ClassObject):
            method = self.program.method(owner.info, name)
            return Closure(method) if method else Path(f"{owner.info.name}.{name}", name)
        if isinstance(owner, Alternatives):
            return self.alternatives(
                [
                    (condition, self.attribute(arm, name, frame, syntax))
                    for condition, arm in owner.arms
                    if arm != Literal(None)
                ]
            )
        if isinstance(owner, Mapping) and name in owner.entries:
            return owner.entries[name]
        if isinstance(owner, Distribution) and name == "logits":
            return owner.logits
        return Operation(name, owner)

    def _inherited(self, name: str, frame: Frame) -> FunctionInfo | None:
        """The method of that name of the nearest base class whose code is in the tree."""
        inside = frame.info.inside if frame.info is not None else None
        for base in inside.bases if inside is not None else ():
            found = self.program.class_named(inside.module, base) if inside is not None else None
            if found is not None and found is not inside and (method := self.program.method(found, name)) is not None:
                return method
        return None

    def _attribute_of_path(self, owner: Path, name: str, frame: Frame) -> Value:
        text = f"{owner.text}.{name}"
        if name == "data" and names.is_log_probability(owner.name):
            return replace(owner, detached=True)
        if text in self.heap:
            return self.heap[text]
        if (
            frame.receiver is not None
            and owner == frame.receiver
            and frame.info is not None
            and frame.info.inside is not None
        ):
            found = self.attribute_of_self(frame.info.inside, name, owner)
            if found is not None:
                return found
        if text.partition(".")[0] in LIBRARIES and "(...)" not in owner.text:
            return Operation(text)
        return self.from_mailbox(self._with_default(_part_of(owner, text, name), owner, name, frame), name)

    def _with_default(self, path: Path, owner: Path, name: str, frame: Frame) -> Path:
        """A coefficient that the file itself declares: as an option of its command line, or as a field of a class."""
        if path.default is not None or not names.is_coefficient(path.text):
            return path
        number = default_of(self.program, frame.module, frame.info, owner.text, name)
        return path if number is None else replace(path, default=self.graph.number(number))

    def from_mailbox(self, path: Path, key: str) -> Value:
        """What another function stored under this key, where the key says that it is a KL."""
        return self.mailbox[key] if names.speaks_of_kl(key) and key in self.mailbox else path

    def _subscript(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Subscript)
        owner = self.evaluate(syntax.value, frame)
        if isinstance(syntax.slice, ast.Slice):
            if (
                isinstance(owner, Path)
                and owner.subject is None
                and _is_cut(syntax.slice)
                and not names.is_log_probability(owner.name)
            ):
                return Path(owner.text, owner.name, owner.model, owner.reason, owner.detached, owner.default)
            return owner
        return self.item(owner, self.evaluate(syntax.slice, frame), frame, syntax)

    def item(self, owner: Value, key: Value, frame: Frame, syntax: ast.expr) -> Value:
        if isinstance(owner, Imported):
            owner = self.resolved(owner)
        if isinstance(owner, Node):
            return self._item_of_node(owner, key, frame, syntax)
        if isinstance(owner, Sequence):
            index = key.number if isinstance(key, Node) and key.op is Op.NUMBER else None
            if index is not None and not owner.grows and -len(owner.items) <= index < len(owner.items):
                return owner.items[int(index)]
            return self.element(owner) if owner.grows else self._chosen_item(owner.items, key)
        if isinstance(owner, Mapping):
            return self._entry(owner, key, frame)
        if isinstance(owner, Path):
            if isinstance(key, Literal) and isinstance(key.value, str):
                text = f"{owner.text}['{key.value}']"
                if text in self.heap:
                    return self.heap[text]
                return self.from_mailbox(_part_of(owner, text, key.value), key.value)
            return owner
        if isinstance(owner, Alternatives):
            return self.alternatives(
                [
                    (condition, self.item(arm, key, frame, syntax))
                    for condition, arm in owner.arms
                    if arm != Literal(None)
                ]
            )
        return owner

    def _item_of_node(self, owner: Node, key: Value, frame: Frame, syntax: ast.expr) -> Value:
        if owner.vocabulary and isinstance(syntax, ast.Subscript) and is_index_of_tokens(syntax.slice, owner):
            return picked(self.graph, owner, self.site(syntax, frame))
        if owner.vocabulary and isinstance(syntax, ast.Subscript) and is_cut_of_sorted(syntax.slice, owner):
            return self.graph.make(Op.TOPK, (owner,), self.site(syntax, frame))
        if owner.op is Op.STACK and len(owner.args) > 1:
            if (
                isinstance(key, Node)
                and key.op is Op.NUMBER
                and key.number is not None
                and -len(owner.args) <= key.number < len(owner.args)
            ):
                return owner.args[int(key.number)]
            if isinstance(key, Path | Node):
                return self._chosen_item(list(owner.args), key)
        return owner

    def _chosen_item(self, items: list[Value], key: Value) -> Value:
        """An item picked by an index that a setting decides."""
        if not items or not (isinstance(key, Path) or (isinstance(key, Node) and key.op is Op.SCALAR)):
            return items[0] if items else Literal(None)
        subject = key.as_subject if isinstance(key, Path) else Subject(key.text)
        arms: list[tuple[Condition, Value]] = [
            (OneOf(subject, frozenset({float(at)})), item) for at, item in enumerate(items[:MAX_ARMS])
        ]
        return self.alternatives(arms)

    def _entry(self, owner: Mapping, key: Value, frame: Frame) -> Value:
        if isinstance(key, Literal) and isinstance(key.value, str):
            if key.value in owner.entries:
                return owner.entries[key.value]
            if owner.rest is not None:
                return self.part_of_rest(owner.rest, key.value)
            return Path(f"{owner.name or 'dict'}['{key.value}']", key.value)
        if isinstance(key, Path) and owner.entries:
            entries = list(owner.entries.items())[:MAX_ARMS]
            arms: list[tuple[Condition, Value]] = [
                (OneOf(key.as_subject, frozenset({name})), entry) for name, entry in entries
            ]
            return self.alternatives(arms)
        return Path(f"{owner.name or 'dict'}[...]", "")

    def part_of_rest(self, rest: Path, key: str) -> Value:
        """An entry that was handed on with others."""
        text = f"{rest.text}['{key}']"
        return self.heap[text] if text in self.heap else self.from_mailbox(_part_of(rest, text, key), key)

    def part_named(self, name: str, value: Value, written: ast.AST | None) -> Value:
        """The value; a part of one batch that went through both models (`ref_logps = both[n:]`) is the reference's."""
        while isinstance(written, ast.Call) and isinstance(written.func, ast.Attribute):
            written = written.func.value
        is_part = isinstance(written, ast.Subscript) and isinstance(written.slice, ast.Slice)
        if not is_part or not names.is_log_probability(name) or names.holder(name) != REFERENCE:
            return value
        if isinstance(value, Path) and value.model in (None, POLICY):
            return Path(f"{value.text} as {name}", name, REFERENCE, f"named {name}", value.detached)
        if isinstance(value, Node) and value.roles == POLICY:
            return self.graph.atom(REFERENCE, name, f"named {name}", value.site)
        return value

    def element(self, value: Value) -> Value:
        """What iterating over a value gives."""
        if isinstance(value, Sequence):
            return value.items[-1] if value.items else Literal(None)
        if isinstance(value, Alternatives):
            return self.alternatives([(condition, self.element(arm)) for condition, arm in value.arms])
        return value if isinstance(value, Node | Path) else Path("<element>", "")


def _is_of_super(syntax: ast.expr) -> bool:
    """`super().name`"""
    call = syntax.value if isinstance(syntax, ast.Attribute) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "super"


def _part_of(owner: Path, text: str, name: str) -> Path:
    """An attribute or item of something from outside: made by who made the whole, unless its name says that it is the reference's."""
    if names.is_log_probability(name) and names.holder(name) == REFERENCE:
        return Path(text, name, None, "", owner.detached)
    if owner.model is None and names.is_result_of_reference(owner.name) and _is_output(name):
        return Path(text, name, REFERENCE, f"of {owner.text}", owner.detached)
    return Path(text, name, owner.model, owner.reason, owner.detached)


def _is_output(name: str) -> bool:
    return names.is_logits(name) or (names.is_log_probability(name) and names.holder(name) == POLICY)


def _is_cut(piece: ast.Slice) -> bool:
    return piece.upper is not None and piece.step is None
