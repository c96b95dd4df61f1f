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
# `fixed` is the tree after the default migration, `fixed-TARGET` that after another one
CASES = [
    (path.parent.name, path.name.removeprefix("fixed").lstrip("-") or "k1-in-reward")
    for path in sorted(FOLDER.glob("*/fixed*"))
]


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def expected(case: str, target: str) -> Path:
    return FOLDER / case / ("fixed" if target == "k1-in-reward" else f"fixed-{target}")


@pytest.mark.parametrize(("case", "target"), CASES)
def test_fixed_tree(case: str, target: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(FOLDER / case / "input", tree)
    made = plan([str(tree)], Options(), Request(target))
    write_all(made.root, made.originals, made.contents)
    assert files(tree) == files(expected(case, target))
    assert all(each.after is not None for each in made.migrations)

    again = plan([str(tree)], Options(), Request(target))
    assert not again.contents
    fixed = {(each.path, rule) for each in made.migrations for rule in each.rules}
    left = {(finding.span.path, finding.rule) for finding in scan([str(tree)], Options()).findings}
    refused = {(each.setup.path, rule) for each in again.unchanged for rule in each.rules}
    assert not (fixed & left) - refused


def test_every_kind_of_source_is_there() -> None:
    suffixes = {Path(name).suffix for case, target in CASES for name in files(expected(case, target))}
    assert {".sh", ".yaml", ".json", ".toml", ".py", ".ipynb"} <= suffixes
