"""Every wrong example of the catalogue raises its finding, and no right one does."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from klaudit.configuration import Options, load
from klaudit.engine import scan
from klaudit.findings import catalogue
from klaudit.findings.catalogue import Entry, Example
from klaudit.frameworks.load import load_frameworks
from klaudit.scanner import Scanner
from klaudit.tree import Tree

CASES = [
    pytest.param(entry, example, id=f"{entry.id}-{at}")
    for entry in catalogue.load()
    for at, example in enumerate(entry.examples)
]


def found(folder: Path, example: Example, text: str) -> set[str]:
    (folder / f"example.{example.language}").write_text(text, encoding="utf-8")
    for name, text_beside in example.beside:
        (folder / name).write_text(text_beside, encoding="utf-8")
    (folder / "klaudit.toml").write_text(example.configuration, encoding="utf-8")
    options = load(folder / "klaudit.toml").options
    report = scan([str(folder)], replace(options, framework_versions=dict(example.versions), verbose=True))
    assert not report.errors
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize(("entry", "example"), CASES)
def test_wrong_and_right(entry: Entry, example: Example, tmp_path: Path) -> None:
    assert entry.id in found(tmp_path, example, example.wrong)
    assert entry.id not in found(tmp_path, example, example.right)


@pytest.mark.parametrize(("entry", "example"), CASES)
def test_the_prefilter_lets_wrong_examples_pass(entry: Entry, example: Example) -> None:
    scanner = Scanner(Tree("."), [], Options())
    assert scanner.may_matter(f"example.{example.language}", example.wrong.encode())


def test_the_catalogue_is_complete_and_consistent() -> None:
    ids = [entry.id for entry in catalogue.load()]
    assert len(ids) == len(set(ids)) == len(catalogue.names())
    frameworks = {framework.id for framework in load_frameworks()}
    for entry in catalogue.load():
        assert entry.why and entry.fix and entry.summary and entry.severity in ("error", "warning", "note")
        assert {name for example in entry.examples for name, _ in example.versions} <= frameworks


def test_everything_that_can_be_shown_in_a_file_has_an_example() -> None:
    assert [entry.id for entry in catalogue.load() if not entry.examples] == ["KLA003"]
