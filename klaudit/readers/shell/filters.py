"""Text tools that filter lines: tr, cut, head, tail, wc, sort, uniq, cat, grep, sed."""

from __future__ import annotations

import re
from collections.abc import Callable

from klaudit.readers.shell.job import Job, UnsupportedError, as_lines
from klaudit.readers.shell.patterns import CLASSES
from klaudit.readers.shell.regexes import Regex, from_basic
from klaudit.readers.shell.text import EMPTY, Text

_CLASS = re.compile(r"\[:([a-z]+):\]")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_LEADING_NUMBER = re.compile(r"[ \t]*(-?[0-9]+(?:\.[0-9]+)?)")
_COUNT = re.compile(r"-[0-9]+")


def _tr(job: Job) -> str:
    options, sets = job.options()
    text = job.text()
    if options.keys() - {"d", "s"} or not sets:
        raise UnsupportedError("tr")
    first, last = _members(sets[0]), _members(sets[-1])
    if "d" in options:
        return "".join(character for character in text if character not in first)
    if len(sets) == 2:
        padded = last + last[-1:] * (len(first) - len(last))
        text = text.translate({ord(old): new for old, new in zip(first, padded, strict=False)})
    if "s" in options and last:
        text = re.sub(f"([{re.escape(last)}])\\1+", r"\1", text)
    return text


def _members(spelled: str) -> str:
    """The characters of one of tr's sets, in order."""
    members: list[str] = []
    index = 0
    while index < len(spelled):
        if (name := _CLASS.match(spelled, index)) and name[1] in CLASSES:
            members += sorted(CLASSES[name[1]])
            index = name.end()
        elif spelled[index] == "\\" and index + 1 < len(spelled):
            members.append(_CONTROL.get(spelled[index + 1], spelled[index + 1]))
            index += 2
        elif spelled[index + 1 : index + 2] == "-" and index + 2 < len(spelled):
            members += map(chr, range(ord(spelled[index]), min(ord(spelled[index + 2]), 127) + 1))
            index += 3
        else:
            members.append(spelled[index])
            index += 1
    return "".join(members)


def _cut(job: Job) -> str:
    options, operands = job.options("dfcb")
    job.read_files(operands)
    letter = next((each for each in "fcb" if each in options), None)
    if letter is None or options.keys() - set("dfcb"):
        raise UnsupportedError("cut")
    wanted, delimiter = _ranges(options[letter]), options.get("d", "\t")[:1]
    lines = []
    for line in job.lines():
        if letter != "f":
            lines.append("".join(_chosen(list(line), wanted)))
        elif delimiter in line:
            lines.append(delimiter.join(_chosen(line.split(delimiter), wanted)))
        else:
            lines.append(line)
    return as_lines(lines)


def _ranges(spelled: str) -> list[tuple[int, int | None]]:
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
    count = _count(job)
    return as_lines(job.lines()[:count])


def _tail(job: Job) -> str:
    count = _count(job)
    return as_lines(job.lines()[-count:] if count else [])


def _count(job: Job) -> int:
    if job.arguments and _COUNT.fullmatch(job.arguments[0]):
        count, operands = job.arguments[0][1:], job.arguments[1:]
    else:
        options, operands = job.options("n")
        count = options.pop("n", "10")
        if options or count.startswith(("-", "+")):
            raise UnsupportedError(job.call.name)
    job.read_files(operands)
    return int(count)


def _wc(job: Job) -> str:
    options, operands = job.options()
    if operands or len(options) != 1:
        raise UnsupportedError("wc")
    text = job.text()
    letter = next(iter(options))
    counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text), "m": len(text)}
    if letter not in counts:
        raise UnsupportedError("wc")
    return f"{counts[letter]}\n"


def _sort(job: Job) -> str:
    options, operands = job.options()
    job.read_files(operands)
    if options.keys() - set("nru"):
        raise UnsupportedError("sort")
    lines = job.lines()
    lines.sort(key=(lambda line: (_leading_number(line), line)) if "n" in options else None)
    if "u" in options:
        lines = list(dict.fromkeys(lines))
    return as_lines(reversed(lines) if "r" in options else lines)


def _leading_number(line: str) -> float:
    number = _LEADING_NUMBER.match(line)
    return float(number[1]) if number else 0.0


def _uniq(job: Job) -> str:
    options, operands = job.options()
    job.read_files(operands)
    if options:
        raise UnsupportedError("uniq")
    lines = job.lines()
    return as_lines(line for index, line in enumerate(lines) if index == 0 or lines[index - 1] != line)


def _cat(job: Job) -> Text:
    options, operands = job.options()
    if options:
        raise UnsupportedError("cat")
    if operands and operands != ["-"]:
        job.read_files(operands)
    job.text()
    return job.input or EMPTY


def _grep(job: Job) -> str:
    options, operands = job.options("e")
    if options.keys() - set("qvioEFex"):
        raise UnsupportedError("grep")
    pattern = options["e"] if "e" in options else operands.pop(0)
    job.read_files(operands)
    if "F" in options:
        pattern = re.sub(r"[\\^$.\[\]|()*+?{}]", r"\\\g<0>", pattern)
    elif "E" not in options:
        pattern = from_basic(pattern)
    lower = "i" in options
    regex = Regex(pattern.lower() if lower else pattern)
    found = []
    for line in job.lines():
        match = regex.search(line.lower() if lower else line)
        if match is not None and "x" in options and match != (0, len(line)):
            match = None
        if (match is not None) != ("v" in options):
            found.append(line[slice(*match)] if "o" in options and match is not None else line)
    job.succeeded = bool(found)
    return "" if "q" in options else as_lines(found)


def _sed(job: Job) -> str:
    """Substitutions only."""
    options, operands = job.options("e")
    if options.keys() - set("eEr"):
        raise UnsupportedError("sed")
    script = options["e"] if "e" in options else operands.pop(0)
    job.read_files(operands)
    text, lines = job.text(), job.lines()
    for command in filter(None, (part.strip() for part in script.split(";"))):
        lines = _substituted(lines, command, extended=bool(options.keys() & {"E", "r"}))
    return as_lines(lines)[: None if text.endswith("\n") or not text else -1]


def _substituted(lines: list[str], command: str, *, extended: bool) -> list[str]:
    """`s/pattern/replacement/` with or without `g` on each line."""
    if len(command) < 2 or command[0] != "s":
        raise UnsupportedError("sed")
    parts = re.split(r"(?<!\\)" + re.escape(command[1]), command[2:])
    if len(parts) != 3 or parts[2] not in ("", "g") or re.search(r"\\[0-9a-zA-Z]", parts[1]):
        raise UnsupportedError("sed")
    pattern, replacement, flags = parts[0].replace("\\" + command[1], command[1]), parts[1], parts[2]
    regex = Regex(pattern if extended else from_basic(pattern))
    changed = []
    for line in lines:
        pieces, position = [], 0
        for start, end in regex.find_all(line, only_first=flags == ""):
            pieces += [line[position:start], _filled(replacement, line[start:end])]
            position = end
        changed.append("".join(pieces) + line[position:])
    return changed


def _filled(replacement: str, match: str) -> str:
    """The replacement with the match for each `&`."""
    filled, index = [], 0
    while index < len(replacement):
        character = replacement[index]
        if character == "\\" and index + 1 < len(replacement):
            index += 1
            filled.append(replacement[index])
        else:
            filled.append(match if character == "&" else character)
        index += 1
    return "".join(filled)


TOOLS: dict[str, Callable[[Job], str | Text]] = {
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
}
