"""Arguments as OmegaConf's `from_dotlist` and `from_cli` read them: `key=value` with YAML values and no prefixes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from klaudit.frameworks.compose.configuration import Base, Configuration, Own
from klaudit.frameworks.compose.interpolation import malformed
from klaudit.frameworks.compose.items import Branch, Nowhere, from_value
from klaudit.frameworks.compose.merging import MAX_MERGED, RefusedError, Work
from klaudit.frameworks.compose.overrides import Override, Parsed
from klaudit.model import Problem, Unknown, Value
from klaudit.readers.document import MappingNode, Node, ScalarNode, Word
from klaudit.readers.scalars import resolve_scalar
from klaudit.readers.source import Source, UnreadableError
from klaudit.readers.words import partition

MAX_VALUES = 10_000
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]*")


def compose_dotlist(
    base: Base, arguments: Sequence[Word | str], *, environment: Mapping[str, str | None] | None = None
) -> Configuration:
    """`base` with a dotlist merged over it, as `OmegaConf.merge(base, OmegaConf.from_dotlist(arguments))` does.

    An argument without `=` sets its key to null.  With a closed base, keys that it does not have are refused.
    """
    overrides = [parse_dotlist(argument) for argument in arguments]
    own: list[Own] = []
    problems: list[Problem] = []
    hangs_on: list[str] = []
    refused: str | None = None
    listed = Work(Branch({}, Nowhere()), environment)
    for override in overrides:
        parsed = override.parsed
        if parsed.hangs_on:
            hangs_on.extend(parsed.hangs_on)
            problems.append(override.complaint(f"{parsed.text}: {parsed.problem}"))
            continue
        item = from_value(parsed.value, override)
        try:
            if parsed.problem is not None:
                raise RefusedError(parsed.problem)
            if "${" in parsed.text and (wrong := malformed(item, MAX_MERGED)) is not None:
                raise RefusedError(wrong[1])
            listed.update(parsed.key, item, adds=True)
            own.append(Own(parsed.key, item))
        except RefusedError as error:
            refused = refused or str(error)
            problems.append(override.complaint(f"refused: {error}"))
    work = Work(base.root, environment)
    try:
        work.merge(listed.root, adds=not base.is_closed or bool(base.unseen))
    except RefusedError as error:
        refused = refused or str(error)
    return Configuration(
        work.root,
        own=own,
        base=base,
        problems=problems,
        refused=refused,
        hangs_on=tuple(dict.fromkeys(hangs_on)),
        environment=environment,
    )


def parse_dotlist(argument: Word | str) -> Override:
    """One argument; a value of which any part is unknown is Unknown."""
    if isinstance(argument, str):
        return Override(_parse(argument))
    text = argument.text
    if text is not None:
        return Override(_parse(text), argument)
    parts = partition(argument, "=")
    key = None if parts is None else parts[0].text
    if parts is None or key is None:
        problem = "which setting this changes cannot be known"
        return Override(Parsed(argument.shown, problem=problem, hangs_on=argument.hangs_on), argument)
    value = Unknown(parts[1].hangs_on, parts[1].shown)
    return Override(Parsed(argument.shown, "", key, None, value, len(key) + 1), argument)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Parsed:
    key, equals, raw = text.partition("=")
    if not equals:
        return Parsed(text, "", key)
    try:
        return Parsed(text, "", key, None, yaml_value(raw), len(key) + 1)
    except UnreadableError as error:
        unknown = Unknown((raw,), raw)
        return Parsed(text, "", key, None, unknown, len(key) + 1, problem=f"{text}: {error}")


def yaml_value(text: str) -> Value:
    """A text as OmegaConf's YAML loader reads it.  Raises UnreadableError."""
    if _PLAIN.fullmatch(text):
        return resolve_scalar(ScalarNode(text, True, 0, 0), "omegaconf")
    from klaudit.readers.yaml import read_yaml

    documents = read_yaml(Source("", text.encode("utf-8", "surrogateescape")))
    if len(documents) > 1:
        raise UnreadableError("several YAML documents in one value")
    if not documents or documents[0].root is None:
        return None
    return _value(documents[0].root, [MAX_VALUES])


def _value(node: Node, budget: list[int]) -> Value:
    budget[0] -= 1
    if budget[0] < 0:
        raise UnreadableError(f"more than {MAX_VALUES:,} values in one argument")
    if isinstance(node, ScalarNode):
        return resolve_scalar(node, "omegaconf")
    if not isinstance(node, MappingNode):
        return [_value(item, budget) for item in node.items]
    values: dict[str, Value] = {}
    for entry in node.entries:
        if entry.key in values:
            raise UnreadableError(f"the key {entry.key} stands twice")
        values[entry.key] = _value(entry.value, budget)
    return values
