"""From a Python file to its document."""

from __future__ import annotations

from klaudit.model import Problem
from klaudit.readers.document import ConfigObject, PythonDocument
from klaudit.readers.python.calls import MAX_SETTINGS, CallReader, Matters
from klaudit.readers.python.classes import read_classes
from klaudit.readers.python.commands import CommandReader
from klaudit.readers.python.evaluate import Evaluator
from klaudit.readers.python.mentions import Mentions
from klaudit.readers.python.options import OptionReader
from klaudit.readers.python.overrides import OverrideReader
from klaudit.readers.python.syntax import Module, parse
from klaudit.readers.python.walk import walk
from klaudit.readers.source import Source


def read_python(source: Source, matters: Matters = lambda symbol: True) -> PythonDocument:
    """The config objects and commands of a Python file.  Raises UnreadableError, with the line, for what is not Python.

    `matters` tells which calls, by what they call, are read with their arguments; those of the file's own classes are anyway.
    """
    return read_module(parse(source), matters)


def read_classes_of(source: Source) -> PythonDocument:
    """The config classes of a Python file and its imports alone, at a third of the cost.  Raises UnreadableError."""
    module = parse(source)
    facts = walk(module)
    evaluator = Evaluator(module, facts)
    evaluator.option = OptionReader(evaluator, facts).option_read
    return PythonDocument(module.source, tuple(read_classes(evaluator, facts)), (), tuple(facts.imports))


def read_module(module: Module, matters: Matters = lambda symbol: True) -> PythonDocument:
    """The config objects and commands of a parsed module."""
    facts = walk(module)
    evaluator = Evaluator(module, facts)
    options = OptionReader(evaluator, facts)
    evaluator.option = options.option_read
    mentions = Mentions(module.tree)
    commands = CommandReader(evaluator, facts, mentions)
    commands.read()
    calls = CallReader(evaluator, facts, matters)
    objects: list[ConfigObject] = [
        *calls.read(),
        *read_classes(evaluator, facts),
        *OverrideReader(evaluator, facts, commands.consumed, mentions).read(),
        *options.read(),
    ]
    objects.sort(key=lambda made: (made.span.start, -made.span.end))
    commands.commands.sort(key=lambda command: command.span.start)
    commands.shell_strings.sort(key=lambda text: text.span(0, 0).start)
    problems: list[Problem] = []
    if calls.is_cut:
        problems.append(
            Problem(module.source.path, None, f"more than {MAX_SETTINGS:,} settings: the rest was left out")
        )
    return PythonDocument(
        module.source,
        tuple(objects),
        tuple(commands.commands),
        tuple(facts.imports),
        tuple(problems),
        shell_strings=tuple(commands.shell_strings),
    )
