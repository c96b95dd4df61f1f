"""The state of an abstract run: the graph, what names and outside objects hold, which values reached a loss, a reward or a metric."""

from __future__ import annotations

import ast
from typing import Literal as OneOf

from msgspec import Struct, field
from msgspec.structs import replace

from klaudit.code import names
from klaudit.code.conditions import ALWAYS, Condition, Constant, both
from klaudit.code.graph import Graph, Node, Op, Site
from klaudit.code.interpreter.reported import is_only_reported
from klaudit.code.modules import FunctionInfo, Module, Program
from klaudit.code.roles import FOREIGN, OLD, POLICY, REFERENCE
from klaudit.code.values import Alternatives, Distribution, Literal, Mapping, Path, Sequence, Value

MAX_STEPS = (
    15_000  # expressions evaluated for one root function, calls followed included; the longest trainers take 4,000
)
MAX_NESTING = 150  # of expressions, blocks and followed calls together; each level costs two or three Python frames
MAX_ARMS = 12

SinkKind = OneOf["backward", "returned", "named-loss", "reward", "metric"]


class BudgetError(RuntimeError):
    """A function is larger or deeper than is worth following."""


class Sink(Struct, frozen=True):
    """A value that compares policy and reference, and what was done with it under which condition."""

    kind: SinkKind
    node: Node
    name: str
    site: Site
    condition: Condition
    called_at: Site | None = None  # where the file under analysis calls into the other file that this happens in
    without_gradient: bool = False


class Frame(Struct):
    """One function being run."""

    module: Module
    info: FunctionInfo | None
    names: dict[str, Value]
    enclosing: dict[str, Value] | None = None
    receiver: Value | None = None
    called_under: tuple[Condition, ...] = ()
    path: list[Condition] = field(default_factory=list)
    returns: list[tuple[Condition, Value, Site]] = field(default_factory=list)
    without_gradient: int = 0
    adapter_off: int = 0
    adapter_switched: bool = False  # by a call, until another turns it back


class Machine:
    """What every layer needs: see the module's docstring."""

    def __init__(self, program: Program, mailbox: dict[str, Node] | None = None, most_steps: int = MAX_STEPS) -> None:
        self.program = program
        self.graph = Graph()
        self.heap: dict[str, Value] = {}  # what was stored into objects from outside, by path
        self.sinks: list[Sink] = []
        self.local_functions: list[tuple[FunctionInfo, dict[str, Value], Value | None]] = []
        self.called: set[ast.AST] = set()
        self.defaults: dict[str, Constant] = {}  # of parameters and attributes, by path
        self.mailbox = mailbox if mailbox is not None else {}
        self._atoms: dict[tuple[str, str, int | None, bool], Node] = {}
        self.steps = 0
        self._most_steps = most_steps
        self._nesting = 0
        self.calls_out: list[Site] = []
        self.followed: set[ast.AST] = set()  # calls whose code was run

    def step(self) -> None:
        self.steps += 1
        if self.steps > self._most_steps:
            raise BudgetError(f"more than {self._most_steps} expressions")

    def deeper(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise BudgetError(f"nested more than {MAX_NESTING} deep")

    def shallower(self) -> None:
        self._nesting -= 1

    # --- values as tensors -----------------------------------------------------------------------------------------------------

    def as_node(self, value: Value | None, site: Site | None = None) -> Node:
        """The value as a tensor; what cannot be one is something foreign."""
        if isinstance(value, Node):
            return value
        if isinstance(value, Path):
            return self._atom(value, site)
        if isinstance(value, Alternatives):
            arms = [(condition, arm) for condition, arm in value.arms if arm != Literal(None)]
            if value.is_comparison:
                return self.graph.mask
            return self.graph.choice([(condition, self.as_node(arm, site)) for condition, arm in arms], site)
        if isinstance(value, Sequence) and value.items:
            items = [self.as_node(item, site) for item in value.items[:MAX_ARMS]]
            return items[0] if len(set(items)) == 1 else self.graph.make(Op.STACK, items, site)
        if isinstance(value, Literal) and isinstance(value.value, bool | int | float):
            return self.graph.number(float(value.value))
        return value.logits if isinstance(value, Distribution) else self._foreign()

    def _foreign(self) -> Node:
        return self.graph.atom(FOREIGN, "an object", "not a tensor that is known here")

    def _atom(self, path: Path, site: Site | None) -> Node:
        key = (path.text, path.name, path.model, path.detached)
        if key not in self._atoms:
            self._atoms[key] = self._new_atom(path, site)
        return self._atoms[key]

    def _new_atom(self, path: Path, site: Site | None) -> Node:
        """A tensor from outside, by who computed it and else by its name."""
        name, graph = path.name, self.graph
        if (names.is_mask(name) and not names.is_log_probability(name)) or "mask" in names.words(name):
            return graph.mask
        vocabulary = names.is_logits(name)
        if vocabulary or names.is_log_probability(name):
            role = path.model if path.model is not None else names.holder(name)
            if names.holder(name) == FOREIGN:
                role = FOREIGN  # a preference pair or a teacher, whatever computed it
            reason = path.reason or f"named {name}"
            top = names.is_of_top_entries(name)
            atom = graph.atom(role, path.text, reason, site, live=not path.detached, vocabulary=vocabulary or top)
            if not top:
                return atom
            return graph.make(Op.TOPK, (atom if vocabulary else graph.make(Op.LOGSOFTMAX, (atom,), site),), site)
        if names.is_bare_reference(name):
            return graph.atom(REFERENCE, path.text, path.reason or f"named {name}", site, live=False)
        if isinstance(path.default, Node) and path.default.op in (Op.NUMBER, Op.SCALAR):
            return graph.scalar(path.text, path.default.number, site)
        if names.is_coefficient(path.text) or names.is_coefficient(name):
            return graph.scalar(path.text, None, site)
        return graph.atom(FOREIGN, path.text, "nothing says what it is", site)

    def note_default(self, path: Path) -> None:
        """Remember what a setting is where nothing else is given."""
        if isinstance(path.default, Literal):
            self.defaults[path.text] = path.default.value
        elif isinstance(path.default, Node) and path.default.op is Op.NUMBER:
            self.defaults[path.text] = path.default.number

    # --- giving names ------------------------------------------------------------------------------------------------------------

    def settled(self, name: str, value: Value, frame: Frame, site: Site) -> Value:
        """The value as it is known under its new name: the result of a call that is not followed is what its name says."""
        if frame.without_gradient:
            value = self.without_gradient(value)
        if isinstance(value, Alternatives):
            return Alternatives(
                tuple((condition, self.settled(name, arm, frame, site)) for condition, arm in value.arms)
            )
        if isinstance(value, Path):
            informative = names.is_log_probability(name) or names.is_logits(name)
            if informative and names.holder(name) == FOREIGN:
                return replace(value, name=name, text=f"{value.text} as {name}")
            says_enough = names.is_log_probability(value.name) and value.model is None and "(...)" not in value.text
            if (informative and not says_enough) or value.name == "":
                value = replace(value, name=name, reason=value.reason or f"named {name}")
            if is_model_made_here(name, value):
                value = self.model_kept(name, value)
            role = names.parameters_of(name)  # a copy of the policy's parameters may be kept for the reference
            if role is not None:
                value = replace(value, name=name, model=role, reason=f"computed with {name}")
        elif isinstance(value, Node):
            value = self._settled_node(name, value, site)
            if value.bears_kl:
                self.graph.bind(value, name, site)
                self.note_name(name, value, frame, site)
        return value

    def model_kept(self, name: str, made: Path) -> Path:
        """A model that a call gave, under its own name; a copy of the policy that is kept beside it may be the reference."""
        role: int | None = names.holder(name)
        reason = f"named {name}"
        if made.name == "deepcopy" and role == POLICY and names.is_of_the_start(name):
            role, reason = REFERENCE, f"{name} is a copy of the policy"
        elif role == POLICY:
            role, reason = made.model, made.reason
        return Path(name, name, role, reason, made.detached)

    def _settled_node(self, name: str, node: Node, site: Site) -> Node:
        if not names.is_log_probability(name) or node.bears_kl:
            return node
        if names.holder(name) == FOREIGN and node.roles & (POLICY | OLD | REFERENCE):
            return self.graph.atom(FOREIGN, name, f"named {name}", site)
        if node.roles == FOREIGN:
            return self.graph.atom(names.holder(name), name, f"named {name}", site)
        if node.op is Op.CHOICE and node.roles & FOREIGN:
            arms = [
                (condition, self._settled_node(name, arm, site))
                for condition, arm in zip(node.conditions, node.args, strict=True)
            ]
            return self.graph.choice(arms, node.site)
        return node

    def without_gradient(self, value: Value) -> Value:
        if isinstance(value, Node):
            return self.graph.make(Op.DETACH, (value,), value.site)
        if isinstance(value, Path):
            return replace(value, detached=True)
        if isinstance(value, Sequence):
            return Sequence([self.without_gradient(item) for item in value.items], value.grows)
        if isinstance(value, Alternatives):
            return Alternatives(tuple((condition, self.without_gradient(arm)) for condition, arm in value.arms))
        if isinstance(value, Mapping):
            return Mapping({key: self.without_gradient(entry) for key, entry in value.entries.items()}, value.name)
        return value

    # --- sinks -------------------------------------------------------------------------------------------------------------------

    def note_name(self, name: str, node: Node, frame: Frame, site: Site) -> None:
        """A value was given a name that says it is a reward or a loss."""
        if names.is_reward(name) and not names.is_metric(name):
            reported = node.bears_kl and frame.info is not None and is_only_reported(name, frame.info.syntax)
            self.note("metric" if reported else "reward", node, name, frame, site)
        elif names.is_loss(name) and not names.is_metric(name):
            self.note("named-loss", node, name, frame, site)

    def note(self, kind: SinkKind, node: Node, name: str, frame: Frame, site: Site) -> None:
        if node.bears_kl:
            self.sinks.append(
                Sink(
                    kind,
                    node,
                    name,
                    site,
                    both((*frame.called_under, *frame.path)),
                    self.called_at(site),
                    bool(frame.without_gradient),
                )
            )

    def called_at(self, site: Site) -> Site | None:
        """The innermost call in the file under analysis, for what happens in another file."""
        if site.module == self.program.main.index:
            return None
        return next((call for call in reversed(self.calls_out) if call.module == self.program.main.index), None)

    # --- branches ----------------------------------------------------------------------------------------------------------------

    def joined(self, condition: Condition, one: dict[str, Value], other: dict[str, Value]) -> dict[str, Value]:
        """What names hold after a branch: the value of one side where the condition holds, else of the other."""
        result: dict[str, Value] = {}
        for name in {**one, **other}:
            first, second = one.get(name), other.get(name)
            if first is None or second is None:
                result[name] = first if first is not None else second  # type: ignore[assignment]
            else:
                result[name] = first if first is second else self.either(condition, first, second)
        return result

    def either(self, condition: Condition, one: Value, other: Value) -> Value:
        if isinstance(one, Node) and one.roles and isinstance(other, Path | Alternatives):
            other = self.as_node(other, one.site)  # a tensor on one side is one on both
        elif isinstance(other, Node) and other.roles and isinstance(one, Path | Alternatives):
            one = self.as_node(one, other.site)
        if isinstance(one, Node) and isinstance(other, Node):
            return self.graph.choice([(condition, one), (ALWAYS, other)], one.site or other.site)
        if isinstance(one, Literal | Path) and one == other:
            return one
        arms = [(both((condition, inner)), value) for inner, value in _arms(one)]
        arms += _arms(other)
        return Alternatives(tuple(arms[:MAX_ARMS]))

    def alternatives(self, arms: list[tuple[Condition, Value]]) -> Value:
        """One value per condition, as one node where all are tensors."""
        if not arms:
            return Literal(None)
        if len(arms) == 1:
            return arms[0][1]
        nodes = [(condition, value) for condition, value in arms if isinstance(value, Node)]
        return self.graph.choice(nodes) if len(nodes) == len(arms) else Alternatives(tuple(arms[:MAX_ARMS]))

    def guarded(self, condition: Condition, before: dict[str, Value], after: dict[str, Value]) -> dict[str, Value]:
        """What names hold after a branch whose other side leaves: there is a KL only where the condition holds."""
        result = dict(after)
        for name, value in after.items():
            if isinstance(value, Node) and value.bears_kl and value is not before.get(name):
                result[name] = self.graph.guarded(condition, value)
        return result


def _arms(value: Value) -> list[tuple[Condition, Value]]:
    return list(value.arms) if isinstance(value, Alternatives) else [(ALWAYS, value)]


def is_tensor(value: Path) -> bool:
    """It is named like one that is known here."""
    return names.is_logits(value.name) or names.is_log_probability(value.name)


def is_model_made_here(name: str, value: Path) -> bool:
    """The result of a call that is given the name of a model, or is a copy of one."""
    if "(...)" not in value.text or is_tensor(value):
        return False
    is_copy = value.name == "deepcopy" and value.model is not None
    makes_model = (
        value.name in ("deepcopy", "from_pretrained") or value.name[:1].isupper() or names.is_model(value.name)
    )
    return is_copy or names.is_model(name) or (makes_model and names.is_bare_reference(name))
