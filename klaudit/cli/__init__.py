"""The command line: `klaudit COMMAND ...`.  Only what every command needs is imported here; start-up time is a feature."""

from __future__ import annotations

import gc
import io
import os
import sys

import click

from klaudit import __version__
from klaudit.cli.group import Commands
from klaudit.errors import KlauditError

INTERRUPTED = 130
FAILED = 2
_VERBOSE = {"--verbose", "-v"}
# Modules and rules are many objects that live to the end: by default the collector looks through all of them several times in vain.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000

# name -> (module that has it as `command`, what it is for).  Help lists them from here, without importing any.
COMMANDS = {
    "scan": ("klaudit.cli.scan", "Find KL penalties and say what is wrong with them."),
    "setups": ("klaudit.cli.setups", "List every set-up with the KL terms it trains with."),
    "fix": ("klaudit.cli.fix", "Migrate biased KL penalties, as a patch or in place."),
    "explain": ("klaudit.cli.explain", "Explain a finding, or list all of them."),
    "frameworks": ("klaudit.cli.frameworks", "Say which frameworks and versions are known."),
    "verify": ("klaudit.cli.verify", "Check the verdicts on tensors (needs klaudit[tensor])."),
    "baseline": ("klaudit.cli.baseline", "Keep a file of known findings, so that only new ones count."),
    "suppress": ("klaudit.cli.suppress", "Write comments that suppress findings, or remove unused ones."),
    "config": ("klaudit.cli.config", "Show the effective configuration and its origins."),
    "init": ("klaudit.cli.init", "Set klaudit up: configuration, hook, pipeline, baseline."),
}


@click.group(
    cls=Commands,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="Exit status: 0 nothing found, 1 findings, 2 wrong usage, unreadable input or a fault of klaudit.",
)
@click.version_option(__version__, message="%(prog)s %(version)s", prog_name="klaudit")
def cli() -> None:
    """Find, judge and migrate KL penalties in RL training of language models."""


def main() -> int:
    """Runs the command line.  Returns the exit status; what goes wrong is told without a traceback unless --verbose asks for one."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        status = cli.main(prog_name="klaudit", standalone_mode=False)
    except click.ClickException as error:  # wrong usage, among others
        told = io.StringIO()
        error.show(file=told)
        click.echo(_inert(told.getvalue()), nl=False, err=True)
        status = FAILED
    except KlauditError as error:
        _tell(error)
        status = FAILED
    except (KeyboardInterrupt, click.Abort):
        status = INTERRUPTED
    except Exception as error:
        status = FAILED
        _tell_fault(error)
    _flush()
    return int(status or 0)


def _tell(error: KlauditError) -> None:
    from klaudit.reports.visible import visible

    click.echo(f"Error: {visible(str(error))}", err=True)  # one line, whatever a repository's configuration holds


def _tell_fault(error: Exception) -> None:
    if not _VERBOSE.isdisjoint(sys.argv):
        import traceback

        traceback.print_exception(error)
    else:
        click.echo(f"klaudit: internal error: {type(error).__name__}: {_inert(str(error))}", err=True)
        click.echo("Please report it, with what was scanned and what --verbose shows.", err=True)


def _inert(text: str) -> str:
    """Text that may quote a name from elsewhere, made safe for a terminal line by line."""
    from klaudit.reports.visible import visible

    return "\n".join(map(visible, text.split("\n")))


def _flush() -> None:
    """A reader that has gone (`| head`) is no error; without this Python would complain of it at its own end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
