"""Commands that carry shell code in their words or read it: `bash -c`, `ssh host ..`, `sbatch --wrap`, `bash script.sh`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from klaudit.readers.shell.call import Call
from klaudit.readers.shell.code import BuiltCode, Code
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.state import Value
from klaudit.readers.shell.text import ROOT, Text, cut, from_path, join, plain
from klaudit.readers.source import Source

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine

_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_ELSEWHERE = frozenset({"ssh", "docker", "podman", "nerdctl", "kubectl", "gcloud", "modal", "sky", "pdsh", "pssh"})
_SSH_OPTIONS_WITH_VALUE = frozenset("-" + letter for letter in "BbcDEeFIiJLlmOopQRSWw")
_COMMAND_OPTIONS = {
    "sbatch": ("--wrap",),
    "modal": ("--command",),
    "gcloud": ("--command",),
    "script": ("-c", "--command", "-qc", "-qec", "-ec"),
    "su": ("-c", "--command"),
    "runuser": ("-c", "--command"),
}
_CARRIERS = _SHELLS | _COMMAND_OPTIONS.keys() | {"ssh", "tmux", "ray"}
_STARTERS = frozenset(
    {"env", "nice", "nohup", "sbatch", "setsid", "srun", "stdbuf", "time", "timeout"}
)  # of a script that is named
_SCRIPT_SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch")
_SHELL_CHARACTER = re.compile(r"[ \t\n;&|<>$`'\"\\]")
_BLANK = re.compile(r"[ \t\n]")
_GIVEN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_EXPORT = "--export="  # of sbatch and srun: `ALL,NAME=value,..`


class Carried(NamedTuple):
    """Code that another shell runs: with its own parameters and what the command adds to its environment, on another machine if
    `is_foreign`.  `taken` says so where only the ending of its path tells which script it is, `script` is its path in the tree."""

    code: Code
    positional: tuple[Value, ...] = ()
    name: str = ""
    file: str = ""
    is_foreign: bool = False
    taken: tuple[str, ...] = ()
    script: str = ""
    given: tuple[tuple[str, Text], ...] = ()


def carried_code(machine: Machine, call: Call) -> Carried | None:
    """The code that a command carries or reads, None if there is none."""
    words = [plain(field.text) for field in call.fields]
    programs = [word.rpartition("/")[2] for word in words]
    if not _CARRIERS.intersection(programs) and not machine.follow_scripts:
        return None
    is_foreign = bool(_ELSEWHERE.intersection(programs))
    shell = _shell(machine, words, programs)
    if shell is not None:
        carried = _for_shell(machine, call, words, shell)
        return carried and carried._replace(is_foreign=is_foreign, given=_given(call, words, programs[0], shell))
    if machine.follow_scripts and (index := _named_script(machine, words, programs[0])) is not None:
        carried = _script(machine, call, index)
        return carried and carried._replace(given=_given(call, words, programs[0], index))
    fields = _code_fields(programs[0], words, call.fields)
    if any(_SHELL_CHARACTER.search(plain(field.text)) for field in fields):  # plain words are a command as they stand
        return Carried(_built(call, fields), is_foreign=is_foreign)
    if programs[0] == "ssh" and not fields and machine.state.input is not None:
        return Carried(BuiltCode(machine.state.input, call.place.source), is_foreign=True)
    return None


def _shell(machine: Machine, words: Sequence[str], programs: Sequence[str]) -> int | None:
    """Where a shell is called: as the program, or behind wrappers."""
    if programs[0] in _SHELLS:
        return 0
    for index, program in enumerate(programs[:-1]):
        following = words[index + 1]
        if program in _SHELLS and (
            following.startswith("-") or (machine.follow_scripts and machine.find_script(following)[0] is not None)
        ):
            return index
    return None


def _named_script(machine: Machine, words: Sequence[str], program: str) -> int | None:
    """Where a script is started by its name: as the program, or by a program that does nothing else."""
    if program.endswith(_SCRIPT_SUFFIXES):
        return 0
    named = (at for at, word in enumerate(words) if word.endswith(_SCRIPT_SUFFIXES) and word[0] != "-")
    index = next(named, None) if program in _STARTERS else None
    return index if index is not None and machine.find_script(words[index])[0] is not None else None


def _given(call: Call, words: Sequence[str], program: str, end: int) -> tuple[tuple[str, Text], ...]:
    """What the words before a script or shell put into its environment."""
    given: list[tuple[str, Text]] = []
    for field, word in zip(call.fields[1:end], words[1:end], strict=True):
        starts = [0] if program == "env" else []
        if word.startswith(_EXPORT):
            starts = [len(_EXPORT), *(comma.end() for comma in re.finditer(",", word))]
        for start, stop in zip(starts, [*(at - 1 for at in starts[1:]), len(word)], strict=True) if starts else ():
            if name := _GIVEN.match(word, start, stop):
                given.append((name[1], cut(field.text, name.end(), stop)))
    return tuple(given)


def _for_shell(machine: Machine, call: Call, words: Sequence[str], shell: int) -> Carried | None:
    """`bash [options] -c code [name argument ..]`, `bash script argument ..`, or code from standard input."""
    index, takes_code = shell + 1, False
    while index < len(words) and words[index][:1] in ("-", "+") and len(words[index]) > 1:
        option = words[index]
        if option in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file"):
            index += 1
        takes_code |= not option.startswith("--") and "c" in option and option[0] == "-"
        index += 1
        if option in ("--", "-s"):
            break
    if index < len(words) and takes_code:
        rest = call.fields[index + 1 :]
        positional = tuple(Value(*field) for field in rest[1:])
        return Carried(_built(call, call.fields[index : index + 1]), positional, words[index + 1] if rest else "")
    if index < len(words) and "-s" not in words[shell + 1 : index]:
        return _script(machine, call, index) if machine.follow_scripts else None
    if machine.state.input is not None:
        return Carried(BuiltCode(machine.state.input, call.place.source))
    return None


def _script(machine: Machine, call: Call, index: int) -> Carried | None:
    path = plain(call.fields[index].text)
    source, taken = machine.find_script(path)
    if source is None or b"\0" in source.data:
        return None
    file = script_path(source)
    positional = tuple(Value(*field) for field in call.fields[index + 1 :])
    return Carried(machine.code_of(source), positional, file, file, taken=(taken,) if taken else (), script=source.path)


def script_path(source: Source) -> str:
    """The absolute path that a script of the scanned tree has."""
    return posixpath.join(ROOT, from_path(source.path))


def _code_fields(program: str, words: Sequence[str], fields: Sequence[Field]) -> Sequence[Field]:
    """The fields whose texts together are code."""
    if program == "ssh":
        return fields[_after_host(words) :]
    for option in _COMMAND_OPTIONS.get(program, ()):
        for index, word in enumerate(words):
            if word == option and index + 1 < len(words):
                return fields[index + 1 : index + 2]
            if option.startswith("--") and word.startswith(option + "="):
                return [_without_prefix(fields[index], len(option) + 1)]
    if program == "tmux":
        return [field for field, word in zip(fields, words, strict=True) if _BLANK.search(word)][:1]
    if program == "ray" and words[1:3] == ["job", "submit"] and "--" in words:
        entry = fields[words.index("--") + 1 :]
        if len(entry) == 1 and _BLANK.search(plain(entry[0].text)):
            return entry
    return []


def _after_host(words: Sequence[str]) -> int:
    index = 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in _SSH_OPTIONS_WITH_VALUE else 1
    return index + 1


def _without_prefix(field: Field, length: int) -> Field:
    return Field(cut(field.text, length, len(plain(field.text))))


def _built(call: Call, fields: Sequence[Field]) -> Code:
    """The fields as code, each keeping the place where the command uses it."""
    texts: list[Text] = [field.text for field in fields]
    return BuiltCode(join(texts, " "), call.place.source)
