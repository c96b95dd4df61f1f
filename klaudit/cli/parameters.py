"""Options that commands share, and types of options that say what was meant."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import fields

from klaudit.budget import FILE_TIMEOUT
from klaudit.corrections import did_you_mean, version_problem
from klaudit.reports.visible import visible


class Failure(click.ClickException):
    """Something that ends the command with status 2 and a message."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(visible(message))  # it may quote a scanned repository's configuration


if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not generic before click 8.2


class OneOf(_Choice):
    """A choice that suggests the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(super().convert(value, param, ctx))
        except click.BadParameter:
            choices = [str(choice) for choice in self.choices]
            self.fail(f"{value!r} is not one of {', '.join(choices)}{_hint(str(value), choices)}", param, ctx)


def words(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """Callback of a repeatable option: `a,b` are two words; None where the option was not given."""
    return tuple(word for value in values for part in value.split(",") if (word := part.strip())) or None


def versions(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """Callback of a repeatable option of the form `verl=0.7.0`."""
    given: dict[str, str] = {}
    for value in values:
        framework, sign, version = (part.strip() for part in value.partition("="))
        if not sign or not framework:
            raise click.BadParameter(f"{value!r} should look like verl=0.7.0", ctx, param)
        if problem := version_problem(version):
            raise click.BadParameter(problem, ctx, param)
        given[framework] = version
    return given or None


def setup_names(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """Callback of a repeatable option that takes names of set-ups."""
    from klaudit.theory.naming import SETUP_NAMES

    given = words(ctx, param, values)
    for name in given or ():
        if name not in SETUP_NAMES:
            hint = did_you_mean(name, SETUP_NAMES) or f": known are {', '.join(SETUP_NAMES)}"
            raise click.BadParameter(f"{name!r} is no set-up{hint}", ctx, param)
    return given


def _hint(value: str, known: list[str]) -> str:
    hint = did_you_mean(value, known)
    return hint if hint.startswith(": did") else ""


class Given(Struct, frozen=True):
    """What was given on the command line to any command that scans; None where an option was not given."""

    paths: tuple[str, ...]
    frameworks: tuple[str, ...] | None
    framework_versions: Mapping[str, str] | None
    exclude: tuple[str, ...]
    include_markdown: bool | None
    jobs: int | None
    no_prefilter: bool
    force_exclude: bool
    no_suppressions: bool
    config: str | None
    isolated: bool
    stdin_filename: str | None
    timeout: float | None
    file_timeout: float
    color: str
    quiet: bool
    verbose: bool


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("paths", nargs=-1, metavar="[PATH]..."),
    click.option("--framework", "frameworks", multiple=True, callback=words, metavar="NAME", help="Only this framework. Repeatable."),
    click.option(
        "--framework-version", "framework_versions", multiple=True, callback=versions, metavar="NAME=VERSION",
        help="Version to judge by, e.g. verl=0.7.0, whatever the tree says. Repeatable.",
    ),
    click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out what matches, as in .gitignore. Repeatable."),
    click.option("--include-markdown", is_flag=True, default=None, help="Also look at fenced code in Markdown files."),
    click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes to use; by default as many as there are cores."),
    click.option("--no-prefilter", is_flag=True, help="Parse every file, also those that hold no word of interest."),
    click.option("--force-exclude", is_flag=True, help="Leave out excluded files even if they are named."),
    click.option("--no-suppressions", is_flag=True, help="Take no notice of `# klaudit: ignore[...]` comments."),
    click.option("--config", type=click.Path(), metavar="FILE", help="Configuration file, instead of the nearest one."),
    click.option("--isolated", is_flag=True, help="Use no configuration file."),
    click.option("--stdin-filename", metavar="NAME", help="Name of what `-` reads from standard input; its suffix says what it is."),
    click.option(
        "--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Time for the whole scan.  [default: no limit]",
    ),
    click.option(
        "--file-timeout", type=click.FloatRange(0), default=FILE_TIMEOUT, show_default=True, metavar="SECONDS",
        help="Time for one file, 0 for no limit. One that takes longer is an error, and the others are still scanned.",
    ),
    click.option("--color", type=OneOf(("auto", "always", "never")), default="auto", show_default=True, help="When to use colours."),
    click.option("--quiet", "-q", is_flag=True, help="Only the rows, one line each."),
    click.option("--verbose", "-v", is_flag=True, help="Everything, and tracebacks of klaudit's own faults."),
)  # fmt: skip


def scans(function: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of everything that scans; it receives them as its first argument, a `Given`."""

    @functools.wraps(function)
    def gather(**values: Any) -> None:
        values["paths"] = values["paths"] or (".",)
        function(Given(**{field.name: values.pop(field.name) for field in fields(Given)}), **values)

    for option in reversed(_OPTIONS):
        option(gather)
    return gather
