"""Lists of `"a.b=c"` and `"--flag"` strings: Hydra overrides, dot-lists, `sys.argv`."""

from __future__ import annotations

import ast
import re

from klaudit.model import Setting, Span, Unknown, Value
from klaudit.readers.document import ConfigObject
from klaudit.readers.python.evaluate import Evaluator
from klaudit.readers.python.facts import Facts, Site
from klaudit.readers.python.mentions import Mentions
from klaudit.readers.python.results import REST, Items, Opaque, Result, Text, value_of
from klaudit.readers.python.scopes import Place, reaching
from klaudit.readers.python.shell_text import text_range, words_of
from klaudit.readers.python.strings import sliced, split, with_holes

_OVERRIDE = re.compile(r"(?P<mark>\+\+?|~)?(?P<name>[A-Za-z_][\w./@:\-]*)(?P<equals>=(?!=))")
_DELETION = re.compile(r"~(?P<name>[A-Za-z_][\w./@\-]*)\Z")
_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w.\-]*)(?P<equals>=(?!=))?")


class OverrideReader:
    """Override lists of one module, leaving out those that are commands (`consumed`: where their elements begin)."""

    def __init__(self, evaluator: Evaluator, facts: Facts, consumed: set[int], mentions: Mentions) -> None:
        self.evaluator = evaluator
        self.module = evaluator.module
        self.facts = facts
        self.consumed = consumed
        self.mentions = mentions

    def read(self) -> list[ConfigObject]:
        sites = [*self.facts.sequences, *self._emptied_lists()]
        found = [made for site in sites if (made := self._object(site)) is not None]
        return [*found, *(made for site in self.facts.texts if (made := self._flag_text(site)) is not None)]

    def _emptied_lists(self) -> list[Site]:
        """Lists that begin empty and are filled by `append` or `+=`."""
        found: dict[int, Site] = {}
        for change in self.facts.changes:
            if change.how not in ("append", "extend", "+=") or change.path or not change.values:
                continue
            seen = reaching(change.root, Place(change.scope, change.block, change.position - 1), self.evaluator.runs)
            binding = seen.binding if seen is not None else None
            if binding is None or seen is None or seen.place.scope is not change.scope:
                continue
            value = binding.value
            if isinstance(value, ast.List) and not value.elts:
                place = Place(change.scope, binding.block, binding.position)
                found.setdefault(id(value), Site(value, place, change.root))
        return list(found.values())

    def _object(self, site: Site) -> ConfigObject | None:
        node = site.node
        elements = getattr(node, "elts", [])
        if elements and (self.module.start(elements[0]) in self.consumed or not self._promising(elements)):
            return None
        items = self.evaluator.final(site)
        if not isinstance(items, Items) or (items.items and items.items[0].start in self.consumed):
            return None
        return self._made_of(site, items)

    def _made_of(self, site: Site, items: Items) -> ConfigObject | None:
        settings = self._settings(items)
        if not settings or self.mentions.only_looked_for(site.node):
            return None
        span = self.module.span(self.module.start(site.node), self.module.end(site.node))
        words = words_of(self.module, items)
        return ConfigObject(
            "overrides",
            self.evaluator.qualified(site.owner, site.place) if site.owner is not None else site.target or "",
            settings,
            span,
            site.target,
            open=items.open,
            arguments=words,
            scope=site.place.scope.name,
        )

    def _flag_text(self, site: Site) -> ConfigObject | None:
        """A text that begins with a flag: part of a command line that is put together elsewhere."""
        text = self.evaluator.final(site)
        if not isinstance(text, Text) or not with_holes(text).lstrip().startswith("--"):
            return None
        items = Items(tuple(split(text)), text.start, text.end)
        return self._made_of(site, items)

    @staticmethod
    def _promising(elements: list[ast.expr]) -> bool:
        """Whether any element may be an override or a flag, by a look at its first characters."""
        for element in elements:
            first = element.values[0] if isinstance(element, ast.JoinedStr) and element.values else element
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                if _OVERRIDE.match(first.value) or _FLAG.match(first.value):
                    return True
            elif not isinstance(element, ast.Constant):
                return len(elements) < 200 and isinstance(element, (ast.Starred, ast.BinOp, ast.JoinedStr, ast.Name))
        return False

    def _settings(self, items: Items) -> tuple[Setting, ...]:
        found: list[Setting] = []
        for index, item in enumerate(items.items):
            condition: tuple[str, ...] = ()
            if isinstance(item, Opaque) and isinstance(item.maybe, Text):
                condition, item = item.hangs_on, item.maybe
            if isinstance(item, Text):
                following = items.items[index + 1] if index + 1 < len(items.items) else None
                made = self._setting(item, following, condition)
                if made is not None:
                    found.append(made)
        return tuple(found)

    def _setting(self, text: Text, following: Result | None, condition: tuple[str, ...]) -> Setting | None:
        whole = with_holes(text)
        span = self.module.span(*text_range(text))
        match = _OVERRIDE.match(whole) or _FLAG.match(whole)
        if match is None or (match["equals"] is None and match.end() != len(whole)):
            deletion = _DELETION.match(whole)
            name = deletion["name"] if deletion is not None else ""
            return Setting(name, None, span, span, "override", None, whole) if name else None
        if match["equals"]:
            rest = sliced(text, match.end(), len(whole))
            end = text_range(text)[1]
            value_span = self.module.span(*(text_range(rest) if rest.fragments else (end, end)))
            return self._made(match["name"], rest, value_span, span, text, condition)
        if following is not None and _is_value(following):
            (start, end), (value_start, value_end) = text_range(text), text_range(following)
            both = self.module.span(min(start, value_start), max(end, value_end))
            value_span = self.module.span(value_start, value_end)
            return self._made(match["name"], following, value_span, both, text, condition)
        value: Value = Unknown(condition, "True") if condition else True
        return Setting(match["name"], value, span, span, "override", None, text.shown)

    def _made(
        self,
        name: str,
        value: Result,
        value_span: Span,
        span: Span,
        text: Text,
        condition: tuple[str, ...],
    ) -> Setting:
        known = value_of(value)
        if isinstance(known, (int, float)) and not isinstance(known, bool):
            known = str(known)
        source = None
        if isinstance(value, Text) and len(value.fragments) == 1 and value.fragments[0].site is not None:
            source = self.module.span(value.fragments[0].start, value.fragments[0].end)
        if condition:
            known = Unknown(condition, known.text if isinstance(known, Unknown) else str(known))
        return Setting(name, known, span, value_span, "override", source, text.shown)


def _is_value(item: Result) -> bool:
    """Whether what follows a flag is its value, and not a flag or a rest of unknown length."""
    if isinstance(item, Text):
        return not with_holes(item).startswith("-")
    return not (isinstance(item, Opaque) and item.text == REST)
