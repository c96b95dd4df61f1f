"""Scalar values, held against the loaders themselves."""

from __future__ import annotations

import datetime
import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from klaudit.model import Unknown
from klaudit.readers.document import MappingNode, ScalarNode
from klaudit.readers.scalars import Dialect, resolve_scalar
from klaudit.readers.source import Source, UnreadableError
from klaudit.readers.yaml import read_yaml

NUMBERS = (
    "off on yes no true True TRUE tRue y n ~ null Null nULL 1e-3 1e3 1.e-3 1.0e-3 1.5E+3 .5 5. . 0 -0 +1 010 0o10 "
    "0x1F 0b11 0b_ 1_000 1_000.5 1:30 1:30.5 190:20:30 .inf -.INF .nan .NaN inf nan 2001-12-14 2001-12-14T21:59:43Z "
    "= << k3 low_var_kl 1e 1e+ e5 0.1.2 1__0 _1 1_ -.5e-3 .1e3 1e400"
)
WORDS = NUMBERS.split()


def resolve(text: str, dialect: Dialect) -> object:
    documents = read_yaml(Source("x.yaml", f"v: {text}\n".encode()))
    root = documents[0].root
    assert isinstance(root, MappingNode)
    node = root.get("v")
    assert isinstance(node, ScalarNode)
    return resolve_scalar(node, dialect)


def same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours):
        return math.isnan(theirs)
    return type(ours) is type(theirs) and ours == theirs


def pyyaml(text: str) -> object:
    value = yaml.safe_load(f"v: {text}\n")["v"]
    return text if isinstance(value, (datetime.date, datetime.datetime)) else value  # dates stay text here


@pytest.mark.parametrize("text", WORDS)
def test_yaml11_reads_as_pyyaml_does(text: str) -> None:
    ours = resolve(text, "yaml11")
    try:
        theirs = pyyaml(text)
    except (yaml.YAMLError, ValueError):
        assert isinstance(ours, Unknown) or ours == text
    else:
        assert same(ours, theirs), (ours, theirs)


@pytest.mark.parametrize("text", WORDS)
def test_omegaconf_reads_as_omegaconf_does(text: str) -> None:
    ours = resolve(text, "omegaconf")
    try:
        theirs = OmegaConf.to_container(OmegaConf.create(f"v: {text}\n"))["v"]  # type: ignore[index, call-overload]
    except (yaml.YAMLError, ValueError):
        assert isinstance(ours, Unknown) or ours == text
    else:
        assert same(ours, theirs), (ours, theirs)


@settings(max_examples=150, deadline=None)
@given(st.text("0123456789+-._eE:xobaNnIifF", min_size=1, max_size=7))
def test_number_like_words_read_as_both_loaders_do(text: str) -> None:
    try:
        theirs = pyyaml(text)
        omega = OmegaConf.to_container(OmegaConf.create(f"v: {text}\n"))["v"]  # type: ignore[index, call-overload]
        ours = resolve(text, "yaml11"), resolve(text, "omegaconf")
    except (yaml.YAMLError, ValueError, UnreadableError):
        return
    assert same(ours[0], theirs), text
    assert same(ours[1], omega), text


def test_the_loaders_differ_where_users_are_caught() -> None:
    assert resolve("1e-3", "yaml11") == "1e-3"
    assert resolve("1e-3", "omegaconf") == 0.001
    assert resolve("off", "omegaconf") is False
    assert resolve("010", "omegaconf") == 8


def test_quotes_and_blocks_make_strings() -> None:
    assert resolve('"off"', "yaml11") == "off"
    assert resolve("'1e-3'", "omegaconf") == "1e-3"
    assert resolve("|\n  true", "yaml11") == "true\n"


def test_tags() -> None:
    assert resolve("!!str 1", "yaml11") == "1"
    assert resolve("!!float '3'", "yaml11") == 3.0
    assert resolve("! 12", "yaml11") == yaml.safe_load("! 12")
    assert resolve("!!int many", "yaml11") == Unknown(("tag:yaml.org,2002:int",), "many")
    assert resolve("!ENV X", "omegaconf") == Unknown(("!ENV",), "X")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("null", None),
        ("-1", -1),
        ("1e-3", 0.001),
        ("1.0", 1.0),
        ("NaN", math.nan),
        ("9" * 5000, Unknown(("digits",), "9" * 5000)),
    ],
)
def test_json_values(text: str, value: object) -> None:
    assert same(resolve_scalar(ScalarNode(text, True, 0, 0), "json"), value) or isinstance(value, Unknown)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("1_000", 1000), ("0x10", 16), ("1e-3", 0.001), ("1979-05-27", "1979-05-27")]
)
def test_toml_values(text: str, value: object) -> None:
    assert same(resolve_scalar(ScalarNode(text, True, 0, 0), "toml"), value)


def test_text_stays_text() -> None:
    assert resolve_scalar(ScalarNode("1", True, 0, 0), "text") == "1"
