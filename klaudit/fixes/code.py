"""Changes of set-ups that Python code spells: keywords, dict entries, class fields, attributes and lists of overrides."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from klaudit.fixes import items
from klaudit.fixes.commands import Commands
from klaudit.fixes.literals import spell
from klaudit.fixes.page import CannotEditError, Page
from klaudit.fixes.wish import Entry, Pages, Wish
from klaudit.frameworks.resolution import Resolution
from klaudit.model import Edit, Setting

_Form: TypeAlias = Literal["keyword", "entry", "field", "attribute", "override"]

_ATTRIBUTE = re.compile(r"\s*[\w.\[\]\"']+\.\w+\s*=(?!=)|\s*\w+(?:\[[^]]*\])+\s*=(?!=)")
_FIELD = re.compile(r"(\w+)\s*:\s*[^=]+=")
_KEYWORD = re.compile(r"(\w+)\s*=(?!=)")
_ENTRY = re.compile(r"[rbu]?([\"'])([\w.]+)\1\s*:")
_REST_OF_LINE = re.compile(rb"[ \t]*(?:#[^\r\n]*)?(?=\r?\n|\Z)")
_EMPTY_CALL = re.compile(rb"\((?=\)|\*\*)")


class Code:
    """Turns wishes for a config object, a class or a list of overrides into edits of the source."""

    def __init__(self, pages: Pages, resolution: Resolution) -> None:
        launch = resolution.launch
        self._pages = pages
        self._resolution = resolution
        self._page: Page = pages.of(launch.head.path)
        self._head = launch.head
        names = dict.fromkeys(launch.configuration.explicit_names())
        self._given: Callable[[str], Sequence[Setting]] = launch.configuration.given
        self._settings = [setting for name in names for setting in self._given(name)]

    def edits(self, wish: Wish) -> list[Edit]:
        """Raises CannotEditError where the code cannot be changed without more."""
        anchors = [setting for setting in self._settings if setting.span.path == self._page.path]
        if anchors and all(self._form(setting) == "override" for setting in anchors):
            return Commands(self._pages, self._resolution).edits(wish)
        edits: list[Edit] = []
        missing: list[Entry] = []
        for entry in wish.write:
            given = self._given(entry.name)
            if given:
                edits.append(self._replace(given[-1], entry))
            else:
                missing.append(entry)
        taken = [setting for name in wish.remove for setting in self._given(name)]
        listed = [setting for setting in taken if self._form(setting) in ("keyword", "entry")]
        for path in dict.fromkeys(setting.span.path for setting in listed):
            places = [self._bounds(setting)[1:] for setting in listed if setting.span.path == path]
            edits += items.remove_all(self._pages.of(path), places)
        edits += [self._remove_line(setting) for setting in taken if setting not in listed]
        stay = [setting for setting in anchors if setting not in taken]
        for anchor, entries in self._beside(missing, stay):
            edits.append(self._insert(anchor, entries))
        return edits

    # --- what is there already -----------------------------------------------------------------------------------------------------

    def _replace(self, setting: Setting, entry: Entry) -> Edit:
        page = self._pages.of(setting.value_span.path)
        start = page.at(setting.value_span.start)
        end = page.end(start, setting.value_span.end)
        old = page.data[start:end].decode("utf-8")
        text = spell(entry.value, "python")
        if isinstance(entry.value, str) and old[:1] == "'":
            text = f"'{entry.value}'"
        return page.edit(start, end, text)

    def _remove_line(self, setting: Setting) -> Edit:
        page, start, end = self._bounds(setting)
        data = page.data
        line = data.rfind(b"\n", 0, start) + 1
        rest = _REST_OF_LINE.match(data, end)
        if data[line:start].strip() or rest is None:
            raise CannotEditError(f"{setting.name} shares its line with another statement")
        stop = data.find(b"\n", rest.end())
        return page.edit(line, len(data) if stop < 0 else stop + 1, "")

    # --- what is missing -------------------------------------------------------------------------------------------------------------

    def _beside(self, missing: Sequence[Entry], stay: Sequence[Setting]) -> list[tuple[Setting | None, list[Entry]]]:
        """The setting beside which each new one belongs: one of the same object, the first that stands behind its name."""
        groups: dict[int, tuple[Setting | None, list[Entry]]] = {}
        for entry in missing:
            above = entry.name.rpartition(".")[0]
            fitting = [setting for setting in stay if self._fits(setting, above)]
            near = [setting for setting in fitting if f"{above}.".startswith(f"{setting.name.rpartition('.')[0]}.")]
            nearest = max((setting.name.count(".") for setting in near), default=0)
            fitting = [setting for setting in near if setting.name.count(".") == nearest] or fitting
            behind = [setting for setting in fitting if setting.span.start >= self._head.end] or fitting
            anchor = min(behind, key=lambda setting: setting.span.start) if behind else None
            if anchor is None and any("." in setting.name for setting in self._settings):
                raise CannotEditError(
                    f"nothing of {above or entry.name} is set here, beside which {entry.name} could be put"
                )
            groups.setdefault(anchor.span.start if anchor else -1, (anchor, []))[1].append(entry)
        return list(groups.values())

    def _fits(self, setting: Setting, above: str) -> bool:
        """Whether a setting of `above` can stand beside this one: in the same object, or in a dict that is nested there."""
        form, own = self._form(setting), setting.name.rpartition(".")[0]
        return form == "attribute" or own == above or (form == "entry" and bool(own) and above.startswith(f"{own}."))

    def _insert(self, anchor: Setting | None, entries: Sequence[Entry]) -> Edit:
        if anchor is None:
            return self._into_empty_call(entries)
        page, start, end = self._bounds(anchor)
        form = self._form(anchor)
        texts = [self._spelled(form, anchor, entry) for entry in entries]
        if form in ("keyword", "entry"):
            return items.insert(page, start, end, texts)
        data = page.data
        line = data.rfind(b"\n", 0, start) + 1
        indent = data[line:start].decode("utf-8")
        rest = _REST_OF_LINE.match(data, end)
        if indent.strip() or rest is None:
            raise CannotEditError(f"{anchor.name} shares its line with another statement")
        line_end = "\r\n" if data[rest.end() : rest.end() + 2] == b"\r\n" else "\n"
        return page.edit(rest.end(), rest.end(), "".join(line_end + indent + text for text in texts))

    def _into_empty_call(self, entries: Sequence[Entry]) -> Edit:
        at = self._page.at(self._head.end)
        opening = _EMPTY_CALL.match(self._page.data, at)
        if opening is None:
            raise CannotEditError("the call holds no keyword beside which another one could be put")
        text = ", ".join(f"{entry.name.rpartition('.')[2]}={spell(entry.value, 'python')}" for entry in entries)
        more = ", " if self._page.data[opening.end() : opening.end() + 1] == b"*" else ""
        return self._page.edit(opening.end(), opening.end(), text + more)

    def _spelled(self, form: _Form, anchor: Setting, entry: Entry) -> str:
        """The new setting in the form of its neighbour."""
        raw = self._raw(anchor)
        text = spell(entry.value, "python")
        last = entry.name.rpartition(".")[2]
        match form:
            case "keyword":
                return f"{last}={text}"
            case "entry":
                quote = raw[0] if raw[:1] in "\"'" else '"'
                *between, last = entry.name.removeprefix(anchor.name.rpartition(".")[0]).lstrip(".").split(".")
                text = f"{quote}{last}{quote}: {text}"
                for key in reversed(between):
                    text = f"{quote}{key}{quote}: {{{text}}}"
                return text
            case "field":
                return f"{last}: {type(entry.value).__name__} = {text}"
        target = raw.partition("=")[0].rstrip()
        if not target.endswith(f".{anchor.name}"):
            raise CannotEditError(f"{target} cannot be followed by {entry.name}")
        return f"{target.removesuffix(anchor.name)}{entry.name} = {text}"

    # --- places ---------------------------------------------------------------------------------------------------------------------------

    def _bounds(self, setting: Setting) -> tuple[Page, int, int]:
        page = self._pages.of(setting.span.path)
        start = page.at(setting.span.start)
        return page, start, page.end(start, setting.span.end)

    def _raw(self, setting: Setting) -> str:
        page, start, end = self._bounds(setting)
        return page.data[start:end].decode("utf-8")

    def _form(self, setting: Setting) -> _Form:
        if setting.origin == "override":
            return "override"
        raw = self._raw(setting)
        if _ENTRY.match(raw):
            return "entry"
        if _ATTRIBUTE.match(raw):
            return "attribute"
        if _FIELD.match(raw):
            return "field"
        if _KEYWORD.match(raw):
            return "keyword"
        raise CannotEditError(f"{setting.name} is not set in a form that is known to be safe to change")
