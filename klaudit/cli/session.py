"""From what was given to a report: configuration, targets, the scan with its progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from klaudit.cli.parameters import Failure, Given
from klaudit.cli.progress import shown_progress
from klaudit.configuration import Configuration, ConfigurationError, StandardInput, find, load
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
    def start(cls, given: Given, **more: object) -> Session:
        """Reads the configuration; `more` are options of single commands.  Raises Failure for what cannot be used."""
        stdin = _standard_input(given)
        base = Configuration().overruled(stdin=stdin)
        targets = locate(given.paths, base.options)
        configuration = configuration_for(targets.root, given.config, isolated=given.isolated)
        if more.get("select") is not None:
            configuration = configuration.overruled(ignore=())  # a selection on the command line starts afresh
        given_ignore, more["ignore"] = more.get("ignore"), None
        configuration = configuration.overruled(
            **more,
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
        if isinstance(given_ignore, tuple):
            configuration = configuration.overruled(ignore=(*configuration.options.ignore, *given_ignore))
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
            self._check("frameworks", options.frameworks, known, "framework")
            self._check("framework_versions", options.framework_versions, known, "framework")
        per_file = [selector for ignores in options.per_file_ignores for selector in ignores.selectors]
        if options.select or options.ignore or per_file:
            from klaudit.findings import catalogue
            from klaudit.findings.selection import unknown_selectors

            names = catalogue.names()
            for field, selectors in (
                ("select", options.select),
                ("ignore", options.ignore),
                ("per_file_ignores", per_file),
            ):
                unknown = [each for each in unknown_selectors(selectors) if each.upper() != "ALL"]
                self._check(field, unknown, [*names, *names.values()], "rule")

    def _check(self, field: str, given: Iterable[str], known: Iterable[str], what: str) -> None:
        known = list(known)
        for name in given:
            if name not in known:
                origin = self.configuration.origins.get(field, "command line")
                place = "" if origin == "command line" else f"{origin}: "
                hint = did_you_mean(name, known) or "; `klaudit explain` lists them"
                raise Failure(f"{place}unknown {what} `{name}`{hint}")


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
