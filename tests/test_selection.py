"""Which findings are wanted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from klaudit.configuration import Options, PerFileIgnores
from klaudit.globs import Globs
from klaudit.selection import Selection, matches, unknown_selectors

RULES = {"KLA101": "k3-in-loss", "KLA102": "k3-in-reward", "KLA205": "reference-for-nothing"}


def wanted(select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> list[str]:
    selection = Selection.of(Options(select=select, ignore=ignore), "/")
    return [rule for rule, name in RULES.items() if selection.wants(rule, name, "run.sh")]


@pytest.mark.parametrize(
    ("selector", "is_meant"),
    [
        ("KLA101", True), ("kla101", True), ("KLA1", True), ("KLA", True), ("ALL", True), ("k3-in-loss", True),
        ("K3_in_loss", True), ("KLA2", False), ("KLA1011", False), ("k3-in", False), ("", False), ("K", False), ("101", False),
    ],
)  # fmt: skip
def test_a_selector_is_an_id_a_prefix_or_a_name(selector: str, is_meant: bool) -> None:
    assert matches(selector, "KLA101", "k3-in-loss") is is_meant


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        ((), (), ["KLA101", "KLA102", "KLA205"]),
        (("KLA1",), (), ["KLA101", "KLA102"]),
        ((), ("KLA1",), ["KLA205"]),
        (("KLA1",), ("k3-in-loss",), ["KLA102"]),
        (("KLA101",), ("KLA1",), ["KLA101"]),
        (("KLA101",), ("k3-in-loss",), []),
        (("ALL",), ("KLA2",), ["KLA101", "KLA102"]),
        (("KLA1", "KLA205"), ("KLA",), ["KLA101", "KLA102", "KLA205"]),
    ],
)
def test_the_more_specific_of_select_and_ignore_counts(
    select: tuple[str, ...], ignore: tuple[str, ...], expected: list[str]
) -> None:
    assert wanted(select, ignore) == expected


def test_per_file_ignores_hold_only_where_their_pattern_matches(tmp_path: Path) -> None:
    root = os.path.realpath(tmp_path)
    ignores = (PerFileIgnores(Globs(root, ("examples/**", "!examples/kept.sh")), ("KLA1",)),)
    selection = Selection.of(Options(per_file_ignores=ignores), root)
    assert not selection.wants("KLA101", "k3-in-loss", "examples/run.sh")
    assert selection.wants("KLA205", "reference-for-nothing", "examples/run.sh")
    assert selection.wants("KLA101", "k3-in-loss", "examples/kept.sh")
    assert selection.wants("KLA101", "k3-in-loss", "run.sh")
    below = Selection.of(Options(per_file_ignores=ignores), str(Path(root, "examples")))
    assert not below.wants("KLA101", "k3-in-loss", "run.sh")


def test_unknown_selectors_are_told() -> None:
    assert unknown_selectors(["KLA1", "KLA9", "k3-in-los", "ALL"], RULES) == ["KLA9", "k3-in-los"]
