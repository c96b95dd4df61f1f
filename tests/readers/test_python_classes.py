"""Class bodies, and the defaults of nested and inherited dataclasses, held against real dataclasses."""

from __future__ import annotations

import dataclasses
import sys
import types
import unittest.mock
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_reading import objects, read, spelled, values

from klaudit.model import Unknown
from klaudit.readers.document import FieldSpec, PythonDocument
from klaudit.readers.python import dataclass_defaults, flatten_dataclass, module_loader
from klaudit.tree import Tree

CODE = """
    from dataclasses import dataclass, field
    from typing import Optional
    from base.config import Base
    from pydantic import Field
    DEFAULT = 0.04

    @dataclass
    class KLConfig(Base):
        type: str = "fixed"
        beta: float = field(default=DEFAULT, metadata={"help": "x"})
        names: list = field(default_factory=lambda: ["a", "b"])
        empty: dict = field(default_factory=dict)
        required: int
        opt: "Optional[int]" = None
        temperature: float = Field(0.7, ge=0)
        needed: int = Field(...)
        plain = 3
        inner: Inner = field(default_factory=lambda: Inner(x=1))
        other: Inner = Inner()

        class Nested:
            y = 5

        def method(self):
            self.z = 1
    """


def test_fields_of_a_class() -> None:
    made, nested = objects(CODE, "class")
    assert (made.symbol, made.bases, nested.symbol) == ("KLConfig", ("base.config.Base",), "KLConfig.Nested")
    known = {name: v for name, v in values(made).items() if not isinstance(v, Unknown)}
    assert known == {
        "type": "fixed",
        "beta": 0.04,
        "names": ["a", "b"],
        "empty": {},
        "opt": None,
        "temperature": 0.7,
        "plain": 3,
        "inner.x": 1,
    }
    specs = {spec.name: spec for spec in made.arguments if isinstance(spec, FieldSpec)}
    assert specs["required"].required and specs["needed"].required and not specs["opt"].required
    assert specs["opt"].annotation == ("typing.Optional", "int")
    assert specs["inner"].factory == specs["other"].factory == "Inner"
    assert [(s.name, s.value) for s in specs["inner"].given] == [("x", 1)]
    beta = next(setting for setting in made.settings if setting.name == "beta")
    assert spelled(CODE, beta.value_span) == "DEFAULT" and beta.source is not None
    assert spelled(CODE, beta.source) == "0.04"


def test_defaults_are_inherited_within_the_module() -> None:
    document = read("""
        class A:
            a: int = 1
            b: int = 2
        class B:
            c: int = 3
        class C(A, B):
            b: int = 4
        class Loop(Loop):
            d = 5
        """)
    assert {s.name: s.value for s in dataclass_defaults(document, "C")} == {"a": 1, "b": 4, "c": 3}
    assert {s.name: s.value for s in dataclass_defaults(document, "Loop")} == {"d": 5}
    assert dataclass_defaults(document, "Missing") == ()


scalars = st.one_of(st.integers(-5, 5), st.floats(0, 1), st.booleans(), st.none(), st.text("ab'\"\\\n", max_size=4))
defaults = st.one_of(
    scalars.map(lambda value: (repr(value), "{}")),
    scalars.map(lambda value: (repr(value), "field(default={})")),
    st.lists(scalars, max_size=2).map(lambda value: (repr(value), "field(default_factory=lambda: {})")),
    st.dictionaries(st.sampled_from(["k", "q"]), scalars, max_size=2).map(
        lambda value: (repr(value), "field(default_factory=lambda: dict({}))")
    ),
)
bodies = st.dictionaries(st.sampled_from("abcde"), defaults, min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(bodies, bodies, bodies)
def test_defaults_are_those_of_real_instances(
    base: dict[str, tuple[str, str]], leaf: dict[str, tuple[str, str]], derived: dict[str, tuple[str, str]]
) -> None:
    def body(fields: dict[str, tuple[str, str]]) -> str:
        return "".join(f"    {name}: object = {form.format(text)}\n" for name, (text, form) in fields.items())

    head = "from dataclasses import dataclass, field\n"
    code = (
        f"{head}@dataclass\nclass Leaf:\n{body(leaf)}\n@dataclass\nclass Base:\n{body(base)}\n"
        f"@dataclass\nclass Root(Base):\n{body(derived)}    leaf: Leaf = field(default_factory=Leaf)\n"
    )
    module = types.ModuleType("generated")
    with unittest.mock.patch.dict(sys.modules, {"generated": module}):  # dataclasses looks its class's module up
        exec(code, module.__dict__)
    real: dict[str, Any] = dataclasses.asdict(module.__dict__["Root"]())
    document = read(code)
    found = {s.name: s.value for s in flatten_dataclass(lambda name: document, "generated.Root")}
    for name, value in real.items():
        if name != "leaf":
            assert found[name] == value
    for name, value in real["leaf"].items():
        assert found[f"leaf.{name}"] == value


@pytest.fixture
def tree() -> Tree:
    files = {
        "fw/__init__.py": "from fw.config import *\nfrom .config import Trainer as Public\n",
        "fw/config/__init__.py": "from .trainer import Trainer\nfrom .algorithm import Algorithm\n",
        "fw/config/algorithm.py": """
from dataclasses import dataclass, field
from .base import Base
@dataclass
class KL:
    coef: float = 0.001
    kind: str = "fixed"
@dataclass
class Algorithm(Base):
    kl: KL = field(default_factory=KL)
    use_kl: bool = True
""",
        "fw/config/base.py": "class Base:\n    version: int = 3\n",
        "fw/config/trainer.py": """
import copy
from dataclasses import dataclass, field
from fw.config.algorithm import Algorithm, KL
from elsewhere import Foreign
@dataclass
class Trainer:
    algorithm: Algorithm = field(default_factory=Algorithm)
    other: Algorithm = field(default_factory=lambda: copy.deepcopy(Algorithm(use_kl=False, kl=KL(coef=0.5))))
    foreign: Foreign = field(default_factory=Foreign)
    epochs: int = 1
""",
        "fw/broken.py": "class Broken(\n",
        "fw/cycle.py": "from fw.cycle import *\nfrom fw.cycle import Gone\n",
    }
    return Tree("/nonexistent", {path: text.encode() for path, text in files.items()})


@pytest.mark.parametrize("name", ["fw.config.trainer.Trainer", "fw.config.Trainer", "fw.Trainer"])
def test_nested_defaults_across_modules(tree: Tree, name: str) -> None:
    found = {s.name: s for s in flatten_dataclass(module_loader(tree), name)}
    assert {name: s.value for name, s in found.items() if name != "foreign"} == {
        "algorithm.version": 3,
        "algorithm.kl.coef": 0.001,
        "algorithm.kl.kind": "fixed",
        "algorithm.use_kl": True,
        "other.version": 3,
        "other.use_kl": False,
        "other.kl.coef": 0.5,
        "other.kl.kind": "fixed",
        "epochs": 1,
    }
    assert isinstance(found["foreign"].value, Unknown)
    assert (found["algorithm.kl.coef"].span.path, found["algorithm.kl.coef"].origin) == (
        "fw/config/algorithm.py",
        "default",
    )
    assert found["other.kl.coef"].span.path == "fw/config/trainer.py"


@pytest.mark.parametrize(
    "name", ["fw.config.Nothing", "fw.broken.Broken", "fw.cycle.Gone", "no.such.Module", "Trainer", ""]
)
def test_classes_that_are_not_there(tree: Tree, name: str) -> None:
    assert flatten_dataclass(module_loader(tree), name) == ()


def test_modules_may_lie_below_a_source_folder() -> None:
    tree = Tree("/nonexistent", {"src/fw.py": b"class A:\n    a: int = 1\n"})
    load = module_loader(tree, ("", "src"))
    document = load("fw.A")
    assert isinstance(document, PythonDocument) and load("fw") is document
    assert [s.value for s in flatten_dataclass(load, "fw.A")] == [1]


def test_a_default_made_by_a_call_starts_from_its_class() -> None:
    document = read("""
        class KL:
            coef: float = 0.1
            kind: str = "fixed"
        class Algorithm:
            kl: KL = field(default_factory=lambda: KL(coef=9, kind="x"))
        class Root:
            a: Algorithm = field(default_factory=lambda: Algorithm(kl=KL(kind="y")))
        """)
    found = {s.name: s.value for s in flatten_dataclass(lambda name: document, "m.Root")}
    assert found == {"a.kl.coef": 0.1, "a.kl.kind": "y"}


def test_a_class_of_itself_ends() -> None:
    document = read("class A:\n    a: 'A' = field(default_factory=A)\n    b: int = 1\n")
    found = flatten_dataclass(lambda name: document, "m.A")
    assert found[-1].value == 1 and len(found) < 30
