"""What a name stands for: variables, parameters, and what only the machine can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from klaudit.readers.shell.arithmetic import evaluate
from klaudit.readers.shell.state import Key, State, Value, Variable
from klaudit.readers.shell.text import EMPTY, Fragment, Place, Text, at_place, hangs_on, located, merge_names, plain

HOME = "/home/user"

# Set on every machine, each to a value of its own; here what a bare machine might have.
_MACHINE = {
    "HOME": HOME,
    "USER": "user",
    "LOGNAME": "user",
    "HOSTNAME": "localhost",
    "PATH": "/usr/bin",
    "SHELL": "/bin/bash",
    "RANDOM": "1",
    "SRANDOM": "1",
    "SECONDS": "0",
    "EPOCHSECONDS": "0",
    "EPOCHREALTIME": "0",
    "UID": "1000",
    "EUID": "1000",
    "PPID": "1",
    "BASHPID": "1",
    "BASH": "/bin/bash",
    "BASH_VERSION": "5.2",
    "HOSTTYPE": "x86_64",
    "MACHTYPE": "x86_64-pc-linux-gnu",
    "OSTYPE": "linux-gnu",
    "LINENO": "1",
    "SHLVL": "1",
    "IFS": " \t\n",
    "OPTIND": "1",
}

# Not set on a bare machine, but by schedulers and installers: nothing here, and no mistake of the script.
_SITE_PREFIXES = ("SLURM_", "PBS_", "LSB_", "OMPI_", "PMI_", "PMIX_", "SGE_")
_SITE = frozenset(
    {
        "CONDA_PREFIX",
        "CUDA_HOME",
        "LANG",
        "LC_ALL",
        "LD_LIBRARY_PATH",
        "LIBRARY_PATH",
        "MANPATH",
        "OLDPWD",
        "PKG_CONFIG_PATH",
        "PYTHONPATH",
        "TERM",
        "TMPDIR",
        "VIRTUAL_ENV",
        "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR",
    }
)


class Found(NamedTuple):
    """What a name gives.  Not set, it gives nothing, but that nothing may still hang on the machine.

    `place` is the whole word that gave an array's element.
    """

    text: Text
    is_set: bool
    place: Place | None = None


def look_up(state: State, name: str, place: Place, key: Key | None = None) -> Found:
    """The value of a variable, an array's element or a parameter; `place` is where it is asked for."""
    variable = state.variables.get(state.resolve(name))
    if variable is not None:
        value = variable.scalar if key is None else variable.items.get(_from_end(variable, key))
        if value is None:
            return _beyond(variable.items.values() if key is not None else (), place)
        return Found(value.text, True, None if key is None else value.place)
    if name.isdigit():
        return _positional(state, int(name), place)
    if name in _SPECIAL:
        return Found(_SPECIAL[name](state, place), True)
    if name in ("BASH_SOURCE", "FUNCNAME"):
        return _stack_entry(state, name, place, key)
    if name == "PWD":
        return Found(located(state.directory or "/", place, ("PWD",)), True)
    if name in _MACHINE:
        return Found(at_place(_MACHINE[name], place, () if name in ("IFS", "OPTIND") else (name,)), True)
    if name.startswith(_SITE_PREFIXES) or name in _SITE or state.is_foreign:
        return Found(at_place("", place, (name,)), False)
    return Found(EMPTY, False)


def elements(state: State, name: str, place: Place) -> list[tuple[Key, Value]]:
    """All elements of an array, in order of their keys; the positional parameters for `@` and `*`."""
    if name in ("@", "*"):
        return list(enumerate(state.frame.positional, 1))
    variable = state.variables.get(state.resolve(name))
    if variable is None:
        if name in ("BASH_SOURCE", "FUNCNAME") or state.is_foreign:
            found = look_up(state, name, place)
            return [(0, Value(found.text))] if found.text else []
        return []
    if variable.is_associative:
        return list(variable.items.items())
    return sorted(variable.items.items(), key=lambda item: int(item[0]))


def _from_end(variable: Variable, key: Key) -> Key:
    if isinstance(key, int) and key < 0 and variable.items:
        return max(int(index) for index in variable.items) + 1 + key
    return key


def _positional(state: State, number: int, place: Place) -> Found:
    frame = state.frame
    if number == 0:
        return Found(located(frame.name, place, ("0",)), True)
    if number <= len(frame.positional):
        return Found(frame.positional[number - 1].text, True)
    return _beyond(frame.positional, place)


def number_of(values: Iterable[Value], place: Place) -> Text:
    """How many values these are, as text that hangs on what their number hangs on."""
    values = list(values)
    return at_place(str(len(values)), place, merge_names(*[value.several for value in values]))


def _beyond(values: Iterable[Value], place: Place) -> Found:
    """What none of the values known is: nothing, unless one of them may stand for several."""
    several = merge_names(*[value.several for value in values])
    return Found(at_place("", place, several), bool(several))


def _status(state: State, place: Place) -> Text:
    return at_place(str(state.status), place, state.status_hangs)


def _count(state: State, place: Place) -> Text:
    return number_of(state.frame.positional, place)


def _machine_number(name: str) -> Callable[[State, Place], Text]:
    return lambda _, place: at_place("1", place, (name,))


_SPECIAL: dict[str, Callable[[State, Place], Text]] = {
    "?": _status,
    "#": _count,
    "$": _machine_number("$"),
    "!": _machine_number("!"),
    "-": lambda _, place: at_place("hB", place),
}


def _stack_entry(state: State, name: str, place: Place, key: Key | None) -> Found:
    index = key if isinstance(key, int) else 0
    kinds = ("function",) if name == "FUNCNAME" else ("function", "source", "script")
    frames = [frame for frame in reversed(state.frames) if frame.kind in kinds]
    if not 0 <= index < len(frames):
        return Found(EMPTY, False)
    frame = frames[index]
    if name == "FUNCNAME":
        return Found(at_place(frame.function, place), True)
    return Found(located(frame.file, place, (name,)), True)


class ArithmeticVariables:
    """A state's variables as arithmetic sees them; `hangs` collects what was read and is not known."""

    def __init__(self, state: State, place: Place) -> None:
        self._state = state
        self._place = place
        self.hangs: tuple[str, ...] = ()

    def number_text(self, name: str, subscript: str | None) -> str:
        found = look_up(self._state, name, self._place, self._key(name, subscript))
        self.hangs = merge_names(self.hangs, hangs_on(found.text))
        return plain(found.text)

    def assign_number(self, name: str, subscript: str | None, value: int) -> None:
        key = self._key(name, subscript)
        self._state.assign(name, number_at(value, self._place, self.hangs, name), self._place, key=key)

    def _key(self, name: str, subscript: str | None) -> Key | None:
        if subscript is None:
            return None
        variable = self._state.variables.get(self._state.resolve(name))
        if variable is not None and variable.is_associative:
            return subscript
        return evaluate(subscript, self)


def number_at(value: int, place: Place, hangs: tuple[str, ...], variable: str | None = None) -> Text:
    return (Fragment(str(value), place.source, place.start, place.end, variable, hangs),)
