"""Programs that only turn text into text: evaluated where their input is known, as in `$(basename "$X" .sh)`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klaudit.readers.shell.automaton import TooCostlyError
from klaudit.readers.shell.call import Call
from klaudit.readers.shell.files import absolute
from klaudit.readers.shell.patterns import CLASSES
from klaudit.readers.shell.regexes import Regex, from_basic
from klaudit.readers.shell.text import EMPTY, Text, at_place, cut, hangs_on, merge_names, plain

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine

_MAX_NUMBERS = 5_000
_MAX_INPUT = 200_000


class UnsupportedError(ValueError):
    """A use of a tool that is not evaluated: what it prints is unknown."""


@dataclass(slots=True)
class Job:
    """One call of a tool: its arguments, its input as lines, and what it leaves."""

    arguments: list[str]
    fields: list[Text]
    input: Text | None
    machine: Machine
    call: Call
    succeeded: bool = True

    def text(self) -> str:
        """The whole input.  Raises UnsupportedError where there is none that is known."""
        if self.input is None:
            raise UnsupportedError("input not known")
        text = plain(self.input)
        if len(text) > _MAX_INPUT:
            raise UnsupportedError("input too large")
        return text

    def lines(self) -> list[str]:
        lines = self.text().split("\n")
        return lines[:-1] if lines[-1] == "" else lines

    def options(self, with_value: str = "", joined: str = "") -> tuple[dict[str, str], list[str]]:
        """Single-letter options and the operands.  Raises UnsupportedError for long options."""
        found: dict[str, str] = {}
        operands: list[str] = []
        arguments = iter(self.arguments)
        for argument in arguments:
            if argument == "--":
                operands += arguments
            elif argument.startswith("--"):
                raise UnsupportedError(argument)
            elif argument.startswith("-") and len(argument) > 1 and not operands:
                for index, letter in enumerate(argument[1:], 2):
                    if letter in with_value:
                        found[letter] = argument[index:] or next(arguments, "")
                        break
                    found[letter] = ""
            else:
                operands.append(argument)
        return found, operands

    def read_files(self, paths: list[str]) -> None:
        """Use the content of these files as input.  Raises UnsupportedError where one is not in the tree."""
        if not paths:
            return
        content: list[Text] = []
        for path in paths:
            text = self.machine.file_text(at_place(path, self.call.place))
            if text is None:
                raise UnsupportedError(path)
            content.append(text)
        self.input = tuple(piece for text in content for piece in text)


def run_utility(machine: Machine, call: Call) -> None:
    """Run the tool that the call names; what it prints is unknown if it hangs on what is."""
    state = machine.state
    job = Job(call.arguments, [field.text for field in call.fields[1:]], state.input, machine, call)
    hangs = merge_names(*[hangs_on(text) for text in job.fields])
    try:
        result = UTILITIES[call.name](job)
    except (UnsupportedError, TooCostlyError, ValueError, OverflowError):
        machine.write_unknown(call.place)
        state.succeed(True, (call.name,))
        return
    hangs = merge_names(hangs, hangs_on(job.input) if job.input is not None and call.name in _READERS else ())
    if isinstance(result, str):
        machine.write(at_place(result, call.place, hangs))
    else:
        machine.write(result)
    state.succeed(job.succeeded, hangs)


def _line(text: str) -> str:
    return text + "\n"


def _basename(job: Job) -> str | Text:
    options, operands = job.options("s")
    if "a" in options or "s" in options or not 1 <= len(operands) <= 2:
        raise UnsupportedError("basename")
    path = operands[0].rstrip("/") or operands[0][:1]
    start = path.rfind("/") + 1 if path != "/" else 0
    end = len(path)
    suffix = operands[1] if len(operands) == 2 else ""
    if suffix and path.endswith(suffix) and end - start > len(suffix):
        end -= len(suffix)
    return _slice_of_operand(job, operands[0], start, end)


def _dirname(job: Job) -> str | Text:
    _, operands = job.options()
    if len(operands) != 1:
        raise UnsupportedError("dirname")
    path = operands[0].rstrip("/") or operands[0][:1]
    cut_at = path.rfind("/")
    if cut_at == -1:
        return _line(".")
    return _slice_of_operand(job, operands[0], 0, len(path[:cut_at].rstrip("/")) or 1)


def _slice_of_operand(job: Job, operand: str, start: int, end: int) -> str | Text:
    """Part of an argument, which stays where it was written."""
    text = next(text for text in job.fields if plain(text) == operand)
    if hangs_on(text) or end <= start:
        return _line(operand[start:end])
    return cut(text, start, end) + at_place("\n", job.call.place)


def _realpath(job: Job) -> str | Text:
    _, operands = job.options()
    if len(operands) != 1:
        raise UnsupportedError("realpath")
    path = absolute(operands[0], job.machine.state.directory)
    if path is None:
        raise UnsupportedError("realpath")
    return at_place(path, job.call.place, ("PWD",)) + at_place("\n", job.call.place)


def _readlink(job: Job) -> str | Text:
    options, _ = job.options()
    if not options.keys() & {"f", "e", "m"}:
        raise UnsupportedError("readlink")
    return _realpath(job)


def _seq(job: Job) -> str:
    arguments = list(job.arguments)
    separator, width = "\n", False
    while arguments and re.match(r"-[a-zA-Z]", arguments[0]):
        option = arguments.pop(0)
        if option.startswith("-s"):
            separator = option[2:] or arguments.pop(0)
        elif option == "-w":
            width = True
        else:
            raise UnsupportedError(option)
    numbers = [int(argument) for argument in arguments]
    if not 1 <= len(numbers) <= 3:
        raise UnsupportedError("seq")
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    last = numbers[-1]
    if step == 0 or abs(last - first) // abs(step) > _MAX_NUMBERS:
        raise UnsupportedError("seq")
    texts = [str(number) for number in range(first, last + (1 if step > 0 else -1), step)]
    if width:
        size = max(map(len, texts), default=0)
        texts = [text.zfill(size) for text in texts]
    return separator.join(texts) + "\n" if texts else ""


def _tr(job: Job) -> str:
    options, sets = job.options()
    text = job.text()
    if "c" in options or "C" in options:
        raise UnsupportedError("tr -c")
    first = _tr_set(sets[0])
    if "d" in options:
        return "".join(character for character in text if character not in first)
    second = _tr_set(sets[-1])
    if len(sets) == 2:
        second = second + second[-1:] * (len(first) - len(second))
        text = text.translate({ord(a): b for a, b in zip(first, second, strict=False)})
    if "s" in options:
        text = re.sub(f"([{re.escape(second)}])\\1+", r"\1", text) if second else text
    return text


def _tr_set(spelled: str) -> str:
    members: list[str] = []
    index = 0
    while index < len(spelled):
        if (name := re.compile(r"\[:(\w+):\]").match(spelled, index)) and name[1] in CLASSES:
            members += sorted(CLASSES[name[1]])
            index = name.end()
        elif spelled[index] == "\\" and index + 1 < len(spelled):
            members.append({"n": "\n", "t": "\t", "r": "\r", "0": "\0"}.get(spelled[index + 1], spelled[index + 1]))
            index += 2
        elif spelled[index + 1 : index + 2] == "-" and index + 2 < len(spelled):
            members += map(chr, range(ord(spelled[index]), ord(spelled[index + 2]) + 1))
            index += 3
        else:
            members.append(spelled[index])
            index += 1
    return "".join(members)


def _cut(job: Job) -> str:
    options, operands = job.options("dfcb")
    job.read_files(operands)
    delimiter = options.get("d", "\t")[:1]
    letter = next((each for each in "fcb" if each in options), None)
    if letter is None:
        raise UnsupportedError("cut")
    wanted = _cut_ranges(options[letter])
    lines = []
    for line in job.lines():
        if letter == "f":
            if delimiter not in line:
                lines.append(line)
                continue
            lines.append(delimiter.join(_chosen(line.split(delimiter), wanted)))
        else:
            lines.append("".join(_chosen(list(line), wanted)))
    return "".join(map(_line, lines))


def _cut_ranges(spelled: str) -> list[tuple[int, int | None]]:
    ranges: list[tuple[int, int | None]] = []
    for each in spelled.split(","):
        first, dash, last = each.partition("-")
        low = int(first) if first else 1
        ranges.append((low, (int(last) if last else None) if dash else low))
    return ranges


def _chosen(parts: list[str], ranges: list[tuple[int, int | None]]) -> list[str]:
    return [
        part
        for number, part in enumerate(parts, 1)
        if any(low <= number and (high is None or number <= high) for low, high in ranges)
    ]


def _head(job: Job) -> str:
    count, operands = _count(job)
    job.read_files(operands)
    lines = job.lines()
    return "".join(map(_line, lines[:count]))


def _tail(job: Job) -> str:
    count, operands = _count(job)
    job.read_files(operands)
    lines = job.lines()
    return "".join(map(_line, lines[-count:] if count else []))


def _count(job: Job) -> tuple[int, list[str]]:
    if job.arguments and re.fullmatch(r"-\d+", job.arguments[0]):
        return int(job.arguments[0][1:]), job.arguments[1:]
    options, operands = job.options("nc")
    if "c" in options or options.get("n", "").startswith(("-", "+")):
        raise UnsupportedError(job.call.name)
    return int(options.get("n", "10")), operands


def _wc(job: Job) -> str:
    options, operands = job.options()
    job.read_files(operands)
    text = job.text()
    counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text), "m": len(text)}
    chosen = [letter for letter in "lwcm" if letter in options]
    if len(chosen) != 1 or operands:
        raise UnsupportedError("wc")
    return _line(str(counts[chosen[0]]))


def _sort(job: Job) -> str:
    options, operands = job.options()
    job.read_files(operands)
    if options.keys() - set("nru"):
        raise UnsupportedError("sort")
    lines = job.lines()
    if "n" in options:
        lines.sort(key=lambda line: (_leading_number(line), line))
    else:
        lines.sort()
    if "u" in options:
        lines = list(dict.fromkeys(lines))
    return "".join(map(_line, reversed(lines) if "r" in options else lines))


def _leading_number(line: str) -> float:
    number = re.match(r"\s*(-?\d+(?:\.\d+)?)", line)
    return float(number[1]) if number else 0.0


def _uniq(job: Job) -> str:
    options, operands = job.options()
    job.read_files(operands)
    if options:
        raise UnsupportedError("uniq")
    lines = job.lines()
    return "".join(_line(line) for index, line in enumerate(lines) if index == 0 or lines[index - 1] != line)


def _cat(job: Job) -> Text:
    _, operands = job.options()
    if operands and operands != ["-"]:
        job.read_files(operands)
    job.text()
    return job.input or EMPTY


def _grep(job: Job) -> str:
    options, operands = job.options("em")
    if options.keys() - set("qvioEFexw") or "w" in options:
        raise UnsupportedError("grep")
    pattern = options["e"] if "e" in options else operands.pop(0)
    job.read_files(operands)
    if "F" in options:
        pattern = "".join("\\" + c if c in "\\^$.[]|()*+?{}" else c for c in pattern)
    elif "E" not in options:
        pattern = from_basic(pattern)
    lower = "i" in options
    regex = Regex(pattern.lower() if lower else pattern)
    found = []
    for line in job.lines():
        match = regex.search(line.lower() if lower else line)
        if (match is not None) != ("v" in options):
            found.append(line[slice(*match)] if "o" in options and match is not None else line)
    job.succeeded = bool(found)
    return "" if "q" in options else "".join(map(_line, found))


def _sed(job: Job) -> str:
    options, operands = job.options("e")
    if options.keys() - set("eEr"):
        raise UnsupportedError("sed")
    scripts = [options["e"]] if "e" in options else [operands.pop(0)]
    job.read_files(operands)
    text = job.text()
    lines = job.lines()
    for script in scripts:
        for command in filter(None, (part.strip() for part in script.split(";"))):
            lines = [_substituted(line, command, extended=bool(options.keys() & {"E", "r"})) for line in lines]
    return "".join(map(_line, lines))[: None if text.endswith("\n") or not text else -1]


def _substituted(line: str, command: str, *, extended: bool) -> str:
    """`s/pattern/replacement/flags` on one line."""
    if len(command) < 2 or command[0] != "s":
        raise UnsupportedError("sed")
    parts = re.split(r"(?<!\\)" + re.escape(command[1]), command[2:])
    if len(parts) != 3 or parts[2] not in ("", "g") or re.search(r"\\\d", parts[1]):
        raise UnsupportedError("sed")
    pattern = parts[0].replace("\\" + command[1], command[1])
    regex = Regex(pattern if extended else from_basic(pattern))
    pieces, position = [], 0
    for start, end in regex.find_all(line, only_first=parts[2] == ""):
        replacement = re.sub(r"(?<!\\)&", lambda _, s=start, e=end: line[s:e], parts[1])  # type: ignore[misc]
        pieces += [line[position:start], re.sub(r"\\(.)", r"\1", replacement)]
        position = end
    return "".join(pieces) + line[position:]


def _expr(job: Job) -> str:
    """Integer arithmetic only."""
    from klaudit.readers.shell.arithmetic import evaluate
    from klaudit.readers.shell.lookup import ArithmeticVariables

    if not all(re.fullmatch(r"-?\d+|[-+*/%()]", argument) for argument in job.arguments):
        raise UnsupportedError("expr")
    value = evaluate(" ".join(job.arguments), ArithmeticVariables(job.machine.state, job.call.place))
    job.succeeded = value != 0
    return _line(str(value))


def _unknown(text: str) -> Callable[[Job], Text]:
    """A tool that prints something, but on every machine something else."""

    def run(job: Job) -> Text:
        from klaudit.readers.shell.machine import PRINTED

        return at_place(text, job.call.place, (PRINTED,))

    return run


_READERS = frozenset({"tr", "cut", "head", "tail", "wc", "sort", "uniq", "grep", "sed"})

UTILITIES: dict[str, Callable[[Job], str | Text]] = {
    "basename": _basename,
    "dirname": _dirname,
    "realpath": _realpath,
    "readlink": _readlink,
    "seq": _seq,
    "tr": _tr,
    "cut": _cut,
    "head": _head,
    "tail": _tail,
    "wc": _wc,
    "sort": _sort,
    "uniq": _uniq,
    "cat": _cat,
    "grep": _grep,
    "sed": _sed,
    "expr": _expr,
    "date": _unknown("0\n"),
    "nproc": _unknown("1\n"),
    "uname": _unknown("Linux\n"),
}
