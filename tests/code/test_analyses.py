"""Analyses that processes share: what one was told serves its launches as its own analysis would."""

from __future__ import annotations

import pickle

import pytest
from msgspec.structs import replace

import klaudit.code.analyse
from klaudit.code.analyses import Analyses
from klaudit.code.result import CodeResult
from klaudit.readers.source import Source, UnreadableError
from tests.fixture_cases import FOLDER

TREE = FOLDER / "code-vendored-trainer" / "input"


def load(path: str) -> Source | None:
    return Source(path, (TREE / path).read_bytes()) if (TREE / path).is_file() else None


def sources() -> list[Source]:
    paths = sorted(path.relative_to(TREE).as_posix() for path in TREE.rglob("*.py"))
    return [source for path in paths if (source := load(path)) is not None]


def test_a_lesson_says_what_launches_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    teacher, pupil = Analyses(load), Analyses(load)
    known = {source.path: teacher.of(source).formulas for source in sources()}
    assert any(known.values())
    lessons = pickle.loads(pickle.dumps(teacher.lessons()))
    pupil.learn(lessons)
    monkeypatch.setattr(klaudit.code.analyse, "analyse", lambda *_, **__: pytest.fail("analysed again"))
    for source in sources():
        assert pupil.formulas_in(source) == tuple(
            replace(formula, variants=tuple(replace(variant, node=None) for variant in formula.variants))
            for formula in known[source.path]
        )


def test_a_lesson_is_told_once_and_without_graphs() -> None:
    analyses = Analyses(load)
    for source in sources():
        analyses.of(source)
    lessons = analyses.lessons()
    assert all(isinstance(lesson, CodeResult) for lesson in lessons) and len(lessons) == len(sources())
    assert not any(
        variant.node
        for lesson in lessons
        if isinstance(lesson, CodeResult)
        for formula in lesson.formulas
        for variant in formula.variants
    )
    assert analyses.lessons() == ()


def test_a_file_s_own_findings_never_rest_on_a_lesson() -> None:
    source = next(source for source in sources() if Analyses(load).of(source).formulas)
    analyses = Analyses(load)
    analyses.learn((CodeResult(source.path, ()),))
    assert analyses.formulas_in(source) == ()
    assert analyses.of(source).formulas


def test_what_is_no_python_stays_an_error() -> None:
    broken = Source("broken.py", b"kl = (log_prob - ref_log_prob\nreward = reward - beta * kl\n")
    with pytest.raises(UnreadableError):
        Analyses(load).formulas_in(broken)
