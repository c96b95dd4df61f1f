"""The formulas of vendored framework source that a launch's settings decide, and what each of its terms is by them.

A formula counts only where all is established: the tensors, the estimator and the loss or reward with high confidence, the estimator's
or the coefficient's setting by its own name, and a way from the launch's program to the code.  Where several formulas count and differ,
or the settings leave several choices open, nothing is said.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from msgspec import Struct

from klaudit.code.analyses import Analyses
from klaudit.code.conditions import Constant
from klaudit.code.consumers.guards import Ask
from klaudit.code.consumers.imports import Imports, Place
from klaudit.code.consumers.own_words import gives_meaning
from klaudit.code.consumers.reach import Reach
from klaudit.code.result import Formula, Variant
from klaudit.code.screen import is_test, may_matter
from klaudit.code.ties import called, name_of, parts_of, under
from klaudit.frameworks.detect import Detector
from klaudit.frameworks.launch import Consumed, Launch
from klaudit.frameworks.programs import Programs
from klaudit.model import Placement, Span, Unknown, Value
from klaudit.readers.source import Source, UnreadableError

MAX_FILES = 40  # analysed in one package
MAX_ANSWERS = 100  # kept of one question; launches ask the same with the same settings

_Meaning = tuple[str, str, int, str]
_Question = tuple[tuple[str, ...], Placement, str, str]


class TreeCode(Struct, frozen=True):
    """The code that one launch runs; what resolution asks."""

    package: Package
    entries: tuple[str, ...]

    def consumed(self, placement: Placement, estimator: str, coefficient: str, ask: Ask) -> Consumed | None:
        """What the code makes of a term with these settings (by their names, empty where there is none); None where that is not known."""
        known = self.package.answers.setdefault((self.entries, placement, estimator, coefficient), [])
        for asked, answer in known:
            if all(ask(parts) == value for parts, value in asked.items()):
                return answer
        heard: dict[tuple[str, ...], Value] = {}

        def listening(parts: tuple[str, ...]) -> Value:
            heard[parts] = value = ask(parts)
            return value

        answer = self._consumed(placement, estimator, coefficient, listening)
        if len(known) < MAX_ANSWERS:
            known.append((heard, answer))
        return answer

    def gives_meaning(self, word: str, known: frozenset[str]) -> bool:
        """Whether the package has a word beside words that releases know, so that it is no error to choose it."""
        return self.package.gives_meaning(word, known)

    def _consumed(self, placement: Placement, estimator: str, coefficient: str, ask: Ask) -> Consumed | None:
        meanings: dict[_Meaning, tuple[Formula, Variant]] = {}
        found: set[Span] = set()
        for formula in self.package.tied(placement, estimator, coefficient):
            possible = under(formula, _asked(formula, ask))
            if not possible:
                continue
            if self.entries and not self.package.serves(formula, self.entries, ask):
                continue
            if not _is_established(formula):
                return None
            found.add(formula.span)
            for variant in possible:
                meaning = _meaning(formula, variant)
                if meaning is None:
                    return None
                meanings.setdefault(meaning, (formula, variant))
        if len(meanings) != 1 or (len(self.entries) > 1 and len(found) > 1):
            return None  # of several programs and several formulas nobody knows which serves which
        ((_, gradient, sign, live), (formula, variant)) = meanings.popitem()
        place = formula.joined or formula.sink
        return Consumed(
            estimator=variant.what.estimator,
            gradient="none" if gradient == "none" else variant.what.gradient,
            sign=sign,
            formula=formula.span,
            joined=place,
            text=called(formula),
            live=live,
            cut=bool(variant.what.only_where),
        )


class Package:
    """A framework's source in the tree: the formulas in it, found when they are first asked for, once."""

    def __init__(
        self,
        files: Iterable[str],
        load: Callable[[str], Source | None],
        formulas_in: Callable[[Source], tuple[Formula, ...]],
        imports: Imports,
    ) -> None:
        self._files = tuple(path for path in files if not is_test(path))
        self._load = load
        self._formulas_in = formulas_in
        self.answers: dict[
            _Question, list[tuple[dict[tuple[str, ...], Value], Consumed | None]]
        ] = {}  # by what was asked on the way
        self._tied: dict[tuple[Placement, str, str], tuple[Formula, ...]] = {}
        self._found: dict[str, tuple[Formula, ...]] = {}
        self._words: dict[tuple[str, frozenset[str]], bool] = {}
        self._imports = imports
        self._reach = Reach(self._files, imports)

    def tied(self, placement: Placement, estimator: str, coefficient: str) -> tuple[Formula, ...]:
        """The formulas that a setting of the term decides."""
        key = (placement, estimator, coefficient)
        if key not in self._tied:
            self._tied[key] = tuple(self._find(*key))
        return self._tied[key]

    def serves(self, formula: Formula, entries: Iterable[str], ask: Ask) -> bool:
        """Whether a program leads to the formula's function; one that nobody mentions may be reached by a name in a table."""
        place = Place(formula.span.path, formula.symbol.partition(".")[0])
        spans = (formula.span, formula.joined or formula.sink)
        methods = self._imports.methods_at(place, [span.line for span in spans if span.path == place.path])
        return self._reach.reached(place, entries, ask, methods) is not False

    def gives_meaning(self, word: str, known: frozenset[str]) -> bool:
        """Whether some module has a word beside known ones."""
        if (word, known) not in self._words:
            self._words[word, known] = gives_meaning(word, known, self._files, self._load)
        return self._words[word, known]

    def _find(self, placement: Placement, estimator: str, coefficient: str) -> Iterator[Formula]:
        words = [name_of(name).encode() for name in (estimator, coefficient) if name_of(name)]
        for path in self._files:
            source = self._load(path)
            if source is None or not any(word in source.data for word in words):
                continue
            for formula in self._formulas(source):
                if (
                    formula.placement == placement
                    and not formula.judged_elsewhere
                    and _is_tied(formula, estimator, coefficient)
                ):
                    yield formula

    def _formulas(self, source: Source) -> tuple[Formula, ...]:
        if source.path not in self._found:
            self._found[source.path] = ()
            if len(self._found) <= MAX_FILES and may_matter(source.data):
                with suppress(UnreadableError):  # the scan reports it where that file itself is read
                    self._found[source.path] = self._formulas_in(source)
        return self._found[source.path]


def _is_tied(formula: Formula, estimator: str, coefficient: str) -> bool:
    """The setting of the estimator chooses among the formula's variants; of a formula with one form, the coefficient's multiplies it."""
    choosing = {name_of(text) for variant in formula.variants for text, _ in variant.values}
    if estimator and name_of(estimator) in choosing:
        return True
    return not formula.chosen_by and any(name_of(coefficient) in parts_of(knob.name) for knob in formula.knobs)


def _is_established(formula: Formula) -> bool:
    if formula.confidence != "high" or formula.external or formula.through_unknown:
        return False
    return formula.sink_is_live or not formula.detached or formula.placement == "reward"


def _meaning(formula: Formula, variant: Variant) -> _Meaning | None:
    """Estimator, gradient, sign and the range that clamps leave, where the theory has a row for them."""
    what = variant.what
    if what.estimator == "unknown" or what.direction == "ref||pi" or what.truncated or what.probability_weighted:
        return None
    if what.ratio == "sequence" or (what.ratio == "detached" and formula.placement == "loss"):
        return None
    lost = formula.placement == "loss" and formula.detached
    return what.estimator, "none" if lost else what.gradient, -1 if formula.is_turned(what) else 1, _live(variant)


def _live(variant: Variant) -> str:
    """The range of d outside which a clamp of single tokens is in force; empty without one."""
    limits = variant.what.limits
    return variant.what.only_where or ("" if limits.of_average else limits.range_text)


def _asked(formula: Formula, ask: Ask) -> Mapping[str, Constant]:
    """The values of the settings that the formula hangs on, by their own names; those that are not known are left out."""
    found: dict[str, Constant] = {}
    for text in dict.fromkeys(text for variant in formula.variants for text, _ in variant.values):
        parts = parts_of(text)
        value = ask(parts) if parts else Unknown(())
        if not isinstance(value, Unknown | list | dict):
            found[name_of(text)] = value
    return found


class Consumers:
    """Attaches to launches the code that they run, where their framework's source lies in the tree."""

    def __init__(
        self,
        files: Iterable[str],
        load: Callable[[str], Source | None],
        analyses: Analyses,
        detector: Detector,
        programs: Programs,
    ) -> None:
        self._files = tuple(path for path in files if path.endswith(".py"))
        self._known = frozenset(self._files)
        self._load = load
        self._imports = Imports(load)
        self._detector = detector
        self._programs = programs
        self._packages: dict[tuple[str, ...], Package] = {}
        self._analyses = analyses

    def code_of(self, launch: Launch) -> TreeCode | None:
        """The code that a launch runs; None where the tree does not hold it."""
        if launch.version.source != "vendored":
            return None
        near = launch.head.path
        nearest = self._detector.vendored_root(launch.framework, near)
        program = self._program(launch, nearest or "")
        root = self._detector.vendored_root(launch.framework, program) if program is not None else nearest
        if root is None:
            return None
        entries = self._entries(launch, program, root)
        folders = dict.fromkeys(self._detector.vendored_folders(launch.framework, root))
        folders |= dict.fromkeys(map(posixpath.dirname, entries))
        key = (*filter(None, folders), *entries)
        if key not in self._packages:
            inside = tuple(f"{folder}/" for folder in folders if folder)
            files = [path for path in self._files if path.startswith(inside) or path in entries]
            self._packages[key] = Package(files, self._load, self._analyses.formulas_in, self._imports)
        return TreeCode(self._packages[key], entries)

    def _program(self, launch: Launch, root: str) -> str | None:
        """The file that the launch starts: in the framework's source nearest to it, else anywhere in the tree."""
        if launch.entry_point is None:
            return None
        inside = posixpath.join(root, launch.target.replace(".", "/") + ".py")
        return inside if inside in self._known else self._programs.of_target(launch.target, launch.head.path)

    def _entries(self, launch: Launch, program: str | None, root: str) -> tuple[str, ...]:
        """The file that the launch starts; for a configuration without a command, those that could be started with it."""
        if program is not None:
            return (program,)
        modules = [module for entry in launch.trainer.entry_points for module in entry.modules if "*" not in module]
        scripts = [script for entry in launch.trainer.entry_points for script in entry.scripts]
        paths = [
            posixpath.join(root, path) for path in (*(f"{module.replace('.', '/')}.py" for module in modules), *scripts)
        ]
        return tuple(path for path in paths if path in self._known)
