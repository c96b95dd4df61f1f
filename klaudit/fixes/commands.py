"""Changes of launches that a command starts: Hydra overrides, dotlists and flags, wherever their words are spelled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from klaudit.fixes import items, words
from klaudit.fixes.given_here import given_here
from klaudit.fixes.literals import prefers_capitals, spell
from klaudit.fixes.page import CannotEditError, Page
from klaudit.fixes.wish import Entry, Pages, Wish
from klaudit.frameworks.resolution import Resolution
from klaudit.model import Edit, Setting, Span, Value

_STRING_START = re.compile(rb"[rbfRBF]{0,2}(\"\"\"|'''|\"|')\Z")
# A flag, what separates it from its value (in a list of strings: a quote, a comma and a quote), and the value with quotes of its own.
_FLAG = re.compile(r"(--?[\w.-]+)(=|[\"'][\s,]+[rbfRBF]{0,2}[\"']|[\s\\]+)(.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a word stands: its bytes and, where it is an element of a list of strings, those of the element, quotes included."""

    page: Page
    start: int
    end: int
    outer: tuple[int, int] | None

    @property
    def text(self) -> str:
        return self.page.data[self.start : self.end].decode("utf-8")

    @property
    def is_filled_in(self) -> bool:
        """Whether a placeholder of an f-string stands here, whose words are spelled elsewhere."""
        return self.page.path.endswith((".py", ".ipynb")) and self.text.startswith("{") and self.text.endswith("}")

    def replace(self, text: str, more: Sequence[str]) -> Edit:
        if self.is_filled_in:
            raise CannotEditError("the words are put together elsewhere in the code")
        if self.outer is None:
            return words.replace(self.page, self.start, self.end, text, more)
        if not more:
            return self.page.edit(self.start, self.end, text)
        return items.replace(self.page, *self.outer, self._element(text), list(map(self._quoted, more)))

    def insert(self, more: Sequence[str]) -> Edit:
        if self.is_filled_in:  # whatever follows is no value of a switch
            ordered = sorted(more, key=lambda word: " " in word)
            return self.page.edit(self.end, self.end, f" {' '.join(ordered)} ")
        if self.outer is None:
            return words.insert(self.page, self.start, self.end, more)
        return items.insert(self.page, *self.outer, list(map(self._quoted, more)))

    def _element(self, text: str) -> str:
        start, end = self.outer or (self.start, self.end)
        data = self.page.data
        return (data[start : self.start] + text.encode() + data[self.end : end]).decode()

    def _quoted(self, text: str) -> str:
        """As an element like this one; several words of one flag become several elements."""
        _, end = self.outer or (self.start, self.end)
        quote = self.page.data[self.end : end].decode()
        return ", ".join(quote + word + quote for word in text.split(" "))


class Commands:
    """Turns wishes for one launch into edits of the words of its command.

    Words in reach are those in the file of the command: a new one beside them belongs to this command.
    """

    def __init__(self, pages: Pages, resolution: Resolution) -> None:
        self._pages = pages
        self._resolution = resolution
        launch = resolution.launch
        self._configuration = launch.configuration
        entries = (launch.entry_point,) if launch.entry_point is not None else launch.trainer.entry_points
        self._system = entries[0].system if entries else "hydra"
        names = dict.fromkeys(self._configuration.explicit_names())
        self._words = [setting for name in names for setting in self._given(name)]
        self._move_to(launch.head.path)

    def edits(self, wish: Wish) -> list[Edit]:
        """Raises CannotEditError where a word cannot be changed without more."""
        slots = [setting for name in wish.remove for setting in self._given(name)]
        touched = [*slots, *(setting for entry in wish.write for setting in self._given(entry.name)[-1:])]
        self._move_to(_home(self._resolution.launch.head.path, touched or self._words))
        changed: list[tuple[Setting, str]] = []
        added: list[str] = []
        carried: Entry | None = None
        for entry in wish.write:
            given = self._given(entry.name)
            text = self._rewritten(given[-1], entry) if given else None
            if text is not None:
                changed.append((given[-1], text))
            elif not given and any(self._renamed(slot, entry) is not None for slot in slots):
                carried = entry
            else:
                added.append(self._word(entry))
        edits: list[Edit] = []
        gone: list[Place] = []
        for setting in sorted(slots, key=lambda each: each.span.start):  # what is taken away makes room for what is new
            place = self._place(setting)
            if (renamed := self._renamed(setting, carried)) is not None:
                carried = None
                edits.append(place.replace(renamed, ()))
            elif added and not (place.outer and " " in added[0]) and setting in self._in_reach:
                edits.append(place.replace(added.pop(0), ()))
            elif place.is_filled_in:
                raise CannotEditError(f"{setting.name} is put together elsewhere in the code")
            else:
                gone.append(place)
        edits += _removals(gone)
        anchors = [setting for setting, _ in changed if setting in self._in_reach]
        for setting, text in changed:
            more = added if anchors and setting is anchors[0] else ()
            edits.append(self._place(setting).replace(text, more))
        if added and not anchors:
            edits.append(self._place(self._anchor(slots)).insert(added))
        return edits

    def overrule(self, wish: Wish) -> list[Edit]:
        """New words at the end of the command, which overrule what other launches need where it stands.

        Raises CannotEditError where nothing that is written later can overrule it.
        """
        launch = self._resolution.launch
        if self._system == "flags" and any(self._is_switch(name) and self._given(name) for name in wish.remove):
            raise CannotEditError("a flag that is given cannot be taken back by another one")
        if not launch.words or launch.words[-1].site.path != launch.head.path:
            here = given_here(self._resolution.setup)
            raise CannotEditError(f"the command that starts it stands in another file: change {here} by hand")
        self._move_to(launch.head.path)
        place = self._place_of(launch.words[-1].site)
        return [place.insert([self._word(entry) for entry in wish.write])]

    def guard(self, values: Mapping[str, Value], beside: Set[Span]) -> list[Edit]:
        """Words that keep `values` in this launch, behind the last of its words at `beside`."""
        own = [word for word in self._resolution.launch.words if word.span in beside and "=" in (word.text or "")]
        if not own or self._system == "flags":
            raise CannotEditError("it has no word of its own beside which its settings could be kept")
        place = self._place_of(own[-1].span)
        capitals = self._capitals(place.page)
        return [place.insert([f"{name}={spell(value, 'word', capitals=capitals)}" for name, value in values.items()])]

    def _move_to(self, home: str) -> None:
        self._home = home
        self._in_reach = [setting for setting in self._words if setting.span.path == home]

    # --- where -------------------------------------------------------------------------------------------------------------------------

    def _given(self, name: str) -> list[Setting]:
        """The words that set `name`, in order; what a config file sets is not among them."""
        return [setting for setting in self._configuration.given(name) if setting.origin != "file"]

    def _anchor(self, taken: Sequence[Setting]) -> Setting:
        """A word to put new ones beside: the last one that stays."""
        candidates = [setting for setting in self._in_reach if setting not in taken] or [
            setting for setting in self._words if setting not in taken
        ]
        if not candidates:
            raise CannotEditError("the command has no setting beside which another one could be put")
        return max(candidates, key=lambda setting: setting.span.start)

    def _place(self, setting: Setting) -> Place:
        return self._place_of(setting.span)

    def _place_of(self, span: Span) -> Place:
        page = self._pages.of(span.path)
        start = page.at(span.start)
        end = page.end(start, span.end)
        outer = None
        if page.path.endswith((".py", ".ipynb")):
            before = _STRING_START.search(page.data, max(start - 5, 0), start)
            if before is not None and page.data[end : end + len(before[1])] == before[1]:
                outer = (before.start(), end + len(before[1]))
        return Place(page, start, end, outer)

    # --- what --------------------------------------------------------------------------------------------------------------------------

    def _rewritten(self, setting: Setting, entry: Entry) -> str | None:
        """The word with another value; None where the word does not spell its own name, so that a new one has to overrule it."""
        place = self._place(setting)
        raw = place.text
        if self._system == "flags":
            match = _FLAG.match(raw)
            if match is None:
                return None
            return match[1] + match[2] + _requoted(match[3], self._value(entry, place))
        quote = raw[0] if raw[:1] in "\"'" and raw[-1:] == raw[:1] and len(raw) > 1 else ""
        inside = raw[len(quote) : len(raw) - len(quote)] if quote else raw
        key, equals, value = inside.partition("=")
        if not equals or key.lstrip("+") != setting.name:
            return None
        new = self._value(entry, place)
        if not quote or isinstance(
            entry.value, str
        ):  # quotes within quotes are the program's own: they would make a text of `False`
            new = _requoted(value, new)
        return f"{quote}{key}={new}{quote}"

    def _renamed(self, setting: Setting, entry: Entry | None) -> str | None:
        """The word of the setting that `entry` is to be like, under the new name and with the value as it stands."""
        if entry is None or entry.like is None or entry.like.span != setting.span or self._system == "flags":
            return None
        raw = self._place(setting).text
        key, equals, value = raw.partition("=")
        opening = key[: len(key) - len(key.lstrip("\"'+"))]
        if not equals or key != opening + setting.name:
            return None
        plus = "+" if self._system == "hydra" and self._is_absent(entry.name) else ""
        return f"{opening.rstrip('+')}{plus}{entry.name}={value}"

    def _word(self, entry: Entry) -> str:
        """A new word, in the spelling of this system."""
        page = self._pages.of(self._home)
        if self._system != "flags":
            prefix = "+" if self._system == "hydra" and self._is_absent(entry.name) else ""
            return f"{prefix}{entry.name}={self._value(entry, None)}"
        flag = self._flag(entry.name)
        if entry.value is True and self._is_switch(entry.name):
            return flag
        used = (match for setting in self._in_reach if (match := _FLAG.match(self._place(setting).text)))
        joined = [match[2] == "=" for match in used]
        return flag + ("=" if sum(joined) * 2 > len(joined) else " ") + self._value(entry, None, page)

    def _value(self, entry: Entry, place: Place | None, page: Page | None = None) -> str:
        if entry.like is not None and (written := self._written(entry.like)) is not None:
            return written
        page = page or (place.page if place is not None else self._pages.of(self._home))
        text = spell(entry.value, "word", capitals=self._capitals(page))
        if not words.needs_no_quotes(text):
            raise CannotEditError(f"{text} would need quotes")
        return text

    def _written(self, setting: Setting) -> str | None:
        """The value as it stands in the command, variable and all; None where it cannot be copied to another word of the command."""
        if setting.span.path != self._home or setting.origin == "file":
            return None
        raw = self._place(setting).text
        match = _FLAG.match(raw) if self._system == "flags" else None
        quote = raw[0] if raw[:1] in "\"'" and raw[-1:] == raw[:1] and len(raw) > 1 else ""
        value = (
            match[3]
            if match
            else raw[len(quote) : len(raw) - len(quote)].partition("=")[2]
            if quote
            else raw.partition("=")[2]
        )
        if "$" not in value:
            return value if value and words.needs_no_quotes(value) else None
        if quote == "'" or re.search(r"[\s`()]", value):
            return None
        return value

    def _capitals(self, page: Page) -> bool:
        spelled = b" ".join(self._place(setting).text.encode() for setting in self._in_reach)
        return prefers_capitals(spelled, prefers_capitals(page.data, self._system != "dotlist"))

    def _is_absent(self, name: str) -> bool:
        """Whether the config in use has no such key, so that Hydra wants a `+`."""
        configuration = self._configuration
        if configuration.get(name) is not None:
            return False
        if not getattr(configuration, "unseen", ()) and hasattr(configuration, "has"):
            return not configuration.has(name)
        return not self._has_default(name)

    def _has_default(self, name: str) -> bool:
        """Whether the rules know the key from the config of this version."""
        for spec in self._resolution.launch.trainer.settings.values():
            if any(each.name == name for each in spec.names):
                default = self._resolution[spec.id].default
                return default is not None and not default.fixed and default.when is None
        return False

    def _flag(self, name: str) -> str:
        plain = name.lstrip("-")
        if self._resolution.launch.trainer.dashes == "either" and self._uses_dashes():
            plain = plain.replace("_", "-")
        return f"--{plain}"

    def _uses_dashes(self) -> bool:
        flags = [self._place(setting).text.split("=")[0].split()[0].lstrip("-") for setting in self._in_reach]
        return sum("-" in each for each in flags) > sum("_" in each for each in flags)

    def _is_switch(self, name: str) -> bool:
        specs = self._resolution.launch.trainer.settings.values()
        return any(
            each.name.lstrip("-") == name.lstrip("-") and (spec.type == "switch" or each.has_const)
            for spec in specs
            for each in spec.names
        )


def _removals(gone: Iterable[Place]) -> list[Edit]:
    edits: list[Edit] = []
    by_page: dict[str, list[Place]] = {}
    for place in gone:
        by_page.setdefault(place.page.path, []).append(place)
    for places in by_page.values():
        page = places[0].page
        edits += words.remove_all(page, [(place.start, place.end) for place in places if place.outer is None])
        edits += items.remove_all(page, [place.outer for place in places if place.outer is not None])
    return edits


def _home(head: str, written: Sequence[Setting]) -> str:
    """Where new words go: into the file of the launch, unless only words of another one (a script it calls, or sources) change."""
    paths = [setting.span.path for setting in written]
    return head if head in paths or not paths else max(paths, key=paths.count)


def _requoted(old: str, value: str) -> str:
    """The new value within the quotes of the old one."""
    for quote in ('\\"', '"', "'"):
        if old.startswith(quote) and old.endswith(quote) and len(old) >= 2 * len(quote) and "$" not in value:
            return quote + value + quote
    return value
