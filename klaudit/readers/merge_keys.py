"""What a YAML mapping has from others by merge keys (`<<`).

Where several mappings are merged and disagree on a key, the value hangs on the release of PyYAML: of a list the first mapping counts,
as YAML's specification says, up to 6.0.3; since 6.0.4 it is the last, and a mapping that is named twice counts where it stands first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from klaudit.readers.document import Entry, MappingNode, Node, ScalarNode, SequenceNode

DOUBT = (
    "the order in which PyYAML merges mappings"  # as the tag of a scalar, so that its value is Unknown and names this
)


def merged(parts: Sequence[MappingNode], own: frozenset[str], count: Callable[[int], None]) -> Iterator[Entry]:
    """The entries that a mapping with the keys `own` has from `parts`, given in the order of writing.

    `count` is called for each node that is looked at or made, with a place in the text.
    """
    if len(parts) == 1:
        for entry in parts[0].in_force:
            if entry.key not in own:
                count(entry.key_start)
                yield entry
        return
    candidates: dict[str, list[Entry]] = {}
    for part in parts:
        for entry in part.in_force:
            count(entry.key_start)
            if entry.key not in own:
                candidates.setdefault(entry.key, []).append(entry)
    for entry, *others in candidates.values():
        value = _agreed([entry.value, *(other.value for other in others)], count)
        yield entry if value is entry.value else Entry(entry.key, entry.key_start, entry.key_end, value)


def _agreed(values: Sequence[Node], count: Callable[[int], None]) -> Node:
    """The value that all agree on; with what they do not agree on in doubt."""
    first, *others = values
    count(first.start)
    if all(other is first for other in others):
        return first
    if all(isinstance(each, ScalarNode) for each in values):
        return first if all(_is_same_scalar(first, other) for other in others) else _in_doubt(first, count)
    if all(isinstance(each, MappingNode) for each in values):
        mappings = [{entry.key: entry for entry in each.in_force} for each in values if isinstance(each, MappingNode)]
        entries = []
        for key in dict.fromkeys(key for each in mappings for key in each):
            having = [each[key] for each in mappings if key in each]
            value = (
                _agreed([each.value for each in having], count)
                if len(having) == len(mappings)
                else _in_doubt(having[0].value, count)
            )
            entries.append(Entry(key, having[0].key_start, having[0].key_end, value))
        return MappingNode(tuple(entries), first.start, first.end)
    return ScalarNode("", True, first.start, first.end, DOUBT)  # a mapping for some and a list or a value for others


def _is_same_scalar(one: Node, other: Node) -> bool:
    return (
        isinstance(one, ScalarNode)
        and isinstance(other, ScalarNode)
        and (one.text, one.plain, one.tag) == (other.text, other.plain, other.tag)
        and one.tag != DOUBT
    )


def _in_doubt(node: Node, count: Callable[[int], None]) -> Node:
    """The same place, with nothing known of its values."""
    count(node.start)
    if isinstance(node, MappingNode) and node.entries:
        entries = (
            Entry(each.key, each.key_start, each.key_end, _in_doubt(each.value, count)) for each in node.in_force
        )
        return MappingNode(tuple(entries), node.start, node.end)
    text = node.text if isinstance(node, ScalarNode) else ""
    return ScalarNode(text, True, node.start, node.end, DOUBT)


def parts_of(node: Node) -> tuple[MappingNode, ...] | None:
    """The mappings that the value of a merge key names; None for what it cannot be."""
    parts = node.items if isinstance(node, SequenceNode) else (node,)
    mappings = tuple(part for part in parts if isinstance(part, MappingNode))
    return mappings if len(mappings) == len(parts) else None
