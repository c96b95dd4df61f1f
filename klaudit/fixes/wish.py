"""What must be written and taken away for a change, setting by setting, with the coefficient as its owner wrote it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klaudit.fixes.page import CannotEditError, Page
from klaudit.frameworks.migrate import Change
from klaudit.frameworks.resolution import Effective, Resolution
from klaudit.frameworks.values import as_number
from klaudit.model import Setting, Unknown, Value
from klaudit.tree import Tree


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting to write.  `like` is the setting whose written value is to be copied, where that says more than the value does."""

    name: str
    value: Value
    like: Setting | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    write: tuple[Entry, ...]
    remove: tuple[str, ...]


def wish(change: Change, resolution: Resolution) -> Wish:
    """The change as settings.  A coefficient that was written by hand is written again, as it was: variable and all."""
    written: dict[str, Value] = dict(change.write)
    likes: dict[str, Setting] = {}
    if change.carried is not None:
        name, source = change.carried
        is_same_amount = as_number(source.value) == as_number(
            written.get(name, change.amount)
        )  # no factor between the two
        if name != source.name and is_same_amount and source.setting is not None and _is_written_by_hand(source):
            given = resolution.launch.configuration.given(name)
            if name in written or not given or given[-1].value != source.value or _may_differ(source):
                written[name] = source.value
                likes[name] = source.setting
    return Wish(tuple(Entry(name, value, likes.get(name)) for name, value in written.items()), change.remove)


def _may_differ(source: Effective) -> bool:
    """Whether other launches of the same command may have another value."""
    return isinstance(source.value, Unknown) or (source.setting is not None and source.setting.origin == "variable")


def _is_written_by_hand(effective: Effective) -> bool:
    return effective.setting is not None and effective.setting.origin in ("override", "variable", "code", "file")


class Pages:
    """The pages of the files that are edited, each made once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._pages: dict[str, Page] = {}

    def of(self, path: str) -> Page:
        """Raises CannotEditError for a file that cannot be edited."""
        if path not in self._pages:
            source = self._tree.source(path) if path else None
            if source is None:
                raise CannotEditError(f"{path or 'a default'} is no file of the tree")
            self._pages[path] = Page.of(source)
        return self._pages[path]


def last_given(resolution: Resolution, name: str, wanted: Callable[[Setting], bool]) -> Setting | None:
    """The setting of this name by hand that counts, of those that are wanted."""
    found = [setting for setting in resolution.launch.configuration.given(name) if wanted(setting)]
    return found[-1] if found else None
