"""Changes of config files: scalars in place, new keys beside their neighbours, in YAML, JSON and TOML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import TypeAlias

from klaudit.fixes import items
from klaudit.fixes.literals import Language, spell
from klaudit.fixes.page import CannotEditError, Page
from klaudit.fixes.wish import Entry, Pages, Wish
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.systems.keys import read_keys
from klaudit.model import Edit, Setting
from klaudit.readers.document import Entry as Key
from klaudit.readers.document import MappingNode, Node, ScalarNode
from klaudit.readers.source import Source

_LINE_END = re.compile(rb"[^\n]*")
_COMMENT = re.compile(rb"[ \t]*#")
_REST_OF_LINE = re.compile(rb"[ \t]*(?=\r?\n|\Z)")
_Texts: TypeAlias = dict[str, "str | _Texts"]
_LANGUAGES: dict[str, Language] = {"json": "json", "toml": "toml"}


class Keys:
    """Turns wishes for a config file into edits of its text."""

    def __init__(self, pages: Pages, resolution: Resolution) -> None:
        self._page: Page = pages.of(resolution.launch.head.path)
        self._given = resolution.launch.configuration.given
        self._language: Language = _LANGUAGES.get(self._page.path.rpartition(".")[2].lower(), "yaml")
        self._root = self._mapping_with(resolution.launch.head.start)
        self._homes = self._find_homes()
        self._line_end = "\r\n" if b"\r\n" in self._page.data else "\n"

    def edits(self, wish: Wish) -> list[Edit]:
        """Raises CannotEditError where a key cannot be changed without more."""
        edits: list[Edit] = []
        missing: list[Entry] = []
        for entry in wish.write:
            given = self._own(entry.name)
            if given:
                edits.append(self._replace(given[-1], entry))
            else:
                missing.append(entry)
        taken = [setting for name in wish.remove for setting in self._own(name)]
        listed = [setting for setting in taken if self._is_listed(setting)]
        edits += items.remove_all(self._page, [(setting.span.start, setting.span.end) for setting in listed])
        lines = [self._remove_line(setting) for setting in taken if setting not in listed]
        for edit in self._insert(missing, {setting.span.start for setting in taken}):
            gone = next((line for line in lines if line.start < edit.start < line.end), None)
            if gone is None:
                edits.append(edit)
            else:  # what is new follows a mapping whose last line goes: it takes that line's place
                lines.remove(gone)
                new = edit.replacement.removeprefix(self._line_end) + self._line_end
                edits.append(Edit(gone.path, gone.start, gone.end, new))
        return edits + lines

    # --- what is there already -----------------------------------------------------------------------------------------------------

    def _replace(self, setting: Setting, entry: Entry) -> Edit:
        span = setting.value_span
        data = self._page.data
        old = data[span.start : span.end].decode("utf-8")
        text = self._text(entry)
        if isinstance(entry.value, bool) and old[:1].isupper():  # `True` is YAML too
            text = text.capitalize()
        if not old:  # `key:` alone
            return self._page.edit(
                span.start, span.end, text if data[span.start - 1 : span.start].isspace() else f" {text}"
            )
        if isinstance(entry.value, str) and old[:1] in "\"'" and old[-1:] == old[:1] and text[:1] not in "\"'":
            text = old[:1] + text + old[:1]
        elif isinstance(entry.value, str) and old[:1] == "'" == old[-1:] and self._language == "toml":
            text = f"'{entry.value}'"
        return self._page.edit(span.start, span.end, text)

    def _own(self, name: str) -> list[Setting]:
        """The entries of this name that are written where they take effect; what a merge key brings in serves others too."""
        given = self._given(name)
        return [setting for setting in given if self._homes.get(setting.span.start, (None, ""))[1] == name]

    def _is_listed(self, setting: Setting) -> bool:
        """Whether an entry stands in a flow mapping or an inline table."""
        return self._page.data.startswith(b"{", self._homes[setting.span.start][0].start)

    def _find_homes(self) -> dict[int, tuple[MappingNode, str]]:
        """The mapping that each key is written in and its dotted name there, by the place of the key."""
        homes: dict[int, tuple[MappingNode, str]] = {}
        pending = [(self._root, "")]
        while pending:
            mapping, above = pending.pop()
            for key in mapping.entries:
                if mapping.start <= key.key_start <= mapping.end and key.key_start not in homes:
                    name = f"{above}.{key.key}" if above else key.key
                    homes[key.key_start] = (mapping, name)
                    if isinstance(key.value, MappingNode):
                        pending.append((key.value, name))
        return homes

    def _remove_line(self, setting: Setting) -> Edit:
        data, start, end = self._page.data, setting.span.start, setting.span.end
        line = data.rfind(b"\n", 0, start) + 1
        if _COMMENT.match(data, end):
            if self._language == "toml":  # `table.` may stand before the key
                start = line + len(data[line:start]) - len(data[line:start].lstrip())
            return self._page.edit(start, _comment_start(data, end), "")
        if _REST_OF_LINE.match(data, end) is None:
            raise CannotEditError(f"{setting.name} shares its line with something else")
        stop = data.find(b"\n", end)
        if stop < 0:  # the last line, without an end: that of the line before goes
            return self._page.edit(max(line - len(self._line_end), 0), len(data), "")
        return self._page.edit(line, stop + 1, "")

    # --- what is missing -------------------------------------------------------------------------------------------------------------

    def _insert(self, missing: Sequence[Entry], taken: Set[int]) -> list[Edit]:
        """New keys; those that belong into one mapping are put there together."""
        places: dict[int, tuple[MappingNode, list[tuple[list[str], Entry]]]] = {}
        nulls: list[Edit] = []
        for entry in missing:
            mapping, rest, null = self._deepest(entry.name.split("."))
            if null is not None:
                nulls.append(self._into_null(null, rest, entry))
            else:
                places.setdefault(mapping.start, (mapping, []))[1].append((rest, entry))
        return nulls + [self._into(mapping, entries, taken) for mapping, entries in places.values()]

    def _deepest(self, parts: list[str]) -> tuple[MappingNode, list[str], ScalarNode | None]:
        """The mapping that the key belongs into, and what of the name is missing there; a null in place of a mapping, if any."""
        node = self._root
        for at, part in enumerate(parts[:-1]):
            child: Node | None = node.get(part)
            if isinstance(child, MappingNode) and _is_own(node, child):
                node = child
            elif isinstance(child, ScalarNode) and child.plain and child.text in ("", "~", "null"):
                return node, parts[at + 1 :], child
            elif child is not None:
                raise CannotEditError(f"{'.'.join(parts[: at + 1])} is written elsewhere, or is no mapping")
            else:
                return node, parts[at:], None
        return node, parts[-1:], None

    def _into_null(self, null: ScalarNode, rest: list[str], entry: Entry) -> Edit:
        text = self._flow(self._nested([(rest, entry)]))
        blank = "" if self._page.data[null.start - 1 : null.start].isspace() else " "
        return self._page.edit(null.start, null.end, blank + text)

    def _into(self, mapping: MappingNode, entries: Sequence[tuple[list[str], Entry]], taken: Set[int]) -> Edit:
        written = [key for key in mapping.entries if mapping.start <= key.key_start < max(mapping.end, 1)]
        own = [key for key in written if key.key_start not in taken]
        data = self._page.data
        is_flow = data[mapping.start : mapping.start + 1] == b"{"
        if not own:
            if is_flow and not written:
                return self._page.edit(mapping.start, mapping.end, self._flow(self._nested(entries)))
            raise CannotEditError("the mapping holds no key beside which another one could be put")
        if is_flow:
            last = own[-1]
            pairs = list(self._pairs(self._nested(entries)))
            return items.insert(self._page, last.key_start, max(last.value.end, last.key_end), pairs)
        if self._language == "toml":
            return self._into_table(own, entries)
        sibling = _last_plain(own)
        indent = _indent(data, own[0].key_start)
        lines = self._block(self._nested(entries), indent, self._step())
        end = _LINE_END.match(data, sibling.value.end if sibling.value.end > sibling.key_end else sibling.key_end)
        stop = end.end() if end else len(data)
        if data[stop - 1 : stop] == b"\r":
            stop -= 1
        return self._page.edit(stop, stop, "".join(self._line_end + line for line in lines))

    def _into_table(self, own: Sequence[Key], entries: Sequence[tuple[list[str], Entry]]) -> Edit:
        scalars = [key for key in own if not isinstance(key.value, MappingNode)]
        if not scalars:
            raise CannotEditError("the table holds no key beside which another one could be put")
        data, last = self._page.data, scalars[-1]
        above = data[data.rfind(b"\n", 0, last.key_start) + 1 : last.key_start].decode("utf-8")  # blanks, or `table.`
        end = _LINE_END.match(data, last.value.end)
        stop = end.end() if end else len(data)
        stop -= data[stop - 1 : stop] == b"\r"
        lines = [f"{above}{'.'.join(rest)} = {self._text(entry)}" for rest, entry in entries]
        return self._page.edit(stop, stop, "".join(self._line_end + line for line in lines))

    # --- text -----------------------------------------------------------------------------------------------------------------------------

    def _text(self, entry: Entry) -> str:
        like = entry.like
        if like is not None and like.value_span.path == self._page.path and like.origin == "file":
            raw = self._page.data[like.value_span.start : like.value_span.end].decode("utf-8")
            if re.fullmatch(r"[0-9.eE+-]+", raw):
                return raw
        return spell(entry.value, self._language)

    def _block(self, tree: _Texts, indent: str, step: str) -> Iterator[str]:
        for key, inner in tree.items():
            if isinstance(inner, str):
                yield f"{indent}{key}: {inner}"
            else:
                yield f"{indent}{key}:"
                yield from self._block(inner, indent + step, step)

    def _flow(self, tree: _Texts) -> str:
        return "{" + ", ".join(self._pairs(tree)) + "}"

    def _pairs(self, tree: _Texts) -> Iterator[str]:
        for key, inner in tree.items():
            shown = f'"{key}"' if self._language == "json" else key
            sign = " = " if self._language == "toml" else ": "
            yield shown + sign + (inner if isinstance(inner, str) else self._flow(inner))

    def _nested(self, entries: Sequence[tuple[list[str], Entry]]) -> _Texts:
        """New keys as a tree, so that those of one mapping share it."""
        tree: _Texts = {}
        for rest, entry in entries:
            branch = tree
            for key in rest[:-1]:
                inner = branch.setdefault(key, {})
                if isinstance(inner, str):
                    raise CannotEditError(f"{entry.name} lies below a value")
                branch = inner
            branch[rest[-1]] = self._text(entry)
        return tree

    def _step(self) -> str:
        """How much deeper one level stands."""
        for key in self._root.entries:
            if isinstance(key.value, MappingNode) and key.value.entries:
                inner = _indent(self._page.data, key.value.entries[0].key_start)
                outer = _indent(self._page.data, key.key_start)
                if inner.startswith(outer) and len(inner) > len(outer):
                    return inner[len(outer) :]
        return "  "

    def _mapping_with(self, offset: int) -> MappingNode:
        """The root of the document that holds a byte of the file."""
        documents = read_keys(Source(self._page.path, self._page.data))
        roots = [document.root for document in documents if isinstance(document.root, MappingNode)]
        holding = [root for root in roots if root.start <= offset <= root.end]
        if not holding and len(roots) != 1:
            raise CannotEditError("which document of the file this is cannot be told")
        return (holding or roots)[0]


def _is_own(parent: MappingNode, child: MappingNode) -> bool:
    """Whether a mapping is written where it is used: an alias changes elsewhere too."""
    own = any(child.start <= key.key_start <= child.end for key in child.entries)
    return parent.start <= child.start and (own or not child.entries)


def _last_plain(own: Sequence[Key]) -> Key:
    """The key to put new ones behind: the last one on a line of its own, so that they do not end up below a nested mapping."""
    scalars = [key for key in own if isinstance(key.value, ScalarNode)]
    return scalars[-1] if scalars else own[-1]


def _indent(data: bytes, at: int) -> str:
    """The blanks before a key; before an item of a list its dash counts as one."""
    line = data[data.rfind(b"\n", 0, at) + 1 : at].decode("utf-8", "replace").removeprefix("\ufeff")
    return re.sub(r"[^ \t]", " ", line)


def _comment_start(data: bytes, end: int) -> int:
    return data.index(b"#", end)
