"""A file of the tree -> the launches in it, whatever its format."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from klaudit.discover.suffixes import is_makefile
from klaudit.frameworks.classes import Classes, Lineage
from klaudit.frameworks.configure import Configurer
from klaudit.frameworks.detect import Detector
from klaudit.frameworks.launch import Launch
from klaudit.frameworks.recognise import FileMatch, Index, ProgramMatch, excepts, fits
from klaudit.frameworks.rules import Framework, NeverExisted
from klaudit.frameworks.screening import Screening, calls_scripts
from klaudit.frameworks.systems.dotlist import typed
from klaudit.frameworks.systems.keys import dotted_keys, read_keys
from klaudit.model import Problem
from klaudit.readers.document import Command, ConfigObject, PythonDocument, ShellDocument, TreeDocument, Word
from klaudit.readers.invocation import Invocation, invocation
from klaudit.readers.source import Source, UnreadableError
from klaudit.tree import Tree

_NO_IMPORTS: tuple[str, ...] = ()


class Phantom(Struct, frozen=True):
    """A use of an API that no release of the framework ever had."""

    framework: Framework
    api: NeverExisted
    item: ConfigObject


class Gathered(Struct):
    """What one file holds.  `parsed` is false where nothing in it could be read."""

    launches: list[Launch] = field(default_factory=list)
    phantoms: list[Phantom] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    parsed: bool = True


class Called(NamedTuple):
    """A launch that stands in another `script`, and the scripts `through` which that is called."""

    launch: Launch
    script: str
    through: tuple[str, ...]


class Gatherer:
    def __init__(self, tree: Tree, index: Index, detector: Detector, screening: Screening) -> None:
        self._tree = tree
        self._index = index
        self._screening = screening
        self._programs = screening.programs
        self._classes = Classes(tree, self._programs, index)
        self._configurer = Configurer(tree, detector, self._programs, self._classes, index.packaged_keys)

    def gather(self, path: str) -> Gathered:
        """Raises UnreadableError, TooLargeError and OSError for a file that cannot be read."""
        gathered = Gathered()
        source = self._tree.source(path)
        if source is None:
            gathered.parsed = False
            return gathered
        if is_makefile(path):
            self._makefile(source, gathered)
            return gathered
        match posixpath.splitext(path)[1].lower():
            case ".py":
                self._python(source, gathered)
            case ".ipynb":
                self._notebook(source, gathered)
            case ".yaml" | ".yml" | ".json" | ".toml":
                self._keys(source, gathered)
            case ".md" | ".markdown" | ".mdx":
                self._markdown(source, gathered)
            case _:
                self._shell(source, gathered)
        return gathered

    def called(self, path: str) -> list[Called]:
        """What a shell script has other scripts launch.

        Raises UnreadableError, TooLargeError and OSError for a file that cannot be read.
        """
        from klaudit.readers.shell import read_shell

        source = self._tree.source(path)
        if source is None:
            return []
        found: list[Called] = []
        for command in read_shell(
            source, load=self._tree.readable, at_ending=self._screening.endings.script, follow_scripts=True
        ).commands:
            if command.called_at is not None:
                gathered = Gathered()
                self._commands([command], source, _NO_IMPORTS, gathered)
                found += [Called(launch, command.span.path, command.called[:-1]) for launch in gathered.launches]
        return found

    # --- formats -----------------------------------------------------------------------------------------------------------------------

    def _shell(
        self,
        source: Source,
        gathered: Gathered,
        imports: tuple[str, ...] = _NO_IMPORTS,
        environment: Mapping[str, str] | None = None,
        follow_scripts: bool = False,
        assumes: tuple[str, ...] = (),
    ) -> None:
        from klaudit.readers.shell import read_shell

        document: ShellDocument = read_shell(
            source,
            load=self._tree.readable,
            at_ending=self._screening.endings.script,
            environment=environment,
            follow_scripts=follow_scripts,
            follow_branches=not follow_scripts,  # of a called script they are told where that script stands
        )
        gathered.problems += document.problems
        commands = document.commands
        if assumes:
            commands = tuple(replace(each, assumes=(*assumes, *each.assumes)) for each in commands)
        self._commands(commands, source, imports, gathered)

    def _makefile(self, source: Source, gathered: Gathered) -> None:
        from klaudit.readers.make import read_makefile

        makefile = read_makefile(source)
        gathered.problems += makefile.problems
        for recipe in makefile.recipes:
            data = recipe.source.data
            if self._screening.holds_a_word(data) or b".sh" in data or self._screening.may_start(source.path, data):
                follow = calls_scripts(data)
                self._shell(recipe.source, gathered, follow_scripts=follow, assumes=recipe.assumes)

    def _python(self, source: Source, gathered: Gathered) -> None:
        from klaudit.readers.python import read_python

        self._python_document(read_python(source, self._classes.may_be_config), gathered)

    def _python_document(self, document: PythonDocument, gathered: Gathered) -> None:
        source = document.source
        gathered.problems += document.problems
        imports = tuple(dict.fromkeys(name.partition(".")[0] for _, name in document.imports if name))
        for item in document.objects:
            self._object(item, document, imports, gathered)
        self._commands(document.commands, source, imports, gathered)
        for text in document.shell_strings:
            self._shell(text, gathered, imports)

    def _notebook(self, source: Source, gathered: Gathered) -> None:
        from klaudit.readers.notebook import read_notebook

        notebook = read_notebook(source)
        if notebook.python is not None:
            self._python_document(notebook.python, gathered)
        for shell in notebook.shell:
            self._shell(shell, gathered)

    def _keys(self, source: Source, gathered: Gathered) -> None:
        for document in read_keys(source):
            keys = dotted_keys(document) | self._configurer.inherited_keys(document)
            matches = self._best(self._index.file(source.path, keys), source.path)
            launches = (self._configurer.of_file(match, document) for match in matches)
            launch = next((launch for launch in launches if launch is not None), None)
            if launch is not None:
                gathered.launches.append(launch)
            if source.path.endswith((".yaml", ".yml", ".json")):
                self._embedded(document, gathered)

    def _embedded(self, document: TreeDocument, gathered: Gathered) -> None:
        from klaudit.readers.embedded import embedded_shell

        done: set[tuple[object, ...]] = set()
        for piece in embedded_shell(document):
            data = piece.source.data
            if b".sh" not in data and not self._may_launch(document.source.path, data):
                continue
            same = (piece.source.span(0, 0), data, piece.environment)
            if same in done:
                continue  # an alias leads to one script many times over
            done.add(same)
            environment = {name: value for name, value, _ in piece.environment if value is not None}
            follow = b".sh" in data and (bool(environment) or calls_scripts(data))
            self._shell(piece.source, gathered, _NO_IMPORTS, environment, follow)

    def _may_launch(self, path: str, data: bytes) -> bool:
        return self._screening.holds_a_word(data) or self._screening.may_start(path, data)

    def _markdown(self, source: Source, gathered: Gathered) -> None:
        from klaudit.readers.markdown import read_markdown

        for block in read_markdown(source):
            try:
                match block.language:
                    case "sh":
                        self._shell(block.source, gathered)
                    case "python":
                        self._python(block.source, gathered)
                    case "yaml" | "json" | "toml":
                        self._keys(block.source, gathered)
            except UnreadableError:
                continue  # documentation is full of snippets with "..." in them

    # --- parts of files ------------------------------------------------------------------------------------------------------------------

    def _commands(
        self, commands: Sequence[Command], source: Source, imports: tuple[str, ...], gathered: Gathered
    ) -> None:
        for at, command in enumerate(commands):
            started = invocation(command)
            if started is None:
                continue
            matches = self._matches(started, source.path)
            if matches:
                stray = _stray(command, commands[at + 1 : at + 40])
                launch = self._configurer.of_program(matches, started, source, imports, stray)
                gathered.launches.append(replace(launch, words=started.arguments, facts=command.taken))

    def _matches(self, started: Invocation, path: str) -> list[ProgramMatch]:
        found = self._index.programs(started)
        if found:
            best = self._configurer.most_certain([match.framework for match in found], path)
            return [match for match in found if match.framework is best]
        program = self._programs.file(started, path)
        used = [match for match in self._used_by(program) if fits(match.entry_point, started)] if program else []
        if used:
            return used
        if started.kind == "program":
            return []
        names = frozenset(_names(started.arguments))
        for match in self._best(self._index.naming(names), path)[:1] if names else ():
            entries = match.trainer.entry_points
            if not any(excepts(entry, started.target) for entry in entries):
                for entry in entries:
                    if entry.system in ("hydra", "dotlist", "inherit"):
                        return [ProgramMatch(match.framework, match.trainer, entry)]
        return []

    def _used_by(self, program: str) -> list[ProgramMatch]:
        """Trainers whose argument classes a script of the tree parses its command line into, or whose trainer it imports."""
        if not self._screening.reads_settings(program):
            return []
        document = self._classes.document(program)
        if document is None:
            return []
        symbols: list[str] = []
        for item in document.objects:
            if item.kind == "call" and item.symbol.rpartition(".")[2] in ("HfArgumentParser", "TrlParser"):
                for argument in item.arguments:
                    symbols += getattr(argument, "symbols", ())
        parsed: list[ProgramMatch] = []
        for symbol in symbols:
            lineage = self._classes.lineage(symbol, document)
            matches = self._index.using([symbol if lineage is None else lineage.symbol], by_parser=True)
            parsed += [replace(match, defaults=lineage.inherited) if lineage else match for match in matches]
        imported = [name for _, name in document.imports]
        return [*parsed, *self._index.using(imported, by_parser=False)]

    def _object(
        self, item: ConfigObject, document: PythonDocument, imports: tuple[str, ...], gathered: Gathered
    ) -> None:
        source = document.source
        if item.kind == "class" and any(
            each.kind == "call" and each.symbol == item.symbol for each in document.objects
        ):
            return  # judged where it is used, with what is given there
        if item.kind in ("call", "class"):
            if item.kind == "call" and (
                api := self._index.never_existed(item.symbol, (each.name for each in item.settings))
            ):
                gathered.phantoms.append(Phantom(*api, item))
            lineage = (
                self._classes.lineage(item.symbol, document) if item.kind == "call" else self._base(item, document)
            )
            if lineage is not None and (item.settings or item.forced or item.kind == "call"):
                launch = self._configurer.of_class(lineage, item, source, imports)
                if launch is not None:
                    gathered.launches.append(launch)
        elif item.kind in ("overrides", "assignments", "dict"):
            settings = typed(item.settings) if item.kind == "overrides" else item.settings
            names = frozenset(setting.name.lstrip("+~") for setting in settings)
            for match in self._best(self._index.naming(names), source.path)[:1]:
                launch = self._configurer.of_overrides(match, settings, item.span, source, item.symbol)
                if item.given:
                    launch = self._configurer.completed(launch, item)
                if launch is not None:
                    gathered.launches.append(launch)

    def _base(self, item: ConfigObject, document: PythonDocument) -> Lineage | None:
        for base in item.bases:
            if base != item.symbol and (lineage := self._classes.lineage(base, document)):
                return lineage
        return None

    def _best(self, matches: Sequence[FileMatch], path: str) -> list[FileMatch]:
        """The same keys can be those of several frameworks: the one counts that the tree says most about.  The first match first."""
        if not matches:
            return []
        best = self._configurer.most_certain([match.framework for match in matches], path)
        return [match for match in matches if match.framework is best]


def _names(words: Iterable[Word]) -> Iterator[str]:
    for word in words:
        name, equals, _ = word.shown.partition("=")
        if equals:
            yield name.lstrip("+~")


def _stray(command: Command, following: Iterable[Command]) -> list[Word]:
    """First words of the commands below that look like settings: what a cut command has lost."""
    words: list[Word] = []
    for each in following:
        if each.assumes != command.assumes or each.span.path != command.span.path or each.span.start < command.span.end:
            continue
        first = each.words[0]
        shown = first.shown
        if shown.startswith("--") or (
            "=" in shown and "." in shown.partition("=")[0] and "/" not in shown.partition("=")[0]
        ):
            words.append(first)
        else:
            break
    return words
