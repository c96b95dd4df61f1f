"""`klaudit config`: the effective configuration, as a configuration file that would give it."""

from __future__ import annotations

import json
import os

import click

from klaudit.cli.output import write
from klaudit.cli.parameters import Failure
from klaudit.configuration import Configuration, Options
from klaudit.configuration_file import KEYS
from klaudit.effective import configuration_for
from klaudit.globs import Globs
from klaudit.policy import Allowed, PerPath
from klaudit.reports.visible import visible


@click.command()
@click.argument("path", default=".")
@click.option("--config", type=click.Path(), metavar="FILE", help="Configuration file, instead of the nearest one.")
@click.option("--isolated", is_flag=True, help="Use no configuration file: shows the defaults.")
def command(path: str, config: str | None, isolated: bool) -> None:
    """Show the configuration that a scan of PATH (by default the working directory) would use, and where each value comes from."""
    from klaudit.discover import locate

    targets = locate([path], Options())
    if targets.problems:
        raise Failure(f"{path}: {targets.problems[0].message}")
    configuration = configuration_for(targets.root, config, isolated=isolated)
    write(_lines(configuration))


def _lines(configuration: Configuration) -> list[str]:
    options = configuration.options
    tables: dict[str, dict[str, object]] = {
        "framework-versions": dict(options.framework_versions),
        "per-file-ignores": {
            pattern: list(ignores.selectors)
            for ignores in options.per_file_ignores
            for pattern in ignores.globs.patterns
        },
        "severity": dict(options.severity),
    }
    arrays: dict[str, list[dict[str, object]]] = {
        "per-path": [_per_path(each) for each in options.per_path],
        "allow": [_allowed(each) for each in options.allow],
    }
    lines = [f"# {visible(configuration.path or 'no configuration file: defaults')}\n"]
    for key, field in KEYS.items():
        if key not in tables and key not in arrays and getattr(options, field) is not None:
            lines.append(f"{key} = {json.dumps(_plain(getattr(options, field)))}  # {_origin(configuration, field)}\n")
    for key, rows in tables.items():
        lines.append(f"\n[{key}]  # {_origin(configuration, KEYS[key])}\n")
        lines += [f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in rows.items()]
    for key, entries in arrays.items():
        for entry in entries:
            lines.append(f"\n[[{key}]]  # {_origin(configuration, KEYS[key])}\n")
            lines += [f"{name} = {_toml(value)}\n" for name, value in entry.items() if value not in (None, (), {})]
    return lines


def _per_path(part: PerPath) -> dict[str, object]:
    return {
        "paths": part.globs.patterns,
        "fail-on": part.fail_on,
        "select": part.select,
        "ignore": part.ignore,
        "min-confidence": part.min_confidence,
        "severity": dict(part.severity),
        "require": part.require,
    }


def _allowed(allowed: Allowed) -> dict[str, object]:
    paths = allowed.globs.patterns if allowed.globs is not None else ()
    return {"rule": allowed.rules, "setup": allowed.setups, "paths": paths, "reason": allowed.reason}


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {json.dumps(item)}" for name, item in value.items()) + "}"
    return json.dumps(value)


def _origin(configuration: Configuration, field: str) -> str:
    return visible(configuration.origins.get(field, "default"))


def _plain(value: object) -> object:
    """A value of Options as the file would write it."""
    if isinstance(value, tuple):
        return [word for item in value for word in (item.patterns if isinstance(item, Globs) else [item])]
    if value == 0 and not isinstance(value, bool):
        return os.cpu_count() or 1  # jobs
    return value
