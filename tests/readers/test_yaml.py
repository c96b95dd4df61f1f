"""YAML: structure as PyYAML's, spans exact, hostile input bounded."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.readers import yaml as reader
from klaudit.readers.document import Entry, MappingNode, Node, ScalarNode, SequenceNode, TreeDocument
from klaudit.readers.scalars import resolve_scalar
from klaudit.readers.source import Source, UnreadableError
from klaudit.readers.yaml import read_yaml


def read(text: str | bytes) -> TreeDocument:
    (document,) = read_yaml(Source("x.yaml", text if isinstance(text, bytes) else text.encode()))
    return document


def root(text: str | bytes) -> MappingNode:
    node = read(text).root
    assert isinstance(node, MappingNode)
    return node


def plain(node: Node | None) -> object:
    """The tree as the safe loader would give it, keys as text."""
    if isinstance(node, MappingNode):
        return {entry.key: plain(entry.value) for entry in node.entries}
    if isinstance(node, SequenceNode):
        return [plain(item) for item in node.items]
    return None if node is None else resolve_scalar(node, "yaml11")


def cut(text: str | bytes, node: Node) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    return data[node.start : node.end].decode()


def entry(text: str | bytes, key: str) -> Entry:
    return next(entry for entry in root(text).entries if entry.key == key)


SPANS = [
    ("a: k3\n", "k3"),
    ("a:   k3   # why\n", "k3"),
    ('a: "k3"  # why\n', '"k3"'),
    ("a: 'it''s'\n", "'it''s'"),
    ("{a: k3, b: 1}\n", "k3"),
    ("é: 1\na: ünï  # ö\n", "ünï"),
    ("\ufeff# ö\n𝔘: 𝔙\na: 𝔙x\n", "𝔙x"),
    ("b: ü\r\na: k3\r\n", "k3"),
    ("a: |\n  x\n  y\n\n# c\nb: 1\n", "|\n  x\n  y"),
    ("a: >-\n  x\n", ">-\n  x"),
    ("a: |+\n  x\n\n\nb: 1\n", "|+\n  x"),
    ("a: [1, {x: y}]  # c\n", "[1, {x: y}]"),
    ("a:\n  - 1\n  - b: 2\n\n# c\nz: 1\n", "- 1\n  - b: 2"),
    ("a:\n  b: 1\n  c: 2  # c\n\nz: 1\n", "b: 1\n  c: 2"),
    ("a:\nb: 1\n", ""),
    ("a: &x k3\nb: *x\n", "k3"),
    ("a: !!str 1\n", "1"),
    ("a: &x\n  k: 1\n", "k: 1"),
    ("a: &x\n  - 1\n  - 2\n", "- 1\n  - 2"),
    ("b: &x k3\na: *x\n", "*x"),
    ("a: two\n  lines  # c\n", "two\n  lines"),
]


@pytest.mark.parametrize(("text", "value"), SPANS)
def test_value_spans(text: str, value: str) -> None:
    found = entry(text, "a")
    assert cut(text, found.value) == value
    assert text.encode()[found.key_start : found.key_end] == b"a"


def test_spans_count_lines_and_columns_in_characters() -> None:
    source = Source("x.yaml", "# ö\nö: é\na: k3\n".encode())
    node = read_yaml(source)[0].root
    assert isinstance(node, MappingNode)
    value = node.entries[0].value
    assert (source.span(value.start, value.end).line, source.span(value.start, value.end).column) == (2, 4)


STRUCTURES = [
    "",
    "# only a comment\n",
    "a: {b: [1, 2, {c: d}], e: }\n",
    "- a\n- b: 1\n  c: 2\n-\n",
    "a: &x {b: 1}\nc: *x\nd: [*x, *x]\n",
    "base: &b {x: 1, y: 2}\nc:\n  y: 3\n  <<: *b\n  z: 4\n",
    "a: &a {x: 1}\nb: &b {y: 2}\nc: {<<: [*a, *b], z: 1}\n",
    "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, x: 3}\n",
    'a: "x\\ty\\u00e9"\n"q k": 1\n\'z\': 2\n',
    "? a\n: b\n? c\n",
    "a: 1\r\nb:\r\n  - x\r\n  - y\r\n",
    "--- text\n",
    "a: |\n  x\n   y\n\nb: >\n  folded\n  text\n",
    "a: 1\na: 2\nb: 3\n",
]


@pytest.mark.parametrize("text", STRUCTURES)
def test_structure_is_pyyamls(text: str) -> None:
    documents = read_yaml(Source("x.yaml", text.encode()))
    ours = plain(documents[0].root) if documents else None
    assert ours == yaml.safe_load(text)


def test_keys_that_are_no_strings_are_rendered_as_text() -> None:
    assert [e.key for e in root("1: a\ntrue: b\n~: c\n2.50: d\n").entries] == ["1", "true", "~", "2.50"]


def test_documents_headers_and_empty_ones() -> None:
    documents = read_yaml(Source("x.yaml", b"# @package _global_\n\n# more\na: 1\n---\n# second\n---\nb: 2\n"))
    assert [plain(document.root) for document in documents] == [{"a": 1}, None, {"b": 2}]
    assert documents[0].header == "# @package _global_\n\n# more\n"
    assert read_yaml(Source("x.yaml", b"")) == ()


def test_duplicates_are_kept_and_the_last_counts() -> None:
    node = root("a: 1\nb: 2\na: 3\n")
    assert [e.key for e in node.entries] == ["a", "b", "a"]
    assert plain(node.get("a")) == 3


def test_merged_entries_point_at_their_anchor() -> None:
    text = "base: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}\n"
    node = entry(text, "c").value
    assert isinstance(node, MappingNode)
    assert [(e.key, cut(text, e.value), e.value.start < text.index("c:")) for e in node.entries] == [
        ("x", "1", True),
        ("y", "3", False),
    ]


def test_unknown_tags_do_not_fail() -> None:
    node = root("a: !include x.yaml\nb: !Foo {c: 1}\n")
    value = node.get("a")
    assert isinstance(value, ScalarNode)
    assert value.tag == "!include"
    assert plain(node.get("b")) == {"c": 1}


UNREADABLE = [
    (b"a: 1\nb:\n\t- c\n", 3, "tab"),
    (b"a: 1\nb: [1, 2\n", 3, "not YAML"),
    (b"a: *nowhere\n", 1, "without an anchor"),
    (b"b: 1\na: &x [1, *x]\n", 2, "inside its own anchor"),
    (b"a: {{ .Values.beta }}\n", 1, "template"),
    (b"{{- if .Values.x }}\na: 1\n{{- end }}\n", 1, "template"),
    (b"{% if x %}\na: 1\n{% endif %}\n", 1, "template"),
    (b"b: 1\n? [a, b]\n: c\n", 2, "as a key"),
    (b"a: \xff\n", 1, "not UTF-8"),
    (b"a: 1\nb: \x07\n", 2, "control character"),
    ("é: 1\nb: \x07\n".encode(), 2, "control character"),
    (b"a: 1\n<<: 3\n", 2, "merge key"),
    (b"\xff\xfea\x00", 1, "not UTF-8"),
    (b'a: "\\UFFFFFFFF"\n', 1, "not YAML"),
    (b"a: \x00\n", 1, "control character"),
]


@pytest.mark.parametrize(("data", "line", "message"), UNREADABLE)
@pytest.mark.parametrize("loader", ["C", "Python"])
def test_unreadable_texts_say_where(
    data: bytes, line: int, message: str, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loader == "Python":
        monkeypatch.setattr(reader, "_Loader", yaml.SafeLoader)
    with pytest.raises(UnreadableError, match=message) as caught:
        read_yaml(Source("x.yaml", data))
    if loader == "C":  # the Python scanner sometimes blames the line before
        assert caught.value.line == line


@pytest.mark.parametrize(
    "data",
    [b"[" * 10_000, b"- " * 10_000, b"{a: " * 10_000, b"".join(b"%sa:\n" % (b" " * i) for i in range(3000))],
    ids=["flow", "block", "mapping", "indented"],
)
@pytest.mark.parametrize("loader", ["C", "Python"])
def test_deep_nesting_is_refused_quickly(data: bytes, loader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if loader == "Python":
        monkeypatch.setattr(reader, "_Loader", yaml.SafeLoader)
    started = time.perf_counter()
    with pytest.raises(UnreadableError, match="nest"):
        read_yaml(Source("x.yaml", data))
    assert time.perf_counter() - started < 5


def test_depth_through_aliases_is_bounded_too() -> None:
    text = "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 1000))
    with pytest.raises(UnreadableError, match="nested deeper"):
        read(text)


def test_alias_bombs_share_their_nodes() -> None:
    text = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 100))
    started = time.perf_counter()
    node = root(text).get("a99")
    assert isinstance(node, SequenceNode)
    assert time.perf_counter() - started < 2


def test_merge_bombs_are_bounded() -> None:
    keys = ", ".join(f"k{i}: {i}" for i in range(1000))
    text = f"a: &a {{{keys}}}\n" + "".join(f"b{i}: {{<<: [{', '.join(['*a'] * 500)}]}}\n" for i in range(50))
    with pytest.raises(UnreadableError, match="more than"):
        read(text)


def test_huge_files_are_data_not_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_NODES", 1000)
    with pytest.raises(UnreadableError, match="data, not a config"):
        read(b"- 1\n" * (reader.MAX_NODES + 1))


def test_wide_texts_take_linear_time() -> None:
    text = "".join(f"kéy{i}: völue{i}  # ünïcode 𝔘\n" for i in range(20_000))
    started = time.perf_counter()
    read(text)
    assert time.perf_counter() - started < 3


def test_embedded_yaml_points_into_the_file() -> None:
    outer = b"run: |\n  a: k3\n  b: *x\n"
    source = Source("x.yaml", outer).embed(b"a: k3\nb:\n", [(0, 9), (6, 17)])
    node = read_yaml(source)[0].root
    assert isinstance(node, MappingNode)
    assert source.span(node.entries[0].value.start, node.entries[0].value.end).line == 2
    with pytest.raises(UnreadableError) as caught:
        read_yaml(Source("x.yaml", outer).embed(b"a: k3\nb: *x\n", [(0, 9), (6, 17)]))
    assert caught.value.line == 3


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcé 1#:", max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(values, st.sampled_from([None, True, False]), st.booleans())
def test_dumped_values_are_read_back(value: object, flow: bool | None, wide: bool) -> None:
    text = yaml.safe_dump({"root": value}, default_flow_style=flow, allow_unicode=wide)
    node = root(text)
    ours = plain(node)
    assert ours == yaml.safe_load(text) or _keys_as_text(yaml.safe_load(text)) == ours
    _check_spans(text, node)


def _keys_as_text(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _keys_as_text(inner) for key, inner in value.items()}
    return [_keys_as_text(inner) for inner in value] if isinstance(value, list) else value


def _check_spans(text: str, node: Node) -> None:
    """Every plain or quoted scalar's bytes, read alone, are its value."""
    if isinstance(node, MappingNode):
        for item in node.entries:
            _check_spans(text, item.value)
    elif isinstance(node, SequenceNode):
        for inner in node.items:
            _check_spans(text, inner)
    elif "\n" not in cut(text, node):
        assert yaml.safe_load(cut(text, node)) == resolve_scalar(node, "yaml11")
