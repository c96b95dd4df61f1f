"""Shell inside YAML: job files of SkyPilot, GitHub, GitLab, Kubernetes and their kind."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from klaudit.model import Span
from klaudit.patterns import rare
from klaudit.readers.document import Embedded, MappingNode, Node, ScalarNode, SequenceNode, TreeDocument
from klaudit.readers.excerpt import Excerpt
from klaudit.readers.python.shell_text import placeholder, quote_state
from klaudit.readers.scalar_text import add_scalar
from klaudit.readers.source import Source

MAX_DEPTH = 60
MAX_VISITS = 50_000  # aliases may lead to one node many times over
LINE_KEYS = frozenset(
    {"run", "script", "setup", "before_script", "after_script", "commands", "shell_command"}
)  # items are lines
WORD_KEYS = frozenset({"command", "args", "entrypoint", "cmd"})  # items are words
ENVIRONMENT_KEYS = frozenset({"env", "envs", "environment", "variables"})

_LAUNCHERS = (
    r"python[\d.]*|torchrun|accelerate|deepspeed|uv|ray|bash|sh|srun|sbatch|nohup|mpirun|env|cd|export|source|set|make|"
    r"pip[\d]*|conda|docker|sudo|git|exec|echo|mkdir|if|for"
)
_COMMAND_LINE = rare(
    rf"\s*(?:[A-Za-z_]\w*=\S*\s+)*(?:\S*/)?(?:(?:{_LAUNCHERS})\s+\S|[\w-]+(?: [\w./-]+){{0,3}} --[a-z])"
)
_PROGRAM = re.compile(r"[\w./][\w./-]*")
_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da|k)?sh")
_VARIABLE = re.compile(rb"(?:env|vars)\.(?P<name>[A-Za-z_]\w*)")

_Environment = dict[str, tuple[str | None, Span]]


def embedded_shell(document: TreeDocument) -> tuple[Embedded, ...]:
    """The scalars and lists of a tree that plausibly hold shell, with the variables that the file sets for them, in order of writing."""
    found: list[Embedded] = []
    if document.root is not None:
        _walk(document.source, document.root, (), {}, found)
    found.sort(key=lambda piece: piece.source.span(0, 0).start)
    return tuple(found)


def _walk(source: Source, root: Node, path: tuple[str, ...], environment: _Environment, found: list[Embedded]) -> None:
    pending: list[tuple[Node, tuple[str, ...], _Environment]] = [(root, path, environment)]
    visits = 0
    while pending and visits < MAX_VISITS:
        node, path, environment = pending.pop()
        visits += 1
        if len(path) > MAX_DEPTH:
            continue
        if isinstance(node, SequenceNode):
            pending.extend((item, (*path, str(index)), environment) for index, item in enumerate(node.items))
        elif isinstance(node, MappingNode):
            own = _environment(source, node)
            environment = environment | own if own else environment
            words: list[ScalarNode] = []
            for entry in node.entries:
                here = (*path, entry.key)
                if entry.key in LINE_KEYS and (lines := _scalars(entry.value)) is not None:
                    _keep(_lines(source, lines), here, environment, found, any_shell=len(lines) > 1)
                elif (
                    entry.key in WORD_KEYS
                    and isinstance(entry.value, SequenceNode)
                    and (parts := _scalars(entry.value))
                ):
                    words.extend(parts)
                    if entry.key != "args" and node.get("args") is not None:
                        continue  # the arguments follow under their own key
                    _words(source, words, here, environment, found)
                    words = []
                elif entry.key in WORD_KEYS and isinstance(entry.value, ScalarNode):
                    _keep(_lines(source, [entry.value]), here, environment, found)
                elif not isinstance(entry.value, ScalarNode):
                    pending.append((entry.value, here, environment))


def _scalars(node: Node) -> list[ScalarNode] | None:
    """The scalars of a scalar or of a list of scalars (lists in it unfolded); None where there is anything else."""
    if isinstance(node, ScalarNode):
        return [node]
    if not isinstance(node, SequenceNode):
        return None
    found: list[ScalarNode] = []
    for item in node.items:
        inner = [item] if isinstance(item, ScalarNode) else _scalars(item) if isinstance(item, SequenceNode) else None
        if inner is None:
            return None
        found.extend(inner)
    return found


def _keep(
    text: Source | None,
    path: tuple[str, ...],
    environment: _Environment,
    found: list[Embedded],
    any_shell: bool = False,
) -> None:
    if text is None:
        return
    shown = text.data.decode("utf-8", "replace")
    if any_shell or "\n" in shown.strip() or _COMMAND_LINE.match(shown):
        found.append(_embedded(text, path, environment))


def _words(
    source: Source, words: list[ScalarNode], path: tuple[str, ...], environment: _Environment, found: list[Embedded]
) -> None:
    """`[bash, -c, script]` gives the script; `[python, -m, x]` a command line; a script alone, as `args` may be, itself."""
    texts = [word.text for word in words]
    for index, text in enumerate(texts[1:], 1):
        if _SHELL.fullmatch(texts[0]) and re.fullmatch(r"-[a-z]*c", text) and index + 1 < len(texts):
            script = _lines(source, [words[index + 1]])
            if script is not None:
                found.append(_embedded(script, path, environment))
            return
    if len(texts) > 1 and _PROGRAM.fullmatch(texts[0]):
        line = _command_line(source, words)
        if line is not None:
            found.append(_embedded(line, path, environment))
    elif len(texts) == 1:
        _keep(_lines(source, words), path, environment, found)


def _lines(source: Source, scalars: list[ScalarNode]) -> Source | None:
    """The texts one below the other; None where one cannot be mapped."""
    excerpt = Excerpt(source)
    for scalar in scalars:
        if not add_scalar(excerpt, scalar):
            return None
        if not excerpt.data.endswith(b"\n"):
            excerpt.replace(b"\n", scalar.end, scalar.end)
    return _without_expressions(excerpt.embed())


def _command_line(source: Source, words: list[ScalarNode]) -> Source | None:
    """The words of an argument list as the shell would take them; None where one cannot be mapped."""
    excerpt = Excerpt(source)
    for word in words:
        quote = b"'" if shlex.quote(word.text) != word.text and "$(" not in word.text else b""
        if "'" in word.text:
            return None
        excerpt.replace(quote, word.start, word.start)
        if not add_scalar(excerpt, word):
            return None
        excerpt.replace(quote + b" ", word.end, word.end)
    return _without_expressions(excerpt.embed())


def _without_expressions(text: Source) -> Source:
    """`${{ env.X }}` as `${X}`, any other expression as a command substitution that names it."""
    if b"${{" not in text.data:
        return text
    excerpt = Excerpt(text)
    at, quote = 0, ""
    for start, end in _expressions(text.data):
        excerpt.copy(at, start)
        quote = quote_state(text.data[at:start].decode("utf-8", "replace"), quote)
        inner = text.data[start + 3 : end - 2].strip()
        variable = _VARIABLE.fullmatch(inner)
        named = b"${" + variable["name"] + b"}" if variable is not None else None
        excerpt.replace(named or placeholder((inner.decode("utf-8", "replace"),), quote), start, end)
        at = end
    excerpt.copy(at, len(text.data))
    return excerpt.embed()


def _expressions(data: bytes) -> Iterator[tuple[int, int]]:
    """Where `${{ ... }}` stands, each on one line; every byte is looked at once, whatever is left open."""
    start, close, line_end = data.find(b"${{"), -1, -1
    while start != -1:
        if close < start + 3:
            close = data.find(b"}}", start + 3)
        if close == -1:
            return
        if line_end < start:
            line_end = data.find(b"\n", start)
            line_end = len(data) if line_end == -1 else line_end
        if close < line_end:
            yield start, close + 2
            start = data.find(b"${{", close + 2)
        else:
            start = data.find(b"${{", line_end)


def _embedded(text: Source, path: tuple[str, ...], environment: _Environment) -> Embedded:
    variables = tuple((name, value, span) for name, (value, span) in environment.items())
    return Embedded(text, "sh", variables, ".".join(path))


def _environment(source: Source, node: MappingNode) -> _Environment:
    """The variables that a mapping sets for what it holds."""
    found: _Environment = {}
    for entry in node.entries:
        if entry.key in ENVIRONMENT_KEYS:
            for name, value in _variables(entry.value):
                known = None if "${{" in value.text else value.text
                found[name] = (known, source.span(value.start, value.end))
    return found


def _variables(node: Node) -> Iterator[tuple[str, ScalarNode]]:
    """`NAME: value`, `- {name: NAME, value: value}` and `- NAME=value`."""
    if isinstance(node, MappingNode):
        for entry in node.entries:
            if isinstance(entry.value, ScalarNode):
                yield entry.key, entry.value
    elif isinstance(node, SequenceNode):
        for item in node.items:
            if isinstance(item, MappingNode):
                name, value = item.get("name"), item.get("value")
                if isinstance(name, ScalarNode) and isinstance(value, ScalarNode):
                    yield name.text, value
            elif isinstance(item, ScalarNode) and "=" in item.text:
                name_text, _, value_text = item.text.partition("=")
                yield name_text, ScalarNode(value_text, item.plain, item.start, item.end, item.tag)
