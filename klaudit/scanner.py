"""One file through the pipeline: read, recognise, resolve, judge."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Iterable

from msgspec.structs import replace

from klaudit.code.analyses import Analyses
from klaudit.code.consumers.consumers import Consumers
from klaudit.code.scan import read_formulas
from klaudit.code.screen import may_matter as may_hold_formulas
from klaudit.configuration import Options
from klaudit.discover.prefilter import prefilter_of
from klaudit.findings.judging import Subject, judge
from klaudit.findings.never_existed import never_existed
from klaudit.findings.unreadable_file import partly_read
from klaudit.frameworks.detect import Detector
from klaudit.frameworks.gather import Gathered, Gatherer, calls_scripts
from klaudit.frameworks.launch import Launch
from klaudit.frameworks.load import load_frameworks
from klaudit.frameworks.recognise import Index
from klaudit.frameworks.resolve import resolve
from klaudit.model import FileResult, Finding, Problem, Setup
from klaudit.readers.shell.budget import NOT_FOLLOWED
from klaudit.readers.source import Source, UnreadableError
from klaudit.tree import TooLargeError, Tree

_WITH_FORMULAS = (".py", ".ipynb")


class Scanner:
    """Scans files of one tree; what it has learnt of the tree (versions, composed configs) serves the next file."""

    def __init__(self, tree: Tree, files: Iterable[str], options: Options) -> None:
        wanted = set(options.frameworks)
        frameworks = [each for each in load_frameworks(options.rules) if not wanted or each.id in wanted]
        self._options = options
        self._prefilter = options.prefilter
        self._index = Index(frameworks)
        self._any = prefilter_of(self._index.keywords())
        self._code = prefilter_of(self._index.code_keywords())
        self._files = list(files)
        self._move_to(tree)

    def over(self, tree: Tree) -> Scanner:
        """A scanner of the same files as they are in another tree; what was made of the rules serves both."""
        other = copy.copy(self)
        other._move_to(tree)
        return other

    def _move_to(self, tree: Tree) -> None:
        self.tree = tree
        self._alone: dict[str, frozenset[object]] = {}
        detector = Detector(tree, self._files, self._options.framework_versions)
        self._gatherer = Gatherer(tree, self._index, detector, self._files, self._any.may_matter)
        self.analyses = Analyses(self._load, prefilter=self._prefilter)
        self._consumers = Consumers(self._files, self._load, self.analyses, detector, self._gatherer.programs)

    def may_matter(self, path: str, data: bytes) -> bool:
        """Whether a file holds any word that a rule looks for: a cheap test before anything is parsed."""
        return self.may_set(path, data) or (path.endswith(_WITH_FORMULAS) and may_hold_formulas(data))

    def may_set(self, path: str, data: bytes) -> bool:
        """The same for settings alone, without formulas."""
        if path.endswith(".py"):
            return self._code.may_matter(data)
        if self._any.may_matter(data) or (path.endswith((".yaml", ".yml")) and calls_scripts(data)):
            return True
        if path.endswith((".json", ".toml")):
            return False
        return self._gatherer.may_start(path, data) or self._gatherer.calls(path, data)

    def gather(self, path: str) -> Gathered:
        """The launches of a file, unjudged.  Raises UnreadableError, TooLargeError and OSError for a file that cannot be read."""
        gathered = self._gatherer.gather(path)
        gathered.launches = list(map(self._with_code, gathered.launches))
        return gathered

    def scan(self, path: str) -> FileResult:
        """All set-ups and findings of a file.  Never raises for what stands in it."""
        try:
            source = self.tree.source(path)
            if source is None:
                return FileResult(path)
            setups: list[Setup] = []
            findings: list[Finding] = []
            if not self._prefilter or self.may_set(path, source.data):
                gathered = self.gather(path)
                setups, findings = self._judge(gathered.launches)
                if self._gatherer.calls(path, source.data):
                    called = self._judge(self._called(path))
                    setups += called[0]
                    # what is wrong with the called script itself is told where that is scanned
                    findings += [finding for finding in called[1] if finding.span.path == path]
                findings += map(never_existed, gathered.phantoms)
                if not setups and (lost := _lost(gathered.problems)) and self._any.may_matter(source.data):
                    return FileResult(path, problems=lost, parsed=True)  # a launch may stand where nobody has come to
                if setups:  # where nothing trains, nothing is lost
                    findings += map(partly_read, gathered.problems)
            if path.endswith(_WITH_FORMULAS) and (not self._prefilter or may_hold_formulas(source.data)):
                formulas = read_formulas(source, self.analyses)
                setups += formulas.setups
                findings += formulas.findings
            return FileResult(path, tuple(setups), tuple(findings), (), True)
        except (UnreadableError, TooLargeError) as error:
            return FileResult(path, problems=(Problem(path, getattr(error, "line", None), str(error)),), parsed=True)
        except OSError as error:
            return FileResult(path, problems=(Problem(path, None, error.strerror or str(error)),))
        except RecursionError:
            return FileResult(path, problems=(Problem(path, None, "nested too deeply"),))
        except Exception as error:
            message = f"internal error, please report it: {type(error).__name__}: {error}\n{traceback.format_exc()}"
            return FileResult(path, problems=(Problem(path, None, message),))

    def _called(self, path: str) -> list[Launch]:
        """What other scripts launch when this one calls them, where they train otherwise than when run by themselves."""
        launches = [(script, self._with_code(launch)) for script, launch in self._gatherer.called(path)]
        return [launch for script, launch in launches if _trains(launch) not in self._by_itself(script)]

    def _by_itself(self, script: str) -> frozenset[object]:
        """With what a script trains where nothing is given to it."""
        if script not in self._alone:
            try:
                self._alone[script] = frozenset(map(_trains, self.gather(script).launches))
            except (UnreadableError, TooLargeError, OSError):
                self._alone[script] = frozenset()
        return self._alone[script]

    def _with_code(self, launch: Launch) -> Launch:
        return replace(launch, code=self._consumers.code_of(launch))

    def _load(self, path: str) -> Source | None:
        try:
            return self.tree.source(path)
        except (OSError, TooLargeError):
            return None

    def _judge(self, launches: Iterable[Launch]) -> tuple[list[Setup], list[Finding]]:
        setups: dict[object, Setup] = {}
        findings: list[Finding] = []
        for launch in launches:
            resolution = resolve(launch)
            setup = resolution.setup
            same = (setup.span, setup.symbol, setup.assumes, setup.score_weight, tuple(map(_what, setup.terms)))
            if same not in setups:
                setups[same] = setup
                findings += judge(Subject(resolution))
        return list(setups.values()), findings


def _lost(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Those of scripts whose end was not reached."""
    return tuple(problem for problem in problems if problem.message.startswith(NOT_FOLLOWED))


def _trains(launch: Launch) -> object:
    setup = resolve(launch).setup
    return setup.framework, setup.entry_point, tuple(map(_what, setup.terms))


def _what(term: object) -> tuple[object, ...]:
    return tuple(
        getattr(term, name) for name in ("placement", "estimator", "gradient", "coefficient", "active", "verdict")
    )
