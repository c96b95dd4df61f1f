"""An item at its place in a configuration, and the ways in which looking for one can fail."""

from __future__ import annotations

from msgspec import Struct

from klaudit.frameworks.compose.items import Container, Item


class Found(Struct, frozen=True):
    """An item with the containers above it, outermost first, and its name."""

    item: Item
    above: tuple[Container, ...]
    name: tuple[str, ...]


class UnresolvedError(Exception):
    """A value that hangs on something that is not in the configuration, or on itself."""

    def __init__(self, *hangs_on: str) -> None:
        super().__init__(", ".join(hangs_on))
        self.hangs_on = hangs_on


class DeadEndError(UnresolvedError):
    """An interpolation that OmegaConf cannot resolve for certain: its key is absent or missing, or it leads to itself."""
