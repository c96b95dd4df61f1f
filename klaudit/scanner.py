"""Scans the files of a tree: a cheap look at the bytes of each, and the pipeline for those that may matter."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from klaudit.code.screen import SUFFIXES as WITH_FORMULAS
from klaudit.code.screen import may_matter as may_hold_formulas
from klaudit.configuration import Options
from klaudit.frameworks.load import load_frameworks
from klaudit.frameworks.recognise import Index
from klaudit.frameworks.screening import Screening
from klaudit.model import FileResult
from klaudit.tree import Tree

if TYPE_CHECKING:
    from klaudit.code.analyses import Analyses
    from klaudit.frameworks.gather import Gathered
    from klaudit.frameworks.launch import Launch
    from klaudit.pipeline import Pipeline


class Scanner:
    """Scans files of one tree.  The pipeline is imported and made when the first file comes that may matter."""

    def __init__(self, tree: Tree, files: Iterable[str], options: Options) -> None:
        wanted = set(options.frameworks)
        self._options = options
        self._index = Index(each for each in load_frameworks(options.rules) if not wanted or each.id in wanted)
        self._files = list(files)
        self._move_to(tree)

    def over(self, tree: Tree) -> Scanner:
        """A scanner of the same files as they are in another tree; what was made of the rules serves both."""
        other = copy.copy(self)
        other._move_to(tree)
        return other

    def _move_to(self, tree: Tree) -> None:
        self.tree = tree
        self._screening = Screening(tree, self._files, self._index)
        self.__dict__.pop("_pipeline", None)

    def may_matter(self, path: str, data: bytes) -> bool:
        """Whether a file holds any word that a rule looks for: a cheap test before anything is parsed."""
        return self.may_set(path, data) or (path.endswith(WITH_FORMULAS) and may_hold_formulas(data))

    def may_set(self, path: str, data: bytes) -> bool:
        """The same for settings alone, without formulas."""
        return self._screening.may_set(path, data)

    def gather(self, path: str) -> Gathered:
        """The launches of a file, unjudged.  Raises UnreadableError, TooLargeError and OSError for a file that cannot be read."""
        return self._pipeline.gather(path)

    def called(self, path: str) -> list[Launch]:
        """What other scripts launch when this one calls them, where they train otherwise than when run by themselves.

        Raises UnreadableError, TooLargeError and OSError for a file that cannot be read.
        """
        return self._pipeline.called(path)

    def scan(self, path: str) -> FileResult:
        """All set-ups and findings of a file.  Never raises for what stands in it."""
        return self._pipeline.scan(path)

    def prepare(self) -> None:
        """Makes now what is otherwise made when it is first needed, so that no process forked from this one has to."""
        self._screening.prepare()
        self._pipeline.prepare()

    @property
    def analyses(self) -> Analyses:
        """What was analysed of the code of the tree."""
        return self._pipeline.analyses

    @cached_property
    def _pipeline(self) -> Pipeline:
        from klaudit.pipeline import Pipeline

        return Pipeline(self.tree, self._files, self._options, self._index, self._screening)
