"""The library: what `klaudit scan` finds, as records."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias, get_args

from klaudit.configuration import ConfigurationError, Options
from klaudit.corrections import did_you_mean, version_problem
from klaudit.discover import locate
from klaudit.effective import effective
from klaudit.model import Confidence, Report
from klaudit.theory.naming import SETUP_NAMES

PathLike: TypeAlias = str | os.PathLike[str]


def scan(
    path: PathLike = ".",
    *more: PathLike,
    select: Collection[str] | None = None,
    ignore: Collection[str] | None = None,
    exclude: Collection[str] = (),
    frameworks: Collection[str] | None = None,
    framework_versions: Mapping[str, str] | None = None,
    include_markdown: bool | None = None,
    min_confidence: Confidence | None = None,
    require: Collection[str] | None = None,
    baseline: PathLike | None = None,
    diff_base: str | None = None,
    config: PathLike | None = None,
    isolated: bool = False,
    timeout: float | None = None,
    file_timeout: float | None = None,
    jobs: int = 1,
) -> Report:
    """Scans files and folders, and returns what counts, what was withheld and why, and every set-up with its terms.

    Reads the files below the paths, what they refer to in the same tree, and the nearest configuration file; with `diff_base` also the
    repository's history.  Never writes, and never runs or imports what it reads.  Relative names are meant from the working directory.

    Args:
        path: A file or folder.  A file is judged as part of its repository.
        more: Further ones; paths in the report are POSIX and relative to the folder that all of them share.
        select: Only these rules: ids, beginnings of ids (`KLA1`) or names.  None leaves it to the configuration, as everywhere below.
        ignore: Not these rules.
        exclude: Files to leave out, as in .gitignore, besides those of the configuration.
        frameworks: Only these frameworks, by id.
        framework_versions: Versions to judge by, whatever the tree says: `{"verl": "0.7.0"}`.
        include_markdown: Whether fenced code in Markdown files is looked at.
        min_confidence: The least confidence that counts.
        require: Set-ups of which every one must be one (`k1-in-reward`, `unbiased` ...); whatever else trains is a finding.
        baseline: A file of known findings, as `klaudit baseline write` makes it; they are withheld.
        diff_base: A commit, branch or tag; what has not changed since is withheld.
        config: The configuration file, in place of the nearest one.
        isolated: Use no configuration file.
        timeout: Seconds for the whole scan; what could not be read in time is told in `Report.remarks` or `Report.errors`.
        file_timeout: Seconds for one file.
        jobs: Processes to use, 0 for one per core.  More than one forks, which a program with threads should not do.

    Returns:
        The report.  Files and paths that cannot be read are rows of `Report.errors`: a scan with such rows is not a clean one.

    Raises:
        ConfigurationError: Options or a configuration file that cannot be used, unknown rules and frameworks.
        RulesError: Broken framework files in the folders that the configuration names.
        KlauditError: The root of these and of whatever else can be mended, such as an unknown commit.
        TypeError: A plain string where several are meant.
    """
    from klaudit import engine

    paths = [os.fspath(each) for each in (path, *more)]
    _refuse_unusable(min_confidence, require or (), framework_versions or {}, jobs, (timeout, file_timeout))
    configuration = effective(
        locate(paths, Options()).root,
        config=None if config is None else os.fspath(config),
        isolated=isolated,
        select=_words("select", select),
        ignore=_words("ignore", ignore),
        exclude=_words("exclude", exclude) or (),
        frameworks=_words("frameworks", frameworks),
        framework_versions=framework_versions,
        include_markdown=include_markdown,
        min_confidence=min_confidence,
        require=_words("require", require),
        baseline=None if baseline is None else os.fspath(baseline),
        diff_base=diff_base,
        timeout=timeout,
        file_timeout=file_timeout,
        jobs=jobs,
    )
    return engine.scan(paths, configuration.options)


def _words(name: str, values: Collection[str] | None) -> tuple[str, ...] | None:
    if isinstance(values, str):
        raise TypeError(f"{name} takes several strings, not one: [{values!r}]")
    return None if values is None else tuple(values)


def _refuse_unusable(
    min_confidence: str | None,
    required: Iterable[str],
    versions: Mapping[str, str],
    jobs: int,
    timeouts: Iterable[float | None],
) -> None:
    """What the command line and the configuration file refuse while they are read.  Raises ConfigurationError."""
    confidences = get_args(Confidence)
    problems = [version_problem(version) for version in versions.values()]
    if min_confidence is not None and min_confidence not in confidences:
        problems.append(f"min_confidence must be one of {', '.join(confidences)}, not {min_confidence!r}")
    for name in required:
        if name not in SETUP_NAMES:
            problems.append(f"unknown set-up `{name}` in require{did_you_mean(name, SETUP_NAMES)}")
    if not 0 <= jobs <= 1024:
        problems.append(f"jobs must be a number from 0 to 1024, not {jobs!r}")
    for each in timeouts:
        if each is not None and not 0 < each < float("inf"):
            problems.append(f"a timeout must be a positive number of seconds, not {each!r}")
    for problem in problems:
        if problem is not None:
            raise ConfigurationError(None, None, problem)
