"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator

import click

from documentation.markdown import code, fence, marked, prose, table
from klaudit.cli import COMMANDS, cli


def page() -> str:
    context = click.Context(cli, info_name="klaudit")
    parts = [
        "# Command line\n",
        "Every command, as `klaudit COMMAND --help` has it.\n",
        table(
            ("command", "what it is for"),
            [(f"[`{name}`](#{name})", prose(told)) for name, (_, told) in COMMANDS.items()],
        ),
    ]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        parts += _command(
            command, click.Context(command, info_name=f"klaudit {name}"), f"## klaudit {name} {{: #{name} }}\n", name
        )
    return "\n".join(parts)


def _command(command: click.Command, context: click.Context, title: str, anchor: str) -> Iterator[str]:
    yield title
    for paragraph in (command.help or "").split("\n\n"):
        yield marked(paragraph) + "\n"
    pieces = " ".join(command.collect_usage_pieces(context))
    yield fence(f"{context.info_name} {pieces}", "text")
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    yield table(("option", "what it does"), [(code(record[0]), marked(record[1])) for record in records if record])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                inner = click.Context(below, info_name=f"{context.info_name} {name}")
                yield from _command(
                    below, inner, f"### {inner.info_name} {{: #{anchor}-{name} }}\n", f"{anchor}-{name}"
                )
    if command.epilog:
        yield marked(command.epilog) + "\n"
