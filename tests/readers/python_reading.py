"""Short ways to read Python snippets in tests, with the checks that hold for every document."""

from __future__ import annotations

import ast
import textwrap

from klaudit.model import Setting, Span, Unknown, Value
from klaudit.readers.document import ConfigObject, PythonDocument
from klaudit.readers.python import read_python
from klaudit.readers.source import Source


def read(code: str | bytes, path: str = "pkg/program.py") -> PythonDocument:
    data = code if isinstance(code, bytes) else textwrap.dedent(code).encode()
    document = read_python(Source(path, data))
    for made in document.objects:
        for setting in made.settings:
            check_spans(data, setting)
    return document


def check_spans(data: bytes, setting: Setting) -> None:
    """Lines and columns agree with the bytes, and a literal at the value's span (or its source's) spells the value."""
    for span in filter(None, (setting.span, setting.value_span, setting.source)):
        assert 0 <= span.start <= span.end <= len(data)
        assert position(data, span.start) == (span.line, span.column)
        assert position(data, span.end) == (span.end_line, span.end_column)
    spelled = data[setting.value_span.start : setting.value_span.end].decode()
    assert spelled.startswith(setting.raw.removesuffix("…")) or setting.origin == "override"
    if setting.source is None and setting.origin == "code" and isinstance(setting.value, (int, float, str)):
        try:
            written = ast.literal_eval(spelled)
        except (ValueError, SyntaxError):
            return
        assert written == setting.value


def position(data: bytes, offset: int) -> tuple[int, int]:
    before = data[:offset]
    return before.count(b"\n") + 1, len(before[before.rfind(b"\n") + 1 :].decode()) + 1


def spelled(code: str, span: Span) -> str:
    return textwrap.dedent(code).encode()[span.start : span.end].decode()


def objects(code: str | bytes, kind: str) -> list[ConfigObject]:
    return [made for made in read(code).objects if made.kind == kind]


def call(code: str | bytes, symbol: str) -> ConfigObject:
    found = [made for made in objects(code, "call") if made.symbol == symbol]
    assert len(found) == 1, [made.symbol for made in objects(code, "call")]
    return found[0]


def values(made: ConfigObject) -> dict[str, Value]:
    """The last value of each setting."""
    return {setting.name: setting.value for setting in made.settings}


def value(expression: str, before: str = "") -> Value:
    """What `expression` comes to after the lines `before`."""
    code = textwrap.dedent(before) + f"\nConfig(x={expression})\n"
    return values(objects(code, "call")[-1])["x"]


def hangs_on(value: Value) -> tuple[str, ...]:
    assert isinstance(value, Unknown), value
    return value.hangs_on
