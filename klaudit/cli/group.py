"""A group whose commands are imported when they are called, and which knows what a mistyped one was meant to be."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import click


class Commands(click.Group):
    """`table` maps names to `(module, help line)`; each module has its click command as `command`."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        return cast("click.Command", import_module(self._table[cmd_name][0]).command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self._table:
            raise click.UsageError(f"No such command `{_shown(name)}`.{self._hint(name)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._table.items()])

    def _hint(self, name: str) -> str:
        from difflib import get_close_matches
        from pathlib import Path

        if Path(name).exists():
            return f" Did you mean `klaudit scan {_shown(name)}`?"
        near = get_close_matches(name, self._table, n=2)
        return f" Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else ""


def _shown(name: str) -> str:
    from klaudit.reports.visible import visible

    return visible(name)
