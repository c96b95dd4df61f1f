"""Notebooks: cells as one program, commands in them, and spans that point into the JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_reading import position, values

from klaudit.readers.document import NotebookDocument
from klaudit.readers.notebook import read_notebook
from klaudit.readers.source import Source, UnreadableError


def cell(source: str | list[str], kind: str = "code", **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source, "outputs": [], **more}


def notebook(*cells: Any, **metadata: Any) -> bytes:
    made = [cell(c) if isinstance(c, (str, list)) else c for c in cells]
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4}, indent=1).encode()


def read(*cells: Any, **metadata: Any) -> NotebookDocument:
    return read_notebook(Source("n.ipynb", notebook(*cells, **metadata)))


def settings_of(document: NotebookDocument) -> dict[str, Any]:
    assert document.python is not None
    return {k: v for made in document.python.objects for k, v in values(made).items()}


def test_names_carry_over_from_cell_to_cell() -> None:
    document = read(
        ["from trl import GRPOConfig\n", "BETA = 0.04"],
        cell("# Title", "markdown"),
        ["args = GRPOConfig(beta=BETA)\n"],
        "args.lr = 1",
    )
    assert document.python is not None
    (made,) = document.python.objects
    assert (made.symbol, values(made)) == ("trl.GRPOConfig", {"beta": 0.04, "lr": 1})
    beta, lr = made.settings
    assert (beta.span.cell, lr.span.cell) == (2, 3)
    assert beta.source is not None and beta.source.cell == 0
    assert [(c.index, c.kind) for c in document.cells] == [(0, "python"), (1, "markdown"), (2, "python"), (3, "python")]
    assert document.cells[1].source.data == b"# Title"
    assert document.problems == ()


texts = st.text(st.characters(codec="utf-8"), max_size=6)
styles = st.sampled_from(
    [{"ensure_ascii": False}, {"ensure_ascii": True}, {"indent": 1}, {"indent": None, "separators": (",", ":")}]
)
forms = st.sampled_from(["list", "lines", "string"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(texts, st.floats(0, 1)), min_size=1, max_size=4), styles, forms)
def test_spans_point_into_the_json(parts: list[tuple[str, float]], style: dict[str, Any], form: str) -> None:
    cells, spelled = [], []
    for index, (text, number) in enumerate(parts):
        code = f"# {text!a} é😀\nConfig(a{index}={text!r}, b{index}={number!r})\n"
        spelled.append((repr(text), repr(number)))
        source: Any = {"list": [code], "lines": code.splitlines(keepends=True), "string": code}[form]
        cells.append(cell(source))
    data = json.dumps({"cells": cells, "metadata": {}}, **style).encode("utf-8", "surrogatepass")
    document = read_notebook(Source("n.ipynb", data))
    assert document.python is not None, document.problems
    assert len(document.python.objects) == len(parts)
    for index, made in enumerate(document.python.objects):
        for setting, written, value in zip(made.settings, spelled[index], parts[index], strict=True):
            span = setting.value_span
            assert json.loads(b'"' + data[span.start : span.end] + b'"') == written
            assert setting.value == value
            assert span.cell == index
            assert position(data, span.start) == (span.line, span.column)
            assert position(data, span.end) == (span.end_line, span.end_column)
        whole = json.loads(b'"' + data[made.span.start : made.span.end] + b'"')
        assert whole.startswith("Config(") and whole.endswith(")")


def test_commands_in_cells() -> None:
    lines = [
        "import os\n",
        "!pip install trl==0.22.2\n",
        "if colab:\n",
        '    !uv pip install \\\n        vllm {extra} "$HOME" ${X}\n',
        "else:\n",
        "    x = !ls -l\n",
        "%cd work\n",
        "%run train.py --beta 0.1\n",
        "!!python '{BETA}'\n",
        "BETA = 0.1",
    ]
    document = read(
        lines,
        "%%bash\npython -m verl.trainer.main_ppo \\\n  a.b=c\n",
        "%%capture --no-stderr\nConfig(beta=BETA)",
        "%%script bash --bg\necho hi",
        "%%html\n<b>",
        "%%writefile run.sh\npython x.py",
        "%time y = Config(t=1)\nConfig?\n?Config\nprint('a?')",
        "text = '''\n!not a command\n%neither\n'''\nConfig(s=text)",
    )
    assert [source.data.decode() for source in document.shell] == [
        "pip install trl==0.22.2",
        'uv pip install \\\n        vllm $(extra) "$HOME" ${X}',
        "ls -l",
        "python train.py --beta 0.1",
        "python ''\"$(BETA)\"''",
        "python -m verl.trainer.main_ppo \\\n  a.b=c\n",
        "echo hi",
    ]
    assert settings_of(document) == {"beta": 0.1, "t": 1, "s": "\n!not a command\n%neither\n"}
    assert [(path, source.data) for path, source in document.files] == [("run.sh", b"python x.py")]
    assert document.problems == ()
    assert [c.kind for c in document.cells] == [
        "python",
        "shell",
        "python",
        "shell",
        "other",
        "other",
        "python",
        "python",
    ]


def test_spans_of_commands_point_into_the_json() -> None:
    data = notebook('x = 1\n!python "a b" é.py {x}\n')
    (source,) = read_notebook(Source("n.ipynb", data)).shell
    for part, spelled in ((b'"a b"', '\\"a b\\"'), ("é.py".encode(), "\\u00e9.py"), (b"$(x)", "{x}")):
        at = source.data.index(part)
        span = source.span(at, at + len(part))
        assert data[span.start : span.end].decode() == spelled
        assert span.cell == 0


def test_a_broken_cell_is_left_out_and_reported() -> None:
    document = read("BETA = 0.1", "x = (", "y = 1)", "this is no python", "Config(beta=BETA)", "'''", "'''")
    assert settings_of(document) == {"beta": 0.1}
    assert [problem.message.split(":")[0] for problem in document.problems] == [
        "cell 1",
        "cell 2",
        "cell 3",
        "cell 5",
        "cell 6",
    ]
    assert document.problems[2].line == json_line(
        notebook("BETA = 0.1", "x = (", "y = 1)", "this is no python"), b"this is"
    )


def json_line(data: bytes, text: bytes) -> int:
    return data[: data.index(text)].count(b"\n") + 1


def test_cells_never_run_into_each_other() -> None:
    document = read("Config(x=[", "1])", "if a:", "    Config(y=2)", "z = \\", "3")
    assert document.python is None or settings_of(document) == {}
    assert len(document.problems) >= 4


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({}, "python"),
        ({"kernelspec": {"language": "python"}}, "python"),
        ({"kernelspec": {"name": "python3"}}, "python"),
        ({"language_info": {"name": "R"}}, "other"),
        ({"kernelspec": {"language": "julia"}}, "other"),
        ({"kernelspec": {"language": "bash"}}, "shell"),
    ],
)
def test_languages(metadata: dict[str, Any], kind: str) -> None:
    document = read("echo = 1", **metadata)
    assert [c.kind for c in document.cells] == [kind]
    assert (document.python is not None, len(document.shell)) == (kind == "python", int(kind == "shell"))


def test_a_cell_may_have_its_own_language() -> None:
    shell = cell("python a.py")
    shell["metadata"] = {"vscode": {"languageId": "shellscript"}}
    assert [source.data for source in read("x = 1", shell).shell] == [b"python a.py"]


def test_format_3_keeps_cells_in_worksheets() -> None:
    cells = [
        {"cell_type": "heading", "source": ["T"]},
        {
            "cell_type": "code",
            "language": "python",
            "input": ["Config(\n", "beta=0.1)"],
            "outputs": [{"source": "Config(x=1)"}],
        },
    ]
    data = json.dumps({"worksheets": [{"cells": cells}], "metadata": {"name": ""}, "nbformat": 3}).encode()
    document = read_notebook(Source("n.ipynb", data))
    assert settings_of(document) == {"beta": 0.1}
    assert document.python is not None and document.python.objects[0].span.cell == 1


def test_what_looks_like_a_cell_elsewhere_is_none() -> None:
    inner = {"cells": [{"cell_type": "code", "source": "Config(x=1)"}]}
    code = cell("Config(beta=0.1)", outputs=[{"data": inner, "source": ["Config(y=1)"]}])
    document = read_notebook(
        Source("n.ipynb", json.dumps({"metadata": {"widgets": inner}, "cells": [code], "source": "z"}).encode())
    )
    assert settings_of(document) == {"beta": 0.1}


def test_numbers_of_any_length_are_no_trouble() -> None:
    data = b'{"cells": [{"cell_type": "code", "execution_count": ' + b"1" * 5000 + b', "source": "Config(x=1)"}]}'
    assert settings_of(read_notebook(Source("n.ipynb", data))) == {"x": 1}


def test_a_key_given_twice_counts_once() -> None:
    data = b'{"cells": [{"cell_type": "code", "source": "Config(x=1)", "source": ["Config(", "y=2)"]}], "metadata": {}}'
    assert settings_of(read_notebook(Source("n.ipynb", data))) == {"y": 2}


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"", "not JSON", 1),
        (b'{"cells": [\n{]}', "not JSON", 2),
        (b"[]", "not a notebook", None),
        (b"{}", "not a notebook", None),
        (b'{"cells": 3}', "not a notebook", None),
        (b'{"cells": "x"}', "not a notebook", None),
        (b'{"cells": [] x}', "not JSON", 1),
        (b'{"cells" []}', "not JSON", 1),
        (b'{"cells": []}}', "not JSON", 1),
        (b'{"cells": [],\n}', "not JSON", 2),
        (b'{"cells": [{"source": "\xff"}]}', "not UTF-8", 1),
        (b"[" * 100_000, "nested too deep|not JSON", None),
        (b'{"cells": [{"a": ' + b"[" * 100_000, "nested too deep|not JSON", None),
    ],
)
def test_what_is_no_notebook(data: bytes, message: str, line: int | None) -> None:
    with pytest.raises(UnreadableError, match=message) as raised:
        read_notebook(Source("n.ipynb", data))
    assert line is None or raised.value.line == line


@pytest.mark.parametrize("source", [None, 3, [1, None], {"a": "x = 1"}, []])
def test_cells_without_a_text(source: Any) -> None:
    document = read({"cell_type": "code", "source": source}, "Config(beta=0.1)", {"source": "x"}, {})
    assert settings_of(document) == {"beta": 0.1}


def test_half_a_surrogate_pair_is_no_character() -> None:
    data = b'{"cells": [{"cell_type": "code", "source": "Config(x=\'\\ud83d\', y=\'\\ud83d\\ude00\')"}]}'
    assert settings_of(read_notebook(Source("n.ipynb", data))) == {"x": "?", "y": "😀"}


def test_a_byte_order_mark_shifts_nothing() -> None:
    data = b"\xef\xbb\xbf" + notebook("Config(beta=0.1)")
    document = read_notebook(Source("n.ipynb", data))
    assert document.python is not None
    span = document.python.objects[0].settings[0].value_span
    assert data[span.start : span.end] == b"0.1"
