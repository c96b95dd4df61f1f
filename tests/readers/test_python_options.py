"""Options that programs declare, held against a real argparse."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_reading import objects, read, spelled, values

from klaudit.model import Unknown
from klaudit.readers.document import ArgumentSpec, ConfigObject
from klaudit.readers.python import argument_defaults


def specs(made: ConfigObject) -> dict[str, ArgumentSpec]:
    return {spec.dest: spec for spec in made.arguments if isinstance(spec, ArgumentSpec)}


def test_an_option_has_a_setting_for_each_flag() -> None:
    code = """
        import argparse
        parser = argparse.ArgumentParser(description="x")
        parser.add_argument("--kl-coef", "--kl_coef", type=float, default=0.01, choices=[0.01, 0.1], help="h")
        parser.add_argument("-k", action="store_true")
        parser.add_argument("model", nargs="?")
        parser.add_argument("--lr", dest="learning_rate", required=True, type=str)
    """
    (made,) = objects(code, "arguments")
    assert (made.symbol, made.name) == ("argparse.ArgumentParser", "parser")
    assert [(s.name, s.value) for s in made.settings] == [
        ("kl-coef", 0.01),
        ("kl_coef", 0.01),
        ("k", False),
        ("model", None),
        ("lr", None),
    ]
    first = specs(made)["kl_coef"]
    assert (first.flags, first.type, first.choices) == (("--kl-coef", "--kl_coef"), "float", (0.01, 0.1))
    assert specs(made)["model"].nargs == "?"
    assert specs(made)["learning_rate"].required and specs(made)["k"].action == "store_true"
    assert spelled(code, made.settings[0].value_span) == "0.01"
    assert spelled(code, made.settings[0].span).startswith('parser.add_argument("--kl-coef"')


def test_groups_belong_to_their_parser_and_subparsers_do_not() -> None:
    code = """
        def build(top: argparse.ArgumentParser):
            group = top.add_argument_group("g")
            inner = group.add_mutually_exclusive_group()
            inner.add_argument("--a", default=1)
            top.add_argument_group("h").add_argument("--b", default=2)
            subparsers = top.add_subparsers()
            train = subparsers.add_parser("train")
            train.add_argument("--c", default=3)
        class Cli:
            def __init__(self):
                self.parser = ArgumentParser()
                self.parser.add_argument("--d", default=4)
    """
    found = {made.name: values(made) for made in objects(code, "arguments")}
    assert found == {"top": {"a": 1, "b": 2}, "train": {"c": 3}, "self.parser": {"d": 4}}
    assert objects(code, "arguments")[0].symbol == "argparse.ArgumentParser"


def test_click_options() -> None:
    code = """
        import click
        @click.command()
        @click.option("--beta", "-b", default=0.04, type=float, show_default=True)
        @click.option("--kl/--no-kl", default=True)
        @click.option("--flag", is_flag=True)
        @click.argument("path")
        def train(beta, kl, flag, path): pass
    """
    (made,) = objects(code, "arguments")
    assert (made.name, made.symbol) == ("train", "click.command")
    assert values(made) == {"beta": 0.04, "b": 0.04, "kl": True, "no-kl": True, "flag": False, "path": None}


def test_defaults_of_a_whole_module() -> None:
    document = read("""
        a = ArgumentParser(); a.add_argument("--x", default=1)
        b = ArgumentParser(); b.add_argument("--y", default=KL)
        """)
    assert [(s.name, s.value) for s in argument_defaults(document)] == [("x", 1), ("y", Unknown(("KL",), "KL"))]


literals = st.one_of(
    st.integers(-3, 3), st.floats(0, 2), st.booleans(), st.none(), st.sampled_from(["1", "0.5", "x", ""])
)
kinds = st.sampled_from(["float", "int", "str", "bool", ""])
option = st.fixed_dictionaries(
    {
        "flags": st.sampled_from(
            ['"--kl-coef"', '"--kl_coef", "-k"', '"-q", "--quick"', '"--beta", dest="gamma"', '"-z"']
        ),
        "action": st.sampled_from(
            ["", "store", "store_true", "store_false", "append", "count", "store_const", "optional"]
        ),
        "type": kinds,
        "default": st.none() | literals.map(repr),
    }
)


def declaration(parts: dict[str, Any]) -> str:
    action, given = parts["action"], [parts["flags"]]
    if parts["default"] is not None:
        given.append(f"default={parts['default']}")
    if action == "optional":
        given.append("action=argparse.BooleanOptionalAction")
    elif action:
        given.append(f'action="{action}"')
    if action == "store_const":
        given.append("const=7")
    if action in ("", "store", "append") and parts["type"]:
        given.append(f"type={parts['type']}")
    return f"parser.add_argument({', '.join(given)})"


@settings(max_examples=80, deadline=None)
@given(st.lists(option, min_size=1, max_size=3, unique_by=lambda o: o["flags"][:4]), st.none() | literals.map(repr))
def test_defaults_are_what_a_real_parser_gives(options: list[dict[str, Any]], later: str | None) -> None:
    lines = [declaration(parts) for parts in options]
    if later is not None:
        lines.append(f"parser.set_defaults(kl_coef={later})")
    code = "\n".join(["import argparse", "parser = argparse.ArgumentParser()", *lines, ""])
    names: dict[str, Any] = {}
    exec(code, names)
    (made,) = objects(code, "arguments")
    try:
        real = vars(names["parser"].parse_args([]))
    except SystemExit:  # a default that its type refuses
        assert any(isinstance(spec.default, Unknown) for spec in specs(made).values())
        return
    for dest, spec in specs(made).items():
        if not isinstance(spec.default, Unknown):
            assert (type(spec.default), spec.default) == (type(real[dest]), real[dest]), code
        declared = {
            flag for action in names["parser"]._actions if action.dest == dest for flag in action.option_strings
        }
        assert set(spec.flags) == declared


@pytest.mark.parametrize(
    "code",
    [
        "parser.add_argument(*flags)",
        "parser.add_argument(name)",
        "parser.add_argument()",
        'parser.add_argument("--version", action="version")',
        "x = y.add_argument",
        "f().g[0].add_argument('--x')",
    ],
)
def test_declarations_that_cannot_be_known(code: str) -> None:
    assert [values(made) for made in objects(code, "arguments")] in ([], [{"x": None}])


def test_argparse_defaults_when_nothing_is_given() -> None:
    """The reader's idea of each action, against argparse itself."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--a", action="store_true")
    parser.add_argument("--b", action="store_false")
    assert vars(parser.parse_args([])) == {"a": False, "b": True}
