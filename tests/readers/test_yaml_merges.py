"""Merge keys (`<<`), lists of them, and keys that stand twice: as PyYAML's safe loader and OmegaConf read generated documents.

PyYAML 6.0.4 turned the order of merge lists round: what is read as known must hold before and after that.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from omegaconf._utils import get_yaml_loader

import klaudit
from klaudit.frameworks.compose.items import FromNodes, InFile
from klaudit.frameworks.systems.keys import dotted_keys, file_settings
from klaudit.model import Unknown
from klaudit.readers.document import MappingNode, Node, SequenceNode
from klaudit.readers.merge_keys import DOUBT
from klaudit.readers.scalars import Dialect, resolve_scalar
from klaudit.readers.source import Source, UnreadableError
from klaudit.readers.yaml import read_yaml

KEYS = ("xx", "yy", "zz")
MERGE_KEYS = ("<<", "<<", "<<", '"<<"', "!!merge <<", "!!str <<")


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A mapping of mappings, each with an anchor, which merge the ones before and inline ones, in flow or block style."""
    names: list[str] = []
    lines: list[str] = []
    for at in range(draw(st.integers(1, 5))):
        name = f"m{at}"
        parts = draw(st.lists(st.one_of(_own(names), _merges(names)), max_size=5))
        top = draw(st.sampled_from([name, name, name, "m0"]))  # the anchored mapping may itself stand twice
        if draw(st.booleans()) or not parts:
            lines.append(f"{top}: &{name} {{{', '.join(parts)}}}")
        else:
            lines += [f"{top}: &{name}", *(f"  {part}" for part in parts)]
        names.append(name)
    return "\n".join(lines) + "\n"


def _own(names: list[str]) -> st.SearchStrategy[str]:
    scalars = st.sampled_from(["1", "2", "k3", "off", "~", "[1, {x: 2}]"])
    values = st.one_of(scalars, _mapping(names, 1), *([st.sampled_from(names).map("*{} ".format)] if names else []))
    return st.tuples(st.sampled_from(KEYS), values).map(lambda pair: f"{pair[0]}: {pair[1]}")


def _merges(names: list[str], depth: int = 2) -> st.SearchStrategy[str]:
    one = st.one_of(_mapping(names, depth - 1), *([st.sampled_from(names).map("*{} ".format)] * 2 if names else []))
    many = st.lists(one, max_size=4).map(lambda parts: f"[{', '.join(parts)}]")
    odd = st.sampled_from(["3", "~", "[1]", "[[]]"])
    value = st.one_of(one, many, many, many, odd if depth == 2 else many)
    return st.tuples(st.sampled_from(MERGE_KEYS), value).map(lambda pair: f"{pair[0]}: {pair[1]}")


def _mapping(names: list[str], depth: int) -> st.SearchStrategy[str]:
    scalars = st.tuples(st.sampled_from(KEYS), st.sampled_from(["1", "2", "3"])).map(
        lambda pair: f"{pair[0]}: {pair[1]}"
    )
    parts = st.one_of(scalars, _merges(names, depth)) if depth > 0 else scalars
    return st.lists(parts, max_size=3).map(lambda found: f"{{{', '.join(found)}}}")


def ours(text: str, dialect: Dialect) -> object:
    def plain(node: Node | None) -> object:
        if isinstance(node, MappingNode):
            return {entry.key: plain(entry.value) for entry in node.entries}
        if isinstance(node, SequenceNode):
            return [plain(item) for item in node.items]
        return None if node is None else resolve_scalar(node, dialect)

    (document,) = read_yaml(Source("x.yaml", text.encode()))
    return plain(document.root)


class Before604(yaml.SafeLoader):
    """PyYAML up to 6.0.3: the first mapping of a list counts."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        own: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                own.append((key, value))
                continue
            parts = value.value[::-1] if isinstance(value, yaml.SequenceNode) else [value]
            for part in parts:
                if not isinstance(part, yaml.MappingNode):
                    raise yaml.constructor.ConstructorError(None, None, "expected a mapping", value.start_mark)
                self.flatten_mapping(part)
                merged += part.value
        node.value = merged + own


class From604(yaml.SafeLoader):
    """PyYAML since 6.0.4: the last one does, and what is merged twice counts where it stands first."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        merged: dict[int, tuple[yaml.Node, yaml.Node]] = {}
        own: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                own.append((key, value))
                continue
            for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(part, yaml.MappingNode):
                    raise yaml.constructor.ConstructorError(None, None, "expected a mapping", value.start_mark)
                self.flatten_mapping(part)
                for pair in part.value:
                    merged.setdefault(id(pair[0]), pair)
        node.value = [*merged.values(), *own]


def fits(found: object, theirs: object) -> bool:
    """What is known is as they have it; what is not known may be anything."""
    if isinstance(found, Unknown):
        assert found.hangs_on == (DOUBT,)
        return True
    if isinstance(found, dict) and isinstance(theirs, dict):
        return all(
            key in found and fits(found[key], theirs[key]) if key in theirs else _is_in_doubt(found[key])
            for key in {**found, **theirs}
        )
    if isinstance(found, list) and isinstance(theirs, list):
        return len(found) == len(theirs) and all(map(fits, found, theirs))
    return type(found) is type(theirs) and found == theirs


def _is_in_doubt(value: object) -> bool:
    return all(map(_is_in_doubt, value.values())) if isinstance(value, dict) else isinstance(value, Unknown)


def has_doubt(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(has_doubt, value.values()))
    return any(map(has_doubt, value)) if isinstance(value, list) else isinstance(value, Unknown)


KNOWN = [
    "a: &a {xx: 1, yy: 1}\nb: {<<: [*a, {zz: 2}]}\n",
    "a: &a {xx: 1, yy: 1}\nb: {<<: [*a, {xx: 2, zz: 2}], xx: 3}\n",
    "a: &a {xx: 1}\nb: {<<: [*a, {xx: 1}, *a]}\n",
    "a: &a {xx: {yy: 1, zz: [1]}}\nb: {<<: [*a, *a]}\n",
    "a: &a {xx: {yy: 1}}\nb: {<<: [*a, {xx: {yy: 1}}]}\n",
    "a: {<<: [{<<: [{xx: 1}, {yy: 2}], zz: 1}], xx: 4}\n",
    "a: {<<: []}\n",
    "a: {<<: {}}\n",
    "a: {xx: {yy: 1}, xx: {zz: 2}}\n",
    'a: {"<<": {xx: 1}}\n',
    "a: {!!merge <<: {xx: 1}}\n",
    "a: {!!str <<: {xx: 1}}\n",
    "a: &a {xx: 1, xx: 2}\nb: {<<: *a}\n",
]
IN_DOUBT = [
    ("a: {<<: [{xx: 1, yy: 1}, {xx: 2}]}\n", {"xx"}),
    ("a: {<<: {xx: 1}, <<: {xx: 2, yy: 2}}\n", {"xx"}),
    ("a: {<<: [{xx: {yy: 1}}, {xx: {yy: 2}}]}\n", {"xx"}),
    ("a: {<<: [{xx: {yy: 1, zz: 1}}, {xx: {yy: 1}}]}\n", {"xx"}),
    ("a: {<<: [{xx: [1]}, {xx: [1]}], yy: 1}\n", {"xx"}),
    ("a: {<<: [{xx: 1}, {xx: '1'}]}\n", {"xx"}),
    ("a: {<<: [{xx: {yy: 1}}, {xx: [1]}]}\n", {"xx"}),
    ("a: {<<: {xx: {yy: 1}}, <<: {xx: 2}}\n", {"xx"}),
]


@pytest.mark.parametrize("text", KNOWN)
def test_what_no_order_decides_is_known(text: str) -> None:
    found = ours(text, "yaml11")
    assert found == yaml.safe_load(text) == yaml.load(text, Before604) == yaml.load(text, From604)


@pytest.mark.parametrize(("text", "keys"), IN_DOUBT)
def test_what_the_order_decides_is_in_doubt(text: str, keys: set[str]) -> None:
    found = ours(text, "yaml11")
    assert isinstance(found, dict) and isinstance(found["a"], dict)
    assert {key for key, value in found["a"].items() if has_doubt(value)} == keys


@settings(max_examples=200)
@example('m0: &m0 {}\nm1: &m1\n  <<: {"<<": {xx: 1}}\n  <<: {"<<": []}\n')
@example("m0:\n  <<: [{xx: {yy: 1}}, {xx: [1]}]\n")
@given(documents())
def test_what_is_known_holds_in_every_release(text: str) -> None:
    try:
        theirs = [yaml.load(text, Loader=loader) for loader in (yaml.SafeLoader, Before604, From604)]
    except yaml.YAMLError:
        with pytest.raises(UnreadableError):
            read_yaml(Source("x.yaml", text.encode()))
        return
    assert theirs[0] in theirs[1:]
    found = ours(text, "yaml11")
    assert all(fits(found, each) for each in theirs)


@settings(max_examples=150)
@given(documents())
def test_what_omegaconf_takes_it_reads_alike(text: str) -> None:
    try:
        theirs = OmegaConf.to_container(OmegaConf.create(yaml.load(text, Loader=get_yaml_loader())))
    except yaml.YAMLError:
        return
    assert fits(ours(text, "omegaconf"), theirs)
    assert not repeated(text)


@pytest.mark.parametrize("text", ["a: {xx: 1, xx: 2}\n", "a: {xx: {yy: 1, yy: 1}}\n", "a: 1\nb: 2\na: 1\n"])
def test_a_key_that_stands_twice_is_refused(text: str) -> None:
    with pytest.raises(yaml.constructor.ConstructorError, match="duplicate key"):
        yaml.load(text, Loader=get_yaml_loader())
    assert repeated(text)


def repeated(text: str) -> bool:
    (document,) = read_yaml(Source("x.yaml", text.encode()))
    assert document.root is not None
    items = FromNodes(document.source, "omegaconf")
    items.item(document.root, InFile(document.source, document.root))
    return bool(items.duplicates)


@settings(max_examples=100)
@given(documents())
def test_dotted_names_are_those_of_what_counts(text: str) -> None:
    try:
        found = ours(text, "yaml11")
        (document,) = read_yaml(Source("x.yaml", text.encode()))
    except UnreadableError:
        return
    leaves = {name: value for name, value in _leaves("", found) if not isinstance(value, dict | list)}
    assert {each.name: each.value for each in file_settings(document, "yaml11")} == leaves
    assert dotted_keys(document) == {name for name, _ in _leaves("", found) if name}


def _leaves(name: str, value: object) -> list[tuple[str, object]]:
    found = [(name, value)]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _leaves(f"{name}.{key}" if name else key, inner)
    return found


def test_a_coefficient_in_doubt_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(
        "one: &one {beta: 0.04}\ntwo: &two {beta: 0.0}\n<<: [*one, *two]\noutput_dir: out\nnum_generations: 8\n"
    )
    (setup,) = klaudit.scan(tmp_path).setups
    assert [(term.coefficient, term.active) for term in setup.terms] == [(None, True)]
