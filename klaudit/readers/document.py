"""What readers make of a file, whatever its format: commands, trees of keys and config objects, each with its place in the bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from klaudit.model import Problem, Setting, Span
from klaudit.readers.source import Source

# --- commands: shell scripts, subprocess calls, notebook "!" lines, "run:" blocks ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters of a word that were written in one place.

    `text` is None where the characters cannot be known; `hangs_on` then says what decides them.  `span` is where the characters
    stand: in the command itself, or in the assignment that gave `variable` its value.  `unset` marks an expansion of a variable that
    nothing sets (it gives no characters at all).
    """

    text: str | None
    span: Span
    variable: str | None = None
    hangs_on: tuple[str, ...] = ()
    unset: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """One argument, after expansion and word splitting.

    `span` is where it is written (an array element: in the array's assignment), `site` where the command uses it.
    """

    pieces: tuple[Piece, ...]
    span: Span
    site: Span

    @property
    def text(self) -> str | None:
        """The argument, None where any part of it is unknown."""
        parts = [piece.text for piece in self.pieces]
        return None if None in parts else "".join(part for part in parts if part is not None)

    @property
    def shown(self) -> str:
        """The argument with `${name}` in place of what is unknown."""
        return "".join("${" + ",".join(p.hangs_on or ("?",)) + "}" if p.text is None else p.text for p in self.pieces)

    @property
    def hangs_on(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for piece in self.pieces for name in piece.hangs_on))


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command that would be started, its words expanded.  `words[0]` is the program.

    `assumes` lists the conditions under which it runs, in the script's own words, empty for what runs with no arguments and an empty
    environment.  `directory` is the working directory relative to where the script was started, None where a `cd` is unknown.
    `environment` holds `NAME=value` prefixes and exported variables known at that point.
    """

    words: tuple[Word, ...]
    span: Span
    assumes: tuple[str, ...] = ()
    directory: str | None = "."
    environment: tuple[tuple[str, str | None], ...] = ()


# --- trees of keys: YAML, JSON, TOML ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """`text` is the scalar's content after the format's own escapes; `plain` is false where quotes or a block make it a string.

    `start`/`end` are byte offsets into the document's source; `tag` is an explicit tag such as `!!str`.
    """

    text: str
    plain: bool
    start: int
    end: int
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    key_start: int
    key_end: int
    value: Node


@dataclass(frozen=True, slots=True)
class MappingNode:
    """Entries in order of writing, merge keys already expanded (own keys win), duplicates kept (the last one counts)."""

    entries: tuple[Entry, ...]
    start: int
    end: int

    def get(self, key: str) -> Node | None:
        found = None
        for entry in self.entries:
            if entry.key == key:
                found = entry.value
        return found


@dataclass(frozen=True, slots=True)
class SequenceNode:
    items: tuple[Node, ...]
    start: int
    end: int


Node: TypeAlias = ScalarNode | MappingNode | SequenceNode


@dataclass(frozen=True, slots=True)
class TreeDocument:
    """One YAML document, JSON text or TOML text; `header` holds leading comments (some tools put directives there)."""

    source: Source
    root: Node | None
    header: str = ""


# --- config objects: Python -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConfigObject:
    """Settings given in Python code, as one thing.

    - `call`: `GRPOConfig(beta=0.04, **common)`; `symbol` is the callee's qualified name (`trl.GRPOConfig`), as imports make it.
    - `class`: a class body with field defaults; `symbol` is the class name, `bases` the qualified names it derives from.
    - `assignments`: `cfg.trainer.algorithm.use_kl_loss = False` grouped by root name; setting names are dotted, without the root.
    - `dict`: a dict literal or dict(...); nested keys dotted.
    - `overrides`: a list of `"a.b=c"` strings (Hydra compose, OmegaConf.from_dotlist, sys.argv).
    - `arguments`: `add_argument("--flag", default=...)` of one parser; setting names are the flags without leading dashes.

    Later settings win.  `open` names what may add settings that cannot be seen (`**kwargs` from elsewhere); `name` is the variable
    bound.  Attribute assignments to a variable bound to a call are appended to that call's settings.
    """

    kind: Literal["call", "class", "assignments", "dict", "overrides", "arguments"]
    symbol: str
    settings: tuple[Setting, ...]
    span: Span
    name: str | None = None
    bases: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    arguments: tuple[object, ...] = field(default=())
    scope: str = ""


@dataclass(frozen=True, slots=True)
class PythonDocument:
    """`imports` maps local names to qualified names; `objects` and `commands` stand in source order."""

    source: Source
    objects: tuple[ConfigObject, ...]
    commands: tuple[Command, ...]
    imports: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class ShellDocument:
    source: Source
    commands: tuple[Command, ...]
    problems: tuple[Problem, ...] = ()
