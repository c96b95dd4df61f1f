"""What readers make of a file, whatever its format: commands, trees of keys and config objects, each with its place in the bytes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from klaudit.model import Problem, Setting, Span, Value
from klaudit.readers.source import Source

NOT_FOLLOWED = "script not followed to its end"  # how the message of a problem begins behind which launches may stand

# --- commands: shell scripts, subprocess calls, notebook "!" lines, "run:" blocks ---------------------------------------------------


class Piece(Struct, frozen=True):
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


class Word(Struct, frozen=True):
    """One argument, after expansion and word splitting.

    `span` is where it is written (an array element: in the array's assignment), `site` where the command uses it.
    """

    pieces: tuple[Piece, ...]
    span: Span
    site: Span

    @property
    def text(self) -> str | None:
        """The argument, None where any part of it is unknown."""
        if len(self.pieces) == 1:
            return self.pieces[0].text
        parts = [piece.text for piece in self.pieces]
        return None if None in parts else "".join(part for part in parts if part is not None)

    @property
    def shown(self) -> str:
        """The argument with `${name}` in place of what is unknown."""
        return "".join("${" + ",".join(p.hangs_on or ("?",)) + "}" if p.text is None else p.text for p in self.pieces)

    @property
    def hangs_on(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for piece in self.pieces for name in piece.hangs_on))


class Command(Struct, frozen=True):
    """One simple command that would be started, its words expanded.  `words[0]` is the program.

    `assumes` lists the conditions under which it runs, in the script's own words, empty for what runs with no arguments and an empty
    environment.  `directory` is the working directory relative to where the script was started, None where a `cd` is unknown.
    `environment` holds `NAME=value` prefixes and exported variables known at that point.  Of what stands in a script that is called,
    `called_at` is the command that calls it, and `taken` tells of scripts on the way that only the endings of their paths are known by;
    `called` are the scripts that were called on the way, in order.
    """

    words: tuple[Word, ...]
    span: Span
    assumes: tuple[str, ...] = ()
    directory: str | None = "."
    environment: tuple[tuple[str, str | None], ...] = ()
    called_at: Span | None = None
    taken: tuple[str, ...] = ()
    called: tuple[str, ...] = ()


# --- trees of keys: YAML, JSON, TOML ------------------------------------------------------------------------------------------------


class ScalarNode(Struct, frozen=True):
    """`text` is the scalar's content after the format's own escapes; `plain` is false where quotes or a block make it a string.

    `start`/`end` are byte offsets into the document's source; `tag` is an explicit tag such as `!!str`.
    """

    text: str
    plain: bool
    start: int
    end: int
    tag: str | None = None


class Entry(Struct, frozen=True):
    key: str
    key_start: int
    key_end: int
    value: Node


class MappingNode(Struct, frozen=True):
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

    @property
    def in_force(self) -> tuple[Entry, ...]:
        """The entries that count."""
        last = {entry.key: entry for entry in self.entries}
        return self.entries if len(last) == len(self.entries) else tuple(last.values())


class SequenceNode(Struct, frozen=True):
    items: tuple[Node, ...]
    start: int
    end: int


Node: TypeAlias = ScalarNode | MappingNode | SequenceNode


class TreeDocument(Struct, frozen=True):
    """One YAML document, JSON text or TOML text; `header` holds leading comments (some tools put directives there)."""

    source: Source
    root: Node | None
    header: str = ""


# --- config objects: Python -----------------------------------------------------------------------------------------------------------


class Argument(Struct, frozen=True):
    """A positional argument: its value, and the qualified names it mentions (`HfArgumentParser((A, B))` mentions two)."""

    value: Value
    span: Span
    symbols: tuple[str, ...] = ()


class FieldSpec(Struct, frozen=True):
    """A field of a class body.  `annotation` holds the qualified names in its annotation, outermost first.

    `factory` is the qualified name of the class that makes the default (`field(default_factory=KLConfig)`, `x: KLConfig = KLConfig()`)
    and `given` what that call sets; `required` marks a field without a default.
    """

    name: str
    annotation: tuple[str, ...]
    span: Span
    factory: str | None = None
    given: tuple[Setting, ...] = ()
    required: bool = False


class ArgumentSpec(Struct, frozen=True):
    """One option of a command-line parser, or one positional argument, as declared.

    `flags` keep their dashes; `dest` is the attribute that holds the value; `default` is what the program sees where the option is not
    given (`type` applied to a string default, as argparse does).  `type`, `action` and `nargs` are as written, empty where absent.
    """

    flags: tuple[str, ...]
    dest: str
    default: Value
    span: Span
    type: str = ""
    action: str = ""
    nargs: str = ""
    choices: tuple[Value, ...] | None = None
    required: bool = False


class ConfigObject(Struct, frozen=True):
    """Settings given in Python code, as one thing.

    - `call`: `GRPOConfig(beta=0.04, **common)`; `symbol` is the callee's qualified name (`trl.GRPOConfig`), as imports make it.
    - `class`: a class body with field defaults; `symbol` is the class name, `bases` the qualified names it derives from.
    - `assignments`: `cfg.trainer.algorithm.use_kl_loss = False` grouped by root name; setting names are dotted, without the root.
      `given`: the root is a parameter, so that what else the object holds was set elsewhere.
    - `dict`: a dict literal or dict(...); nested keys dotted.
    - `overrides`: a list of `"a.b=c"` strings (Hydra compose, OmegaConf.from_dotlist, sys.argv).
    - `arguments`: `add_argument("--flag", default=...)` of one parser; setting names are the flags without leading dashes.

    Later settings win.  `open` names what may add settings that cannot be seen (`**kwargs` from elsewhere); `name` is the variable
    bound.  Attribute assignments to a variable bound to a call are appended to that call's settings.  A value that is itself a
    dict or an object made by a call is given whole and, after it, key by key under dotted names.

    `arguments`: for `call` an Argument for each positional one, for `class` a FieldSpec for each field, for `arguments` an
    ArgumentSpec for each option, for `overrides` a Word for each element.  `forced` is what the constructor of a `class` sets
    whatever is given.
    """

    kind: Literal["call", "class", "assignments", "dict", "overrides", "arguments"]
    symbol: str
    settings: tuple[Setting, ...]
    span: Span
    name: str | None = None
    bases: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    arguments: tuple[Argument | FieldSpec | ArgumentSpec | Word, ...] = ()
    scope: str = ""
    forced: tuple[Setting, ...] = ()
    given: bool = False


class PythonDocument(Struct, frozen=True):
    """`imports` maps local names to qualified names, `*` to star-imported modules; all parts stand in source order.

    `commands` are those given word by word; `shell_strings` are the texts handed to a shell, for the shell reader.  Where such a
    text has a part that cannot be known, it holds a command substitution named after what decides it.
    """

    source: Source
    objects: tuple[ConfigObject, ...]
    commands: tuple[Command, ...]
    imports: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    shell_strings: tuple[Source, ...] = ()


class ShellDocument(Struct, frozen=True):
    source: Source
    commands: tuple[Command, ...]
    problems: tuple[Problem, ...] = ()


class NotebookCell(Struct, frozen=True):
    """One cell as written; `index` counts from 0 among all cells of the notebook."""

    index: int
    kind: Literal["python", "shell", "markdown", "other"]
    source: Source


class NotebookDocument(Struct, frozen=True):
    """A notebook.  `python` reads its Python cells as one program, in order; `shell` are its `!` lines and `%%bash` cells.

    `files` are those that `%%writefile` cells write, by path.
    """

    source: Source
    cells: tuple[NotebookCell, ...]
    python: PythonDocument | None
    shell: tuple[Source, ...] = ()
    files: tuple[tuple[str, Source], ...] = ()
    problems: tuple[Problem, ...] = ()


# --- pieces of other languages within a file ----------------------------------------------------------------------------------------


class Embedded(Struct, frozen=True):
    """Shell in a job file, code in a Markdown fence.

    `language` is `sh`, `python`, `yaml`, `json`, `toml` or `ini`.  `environment` are the variables that the file sets for it, each with
    the span of its value; a value is None where it cannot be known.  `where` is the dotted path or the fence's line.
    """

    source: Source
    language: str = "sh"
    environment: tuple[tuple[str, str | None, Span], ...] = ()
    where: str = ""
