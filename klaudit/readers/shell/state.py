"""The state of a run: variables, functions, the stack of frames.  It can be copied at any instruction to follow another way from there."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from klaudit.readers.shell.code import Code
from klaudit.readers.shell.program import Instruction
from klaudit.readers.shell.text import ROOT, Place, Text, length, plain, to_path

MAX_CHARACTERS = 200_000  # of one variable
_MAX_REFERENCES = 8  # from name to name

MAX_FRAMES = 60  # functions calling functions, subshells in subshells, sourced scripts ...

Key: TypeAlias = "int | str"


class Value(NamedTuple):
    """Text held by a variable, and the whole word that gave it (an array's element with its quotes).

    `several` is what it hangs on that this is one element and not none or many.
    """

    text: Text
    place: Place | None = None
    several: tuple[str, ...] = ()


class Variable(Struct, frozen=True):
    """A scalar is an array with the one element 0, as in bash.  `items` is never changed, only replaced."""

    items: dict[Key, Value]
    is_array: bool = False
    is_associative: bool = False
    is_exported: bool = False
    is_integer: bool = False
    letters: Literal["", "lower", "upper"] = ""
    refers_to: str = ""

    @property
    def scalar(self) -> Value | None:
        return self.items.get("0" if self.is_associative else 0)


class LoopBlock(Struct, frozen=True):
    """A loop being run: where `continue` and `break` go, what a `for` takes, and how often it has been round."""

    again: int
    end: int
    values: tuple[Value, ...] = ()
    rounds: int = 0


class RedirectBlock(Struct, frozen=True):
    """Input and output to return to after a redirected compound command."""

    input: Text | None
    output: Text | None


Block: TypeAlias = LoopBlock | RedirectBlock


class Options(Struct, frozen=True):
    """What `set` switches: `-e`, `-u`, `-o pipefail`."""

    errexit: bool = False
    nounset: bool = False
    pipefail: bool = False


class Function(NamedTuple):
    """Where a function's instructions begin, and the script it was defined in."""

    code: Code
    instructions: list[Instruction]
    position: int
    file: str


class Outside(Struct, frozen=True):
    """What a subshell's caller gets back when it ends."""

    variables: dict[str, Variable]
    functions: dict[str, Function]
    options: Options
    directory: str | None
    is_foreign: bool


FrameKind: TypeAlias = Literal["script", "function", "subshell", "stage", "source", "code"]


class Frame(Struct):
    """A position in a program.

    `name` is `$0`, `file` the script that the code stands in, `positional` `$1` and on.  `outside` is set in subshells, `locals` holds
    what `local` has hidden, `input` and `output` are set where the frame's end brings others back, `collects` in the stages of a
    pipeline whose output the next one reads, which is left in the `piped` of the frame below.  `is_tested`: failures inside do not end
    the script.  `called_at` is the command of the first script that called the one it is in, if another did; `taken` tells of scripts
    on the way that are known by the endings of their paths alone, `called` are the paths in the tree of those that were called, in order.
    """

    code: Code
    instructions: list[Instruction]
    position: int
    kind: FrameKind
    positional: tuple[Value, ...]
    name: str
    file: str
    function: str = ""
    outside: Outside | None = None
    locals: dict[str, Variable | None] = field(default_factory=dict)
    input: tuple[Text | None] | None = None
    output: tuple[Text | None] | None = None
    blocks: tuple[Block, ...] = ()
    collects: bool = False
    piped: Text | None = None
    failed: tuple[int, tuple[str, ...]] = (0, ())
    is_tested: bool = False
    called_at: Place | None = None
    taken: tuple[str, ...] = ()
    called: tuple[str, ...] = ()

    def copy(self) -> Frame:
        return replace(self, locals=dict(self.locals))


class State(Struct):
    """`status` is the last exit status, `status_hangs` what it hangs on.  `output` is None where nobody reads it.

    `directory` is a path below ROOT while it is inside the scanned tree, some other absolute path, or None.  `is_foreign`: on another
    machine (ssh, a container), or after a script that cannot be seen, so that variables not set here may well be.  The run ends when
    only `floor` frames are left.
    """

    variables: dict[str, Variable]
    functions: dict[str, Function]
    frames: list[Frame]
    directory: str | None
    options: Options = Options()
    status: int = 0
    status_hangs: tuple[str, ...] = ()
    input: Text | None = None
    output: Text | None = None
    assumes: tuple[str, ...] = ()
    is_foreign: bool = False
    floor: int = 0

    def copy(self) -> State:
        return replace(
            self,
            variables=dict(self.variables),
            functions=dict(self.functions),
            frames=[frame.copy() for frame in self.frames],
        )

    @property
    def shown_directory(self) -> str | None:
        """The directory relative to where the script was started."""
        if self.directory is None or not (self.directory + "/").startswith(ROOT + "/"):
            return None
        return to_path(self.directory[len(ROOT) + 1 :]) or "."

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def has_ended(self) -> bool:
        return len(self.frames) <= self.floor

    def child_frame(self, kind: FrameKind, position: int) -> Frame:
        """A frame for instructions of the same program."""
        frame = self.frame
        return replace(
            frame,
            position=position,
            kind=kind,
            outside=self.outside() if kind in ("subshell", "stage") else None,
            locals={},
            input=None,
            output=None,
            blocks=(),
            collects=False,
            piped=None,
        )

    def outside(self) -> Outside:
        return Outside(dict(self.variables), dict(self.functions), self.options, self.directory, self.is_foreign)

    def pop(self) -> None:
        """End the innermost frame: what it hid, redirected or kept to itself is as it was before."""
        while self.frame.blocks:
            self.leave_block()
        frame = self.frames.pop()
        if frame.collects and self.frames:
            self.frame.piped = self.output or ()
        if frame.kind == "stage" and self.frames:
            below = self.frame
            below.failed = (self.status, self.status_hangs) if self.status else below.failed
            if self.options.pipefail and not frame.collects:
                self.status, self.status_hangs = below.failed
        if frame.input is not None:
            (self.input,) = frame.input
        if frame.output is not None:
            (self.output,) = frame.output
        for name, variable in frame.locals.items():
            if variable is None:
                self.variables.pop(name, None)
            else:
                self.variables[name] = variable
        if frame.outside is not None:
            outside = frame.outside
            self.variables, self.functions = outside.variables, outside.functions
            self.options, self.directory, self.is_foreign = outside.options, outside.directory, outside.is_foreign

    def leave_block(self) -> None:
        *blocks, block = self.frame.blocks
        self.frame.blocks = tuple(blocks)
        if isinstance(block, RedirectBlock):
            self.input, self.output = block.input, block.output

    def leave_subshell(self) -> None:
        """`exit`: the innermost subshell ends, or the whole run."""
        while not self.has_ended:
            is_subshell = self.frame.outside is not None
            self.pop()
            if is_subshell:
                break

    def end_after(self, depth: int) -> None:
        """`exec`: the script, or its innermost subshell, ends once the frames above `depth` have."""
        if len(self.frames) == depth:
            self.leave_subshell()
            return
        for frame in reversed(self.frames[self.floor : depth]):
            frame.position, frame.blocks = len(frame.instructions) - 1, ()  # the last instruction is a Return
            if frame.outside is not None:
                break

    def leave_function(self) -> bool:
        """`return`: the innermost function or sourced script ends, or a subshell inside it.  False where there is none."""
        if not any(frame.kind in ("function", "source") for frame in self.frames[self.floor :]):
            return False
        while not self.has_ended:
            is_last = self.frame.kind != "code"
            self.pop()
            if is_last:
                break
        return True

    def leave_loops(self, count: int, *, again: bool) -> None:
        """`break` and `continue`."""
        loops = sum(isinstance(block, LoopBlock) for block in self.frame.blocks)
        remaining = min(count, loops)
        while remaining:
            block = self.frame.blocks[-1]
            if isinstance(block, LoopBlock):
                remaining -= 1
                if remaining == 0:
                    self.frame.position = block.again if again else block.end
                    if again:
                        return
            self.leave_block()

    def succeed(self, success: bool = True, hangs: tuple[str, ...] = ()) -> None:
        self.status, self.status_hangs = int(not success), hangs

    def resolve(self, name: str) -> str:
        """The name that a reference (`declare -n`) stands for."""
        variable = self.variables.get(name)
        for _ in range(_MAX_REFERENCES):
            if variable is None or not variable.refers_to:
                break
            name = variable.refers_to
            variable = self.variables.get(name)
        return name

    def assign(self, name: str, text: Text, place: Place | None = None, *, key: Key | None = None) -> None:
        """Set a variable or one element of it.  What is too long to follow becomes unknown."""
        name = self.resolve(name)
        if length(text) > MAX_CHARACTERS or len(text) > MAX_CHARACTERS // 20:
            text = (text[0]._replace(text="", hangs_on=(name,), unset=False),)
        old = self.variables.get(name)
        if old is None:
            self.variables[name] = Variable({0 if key is None else key: Value(text, place)}, is_array=key is not None)
            return
        if old.letters:
            text = tuple(
                piece._replace(text=piece.text.lower() if old.letters == "lower" else piece.text.upper())
                for piece in text
            )
        if key is None:
            key = "0" if old.is_associative else 0
            items = {**old.items, key: Value(text, place)} if old.is_array else {key: Value(text, place)}
            self.variables[name] = replace(old, items=items)
        else:
            self.variables[name] = replace(old, items={**old.items, key: Value(text, place)}, is_array=True)

    def assign_array(self, name: str, items: dict[Key, Value]) -> None:
        name = self.resolve(name)
        old = self.variables.get(name) or Variable({})
        self.variables[name] = replace(old, items=items, is_array=True)

    def unset(self, name: str) -> None:
        self.variables.pop(self.resolve(name), None)

    def hide(self, name: str) -> None:
        """`local name`: the variable comes back when the innermost function returns."""
        for frame in reversed(self.frames):
            if frame.kind == "function":
                if name not in frame.locals:
                    frame.locals[name] = self.variables.get(name)
                return

    def environment(self) -> tuple[tuple[str, Text], ...]:
        """The exported variables."""
        return tuple(
            (name, variable.scalar.text)
            for name, variable in self.variables.items()
            if variable.is_exported and variable.scalar is not None
        )

    def ifs(self) -> str:
        """The characters that split words."""
        variable = self.variables.get("IFS")
        value = variable.scalar if variable is not None else None
        return " \t\n" if value is None else plain(value.text)
