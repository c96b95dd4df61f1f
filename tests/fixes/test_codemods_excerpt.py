"""Edits are offered for the findings of a file of many formulas in a time that does not grow with its square."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from klaudit import engine
from klaudit.configuration import Options
from klaudit.discover import locate
from klaudit.fixes.codemods import attach
from klaudit.fixes.codemods.excerpt import Excerpts
from klaudit.model import Report
from klaudit.readers.source import Source
from klaudit.tree import Tree

LOSS = """
def loss_{0}(pg_loss, logp, ref_logp, beta):
    return pg_loss + beta * penalty_{0}(logp, ref_logp).mean()


def penalty_{0}(logp, ref_logp):
    x = ref_logp - logp
    return x.exp() - x - 1

"""


def _many(number: int) -> str:
    return "import torch\n" + "".join(LOSS.format(at) for at in range(number))


def _with_fixes(tmp_path: Path, text: str, deadline: float | None = None) -> Report:
    (tmp_path / "losses.py").write_text(text, encoding="utf-8")
    report = engine.scan([str(tmp_path)], Options(jobs=1))
    targets = locate([str(tmp_path)], Options())
    return attach.with_fixes(report, Tree(targets.root, dict(targets.overlay)), deadline)


def test_an_excerpt_holds_a_definition_its_callers_and_what_they_use() -> None:
    text = _many(3) + "shared = [loss_2]\n"
    excerpts = Excerpts(Source("losses.py", text.encode()))
    for name in ("loss_0", "penalty_0"):
        data = excerpts.around(text.index(f"def {name}(")).data.decode()
        assert len(data) == len(text) and data.count("\n") == text.count("\n")
        assert all(data[at] in (text[at], " ") for at in range(len(text)))
        assert "def loss_0" in data and "def penalty_0" in data and "loss_1" not in data
        assert "def penalty_2" in data, "the top level uses it"


def test_edits_are_those_of_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = _with_fixes(tmp_path, _many(4) + "class Trainer:\n    beta = 0.1\n")
    monkeypatch.setattr(Excerpts, "around", lambda self, at: self._source)
    assert [each.fix for each in _with_fixes(tmp_path, _many(4) + "class Trainer:\n    beta = 0.1\n").findings] == [
        each.fix for each in some.findings
    ]
    assert sum(each.fix.safety == "unsafe" for each in some.findings) == 8


def test_many_formulas_take_no_more_than_a_bound(tmp_path: Path) -> None:
    report = _with_fixes(tmp_path, _many(250))
    offered = [each for each in report.findings if each.fix.safety == "unsafe"]
    told = [each for each in report.findings if "`klaudit fix` does it" in each.fix.title]
    assert 50 < len(offered) < 2 * 250
    assert told and all(each.fix.safety == "none" for each in told)


def test_no_edit_is_worked_out_after_the_deadline(tmp_path: Path) -> None:
    report = _with_fixes(tmp_path, _many(3), deadline=time.monotonic() - 1)
    assert report.findings and all("`klaudit fix` does it" in each.fix.title for each in report.findings)
