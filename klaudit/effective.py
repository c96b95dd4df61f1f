"""The options in force: those of the configuration file, overruled by what was given, and every name in them known."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from klaudit.configuration import COMMAND_LINE, Configuration, ConfigurationError, SettingsFile, find, load
from klaudit.corrections import did_you_mean
from klaudit.discover.targets import repository_of
from klaudit.globs import Globs, refusal
from klaudit.policy import PerPath

_LISTS = {"rule": "; `klaudit explain` lists them", "framework": "; `klaudit frameworks` lists them"}


def effective(
    root: str,
    *,
    config: str | None = None,
    isolated: bool = False,
    select: tuple[str, ...] | None = None,
    ignore: tuple[str, ...] | None = None,
    exclude: Sequence[str] = (),
    **given: object,
) -> Configuration:
    """The configuration of a scan of the folder `root`.

    `config` names the file to use in place of the nearest one, `isolated` asks for none.  `given` holds further fields of Options; None
    stands for one that was not given.  Raises ConfigurationError for a file that cannot be used and for unknown rules or frameworks,
    RulesError where the framework rules are broken.
    """
    configuration = configuration_for(root, config, isolated=isolated)
    if select is not None or ignore is not None:  # a selection starts afresh, without one more is ignored
        ignore = (*(configuration.options.ignore if select is None else ()), *(ignore or ()))
    per_path = _per_path(configuration, select=select, ignore=ignore, **given)
    if not isolated:
        file = SettingsFile(configuration.path, is_named=config is not None)
        configuration = replace(configuration, options=replace(configuration.options, settings_file=file))
    configuration = configuration.overruled(
        select=select, ignore=ignore, per_path=per_path, exclude=_excludes(exclude, configuration, root), **given
    )
    _check_frameworks(configuration)
    _check_rules(configuration)
    return configuration


def configuration_for(root: str, config: str | None, *, isolated: bool) -> Configuration:
    """What the file named, or else the nearest one to `root`, says.  Raises ConfigurationError for one that cannot be used."""
    if config is not None and isolated:
        raise ConfigurationError(None, None, "`config` and `isolated` exclude each other")
    if config is not None:
        return load(config, trusted=True, patterns_from=_patterns_from(config, root))
    file = None if isolated else find(os.path.realpath(root))
    return Configuration() if file is None else load(file)


def _patterns_from(config: str, root: str) -> str | None:
    """A file from outside the repository names paths of the repository; None for one whose own folder they are meant from."""
    folder, root = Path(os.path.realpath(config)).parent, os.path.realpath(root)
    repository = repository_of(root)
    if folder.is_relative_to(repository or root) or (repository is None and Path(root).is_relative_to(folder)):
        return None
    return repository or root


def _excludes(patterns: Sequence[str], configuration: Configuration, root: str) -> tuple[Globs, ...] | None:
    """Those of the file and those given, which may be meant from the scanned folder or from the working directory."""
    if not patterns:
        return None
    for pattern in patterns:
        if problem := refusal(pattern):
            raise ConfigurationError(None, None, f"exclude: `{pattern}` is no usable pattern: {problem}")
    bases = dict.fromkeys((root, os.path.realpath(".")))
    return (*configuration.options.exclude, *(Globs(base, tuple(patterns)) for base in bases))


def _per_path(configuration: Configuration, **given: object) -> tuple[PerPath, ...] | None:
    """What is left to say for single paths: what was given holds everywhere, but a longer `ignore` only adds."""
    parts = configuration.options.per_path
    gone = {field for field in ("fail_on", "select", "min_confidence", "require") if given.get(field) is not None}
    ignore = given.get("ignore")
    more = ignore if isinstance(ignore, tuple) and "select" not in gone else ()
    if not parts or not (gone or more):
        return None
    if "select" in gone:
        gone.add("ignore")
    changed = [replace(part, **dict.fromkeys(gone)) for part in parts]
    return tuple(part if part.ignore is None else replace(part, ignore=(*part.ignore, *more)) for part in changed)


def _check_frameworks(configuration: Configuration) -> None:
    options = configuration.options
    if not options.frameworks and not options.framework_versions:
        return
    from klaudit.frameworks.load import load_frameworks

    known = [framework.id for framework in load_frameworks(options.rules)]
    for field, names in (("frameworks", options.frameworks), ("framework_versions", options.framework_versions)):
        _refuse(configuration, field, [name for name in names if name not in known], known, "framework")


def _check_rules(configuration: Configuration) -> None:
    options = configuration.options
    selectors = {
        "select": options.select,
        "ignore": options.ignore,
        "per_file_ignores": tuple(each for ignores in options.per_file_ignores for each in ignores.selectors),
        "severity": tuple(options.severity),
        "per_path": tuple(
            each for part in options.per_path for each in (*(part.select or ()), *(part.ignore or ()), *part.severity)
        ),
        "allow": tuple(each for allowed in options.allow for each in allowed.rules),
    }
    if not any(selectors.values()):
        return
    from klaudit.findings import catalogue
    from klaudit.findings.selection import unknown_selectors

    known = [*catalogue.names(), *catalogue.names().values()]
    for field, given in selectors.items():
        unknown = [each for each in unknown_selectors(given) if each.upper() != "ALL"]
        _refuse(configuration, field, unknown, known, "rule")


def _refuse(configuration: Configuration, field: str, unknown: Sequence[str], known: Iterable[str], what: str) -> None:
    if unknown:
        path, line = _place(configuration.origins.get(field, COMMAND_LINE))
        hint = did_you_mean(unknown[0], known) or _LISTS[what]
        raise ConfigurationError(path, line, f"unknown {what} `{unknown[0]}`{hint}")


def _place(origin: str) -> tuple[str | None, int | None]:
    """An origin `path:line` or `path`, taken apart; nothing for what was not read from a file."""
    if origin == COMMAND_LINE:
        return None, None
    path, _, line = origin.rpartition(":")
    return (path, int(line)) if path and line.isdigit() else (origin, None)
