"""Matches -> launches: finds the version, applies the trainer's configuration system, says where the launch stands."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from klaudit.frameworks.classes import Classes, Lineage
from klaudit.frameworks.conditions import Lookup, holds
from klaudit.frameworks.detect import Detector, of_pin
from klaudit.frameworks.launch import Configuration, Launch
from klaudit.frameworks.pins import pins_in_text
from klaudit.frameworks.programs import Programs
from klaudit.frameworks.recognise import ClassMatch, FileMatch, ProgramMatch
from klaudit.frameworks.rules import Condition, Framework, Trainer
from klaudit.frameworks.systems.layered import LayeredConfiguration, Refused, Unseen
from klaudit.frameworks.systems.program import ProgramConfigurer
from klaudit.frameworks.versions import VersionRange, parse_version
from klaudit.model import FrameworkVersion, Setting, SetupKind, Span, Value
from klaudit.readers.document import Command, ConfigObject, TreeDocument, Word
from klaudit.readers.invocation import Invocation
from klaudit.readers.source import Source
from klaudit.tree import Tree


class Configurer:
    def __init__(
        self,
        tree: Tree,
        detector: Detector,
        programs: Programs,
        classes: Classes,
        packaged_keys: Mapping[str, frozenset[str]],
    ) -> None:
        self._detector = detector
        self._programs = programs
        self._systems = ProgramConfigurer(tree, detector, programs, classes, packaged_keys)
        self._installs: dict[tuple[str, str], FrameworkVersion | None] = {}

    def of_program(
        self,
        matches: Sequence[ProgramMatch],
        invocation: Invocation,
        source: Source,
        imports: tuple[str, ...],
        stray: Sequence[Word],
    ) -> Launch:
        """A command that starts one of the trainers `matches`, the first whose versions fit."""
        version = self._version(matches[0].framework, source)
        if version.source == "assumed" and (program := self._programs.file(invocation, source.path)) is not None:
            version = self._detector.version(matches[0].framework, program)
        match = _fitting(matches, version)
        configuration, config_name = self._systems.configure(match, invocation, source.path, version)
        if version.source == "assumed" and (older := newest_with(match, configuration.explicit_names())):
            version = FrameworkVersion(older, "assumed")
            match = _fitting(matches, version)
            configuration, config_name = self._systems.configure(match, invocation, source.path, version)
        return Launch(
            match.framework, match.trainer, match.entry_point, "launch", invocation.target, config_name,
            _head(invocation.target_word.site, invocation.command, source), "", invocation.command.assumes,
            _gone(configuration, invocation.target, match, version), imports, version, tuple(stray),
        )  # fmt: skip

    def of_class(self, lineage: Lineage, item: ConfigObject, source: Source, imports: tuple[str, ...]) -> Launch | None:
        """A config object of a framework's class, or of one of the tree that derives from it."""
        version = self._version(lineage.matches[0].framework, source)
        match = _fitting(lineage.matches, version)
        prefix = match.config_class.prefix
        own = [_prefixed(setting, prefix) for setting in _in_order(item, lineage)]
        only_with = {name.name for id in match.config_class.only_with for name in match.trainer.settings[id].names}
        if only_with and not any(setting.name in only_with for setting in own):
            return None
        inherited = {setting.name: setting for setting in (_prefixed(each, prefix) for each in lineage.inherited)}
        configuration: Configuration = LayeredConfiguration(own, inherited)
        if item.kind == "call" and item.open:  # `**given` may hold any of what is not spelled out
            place = _callee(item, source)
            configuration = Unseen(LayeredConfiguration(own), f"what {', '.join(item.open)} holds", place)
        if not _says(configuration, match.config_class.when, match.trainer):
            return None
        return Launch(
            match.framework, match.trainer, None, "code", lineage.symbol, "", _callee(item, source), item.symbol, (),
            _gone(configuration, lineage.symbol, match, version), imports, version,
        )  # fmt: skip

    def of_overrides(
        self,
        match: FileMatch,
        settings: Iterable[Setting],
        span: Span,
        source: Source,
        symbol: str,
        kind: SetupKind = "code",
    ) -> Launch:
        """Dotted settings given in code, over the trainer's defaults."""
        version = self._version(match.framework, source)
        configuration = LayeredConfiguration(settings)
        return Launch(
            match.framework, match.trainer, None, kind, source.path, "", span, symbol, (), configuration, (), version
        )

    def completed(self, launch: Launch, item: ConfigObject) -> Launch | None:
        """A launch by what code adds to a config object that it is given: what else that holds is unknown.

        None inside the framework's own source, whose programs complete the config of every launch that starts them.
        """
        if self._detector.is_source(launch.framework, item.span.path):
            return None
        return replace(launch, configuration=Unseen(launch.configuration, f"what {item.name} holds", item.span))

    def of_file(self, match: FileMatch, document: TreeDocument) -> Launch | None:
        """A config file that is a set-up of its own; None where its values say that it is not."""
        source = document.source
        version = self._version(match.framework, source)
        configuration, head = self._systems.file(match, document, version)
        if not _says(configuration, match.signature.when, match.trainer):
            return None
        return Launch(
            match.framework, match.trainer, None, "config", source.path, "", head, "", (), configuration, (), version
        )

    def inherited_keys(self, document: TreeDocument) -> frozenset[str]:
        """All dotted names that a config file has from the parents it names."""
        return self._systems.inherited_keys(document)

    def most_certain(self, frameworks: Sequence[Framework], path: str) -> Framework:
        """Of frameworks with the same entry points, the one that the tree says most about; of equals the original, then the first."""
        certainty = ("option", "vendored", "lockfile", "requirement", "assumed")
        return min(
            frameworks,
            key=lambda each: (certainty.index(self._detector.version(each, path).source), bool(each.derived_from)),
        )

    def _version(self, framework: Framework, source: Source) -> FrameworkVersion:
        version = self._detector.version(framework, source.path)
        if version.source in ("requirement", "assumed"):
            return self._installed(framework, source) or version
        return version

    def _installed(self, framework: Framework, source: Source) -> FrameworkVersion | None:
        """The version that the file itself installs; looked for once a file, which may hold thousands of launches."""
        key = (framework.id, source.path)
        if key not in self._installs:
            root = source
            while root.parent is not None:
                root = root.parent
            lowered = root.data.lower() if b"install" in root.data else b""
            pin = None
            if any(name.encode() in lowered for name in framework.distributions):
                pin = pins_in_text(framework, root.data.decode("utf-8", "replace"), source.path)
            self._installs[key] = of_pin(framework, pin) if pin is not None else None
        return self._installs[key]


_Match = TypeVar("_Match", ProgramMatch, ClassMatch)


def _fitting(matches: Sequence[_Match], version: FrameworkVersion) -> _Match:
    """The first match that exists in this version; where none does, the first, whose launch is then refused."""
    release = parse_version(version.value)
    return next(
        (match for match in matches if release in match.trainer.versions and release in _marks(match)), matches[0]
    )


def newest_with(match: ProgramMatch, given: Iterable[str]) -> str | None:
    """The newest release that has all the settings given, where the newest of all has not: better than to assume that one."""
    ranges = [
        [name.versions for spec in match.trainer.settings.values() for name in spec.names if name.name == each]
        for each in set(given)
    ]
    ranges = [each for each in ranges if each]
    names = match.framework.release_names
    for name, release in zip(reversed(names), reversed(match.framework.releases), strict=True):
        if all(any(release in versions for versions in each) for each in ranges):
            return name if name != names[-1] else None
    return None


def _says(configuration: Configuration, condition: Condition | None, trainer: Trainer) -> bool:
    """Whether what is set by hand, or unknown, agrees with a condition."""

    def setting(id: str) -> Setting | None:
        found = (configuration.get(name.name) for name in trainer.settings[id].names)
        return next((each for each in found if each is not None), None)

    def value(id: str) -> Value:
        found = setting(id)
        return None if found is None else found.value

    return holds(condition, Lookup(value, lambda id: setting(id) is not None)) is not False


def _marks(match: ProgramMatch | ClassMatch) -> VersionRange:
    return match.entry_point.versions if isinstance(match, ProgramMatch) else match.config_class.versions


def _gone(
    configuration: Configuration, launch_of: str, match: ProgramMatch | ClassMatch, version: FrameworkVersion
) -> Configuration:
    """The configuration, refused where this version has no such entry point or class."""
    release = parse_version(version.value)
    for versions in (_marks(match), match.trainer.versions):
        if release not in versions:
            return Refused(
                configuration,
                f"{match.framework.title} {version.value} has no {launch_of} (it exists in {versions.text})",
            )
    return configuration


def _head(span: Span, command: Command, source: Source) -> Span:
    """The place of a launch in the file that is scanned, which need not be the one that spells the command."""
    for candidate in (span, command.span, command.called_at):
        if candidate is not None and candidate.path == source.path:
            return candidate
    name = os.fsencode(command.span.path.rpartition("/")[2])  # the script that is called or sourced here
    at = source.data.find(name)
    return source.span(at, at + len(name)) if at >= 0 else source.span(0, 0)


def _in_order(item: ConfigObject, lineage: Lineage) -> list[Setting]:
    """What is given, what constructors set in spite of it, and what is assigned to the made object."""
    # what stands above the call comes with it: from a dict that is unfolded, a partial that is completed
    is_given = [item.kind == "call" and each.span.start < item.span.end for each in item.settings]
    if item.kind == "class":
        return [*item.settings, *lineage.forced, *item.forced]
    given = [each for each, inside in zip(item.settings, is_given, strict=True) if inside]
    later = [each for each, inside in zip(item.settings, is_given, strict=True) if not inside]
    return [*given, *lineage.forced, *later]


def _callee(item: ConfigObject, source: Source) -> Span:
    """The name that is called or defined, without what follows it."""
    span = item.span
    root = source
    while root.parent is not None:
        root = root.parent
    text = root.data[span.start : span.end]
    end = min((at for at in (text.find(b"("), text.find(b"\n")) if at > 0), default=len(text))
    if end == len(text):
        return span
    shown = text[:end].decode("utf-8", "replace")
    return replace(span, end=span.start + end, end_line=span.line, end_column=span.column + len(shown))


def _prefixed(setting: Setting, prefix: str) -> Setting:
    return replace(setting, name=f"{prefix}.{setting.name}") if prefix else setting
