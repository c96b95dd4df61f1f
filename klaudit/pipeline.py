"""One file through the pipeline: read, recognise, resolve, judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from klaudit.code.analyses import Analyses
from klaudit.code.consumers.consumers import Consumers
from klaudit.code.scan import read_formulas
from klaudit.code.screen import SUFFIXES as WITH_FORMULAS
from klaudit.code.screen import may_matter as may_hold_formulas
from klaudit.configuration import Options
from klaudit.findings.judging import Subject, judge
from klaudit.findings.never_existed import never_existed
from klaudit.findings.unreadable_file import partly_read
from klaudit.frameworks.detect import Detector
from klaudit.frameworks.gather import Gathered, Gatherer
from klaudit.frameworks.launch import Launch
from klaudit.frameworks.recognise import Index
from klaudit.frameworks.resolve import resolve
from klaudit.frameworks.screening import Screening
from klaudit.model import FileResult, Finding, Problem, Setup
from klaudit.readers.document import NOT_FOLLOWED
from klaudit.readers.source import UnreadableError
from klaudit.tree import TooLargeError, Tree


class Pipeline:
    """What it has learnt of the tree (versions, composed configs) serves the next file."""

    def __init__(self, tree: Tree, files: Sequence[str], options: Options, index: Index, screening: Screening) -> None:
        self._tree = tree
        self._screening = screening
        self._prefilter = options.prefilter
        self._alone: dict[str, frozenset[object]] = {}
        self._by_others: dict[str, frozenset[object]] = {}
        detector = Detector(tree, files, options.framework_versions)
        self._gatherer = Gatherer(tree, index, detector, screening)
        self.analyses = Analyses(self._tree.readable, prefilter=self._prefilter)
        self._consumers = Consumers(files, self._tree.readable, self.analyses, detector, screening.programs)

    @staticmethod
    def prepare() -> None:
        """Imports now what is otherwise imported when a file needs it, so that no process forked from this one has to."""
        from klaudit.code import analyse  # noqa: F401
        from klaudit.findings.judging import all_judges
        from klaudit.readers import python, shell  # noqa: F401

        all_judges()

    def gather(self, path: str) -> Gathered:
        """The launches of a file, unjudged.  Raises UnreadableError, TooLargeError and OSError for a file that cannot be read."""
        gathered = self._gatherer.gather(path)
        gathered.launches = list(map(self._with_code, gathered.launches))
        return gathered

    def scan(self, path: str) -> FileResult:
        """All set-ups and findings of a file.  Never raises for what stands in it."""
        try:
            source = self._tree.source(path)
            if source is None:
                return FileResult(path)
            setups: list[Setup] = []
            findings: list[Finding] = []
            if not self._prefilter or self._screening.may_set(path, source.data):
                gathered = self.gather(path)
                setups, findings = self._judge(gathered.launches)
                called = self._judge(self.called(path))
                setups += called[0]
                # what is wrong with the called script itself is told where that is scanned
                findings += [finding for finding in called[1] if finding.span.path == path]
                findings += map(never_existed, gathered.phantoms)
                if not setups and (lost := _lost(gathered.problems)) and self._screening.holds_a_word(source.data):
                    return FileResult(path, problems=lost, parsed=True)  # a launch may stand where nobody has come to
                if setups:  # where nothing trains, nothing is lost
                    findings += map(partly_read, gathered.problems)
            if path.endswith(WITH_FORMULAS) and (not self._prefilter or may_hold_formulas(source.data)):
                formulas = read_formulas(source, self.analyses, setups)
                setups = [*formulas.setups]
                findings += formulas.findings
                findings += map(partly_read, formulas.problems)
            return FileResult(path, tuple(setups), tuple(findings), (), True)
        except (UnreadableError, TooLargeError) as error:
            return FileResult(path, problems=(Problem(path, getattr(error, "line", None), str(error)),), parsed=True)
        except OSError as error:
            return FileResult(path, problems=(Problem(path, None, error.strerror or str(error)),))
        except RecursionError:
            return FileResult(path, problems=(Problem(path, None, "nested too deeply"),))
        except Exception as error:
            import traceback

            message = f"internal error, please report it: {type(error).__name__}: {error}\n{traceback.format_exc()}"
            return FileResult(path, problems=(Problem(path, None, message),))

    def called(self, path: str) -> list[Launch]:
        """What other scripts launch when this one calls them, where they train otherwise than when run by themselves.

        Raises UnreadableError, TooLargeError and OSError for a file that cannot be read.
        """
        source = self._tree.source(path)
        if source is None or not self._screening.calls(path, source.data):
            return []
        found: list[Launch] = []
        for called in self._gatherer.called(path):
            launch = self._with_code(called.launch)
            trains = _trains(launch)
            if trains not in self._by_itself(called.script) and not any(
                trains in self._through(script) for script in called.through if script != path
            ):
                found.append(launch)
        return found

    def _through(self, script: str) -> frozenset[object]:
        """With what other scripts train where this one calls them."""
        if script not in self._by_others:
            self._by_others[script] = frozenset()
            try:
                launches = [self._with_code(called.launch) for called in self._gatherer.called(script)]
            except (UnreadableError, TooLargeError, OSError):
                launches = []
            self._by_others[script] = frozenset(map(_trains, launches))
        return self._by_others[script]

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
