"""A change that loosens the gate it has to pass: what it changed of options, rule files and known findings is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import klaudit
from klaudit.gate.baseline_file import row_of, write
from klaudit.model import Report
from tests.gate.scratch import LAUNCH, Repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
SECTION = '[project]\nname = "x"\n[tool.klaudit]\nfail-on = "warning"\n'


def scan(root: Path, **options: object) -> Report:
    return klaudit.scan(root, diff_base="HEAD", **options)  # type: ignore[arg-type]


def told(root: Path, **options: object) -> list[str]:
    """Remarks without the commit."""
    return [remark.partition(" (")[0] + remark.partition(")")[2] for remark in scan(root, **options).remarks]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"klaudit.toml": 'ignore = ["KLA101"]\n'}, "klaudit.toml: klaudit is configured otherwise than in HEAD: `ignore`"),
        (
            {"pyproject.toml": SECTION},
            {"pyproject.toml": SECTION.replace("warning", "never") + 'exclude = ["new.sh"]\n'},
            "pyproject.toml: klaudit is configured otherwise than in HEAD: `fail-on`, `exclude`",
        ),
        (
            {"pyproject.toml": SECTION},
            {"klaudit.toml": 'ignore = ["KLA101"]\n'},
            "klaudit.toml: klaudit is configured otherwise than in HEAD: `ignore`, `fail-on`",
        ),
        (
            {"klaudit.toml": 'require = "no-kl"\n'},
            {"klaudit.toml": None},
            "klaudit.toml: klaudit is configured otherwise than in HEAD: `require`",
        ),
    ],
)  # fmt: skip
def test_options(tmp_path: Path, before: dict[str, str], after: dict[str, str | None], expected: str) -> None:
    repository = Repository(tmp_path, {"old.sh": LAUNCH, **before})
    assert told(tmp_path) == []
    repository.write(after)
    assert told(tmp_path) == [expected]
    assert told(tmp_path, isolated=True) == []


def test_what_says_the_same_is_not_told(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"old.sh": LAUNCH, "pyproject.toml": SECTION})
    repository.write({"pyproject.toml": SECTION.replace('"x"', '"y"').replace('"warning"', "'warning'  # why")})
    assert told(tmp_path) == []


def test_a_part_of_the_tree_is_judged_by_what_lies_above_it(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path, {"part/old.sh": LAUNCH, "part/b.sh": LAUNCH, "klaudit.toml": 'ignore = ["KLA301"]\n'}
    )
    repository.write({"klaudit.toml": 'ignore = ["KLA101"]\n'})
    expected = ["klaudit.toml: klaudit is configured otherwise than in HEAD: `ignore`"]
    assert told(tmp_path / "part") == told(tmp_path) == expected


def test_a_file_that_was_named(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository", {"old.sh": LAUNCH, "klaudit.toml": 'ignore = ["KLA301"]\n'})
    repository.write({"klaudit.toml": 'ignore = ["KLA101"]\n'})
    (tmp_path / "ours.toml").write_text('ignore = ["KLA102"]\n')
    assert told(repository.root, config=tmp_path / "ours.toml") == []
    assert len(told(repository.root, config=repository.root / "klaudit.toml")) == 1


def test_known_findings(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"old.sh": LAUNCH, "klaudit.toml": 'baseline = "known.json"\n'})
    known = [row_of(finding, "") for finding in klaudit.scan(tmp_path, isolated=True).findings]
    write(str(tmp_path / "known.json"), known)
    repository.commit()
    assert told(tmp_path) == []
    repository.write({"new.sh": LAUNCH})
    findings = klaudit.scan(tmp_path, isolated=True).findings
    write(str(tmp_path / "known.json"), [row_of(finding, "") for finding in findings])
    report = scan(tmp_path)
    assert report.findings == ()
    more = len(findings) - len(known)
    assert told(tmp_path) == [f"known.json lists {more} finding{'s' * (more > 1)} that it does not list in HEAD"]


def test_rule_files(tmp_path: Path) -> None:
    shipped = (Path(__file__).parents[2] / "rules/frameworks/rl2.yaml").read_text()
    files = {
        "old.sh": LAUNCH,
        "klaudit.toml": 'rules = ["ours"]\n',
        "ours/frameworks/a.yaml": shipped.replace("id: rl2", "id: ours"),
    }
    repository = Repository(tmp_path, files)
    assert told(tmp_path) == []
    repository.write({"ours/frameworks/a.yaml": "# another\n" + files["ours/frameworks/a.yaml"]})
    assert told(tmp_path) == ["ours/frameworks/a.yaml: these rules are not those of HEAD"]
