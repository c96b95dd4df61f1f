"""A change of one file, or the reason why there is none."""

from __future__ import annotations

from importlib.resources import files

from msgspec import Struct

from klaudit import __version__


class Change(Struct, frozen=True):
    """`before` is None for a file that is new."""

    path: str
    before: bytes | None
    after: bytes


class Proposal(Struct, frozen=True):
    """What is proposed for one way of using klaudit, and what to tell about it."""

    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


def template(name: str, **values: str) -> str:
    """A shipped template with `@NAME@` filled in."""
    text = (files("klaudit.init") / "templates" / name).read_text(encoding="utf-8")
    for key, value in {"VERSION": __version__, **values}.items():
        text = text.replace(f"@{key}@", value)
    return text
