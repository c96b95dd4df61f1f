"""Where comments stand in a file, whatever its format, and what each of them is about.

A string, a heredoc or a quoted scalar that holds the text of a comment is none: each format's own tokens decide.
"""

from __future__ import annotations

import posixpath

from klaudit.discover.suffixes import is_makefile
from klaudit.gate.comments.pieces import Piece, Range
from klaudit.readers.source import Source, UnreadableError

WITHOUT_COMMENTS = (".json",)


def pieces_of(source: Source) -> list[Piece]:
    """The texts of a file that can have comments; none where the file has no comments or cannot be read."""
    try:
        return _pieces(source)
    except (UnreadableError, RecursionError):
        return []


def _pieces(source: Source, language: str = "") -> list[Piece]:
    # each reader is imported only for a file of its own
    if not language and is_makefile(source.path):
        from klaudit.gate.comments.make import makefile_piece

        return [makefile_piece(source)]
    match language or posixpath.splitext(source.path)[1].lower():
        case ".py" | "python":
            from klaudit.gate.comments.python import python_piece

            return [python_piece(source)]
        case ".ipynb":
            return _notebook(source)
        case ".yaml" | ".yml" | "yaml":
            from klaudit.gate.comments.trees import yaml_pieces

            return yaml_pieces(source)
        case ".toml" | "toml":
            from klaudit.gate.comments.trees import toml_piece

            return [toml_piece(source)]
        case ".md" | ".markdown" | ".mdx":
            return _markdown(source)
        case ".json" | "json" | "ini":
            return []
        case _:
            from klaudit.gate.comments.shell import shell_piece

            return [shell_piece(source)]


def _notebook(source: Source) -> list[Piece]:
    from klaudit.readers.notebook import read_notebook

    pieces: list[Piece] = []
    for cell in read_notebook(source).cells:
        if cell.kind in ("python", "shell"):
            pieces += _pieces(cell.source, cell.kind)
    return pieces


def _markdown(source: Source) -> list[Piece]:
    from klaudit.readers.markdown import read_markdown

    pieces: list[Piece] = []
    for block in read_markdown(source):
        try:
            pieces += _pieces(block.source, block.language)
        except UnreadableError:
            continue  # documentation is full of snippets with "..." in them
    return pieces


__all__ = ["WITHOUT_COMMENTS", "Piece", "Range", "pieces_of"]
