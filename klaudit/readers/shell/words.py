"""What the lexer makes of words and simple commands.  Positions are offsets into the text of the Code they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Plain:
    """Characters that stand for themselves; an empty quoted one marks `""`."""

    start: int
    end: int
    quoted: bool


@dataclass(frozen=True, slots=True)
class Escaped:
    """Characters spelled otherwise: `\\"`, `\\n` in `$'..'`."""

    start: int
    end: int
    characters: str
    quoted: bool = True


@dataclass(frozen=True, slots=True)
class Parameter:
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


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(...)`, backquotes, `<(...)` or `>(...)`; the code stands at `inner`."""

    start: int
    end: int
    quoted: bool
    inner: tuple[int, int]
    kind: OneOf["$", "`", "<", ">"] = "$"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((...))`: the expression, with its own expansions still to be done."""

    start: int
    end: int
    quoted: bool
    expression: Word


Part: TypeAlias = Plain | Escaped | Parameter | Substitution | Arithmetic


@dataclass(frozen=True, slots=True)
class Word:
    start: int
    end: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an array in an assignment: `word` or `[key]=word`."""

    key: Word | None
    value: Word


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=value`, `name+=value`, `name[subscript]=value` or `name=(elements)`."""

    start: int
    end: int
    name: str
    subscript: tuple[int, int] | None
    append: bool
    value: Word | tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Redirect:
    """`operator` with its target word; a heredoc (`<<`) has its body as target."""

    operator: str
    descriptor: int
    target: Word


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """`assignments` stand before the first word.  Declarations (`export X=..`) have assignments among their words."""

    start: int
    end: int
    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirects: tuple[Redirect, ...]
    words_end: int
