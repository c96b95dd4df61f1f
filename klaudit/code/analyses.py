"""What the files of a tree were analysed to, each once: for its own findings and for the launches that run it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from klaudit.code.result import CodeResult, Formula
from klaudit.readers.source import Source


class Analyses:
    """`load` gives the files that others import; `prefilter` lets functions be passed over that speak of no penalty."""

    def __init__(self, load: Callable[[str], Source | None], *, prefilter: bool = True) -> None:
        self._load = load
        self._prefilter = prefilter
        self._results: dict[str, CodeResult] = {}
        self._untold: list[CodeResult] = []
        self._told: dict[str, CodeResult] = {}

    def of(self, source: Source) -> CodeResult:
        """Raises UnreadableError where it is not Python."""
        from klaudit.code.analyse import analyse  # heavy, and needed for few files

        if source.parent is not None:  # of a notebook, which nothing imports
            return analyse(source, load=self._load, prefilter=self._prefilter)
        if source.path not in self._results:
            self._results[source.path] = analyse(source, load=self._load, prefilter=self._prefilter)
            self._untold.append(self._results[source.path])
        return self._results[source.path]

    def formulas_in(self, source: Source) -> tuple[Formula, ...]:
        """Those of a file as launches need them: without their graphs where another process has analysed it.  Raises UnreadableError."""
        return (self._told.get(source.path) or self.of(source)).formulas

    # --- between the processes of a scan ---

    def lessons(self) -> tuple[object, ...]:
        """What was analysed since this was last asked."""
        lessons = tuple(map(_without_graphs, self._untold))
        self._untold.clear()
        return lessons

    def learn(self, lessons: tuple[object, ...]) -> None:
        """Takes in what other processes have analysed."""
        self._told |= {lesson.path: lesson for lesson in lessons if isinstance(lesson, CodeResult)}


def _without_graphs(result: CodeResult) -> CodeResult:
    """A graph holds the whole function, and only explanations ask for it."""
    return replace(
        result,
        formulas=tuple(
            replace(formula, variants=tuple(replace(variant, node=None) for variant in formula.variants))
            for formula in result.formulas
        ),
    )
