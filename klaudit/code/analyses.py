"""What the files of a tree were analysed to, each once: for its own findings and for the launches that run it."""

from __future__ import annotations

from collections.abc import Callable

from klaudit.code.result import CodeResult
from klaudit.readers.source import Source


class Analyses:
    """`load` gives the files that others import; `prefilter` lets functions be passed over that speak of no penalty."""

    def __init__(self, load: Callable[[str], Source | None], *, prefilter: bool = True) -> None:
        self._load = load
        self._prefilter = prefilter
        self._results: dict[str, CodeResult] = {}

    def of(self, source: Source) -> CodeResult:
        """Raises UnreadableError where it is not Python."""
        from klaudit.code.analyse import analyse  # heavy, and needed for few files

        if source.parent is not None:  # of a notebook, which nothing imports
            return analyse(source, load=self._load, prefilter=self._prefilter)
        if source.path not in self._results:
            self._results[source.path] = analyse(source, load=self._load, prefilter=self._prefilter)
        return self._results[source.path]
