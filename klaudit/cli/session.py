"""From what was given to a report: configuration, targets, the scan with its progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from klaudit.cli.parameters import Failure, Given
from klaudit.cli.progress import shown_progress
from klaudit.configuration import (
    COMMAND_LINE,
    Configuration,
    ConfigurationError,
    FailOn,
    Options,
    StandardInput,
    find,
    load,
)
from klaudit.configuration_file import did_you_mean
from klaudit.discover import Targets, locate
from klaudit.globs import Globs, refusal
from klaudit.model import Report
from klaudit.tree import MAX_BYTES


@dataclass(frozen=True, slots=True)
class Session:
    """One run: what was given, what that makes together with the configuration file, and what is looked at."""

    given: Given
    configuration: Configuration
    targets: Targets

    @classmethod
    def start(
        cls,
        given: Given,
        *,
        select: tuple[str, ...] | None = None,
        ignore: tuple[str, ...] | None = None,
        fail_on: FailOn | None = None,
    ) -> Session:
        """Reads the configuration; what was given overrules it.  Raises Failure for what cannot be used."""
        stdin = _standard_input(given)
        targets = locate(given.paths, Options(stdin=stdin))
        configuration = configuration_for(targets.root, given.config, isolated=given.isolated)
        if select is not None or ignore is not None:  # a selection starts afresh, without one more is ignored
            ignore = (*(configuration.options.ignore if select is None else ()), *(ignore or ()))
        configuration = configuration.overruled(
            select=select,
            ignore=ignore,
            fail_on=fail_on,
            stdin=stdin,
            frameworks=given.frameworks,
            framework_versions=given.framework_versions,
            exclude=_excludes(given, configuration, targets.root),
            include_markdown=given.include_markdown,
            jobs=given.jobs,
            prefilter=False if given.no_prefilter else None,
            force_exclude=True if given.force_exclude else None,
            verbose=True if given.verbose else None,
        )
        session = cls(given, configuration, targets)
        session._check_names()
        return session

    def scan(self) -> Report:
        """Runs the pipeline.  Raises Failure where the rules themselves are broken."""
        from klaudit import engine
        from klaudit.frameworks.load import RulesError

        with shown_progress(self.given.quiet) as progress:
            try:
                return engine.scan(self.given.paths, self.configuration.options, progress)
            except RulesError as error:
                raise Failure(str(error)) from None

    def _check_names(self) -> None:
        options = self.configuration.options
        if options.frameworks or options.framework_versions:
            known = known_frameworks(options.rules)
            for field, names in (
                ("frameworks", options.frameworks),
                ("framework_versions", options.framework_versions),
            ):
                self._refuse(field, [name for name in names if name not in known], known, "framework")
        per_file = tuple(selector for ignores in options.per_file_ignores for selector in ignores.selectors)
        if options.select or options.ignore or per_file:
            from klaudit.findings import catalogue
            from klaudit.findings.selection import unknown_selectors

            rules = [*catalogue.names(), *catalogue.names().values()]
            for field, selectors in (
                ("select", options.select),
                ("ignore", options.ignore),
                ("per_file_ignores", per_file),
            ):
                unknown = [each for each in unknown_selectors(selectors) if each.upper() != "ALL"]
                self._refuse(field, unknown, rules, "rule")

    def _refuse(self, field: str, unknown: Sequence[str], known: Iterable[str], what: str) -> None:
        if unknown:
            origin = self.configuration.origins.get(field, COMMAND_LINE)
            place = "" if origin == COMMAND_LINE else f"{origin}: "
            lists = {"rule": "; `klaudit explain` lists them", "framework": "; `klaudit frameworks` lists them"}
            raise Failure(f"{place}unknown {what} `{unknown[0]}`{did_you_mean(unknown[0], known) or lists[what]}")


def known_frameworks(rules: tuple[str, ...]) -> list[str]:
    """Ids of the frameworks of the shipped and the further rules.  Raises Failure for broken rules."""
    from klaudit.frameworks.load import RulesError, load_frameworks

    try:
        return [framework.id for framework in load_frameworks(rules)]
    except RulesError as error:
        raise Failure(str(error)) from None


def configuration_for(root: str, config: str | None, *, isolated: bool) -> Configuration:
    """What the file named, or else the nearest one to `root`, says.  Raises Failure for one that cannot be used."""
    if config is not None and isolated:
        raise Failure("--config and --isolated exclude each other")
    try:
        if config is not None:
            return load(config, trusted=True)
        file = None if isolated else find(os.path.realpath(root))
        return Configuration() if file is None else load(file)
    except ConfigurationError as error:
        raise Failure(str(error)) from None


def _excludes(given: Given, configuration: Configuration, root: str) -> tuple[Globs, ...] | None:
    """Those of the file and those given, which may be meant from the scanned folder or from the working directory."""
    if not given.exclude:
        return None
    for pattern in given.exclude:
        if problem := refusal(pattern):
            raise Failure(f"--exclude: `{pattern}` is no usable pattern: {problem}")
    bases = dict.fromkeys((root, os.path.realpath(".")))
    return (*configuration.options.exclude, *(Globs(base, given.exclude) for base in bases))


def _standard_input(given: Given) -> StandardInput | None:
    if "-" not in given.paths:
        if given.stdin_filename is not None:
            raise Failure("--stdin-filename goes with the path `-`")
        return None
    if len(given.paths) > 1:
        raise Failure("`-` (standard input) must be the only path")
    if given.stdin_filename is None:
        raise Failure("`-` needs --stdin-filename: its suffix says what is read, e.g. --stdin-filename run.sh")
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Failure(f"standard input is larger than {MAX_BYTES // 1_000_000} MB")
    return StandardInput(given.stdin_filename, data)
