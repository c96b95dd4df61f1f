"""What is printed as Python reads back the same, and every span spells its value, however the file is laid out."""

from __future__ import annotations

import ast
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.model import Setting
from klaudit.readers.python import read_python
from klaudit.readers.source import Source

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True).filter(lambda name: not ast_keyword(name))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=3)
    ),
)
layouts = st.fixed_dictionaries(
    {
        "before": st.sampled_from(["", "\ufeff", "# é\n", "x = '''\n\n'''\n", "if 1:\n    pass\n", "\x0c\n"]),
        "gap": st.sampled_from([" ", "\n    ", "  # comment ')\n", "\n\t"]),
        "ends": st.sampled_from(["\n", "\r\n"]),
    }
)


def ast_keyword(name: str) -> bool:
    try:
        ast.parse(f"f({name}=1)")
    except SyntaxError:
        return True
    return False


def written(span: Any, data: bytes) -> Any:
    return ast.literal_eval(data[span.start : span.end].decode())


def check(setting: Setting, value: Any, data: bytes) -> None:
    assert (type(setting.value), setting.value) == (type(value), value)
    assert written(setting.value_span, data) == value
    assert data[: setting.span.start].count(b"\n") + 1 == setting.span.line
    if isinstance(value, dict):
        return
    entry = data[setting.span.start : setting.span.end]
    assert entry.endswith(data[setting.value_span.start : setting.value_span.end])


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, values, min_size=1, max_size=4), layouts)
def test_a_printed_call_reads_back(given_values: dict[str, Any], layout: dict[str, str]) -> None:
    gap = layout["gap"]
    body = f",{gap}".join(f"{name} ={gap}{value!r}" for name, value in given_values.items())
    code = f"{layout['before']}cfg = Config({gap}{body}{gap})\n"
    data = code.replace("\n", layout["ends"]).encode()
    (made,) = [each for each in read_python(Source("x.py", data)).objects if each.kind == "call"]
    assert (made.symbol, made.name) == ("Config", "cfg")
    direct = {setting.name: setting for setting in made.settings if "." not in setting.name}
    assert list(direct) == list(given_values)
    for name, value in given_values.items():
        check(direct[name], value, data)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text("abé.", min_size=1, max_size=4), values, min_size=1, max_size=4), layouts)
def test_a_printed_dict_reads_back(given_values: dict[str, Any], layout: dict[str, str]) -> None:
    data = f"{layout['before']}config = {given_values!r}\n".replace("\n", layout["ends"]).encode()
    made = read_python(Source("x.py", data)).objects[0]
    flat: list[tuple[str, Any]] = []
    flatten("", given_values, flat)
    assert [(setting.name, setting.value) for setting in made.settings] == flat
    for setting, (_, value) in zip(made.settings, flat, strict=True):
        check(setting, value, data)


def flatten(prefix: str, value: dict[str, Any], flat: list[tuple[str, Any]]) -> None:
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            flatten(f"{prefix}{key}.", inner, flat)
        else:
            flat.append((prefix + key, inner))
