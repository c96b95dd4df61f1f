"""From what was given to a report: configuration, targets, the scan with its progress bar."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from klaudit.cli.alarm import ends_after
from klaudit.cli.parameters import Failure, Given
from klaudit.cli.progress import shown_progress
from klaudit.configuration import Configuration, FailOn, Options, StandardInput
from klaudit.discover import Targets, locate
from klaudit.discover.targets import repository_of
from klaudit.effective import effective
from klaudit.model import Confidence, Report
from klaudit.tree import MAX_BYTES


class Session(Struct, frozen=True):
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
        baseline: str | None = None,
        diff_base: str | None = None,
        min_confidence: Confidence | None = None,
        require: tuple[str, ...] | None = None,
    ) -> Session:
        """Reads the configuration; what was given overrules it.  Raises Failure or KlauditError for what cannot be used."""
        stdin = _standard_input(given)
        targets = locate(given.paths, Options(stdin=stdin))
        configuration = effective(
            targets.root,
            config=given.config,
            isolated=given.isolated,
            select=select,
            ignore=ignore,
            exclude=given.exclude,
            fail_on=fail_on,
            baseline=baseline,
            diff_base=diff_base,
            min_confidence=min_confidence,
            require=require,
            suppressions=False if given.no_suppressions else None,
            stdin=stdin,
            frameworks=given.frameworks,
            framework_versions=given.framework_versions,
            include_markdown=given.include_markdown,
            jobs=given.jobs,
            prefilter=False if given.no_prefilter else None,
            force_exclude=True if given.force_exclude else None,
            timeout=given.timeout,
            file_timeout=given.file_timeout or None,
            verbose=True if given.verbose else None,
        )
        return cls(given, configuration, targets)

    def refuse_ways_out(self) -> None:
        """To be asked before files are changed: raises Failure where what was named lies behind a link that leads out of its repository.

        Whoever names `*.sh` means the files that are there.
        """
        here = os.path.realpath(".")
        top = Path(repository_of(here) or here)
        for path in self.given.paths:
            named = Path(os.path.normpath(os.path.join(here, path)))
            if named.is_relative_to(top) and not Path(os.path.realpath(named)).is_relative_to(top):
                raise Failure(f"{path}: nothing is written through a symbolic link that leads out of {top}")

    def scan(self, **changes: Any) -> Report:
        """Runs the pipeline, with `changes` to the options.  Raises KlauditError for what the caller can mend."""
        from klaudit import engine

        with ends_after(self.given.timeout), shown_progress(self.given.quiet) as progress:
            return engine.scan(self.given.paths, replace(self.configuration.options, **changes), progress)


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
