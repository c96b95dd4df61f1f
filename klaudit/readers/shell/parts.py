"""What a word is made of: plain runs, quotes, `$name`, `${..}`, `$(..)`, `$((..))`, backquotes, `<(..)`."""

from __future__ import annotations

import re
from typing import Literal as OneOf

from klaudit.patterns import rare
from klaudit.readers.shell.scan import Scanner
from klaudit.readers.shell.text import from_bytes
from klaudit.readers.shell.words import Arithmetic, Escaped, Parameter, Part, Plain, Substitution, Word

_MAX_PARTS = 20_000  # of one word; the rest of it is left as text
_MAX_NESTING = 25  # expansions inside expansions; deeper ones are left as text

_RUN = re.compile(r"(?:[^\s\\'\"`$|&;<>()]|\r(?!\n)|[\f\v])+")  # bash's blanks are space, tab and newline only
_QUOTED_RUN = re.compile(r"[^\\\"`$]+")
_HEREDOC_RUN = re.compile(r"[^\\`$]+")
_ARGUMENT_RUN = re.compile(r"[^\\'\"`$]+")
_PATTERN_RUN = re.compile(r"[^\\'\"`$/]+")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9]|[@*#?$!-]", re.ASCII)
_BRACED_NAME = re.compile(r"[A-Za-z_]\w*|[0-9]+|[@*#?$!-]", re.ASCII)
_OPERATOR = rare(r":[-=?+]|[-=?+]|##?|%%?|//|/[#%]?|\^\^?|,,?|@[A-Za-z]|:|[*@]")
_ANSI_ESCAPE = rare(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


class PartReader:
    """Reads the parts of words out of one text."""

    def __init__(self, text: str, scanner: Scanner) -> None:
        self.unterminated: int | None = None  # where a quote or expansion begins that never ends
        self._text = text
        self._scanner = scanner
        self._nesting = 0

    def unquoted(self, position: int, end: int) -> tuple[list[Part], int]:
        """The parts of the word at `position`, and where it ends: before a blank or an operator."""
        text, parts = self._text, list[Part]()
        while position < end:
            if run := _RUN.match(text, position, end):
                parts.append(Plain(position, run.end(), False))
                position = run.end()
            elif text[position] == "\\":
                position = self._escape(position, parts)
            elif text[position] in "'\"":
                position = self._quotes(position, end, parts)
            elif text[position] in "$`" or text.startswith(("<(", ">("), position):
                position = self._expansion(position, False, parts)
            else:
                break
            if len(parts) > _MAX_PARTS:
                return parts, self._end_of_text(position)
        return parts, min(position, end)

    def quoted(self, position: int, end: int, *, heredoc: bool = False) -> list[Part]:
        """The parts between two positions as inside double quotes, or in a heredoc, where `"` is plain."""
        text, parts = self._text, list[Part]()
        run_of, escapable = (_HEREDOC_RUN, "$`\\\n") if heredoc else (_QUOTED_RUN, '$`\\"\n')
        while position < end:
            if len(parts) > _MAX_PARTS:
                parts.append(Plain(position, end, True))
                break
            if run := run_of.match(text, position, end):
                parts.append(Plain(position, run.end(), True))
                position = run.end()
            elif text[position] == "\\":
                position = self._escape(position, parts, only=escapable)
            elif text[position] == '"':  # unbalanced: the text was cut
                parts.append(Plain(position, position + 1, True))
                position += 1
            else:
                position = self._expansion(position, True, parts)
        return parts

    def _quotes(self, position: int, end: int, parts: list[Part]) -> int:
        start = position + 1
        if self._text[position] == "'":
            close = self._text.find("'", start, end)
            close = self._end_of_text(position) if close == -1 else close
            parts.append(Plain(start, close, True))
        else:
            close = min(self._closing(position, start, '"'), end)
            parts += self.quoted(start, close) or [Plain(start, start, True)]
        return close + 1

    def _escape(self, position: int, parts: list[Part], only: str | None = None) -> int:
        """A backslash.  Inside quotes it escapes what is in `only` and is plain before anything else."""
        text = self._text
        for newline in ("\n", "\r\n"):  # a continuation leaves nothing
            if text.startswith(newline, position + 1):
                return position + 1 + len(newline)
        if position + 1 >= len(text):  # a continuation into nothing
            return position + 1
        if only is not None and text[position + 1] not in only:
            parts.append(Plain(position, position + 1, True))
            return position + 1
        parts.append(Escaped(position, position + 2, text[position + 1]))
        return position + 2

    def _expansion(self, position: int, quoted: bool, parts: list[Part]) -> int:
        """What starts at `$`, a backquote, `<(` or `>(`."""
        text = self._text
        following = text[position + 1 : position + 2]
        if text[position] in "<>":
            end = self._closing(position, position + 2, ")")
            kind: OneOf["<", ">"] = "<" if text[position] == "<" else ">"
            parts.append(Substitution(position, end + 1, quoted, (position + 2, end), kind))
        elif text[position] == "`":
            end = _backquote_end(text, position + 1)
            parts.append(Substitution(position, end + 1, quoted, (position + 1, end), "`"))
        elif following == "{":
            end = self._closing(position, position + 2, "q" if quoted else "}")
            parts.append(self._braced(position, end, quoted))
        elif following == "(":
            return self._parenthesised(position, quoted, parts)
        elif following == "'" and not quoted:
            return self._ansi_quotes(position + 2, parts)
        elif following == '"' and not quoted:  # translated strings: $".."
            return self._quotes(position + 1, len(text), parts)
        elif name := _NAME.match(text, position + 1):
            parts.append(Parameter(position, name.end(), quoted, name.group()))
            return name.end()
        else:
            parts.append(Plain(position, position + 1, quoted))
            return position + 1
        return end + 1

    def _closing(self, opened: int, position: int, mode: str) -> int:
        end = self._scanner.closing(position, mode)
        return self._end_of_text(opened) if end == len(self._text) else end

    def _end_of_text(self, opened: int) -> int:
        self.unterminated = opened if self.unterminated is None else self.unterminated
        return len(self._text)

    def _parenthesised(self, position: int, quoted: bool, parts: list[Part]) -> int:
        text = self._text
        if text.startswith("$((", position):
            end = self._scanner.closing(position + 3, "a")
            if text.startswith("))", end):
                expression = Word(position + 3, end, tuple(self._nested_quoted(position + 3, end)))
                parts.append(Arithmetic(position, end + 2, quoted, expression))
                return end + 2
        end = self._closing(position, position + 2, ")")
        parts.append(Substitution(position, min(end + 1, len(text)), quoted, (position + 2, end)))
        return end + 1

    def _ansi_quotes(self, position: int, parts: list[Part]) -> int:
        """The inside of `$'..'`."""
        text, start = self._text, position
        while position < len(text) and text[position] != "'":
            if text[position] == "\\" and (escape := _ANSI_ESCAPE.match(text, position)):
                characters, before = _ansi_characters(escape), parts[-1] if parts else None
                if isinstance(before, Escaped) and before.end == position and not characters.isascii():
                    parts[-1] = before._replace(
                        end=escape.end(), characters=before.characters + characters
                    )  # one letter
                else:
                    parts.append(Escaped(position, escape.end(), characters))
                position = escape.end()
                continue
            stop = min(
                (at for at in (text.find("\\", position + 1), text.find("'", position)) if at != -1), default=len(text)
            )
            parts.append(Plain(position, stop, True))
            position = stop
        if position == start:
            parts.append(Plain(start, start, True))
        return position + 1

    def _braced(self, start: int, end: int, quoted: bool) -> Part:
        """`${..}` whose closing brace stands at `end`."""
        text, position, prefix = self._text, start + 2, ""
        after = min(end + 1, len(text))
        if (
            text[position : position + 1] in ("#", "!")
            and position + 1 < end
            and _BRACED_NAME.match(text, position + 1)
        ):
            prefix = text[position]
            position += 1
        name = _BRACED_NAME.match(text, position, end)
        if name is None or self._nesting > _MAX_NESTING:
            return Plain(start, after, True)
        position, subscript = name.end(), None
        if text.startswith("[", position):
            close = _subscript_end(text, position + 1, end)
            subscript, position = (position + 1, close), close + 1
        found = _OPERATOR.match(text, position, end)
        if found is None:
            return Parameter(start, after, quoted, name.group(), prefix, subscript)
        operator = found.group()
        argument, replacement = self._arguments(operator, found.end(), end, quoted)
        return Parameter(start, after, quoted, name.group(), prefix, subscript, operator, argument, replacement)

    def _arguments(self, operator: str, position: int, end: int, quoted: bool) -> tuple[Word, Word | None]:
        if operator == ":":
            colon = self._top_level_colon(position, end)
            offset = Word(position, colon, tuple(self._nested_quoted(position, colon)))
            length = Word(colon + 1, end, tuple(self._nested_quoted(colon + 1, end))) if colon < end else None
            return offset, length
        if operator[0] == "/":
            # ${X///y}: the pattern is a slash; ${X/%/y}: there is none
            stop: OneOf["first", "later"] = "first" if operator in ("/#", "/%") else "later"
            pattern = self._argument(position, end, quoted, is_pattern=True, stop_at_slash=stop)
            replacement = self._argument(pattern.end + 1, end, quoted) if pattern.end < end else None
            return pattern, replacement
        return self._argument(position, end, quoted, is_pattern=operator[0] in "#%"), None

    def _top_level_colon(self, position: int, end: int) -> int:
        """The colon between offset and length of a substring, outside expansions and `?:`; `end` where there is none."""
        text, questions = self._text, 0
        while position < end:
            if text.startswith(("${", "$("), position):
                position = self._scanner.closing(position + 2, "}" if text[position + 1] == "{" else ")")
            elif text[position] == "?":
                questions += 1
            elif text[position] == ":":
                if questions == 0:
                    return position
                questions -= 1
            position += 1
        return end

    def _nested_quoted(self, position: int, end: int) -> list[Part]:
        self._nesting += 1
        try:
            return self.quoted(position, end) if self._nesting <= _MAX_NESTING else [Plain(position, end, True)]
        finally:
            self._nesting -= 1

    def _argument(
        self,
        position: int,
        end: int,
        quoted: bool,
        *,
        is_pattern: bool = False,
        stop_at_slash: OneOf["", "first", "later"] = "",
    ) -> Word:
        """The word after an operator.  Inside double quotes single quotes are plain there, except in a pattern."""
        text, start, parts = self._text, position, list[Part]()
        run_of = _PATTERN_RUN if stop_at_slash else _ARGUMENT_RUN
        plain_is_quoted = quoted and not is_pattern
        self._nesting += 1
        while position < end:
            if run := run_of.match(text, position, end):
                parts.append(Plain(position, run.end(), plain_is_quoted))
                position = run.end()
            elif text[position] == "/":
                if parts or position > start or stop_at_slash == "first":
                    break
                parts.append(Plain(position, position + 1, False))
                position += 1
            elif text[position] == "\\":
                position = self._escape(position, parts, only='$`\\"}\n' if plain_is_quoted else None)
            elif text[position] == "'" and plain_is_quoted:
                parts.append(Plain(position, position + 1, True))
                position += 1
            elif text[position] in "'\"":
                position = self._quotes(position, end, parts)
            else:
                position = self._expansion(position, quoted, parts)
        self._nesting -= 1
        return Word(start, min(position, end), tuple(parts))


def _ansi_characters(escape: re.Match[str]) -> str:
    byte, short, long, octal, named = escape.groups()
    if byte or octal:
        return from_bytes(bytes([int(byte, 16) if byte else int(octal, 8) & 0xFF]))
    if short or long:
        code_point = int(short or long, 16)
        valid = code_point < 0x110000 and not 0xD800 <= code_point < 0xE000
        return from_bytes(chr(code_point).encode()) if valid else ""
    return _ANSI_NAMED.get(named, named if named in "\\'\"?" else "\\" + named)


def _backquote_end(text: str, position: int) -> int:
    while position < len(text) and text[position] != "`":
        position += 2 if text[position] == "\\" else 1
    return min(position, len(text))


def _subscript_end(text: str, position: int, end: int) -> int:
    depth = 1
    for index in range(position, end):
        depth += (text[index] == "[") - (text[index] == "]")
        if depth == 0:
            return index
    return end
