"""Where a quote, expansion or substitution ends: one pass with a stack of what is open, so that no nesting is too deep."""

from __future__ import annotations

import re

_MAX_STEPS = 3_000_000  # for all ends looked for in one text

_BACKQUOTED = re.compile(r"[^\\`]*(?:\\.[^\\`]*)*`", re.DOTALL)
_ANSI_QUOTED = re.compile(r"[^\\']*(?:\\.[^\\']*)*'", re.DOTALL)
_HEREDOC_WORD = re.compile(r"(-?)[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|\\?([\w.+-]+))")

# What is open: ")" code, "a" arithmetic, "}" an expansion, "q" an expansion inside double quotes, '"' double quotes, "esac" a case.
_SPECIAL = {
    ")": re.compile(r"\\|\$'|'|\"|`|\$\(\(|\$\(|\$\{|\(|\)|#|\n|<<<|<<|\bcase\s+(?:\"[^\"\n]*\"|[^\s;&|]+)\s+in\b"),
    "a": re.compile(r"\\|'|\"|`|\$\(\(|\$\(|\$\{|\(|\)"),
    "}": re.compile(r"\\|\$'|'|\"|`|\$\(\(|\$\(|\$\{|\}"),
    "q": re.compile(r"\\|\"|`|\$\(\(|\$\(|\$\{|\}"),
    '"': re.compile(r"\\|\"|`|\$\(\(|\$\(|\$\{"),
}
_SPECIAL["esac"] = re.compile(_SPECIAL[")"].pattern + r"|\besac\b")
_OPENED = {"$((": ("a", "a"), "$(": (")",), '"': ('"',)}
_CLOSER = {")": ")", "a": ")", "}": "}", "q": "}", '"': '"', "esac": "esac"}


class Scanner:
    """Finds ends in one text, with a limit on all the work done for it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps = _MAX_STEPS

    def closing(self, position: int, mode: str) -> int:
        """Where what was opened just before `position` closes: the index of the closing character, the text's length if nowhere."""
        text = self._text
        stack = [mode]
        pending: list[tuple[str, bool]] = []
        end, escaped = len(text), -1
        while self._steps > 0:
            self._steps -= 1
            mode = stack[-1]
            found = _SPECIAL[mode].search(text, position)
            if found is None:
                return end
            token, position = found.group(), found.end()
            if token == _CLOSER[mode]:
                stack.pop()
                if not stack:
                    return found.start()
            elif token in _OPENED:
                stack += _OPENED[token]
            elif token == "\\":
                position = escaped = position + 1
            elif token in ("'", "$'", "`"):
                position = _skip_quoted(text, position, token)
                if position > end:
                    return end
            elif token == "(":
                if mode != "esac":  # there it opens a pattern, or a subshell whose end is ignored as well
                    stack.append("a" if mode == "a" else ")")
            elif token == "${":
                stack.append("q" if mode in ('"', "q") else "}")
            elif token == "#":
                if found.start() == 0 or (text[found.start() - 1] in " \t\n;&|(" and found.start() != escaped):
                    position = _find(text, "\n", position)
            elif token == "<<":
                if word := _HEREDOC_WORD.match(text, position):
                    pending.append((word[2] or word[3] or word[4] or "", bool(word[1])))
                    position = word.end()
            elif token == "\n":
                for delimiter, indented in pending:
                    position = heredoc_end(text, position, delimiter, indented)[1]
                pending.clear()
            elif token.startswith("case"):
                stack.append("esac")
        return end


def heredoc_end(text: str, position: int, delimiter: str, indented: bool) -> tuple[int, int]:
    """End of the heredoc body that starts at `position`, and of its closing line.  A body without one goes on to the end of the text."""
    tabs = "\t*" if indented else ""
    line = re.compile(rf"^{tabs}{re.escape(delimiter)}\r?$\n?", re.MULTILINE).search(text, position)
    return (line.start(), line.end()) if line else (len(text), len(text))


def _skip_quoted(text: str, position: int, opener: str) -> int:
    """The position after the closing quote; beyond the text where there is none."""
    if opener == "'":
        return _find(text, "'", position) + 1
    quoted = (_BACKQUOTED if opener == "`" else _ANSI_QUOTED).match(text, position)
    return quoted.end() if quoted else len(text) + 1


def _find(text: str, character: str, position: int) -> int:
    found = text.find(character, position)
    return len(text) if found == -1 else found
