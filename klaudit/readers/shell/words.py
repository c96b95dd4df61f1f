"""What the lexer makes of words and simple commands.  Positions are offsets into the text of the Code they belong to."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias


class Plain(NamedTuple):
    """Characters that stand for themselves; an empty quoted one marks `""`."""

    start: int
    end: int
    quoted: bool


class Escaped(NamedTuple):
    """Characters spelled otherwise: `\\"`, `\\n` in `$'..'`."""

    start: int
    end: int
    characters: str
    quoted: bool = True


class Parameter(NamedTuple):
    """`$name` or `${...}`.  `subscript` is the range between the brackets; `argument` and `replacement` are words of their own.

    `operator` is what follows the name: `:-`, `##`, `//`, `:` (substring), `^^`, `@Q` ...; `prefix` is `#` (length), `!`
    (indirection, or keys with the subscript `@`) or empty.
    """

    start: int
    end: int
    quoted: bool
    name: str
    prefix: str = ""
    subscript: tuple[int, int] | None = None
    operator: str = ""
    argument: Word | None = None
    replacement: Word | None = None


class Substitution(NamedTuple):
    """`$(...)`, backquotes, `<(...)` or `>(...)`; the code stands at `inner`."""

    start: int
    end: int
    quoted: bool
    inner: tuple[int, int]
    kind: OneOf["$", "`", "<", ">"] = "$"


class Arithmetic(NamedTuple):
    """`$((...))`: the expression, with its own expansions still to be done."""

    start: int
    end: int
    quoted: bool
    expression: Word


Part: TypeAlias = Plain | Escaped | Parameter | Substitution | Arithmetic


class Word(NamedTuple):
    """`is_simple`: plain characters that no expansion changes, as most words are.  `is_tame`: no braces or tilde to look for."""

    start: int
    end: int
    parts: tuple[Part, ...]
    is_simple: bool = False
    is_tame: bool = False


class Element(NamedTuple):
    """One element of an array in an assignment: `word` or `[key]=word`."""

    key: Word | None
    value: Word


class Assignment(NamedTuple):
    """`name=value`, `name+=value`, `name[subscript]=value`, or `name=(elements)`, which has no value."""

    start: int
    end: int
    name: str
    subscript: tuple[int, int] | None
    append: bool
    value: Word
    elements: tuple[Element, ...] | None = None


class Redirect(NamedTuple):
    """`operator` with its target word; a heredoc (`<<`) has its body as target."""

    operator: str
    descriptor: int
    target: Word


class SimpleCommand(NamedTuple):
    """`assignments` stand before the first word.  Declarations (`export X=..`) have assignments among their words."""

    start: int
    end: int
    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirects: tuple[Redirect, ...]
    words_end: int
