"""Commands that a module would start: `subprocess.run([...])`, `os.system("...")`, lists and texts that begin with a launcher."""

from __future__ import annotations

import ast
import re

from klaudit.patterns import rare
from klaudit.readers.document import Command, Word
from klaudit.readers.python.evaluate import Evaluator
from klaudit.readers.python.facts import Facts, Site
from klaudit.readers.python.functions import keywords
from klaudit.readers.python.mentions import Mentions
from klaudit.readers.python.names import callee_name
from klaudit.readers.python.results import Constant, Items, Opaque, Pair, Result, Table, Text, truth
from klaudit.readers.python.scopes import Block, Place, Scope
from klaudit.readers.python.shell_text import shell_source, word_text, words_of
from klaudit.readers.python.strings import with_holes
from klaudit.readers.source import Source

_LIST_RUNNERS = frozenset(
    {f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output")} | {"subprocess_run"}
)
_SHELL_RUNNERS = frozenset(
    {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_shell",
     "get_ipython().system", "get_ipython().getoutput"}
)  # fmt: skip
_WORD_RUNNERS = frozenset({"asyncio.create_subprocess_exec"})
_EXEC = frozenset({"os.execv", "os.execvp", "os.execve", "os.execvpe"})
STARTERS = _LIST_RUNNERS | _SHELL_RUNNERS | _WORD_RUNNERS | _EXEC
_STARTER_NAMES = frozenset(symbol.rpartition(".")[2] for symbol in STARTERS)
_LAUNCHERS = rare(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|uv|ray|bash|sh|srun|sbatch|nohup|mpirun|env)")
_ARGUMENT = rare(r"-|.*[./]|(?:run|launch|job|start|submit|exec|tool)\Z|[A-Za-z_]\w*=")
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")


class CommandReader:
    """Commands of one module; `consumed` holds where the elements of their lists begin."""

    def __init__(self, evaluator: Evaluator, facts: Facts, mentions: Mentions) -> None:
        self.evaluator = evaluator
        self.module = evaluator.module
        self.facts = facts
        self.mentions = mentions
        self.commands: list[Command] = []
        self.shell_strings: list[Source] = []
        self.consumed: set[int] = set()
        self._shell_texts: set[tuple[int, ...]] = set()  # where the fragments of each text begin
        self._used: set[int] = set()
        self._aliases = {local for local, symbol in facts.imports if symbol in STARTERS}

    def read(self) -> None:
        for site in self.facts.calls:
            if isinstance(site.node, ast.Call):
                self._call(site.node, site.place)
        for site in self.facts.sequences:
            self._launcher_list(site)
        for site in self.facts.texts:
            result = self.evaluator.final(site)
            if not isinstance(result, Text) or not result.fragments or result.fragments[0].start in self._used:
                continue
            if not with_holes(result).lstrip().startswith("-") and not self.mentions.only_looked_for(site.node):
                self._shell(result)

    def _call(self, call: ast.Call, place: Place) -> None:
        name = callee_name(call.func)
        if name not in _STARTER_NAMES and name not in self._aliases:
            return
        symbol = self.evaluator.qualified(call.func, place)
        if symbol in _SHELL_RUNNERS and call.args:
            self._shell(self.evaluator.evaluate(call.args[0], place))
        elif symbol in _LIST_RUNNERS:
            given = {pair.key: pair for pair in keywords(self.evaluator, call, place)[0]}
            program = given["args"].value if "args" in given else None
            if call.args:
                program = self.evaluator.evaluate(call.args[0], place)
            shell = truth(given["shell"].value) if "shell" in given else False
            if isinstance(program, Text) and (shell is not False or " " in with_holes(program)):
                self._shell(program)  # without a shell the text is the program's name, which people get wrong
            elif isinstance(program, Items):
                self._command(program, call, place, given)
        elif symbol in _WORD_RUNNERS and call.args:
            items = self.evaluator.evaluate(ast.copy_location(ast.List(elts=call.args, ctx=ast.Load()), call), place)
            if isinstance(items, Items):
                self._command(items, call, place, {})
        elif symbol in _EXEC and len(call.args) > 1:
            items = self.evaluator.evaluate(call.args[1], place)
            if isinstance(items, Items):
                self._command(items, call, place, {})

    def _launcher_list(self, site: Site) -> None:
        """A list that begins like a command line, whatever is done with it."""
        elements = getattr(site.node, "elts", [])
        if (
            len(elements) < 2
            or not self._is_launcher(elements[0], site.place)
            or self.module.start(elements[0]) in self.consumed
        ):
            return
        second = elements[1]
        if isinstance(second, ast.Constant) and not (isinstance(second.value, str) and _ARGUMENT.match(second.value)):
            return  # a list of packages or languages
        result = self.evaluator.final(site)
        if isinstance(result, Items) and self.mentions.only_looked_for(site.node):
            self.consumed.update(item.start for item in result.items)
        elif isinstance(result, Items):
            self._command(result, site.node, site.place, {})

    def _is_launcher(self, node: ast.expr, place: Place) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and _LAUNCHERS.fullmatch(node.value) is not None
        interpreter = isinstance(node, ast.Attribute) and node.attr == "executable"
        return interpreter and self.evaluator.qualified(node, place) == "sys.executable"

    def _command(self, items: Items, node: ast.expr, place: Place, given: dict[str, Pair]) -> None:
        self.consumed.update(item.start for item in items.items)
        words = words_of(self.module, items)
        if not words:
            return
        self._inner_script(items, words)
        span = self.module.span(self.module.start(node), self.module.end(node))
        directory = "."
        if "cwd" in given and not (isinstance(given["cwd"].value, Constant) and given["cwd"].value.value is None):
            directory = word_text(given["cwd"].value) or ""
        environment = _environment(given["env"].value) if "env" in given else ()
        self.commands.append(Command(words, span, self._assumes(place), directory or None, environment))

    def _inner_script(self, items: Items, words: tuple[Word, ...]) -> None:
        """The text of `["bash", "-c", text]`."""
        if len(items.items) < 3 or _SHELLS.fullmatch(words[0].text or "") is None:
            return
        for option, script in zip(items.items[1:], items.items[2:], strict=False):
            flag = word_text(option)
            if flag is None or not flag.startswith("-"):
                return
            if "c" in flag and not flag.startswith("--") and isinstance(script, Text):
                self._shell(script)
                return

    def _shell(self, text: Result) -> None:
        if isinstance(text, Opaque) and text.maybe is not None:
            text = text.maybe
        if not isinstance(text, Text):
            return
        if all(fragment.text is None or not fragment.text.strip() for fragment in text.fragments):
            return
        starts = tuple(fragment.start for fragment in text.fragments)
        if starts not in self._shell_texts:
            self._shell_texts.add(starts)
            self._used.update(starts)
            self.shell_strings.append(shell_source(self.module, text))

    def _assumes(self, place: Place) -> tuple[str, ...]:
        """The conditions around a place, outermost first, that do not hold for certain when the file runs as it is."""
        found: list[str] = []
        scope: Scope | None = place.scope
        block: Block | None = place.block
        while scope is not None and block is not None:
            for part in block.ancestors():
                if part.kind == "arm" and part.test is not None and self.evaluator.runs(part, scope) is not True:
                    found.append(self._condition(part.test, wanted=part.wanted))
            block = scope.site.block if scope.site is not None else None
            scope = scope.parent
        return tuple(reversed(found))

    def _condition(self, test: ast.expr, *, wanted: bool) -> str:
        """That a test holds, or that it does not, as the module words it."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, wanted = test.operand, not wanted
        spelled = self.module.spelling(self.module.start(test), self.module.end(test))
        return spelled if wanted else f"not ({spelled})"


def _environment(value: Result) -> tuple[tuple[str, str | None], ...]:
    if not isinstance(value, Table):
        return ()
    return tuple((pair.key, word_text(pair.value)) for pair in value.pairs)
