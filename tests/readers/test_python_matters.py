"""Calls that do not matter: nothing of them is read but that they are there."""

from __future__ import annotations

from klaudit.readers.document import ConfigObject
from klaudit.readers.python import read_python
from klaudit.readers.source import Source

TEXT = """
import lib
from lib import Other, Config

class Own(Config):
    beta: float = 0.1

one = Config(beta=0.1)
two = Other(beta=0.2)
two.use_kl_loss = True
three = Own(beta=0.3)
four = lib.Other(beta=expensive(1, 2), inner=Config(beta=0.4))
"""


def read(*symbols: str) -> dict[str, list[ConfigObject]]:
    document = read_python(Source("a.py", TEXT.encode()), lambda symbol: symbol in symbols)
    found: dict[str, list[ConfigObject]] = {}
    for item in document.objects:
        found.setdefault(f"{item.kind} {item.symbol}", []).append(item)
    return found


def names(items: list[ConfigObject]) -> list[list[str]]:
    return [[setting.name for setting in item.settings] for item in items]


def test_only_calls_that_matter_are_read_with_their_arguments() -> None:
    found = read("lib.Config")
    assert names(found["call lib.Config"]) == [["beta"], ["beta"]]
    assert names(found["call lib.Other"]) == [["use_kl_loss"], []]


def test_what_is_assigned_to_any_object_is_no_object_of_its_own() -> None:
    assert not any(key.startswith("assignments") for key in read())


def test_the_classes_of_the_module_matter_whatever_they_are_called() -> None:
    assert names(read()["call Own"]) == [["beta"]]


def test_everything_matters_where_nobody_says_otherwise() -> None:
    document = read_python(Source("a.py", TEXT.encode()))
    calls = [item for item in document.objects if item.kind == "call" and item.symbol == "lib.Other"]
    assert [first[:2] for first in names(calls)] == [["beta", "use_kl_loss"], ["beta", "inner"]]
