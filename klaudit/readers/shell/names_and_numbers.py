"""Text tools that name files and count: basename, dirname, realpath, seq, expr, and those that tell about the machine."""

from __future__ import annotations

import re
from collections.abc import Callable

from klaudit.readers.shell.arithmetic import evaluate
from klaudit.readers.shell.files import absolute
from klaudit.readers.shell.job import Job, UnsupportedError
from klaudit.readers.shell.lookup import ArithmeticVariables
from klaudit.readers.shell.text import PRINTED, Text, at_place, cut, hangs_on, located, merge_names, plain

_MAX_NUMBERS = 5_000


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
        return "." + "\n"
    return _slice_of_operand(job, operands[0], 0, len(path[:cut_at].rstrip("/")) or 1)


def _slice_of_operand(job: Job, operand: str, start: int, end: int) -> str | Text:
    """Part of an argument, which stays where it was written."""
    text = next(text for text in job.fields if plain(text) == operand)
    if end <= start:
        return operand[start:end] + "\n"
    return cut(text, start, end) + at_place("\n", job.call.place)


def _realpath(job: Job) -> str | Text:
    _, operands = job.options()
    if len(operands) != 1:
        raise UnsupportedError("realpath")
    path = absolute(operands[0], job.machine.state.directory)
    if path is None:
        raise UnsupportedError("realpath")
    hangs = merge_names(*map(hangs_on, job.fields), () if operands[0].startswith("/") else ("PWD",))
    return located(path, job.call.place, hangs) + at_place("\n", job.call.place)


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


def _expr(job: Job) -> str:
    """Integer arithmetic only."""
    if not all(re.fullmatch(r"-?\d+|[-+*/%()]", argument) for argument in job.arguments):
        raise UnsupportedError("expr")
    value = evaluate(" ".join(job.arguments), ArithmeticVariables(job.machine.state, job.call.place))
    job.succeeded = value != 0
    return str(value) + "\n"


def _unknown(text: str) -> Callable[[Job], Text]:
    """A tool that prints something, but on every machine something else."""

    def run(job: Job) -> Text:
        return at_place(text, job.call.place, (PRINTED,))

    return run


def _uname(job: Job) -> Text:
    return at_place("x86_64\n" if job.arguments == ["-m"] else "Linux\n", job.call.place, (PRINTED,))


TOOLS: dict[str, Callable[[Job], str | Text]] = {
    "basename": _basename,
    "dirname": _dirname,
    "realpath": _realpath,
    "readlink": _readlink,
    "seq": _seq,
    "expr": _expr,
    "date": _unknown("0\n"),
    "nproc": _unknown("1\n"),
    "uname": _uname,
}
