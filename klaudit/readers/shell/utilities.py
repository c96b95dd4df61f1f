"""Programs that only turn text into text: evaluated where their input is known, as in `$(basename "$X" .sh)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from klaudit.readers.shell import filters, names_and_numbers
from klaudit.readers.shell.automaton import TooCostlyError
from klaudit.readers.shell.call import Call
from klaudit.readers.shell.job import Job, UnsupportedError
from klaudit.readers.shell.text import Text, at_place, hangs_on, located, merge_names

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine

UTILITIES: dict[str, Callable[[Job], str | Text]] = {**filters.TOOLS, **names_and_numbers.TOOLS}

_COUNTING = frozenset({"wc", "expr", "seq"})


def run_utility(machine: Machine, call: Call) -> None:
    """Run the tool that the call names; what it prints is unknown if it hangs on what is."""
    state = machine.state
    job = Job(call.arguments, [field.text for field in call.fields[1:]], state.input, machine, call)
    try:
        result = UTILITIES[call.name](job)
    except (UnsupportedError, TooCostlyError, ValueError, OverflowError, IndexError):
        machine.write_unknown(call.place)
        state.succeed(True, (call.name,))
        return
    hangs = merge_names(*[hangs_on(text) for text in job.fields])
    if call.name in filters.TOOLS and job.input is not None:
        hangs = merge_names(hangs, hangs_on(job.input))
    if isinstance(result, str):
        is_count = call.name in _COUNTING  # a number says nothing of the path that was counted
        result = at_place(result, call.place, hangs) if is_count else located(result, call.place, hangs)
    machine.write(result)
    state.succeed(job.succeeded, hangs)
