"""`functools.partial` of a config class: what is made of it is read like a call, as Python itself makes it."""

from __future__ import annotations

import functools
import types
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import klaudit
from klaudit.model import Value
from klaudit.readers.document import ConfigObject
from klaudit.readers.python import read_python
from klaudit.readers.source import Source

NAMES = ("one", "two", "six")


def made(text: str) -> list[ConfigObject]:
    document = read_python(Source("x.py", text.encode()))
    return [each for each in document.objects if each.kind == "call" and each.symbol.endswith("Config")]


def given_to(item: ConfigObject) -> dict[str, Value]:
    return {each.name: each.value for each in item.settings}


@st.composite
def modules(draw: st.DrawFn) -> str:
    """Partials of a class, of partials, and calls of them, each on a line of its own."""
    lines, known = ["from functools import partial", "import functools", "from lib import MyConfig"], ["MyConfig"]
    for at in range(draw(st.integers(1, 6))):
        base = draw(st.sampled_from(known))
        keywords = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), min_size=1, max_size=3))
        shown = ", ".join(f"{name}={value}" for name, value in keywords.items())
        spelled = draw(st.sampled_from(["partial", "functools.partial"]))
        match draw(st.sampled_from(["partial", "partial", "call", "bare", "direct"])):
            case "partial":
                lines.append(f"p{at} = {spelled}({base}, {shown})")
                known.append(f"p{at}")
            case "call":
                lines.append(f"c{at} = {base}({shown})")
            case "bare":
                lines.append(f"c{at} = {base}()")
            case "direct":
                lines.append(f"c{at} = {spelled}({base}, {shown})({draw(st.sampled_from(NAMES))}=7)")
    return "\n".join(lines) + "\n"


@settings(max_examples=80)
@given(modules())
def test_as_python_makes_them(text: str) -> None:
    class MyConfig(types.SimpleNamespace):
        pass

    code = text.replace("from lib import MyConfig\n", "\n")
    scope: dict[str, object] = {"MyConfig": MyConfig, "functools": functools}
    exec(code, scope)
    theirs = {name: vars(value) for name, value in scope.items() if isinstance(value, MyConfig)}
    ours = {item.name: given_to(item) for item in made(text) if item.name in theirs}
    assert ours == theirs
    assert all(not item.open for item in made(text) if item.name in theirs)


@pytest.mark.parametrize(
    "text",
    [
        "use(partial(MyConfig, one=1))\n",
        "make = partial(MyConfig, one=1)\nuse(make)\n",
        "def make():\n    return partial(MyConfig, one=1)\n",
    ],
)
def test_of_a_partial_that_others_call_no_more_is_known_than_it_says(text: str) -> None:
    (item,) = made("from functools import partial\nfrom lib import MyConfig\n" + text)
    assert (given_to(item), item.symbol) == ({"one": 1}, "lib.MyConfig")
    assert item.open == ("the callers of a partial",)


@pytest.mark.parametrize(
    "text",
    [
        "make = partial(function, one=1)\nmake(two=2)\n",
        "from ours import partial\nmake = partial(MyConfig, one=1)\nmake(two=2)\n",
        "make = partial()\nmake(two=2)\n",
        "make = partial(make, one=1)\nmake(two=2)\n",
    ],
)
def test_other_partials_make_nothing(text: str) -> None:
    assert not made("from lib import MyConfig, function\nfrom functools import partial\n" + text)


def test_a_long_chain_of_partials_ends() -> None:
    chain = "".join(f"p{at + 1} = partial(p{at}, one={at})\n" for at in range(2_000))
    text = f"from functools import partial\nfrom lib import MyConfig\np0 = partial(MyConfig, two=2)\n{chain}"
    assert len(made(text)) < 10


SCRIPT = (
    "from functools import partial\nfrom trl import GRPOConfig, GRPOTrainer\n"
    "make = partial(GRPOConfig, output_dir='o', beta=0.1)\n{use}"
)


@pytest.mark.parametrize(
    ("use", "line", "coefficient"),
    [
        ("args = make()\n", 4, 0.1),
        ("args = make(beta=0.2)\n", 4, 0.2),
        ("args = make(beta=0.2)\nargs.beta = 0.3\n", 4, 0.3),
        ("trainer = partial(GRPOTrainer, args=GRPOConfig('o', beta=0.4))\nmake()\n", 4, 0.4),
        ("sweep(make)\n", 3, 0.1),
    ],
)
def test_the_setup_that_results(tmp_path: Path, use: str, line: int, coefficient: float) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(use=use))
    (tmp_path / "requirements.txt").write_text("trl==0.20.0\n")
    found = {setup.span.line: setup.terms[0].coefficient for setup in klaudit.scan(tmp_path).setups}
    assert found[line] == coefficient
