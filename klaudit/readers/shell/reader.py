"""Reading a shell script: every command that it would start, its words fully expanded, each character with its place in the bytes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from klaudit.readers.document import ShellDocument
from klaudit.readers.shell.code import code_of
from klaudit.readers.shell.commands import to_commands
from klaudit.readers.shell.files import Files
from klaudit.readers.shell.machine import Machine
from klaudit.readers.shell.state import Value, Variable
from klaudit.readers.shell.text import ROOT, Fragment, from_bytes, from_path
from klaudit.readers.source import Source, UnreadableError

_ELSEWHERE = re.compile(rb"(?:^|[;&|({\s])(?:source|\.|eval|ba?sh|\S*\.sh)\s")
_MAX_BYTES = 4_000_000


def _load_nothing(path: str) -> Source | None:
    return None


def _no_path(path: str) -> str | None:
    return None


def may_start(source: Source, programs: Iterable[bytes]) -> bool:
    """Whether a script is worth reading for these programs or modules: it names one, or runs code that stands elsewhere.

    A cheap look at the bytes; a name that is only put together while the script runs is not seen.
    """
    return any(program in source.data for program in programs) or _ELSEWHERE.search(source.data) is not None


def read_shell(
    source: Source,
    *,
    load: Callable[[str], Source | None] = _load_nothing,
    at_ending: Callable[[str], str | None] = _no_path,
    name: str | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    follow_scripts: bool = False,
    follow_branches: bool = True,
) -> ShellDocument:
    """The commands that a bash script starts when it is run with these arguments and nothing in the environment but this.

    `load` gives the scripts it sources, by path relative to the scanned root; `name` is its own path there, if not that of the source
    (`$0` and relative paths hang on it).  `at_ending` gives the path there of the script that an absolute path from elsewhere ends
    like, where no other can be meant.  With `follow_scripts`, what `bash other.sh argument ..` starts is given as well.

    Without `follow_branches` only the plain run is given, not what other branches would start.

    Commands come in the order of running: first those of the plain run, which assume nothing, then what other branches would start.
    External commands are taken to succeed and to print nothing; whatever hangs on one of them, or on the machine, is unknown.

    Raises UnreadableError for binary data and for what is larger than any script.
    """
    data = source.data
    if b"\0" in data:
        raise UnreadableError("binary: has a NUL byte", data.count(b"\n", 0, data.index(b"\0")) + 1)
    if len(data) > _MAX_BYTES:
        raise UnreadableError(f"shell script larger than {_MAX_BYTES // 1_000_000} MB")
    machine = Machine(Files(load, at_ending), follow_scripts=follow_scripts, follow_branches=follow_branches)
    given = [_given(argument, source) for argument in arguments]
    variables = {
        key: Variable({0: _given(value, source)}, is_exported=True) for key, value in (environment or {}).items()
    }
    path = posixpath.join(ROOT, from_path(source.path if name is None else name))
    machine.run(code_of(source), path, given, variables)
    return ShellDocument(source, to_commands(machine.started), tuple(machine.problems))


def _given(text: str, source: Source) -> Value:
    """A text that comes from outside: it is written nowhere in the script."""
    return Value((Fragment(from_bytes(text.encode("utf-8", "surrogatepass")), source, 0, 0),))
