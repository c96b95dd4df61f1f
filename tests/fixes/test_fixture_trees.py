"""Every fixture project, fixed, gives the tree that lies beside it; a second time nothing changes, and the finding is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.fixes.migration import Request
from klaudit.fixes.planning import plan
from klaudit.fixes.writing import write_all

FOLDER = Path(__file__).resolve().parents[2] / "fixtures"
# `fixed` is the tree after the default migration, `fixed-TARGET` that after another one, `fixed-unsafe[-TARGET]` that with --unsafe
CASES = [(path.parent.name, path.name) for path in sorted(FOLDER.glob("*/fixed*"))]


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def request_of(name: str) -> Request:
    target = name.removeprefix("fixed").removeprefix("-unsafe").removeprefix("-")
    return Request(target or "k1-in-reward", unsafe=name.startswith("fixed-unsafe"))


@pytest.mark.parametrize(("case", "name"), CASES)
def test_fixed_tree(case: str, name: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(FOLDER / case / "input", tree)
    made = plan([str(tree)], Options(), request_of(name))
    write_all(made.root, made.originals, made.contents)
    assert files(tree) == files(FOLDER / case / name)
    assert all(each.after is not None for each in made.migrations)

    again = plan([str(tree)], Options(), request_of(name))
    assert not again.contents
    fixed = {(each.path, rule) for each in made.migrations for rule in each.rules}
    found = [finding for finding in scan([str(tree)], Options()).findings if finding.severity != "note"]
    left = {(finding.span.path, finding.rule) for finding in found}
    refused = {(each.setup.path, rule) for each in again.unchanged for rule in each.rules}
    assert not (fixed & left) - refused


def test_every_kind_of_source_is_there() -> None:
    suffixes = {Path(path).suffix for case, name in CASES for path in files(FOLDER / case / name)}
    assert {".sh", ".yaml", ".json", ".toml", ".py", ".ipynb"} <= suffixes
