"""HTML as values: elements are built, never glued together, so that text from scanned files cannot become markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from klaudit.reports.visible import visible

_VOID = frozenset({"br", "col", "input", "link", "meta", "wbr"})


class Html(str):
    """Text that is HTML already.  Made by the functions of this module only."""

    __slots__ = ()


Child: TypeAlias = "str | Html | None | Iterable[str | Html | None]"
Attribute: TypeAlias = "str | int | bool | None"

NOTHING = Html("")


def text(words: str) -> Html:
    """Words of any origin as HTML in ASCII, whatever the page's encoding becomes on its way.

    Control characters, among them those that turn the direction of reading, are shown as escapes; lone surrogates too.
    """
    return Html(escape(visible(words)).encode("ascii", "xmlcharrefreplace").decode("ascii"))


def element(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """`<name attributes>children</name>`.  Strings that are not Html are escaped; an attribute that is None or False is left out.

    `class_` stands for `class`, other underscores for hyphens.
    """
    start = f"<{name}{''.join(map(_attribute, attributes.items()))}>"
    return Html(start if name in _VOID else f"{start}{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    """Children next to each other, strings escaped."""
    return Html("".join(map(_child, children)))


def listed(children: Iterable[Html]) -> Html:
    """Children with commas between them."""
    return Html(", ".join(children))


def raw(words: str) -> Html:
    """What klaudit itself ships as it must stand: a style sheet or a script."""
    return Html(words)


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return text(child)
    return joined(child)


def _attribute(pair: tuple[str, Attribute]) -> str:
    name, value = pair
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'
