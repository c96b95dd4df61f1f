"""Simple commands, assignments and redirections, as bash reads them.

The syntax tree says where commands are; what their words are is decided here, byte by byte, because whoever edits a word needs the
spelling of every character.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from klaudit.readers.shell.parts import PartReader
from klaudit.readers.shell.scan import heredoc_end
from klaudit.readers.shell.words import Assignment, Element, Escaped, Part, Plain, Redirect, SimpleCommand, Word

if TYPE_CHECKING:
    from klaudit.readers.shell.code import Code

DECLARATIONS = frozenset({"export", "declare", "typeset", "local", "readonly"})

_BLANKS = re.compile(r"(?:[ \t]|\\\r?\n|\r(?=\n))+")
_SIMPLE_WORD = re.compile(
    r"[A-Za-z0-9_@%+=:,./\[\]*?^!-]+(?=[ \t\n;&|)]|\Z)"
)  # no quotes, expansions, braces: most words
_NEXT_SIMPLE_WORD = re.compile(_BLANKS.pattern + f"({_SIMPLE_WORD.pattern})")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[((?:[^\]\[]|\[[^\]]*\])*)\])?(\+?)=", re.ASCII)
_KEY = re.compile(r"\[((?:[^\]\[\n]|\[[^\]\n]*\])*)\]=")
_REDIRECT = re.compile(r"(\d*|\{\w+\})(<<<|<<-|<<|<>|>>|>\||>&|<&|<(?!\()|>(?!\())|(&>>|&>)")
_MAY_REDIRECT = frozenset("<>&{0123456789")
_WILD = re.compile(r"[{~]")
_END = frozenset("\n;&|()")


class Lexer:
    """Reads one Code."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._text = code.text
        self._parts = PartReader(code.text, code.scanner)

    def simple_command(self, position: int) -> SimpleCommand:
        """The simple command that starts at `position`; it ends at an operator, a newline or a comment, as in bash."""
        cached = self._code.commands.get(position)
        if cached is None:
            cached = self._code.commands[position] = self._read_command(position)
        return cached

    def words(self, position: int) -> tuple[tuple[Word, ...], int]:
        """The words from `position` to the end of the line or command, and where they end: the list of a `for`."""
        found = []
        while (position := self._skip_blanks(position)) < len(self._text) and self._text[position] != "#":
            word = self.word(position)
            if word.end == position:
                break
            found.append(word)
            position = word.end
        return tuple(found), position

    def word(self, position: int, limit: int | None = None) -> Word:
        """The word at `position`; empty where an operator stands there."""
        end = len(self._text) if limit is None else limit
        if simple := _SIMPLE_WORD.match(self._text, position, end):
            return Word(position, simple.end(), (Plain(position, simple.end(), False),), True)
        return self._complex_word(position, end)

    def _complex_word(self, position: int, end: int) -> Word:
        parts, after = self._parts.unquoted(position, end)
        is_tame = all(
            part.quoted or not isinstance(part, Plain) or not _WILD.search(self._text, part.start, part.end)
            for part in parts
        )
        return Word(position, after, tuple(parts), False, is_tame)

    def pattern(self, position: int, end: int, *, is_regex: bool) -> Word:
        """The right side of `==` or `=~` inside `[[ ]]`, where parentheses and `|` may be part of the word."""
        start, parts, depth = position, list[Part](), 0
        while position < end:
            more, position = self._parts.unquoted(position, end)
            parts += more
            if position >= end or self._text[position] not in "()|<>&; \t":
                break
            character = self._text[position]
            if character == "(" and (is_regex or self._text[position - 1] in "@?*+!"):
                depth += 1
            elif depth == 0 and not (is_regex and character in "|<>"):
                break
            elif character == ")":
                depth -= 1
            parts.append(Plain(position, position + 1, False))
            position += 1
        return Word(start, position, tuple(parts))

    def quoted(self, position: int, end: int) -> Word:
        """The text between two positions as inside double quotes."""
        return Word(position, end, tuple(self._parts.quoted(position, end)))

    def redirects(self, position: int) -> tuple[tuple[Redirect, ...], int]:
        """The redirections after a compound command, and where they end."""
        found: list[Redirect] = []
        heredocs: list[tuple[re.Match[str], Word]] = []
        end = position
        while operator := _REDIRECT.match(self._text, self._skip_blanks(position)):
            end = position = self._redirect(operator, found, heredocs)
        return (*found, *self._heredoc_bodies(end, heredocs)), end

    def brackets_end(self, position: int) -> int:
        """Where the `]]` stands that closes what was opened just before `position`; the text's length if nowhere."""
        while (position := self._skip_blanks(position)) < len(self._text):
            if self._text.startswith("]]", position):
                return position
            position = max(self.word(position).end, position + 1)
        return len(self._text)

    def take_unterminated(self) -> int | None:
        """Where a quote or expansion begins that was read since the last call and never ends."""
        position, self._parts.unterminated = self._parts.unterminated, None
        return position

    def _read_command(self, start: int) -> SimpleCommand:
        text, position, words_end = self._text, start, start
        next_simple, declares = _NEXT_SIMPLE_WORD.match, False
        assignments: list[Assignment] = []
        words: list[Word | Assignment] = []
        redirects: list[Redirect] = []
        heredocs: list[tuple[re.Match[str], Word]] = []
        while True:
            if words and not declares:
                while simple := next_simple(text, position):
                    position = words_end = simple.end()
                    start_of_word = simple.start(1)
                    words.append(Word(start_of_word, position, (Plain(start_of_word, position, False),), True))
            position = self._skip_blanks(position)
            if position >= len(text) or text[position] == "#":
                break
            first = text[position]
            if first in _MAY_REDIRECT and (operator := _REDIRECT.match(text, position)):
                position = self._redirect(operator, redirects, heredocs)
                continue
            if first in _END:
                break
            item = self._assignment(position) if not words or declares else None
            if item is not None and not words:
                assignments.append(item)
                position = words_end = item.end
                continue
            word = item or (self._complex_word(position, len(text)) if words else self.word(position))
            if word.end == position:  # an operator out of place
                break
            if not words:
                declares = text[word.start : word.end] in DECLARATIONS
            words.append(word)
            position = words_end = word.end
        redirects += self._heredoc_bodies(position, heredocs)
        return SimpleCommand(start, position, tuple(assignments), tuple(words), tuple(redirects), words_end)

    def _assignment(self, position: int) -> Assignment | None:
        match = _ASSIGNED.match(self._text, position)
        if match is None:
            return None
        subscript, after = (match.span(2) if match[2] is not None else None), match.end()
        if subscript is None and self._text.startswith("(", after):
            elements, end = self._elements(after + 1)
            return Assignment(position, end, match[1], None, bool(match[3]), Word(after, after, ()), elements)
        value = self.word(after)
        return Assignment(position, value.end, match[1], subscript, bool(match[3]), value)

    def _elements(self, position: int) -> tuple[tuple[Element, ...], int]:
        """The elements of an array, up to the parenthesis; newlines and comments may stand between them."""
        text, elements = self._text, list[Element]()
        while (position := self._skip_blanks(position)) < len(text):
            if text[position] == ")":
                return tuple(elements), position + 1
            if text[position] == "#":
                position = self._line_end(position)
                continue
            key = None
            if found := _KEY.match(text, position):
                key, position = self.quoted(*found.span(1)), found.end()
            value = self.word(position)
            if value.end > position or key is not None:
                elements.append(Element(key, value))
                position = value.end
            else:
                position += 1  # a newline, or an operator, which is an error in bash
        return tuple(elements), position

    def _redirect(
        self, operator: re.Match[str], redirects: list[Redirect], heredocs: list[tuple[re.Match[str], Word]]
    ) -> int:
        target = self.word(self._skip_blanks(operator.end()))
        symbol = operator[2] or operator[3]
        if symbol in ("<<", "<<-"):
            heredocs.append((operator, target))
        else:
            redirects.append(Redirect(symbol, _descriptor(operator), target))
        return target.end

    def _heredoc_bodies(self, position: int, heredocs: list[tuple[re.Match[str], Word]]) -> list[Redirect]:
        bodies: list[Redirect] = []
        if not heredocs:
            return bodies
        line = self._line_end(position)
        start = self._code.heredocs.get(line, min(line + 1, len(self._text)))
        for operator, target in heredocs:
            delimiter = "".join(_spelled(part, self._text) for part in target.parts)
            indented = operator[2] == "<<-"
            end, following = heredoc_end(self._text, start, delimiter, indented)
            is_literal = any(not isinstance(part, Plain) or part.quoted for part in target.parts)
            parts: list[Part] = []
            for first, last in self._lines_without_tabs(start, end) if indented else [(start, end)]:
                parts += [Plain(first, last, True)] if is_literal else self._parts.quoted(first, last, heredoc=True)
            bodies.append(Redirect("<<", _descriptor(operator), Word(start, end, tuple(parts))))
            start = following
        self._code.heredocs[line] = start
        return bodies

    def _lines_without_tabs(self, start: int, end: int) -> list[tuple[int, int]]:
        lines = []
        while start < end:
            line_end = min(self._line_end(start) + 1, end)
            first = start
            while first < line_end and self._text[first] == "\t":
                first += 1
            lines.append((first, line_end))
            start = line_end
        return lines

    def _skip_blanks(self, position: int) -> int:
        blanks = _BLANKS.match(self._text, position)
        return blanks.end() if blanks else position

    def _line_end(self, position: int) -> int:
        found = self._text.find("\n", position)
        return len(self._text) if found == -1 else found


def _descriptor(operator: re.Match[str]) -> int:
    if operator[1]:
        return int(operator[1][:4]) if operator[1].isdigit() else 10  # bash puts the number into {name}
    return 0 if (operator[2] or "").startswith("<") else 1


def _spelled(part: Part, text: str) -> str:
    return part.characters if isinstance(part, Escaped) else text[part.start : part.end]
