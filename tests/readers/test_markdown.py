"""Fenced code in Markdown."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.readers.document import Embedded
from klaudit.readers.markdown import read_markdown
from klaudit.readers.source import Source


def read(text: str) -> list[tuple[str, str]]:
    source = Source("README.md", textwrap.dedent(text).encode())
    return [(piece.language, piece.source.data.decode()) for piece in read_markdown(source)]


def test_languages_and_fences() -> None:
    text = """
        ```bash
        python a.py
        ```
        ~~~ {.python .input}
        x = 1
        ```
        ~~~
        ````YAML title="x"
        a: 1
        ```
        ````
        ```
        nothing
        ```
        ```rust
        fn main() {}
        ```
        inline ```bash``` and ``` ```bash
        ```json
        {}
        ```
        ```toml
        a = 1
        ```
        ```ini
        a = 1
        ```
        ```sh
        to the end
        """
    assert read(text) == [
        ("sh", "python a.py\n"),
        ("python", "x = 1\n```\n"),
        ("yaml", "a: 1\n```\n"),
        ("json", "{}\n"),
        ("toml", "a = 1\n"),
        ("ini", "a = 1\n"),
        ("sh", "to the end\n"),
    ]


def test_sessions_keep_the_commands_only() -> None:
    text = """
        ```console
        $ python -m x \\
            a=b
        Epoch 1
        (venv) user@host:~/x$ echo hi
        hi
        ```
        ```bash
        # a comment
        python y.py
        ```
        ```shell
        $ export A=1
        $ python z.py \\
        > --beta 1
        done
        ```
        ```pycon
        >>> x = Config(
        ...     beta=1)
        Config()
        ```
        """
    assert read(text) == [
        ("sh", "python -m x \\\n    a=b\necho hi\n"),
        ("sh", "# a comment\npython y.py\n"),
        ("sh", "export A=1\npython z.py \\\n--beta 1\n"),
        ("python", "x = Config(\n    beta=1)\n"),
    ]


def test_fences_in_lists_and_quotes() -> None:
    text = """
        1. Run
           ```bash
           python a.py
             b
           ```
        - ```bash
          python b.py
          ```
        > ```bash
        > python c.py
        >
        > d
        > ```
        """
    assert read(text) == [("sh", "python a.py\n  b\n"), ("sh", "python b.py\n"), ("sh", "python c.py\n\nd\n")]


def piece(data: bytes) -> Embedded:
    (found,) = read_markdown(Source("README.md", data))
    return found


words = st.text(st.sampled_from("ab$>=é"), min_size=1, max_size=5)
bodies = st.lists(st.lists(words, max_size=3).map(" ".join), min_size=1, max_size=4)


@settings(max_examples=80, deadline=None)
@given(bodies, st.sampled_from(["", "  ", "> ", "> > "]), st.sampled_from(["\n", "\r\n"]))
def test_spans_point_into_the_file(lines: list[str], prefix: str, ends: str) -> None:
    body = [f"echo {line}" for line in lines]
    data = ends.join(["é", f"{prefix}```sh", *(prefix + line for line in body), f"{prefix}```", ""]).encode()
    source = piece(data).source
    assert source.data.decode() == "".join(line + ends for line in body)
    at = 0
    for line in body:
        at = source.data.index(line.encode(), at)
        span = source.span(at, at + len(line.encode()))
        assert data[span.start : span.end] == line.encode()
        at += len(line.encode())


def test_where_says_the_line() -> None:
    assert piece(b"a\n\n```sh\nb\n```\n").where == "line 3"


@pytest.mark.parametrize(
    "data", [b"", b"```", b"```sh", b"```sh\n\n```", b"`" * 100_000, b"> " * 50_000 + b"```sh\nx", b"\xff```sh\n"]
)
def test_hardly_any_markdown(data: bytes) -> None:
    assert len(read_markdown(Source("README.md", data))) <= 1
