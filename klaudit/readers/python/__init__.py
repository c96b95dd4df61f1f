"""Reads settings and commands from Python source, without running it."""

from klaudit.readers.python.reader import read_python

__all__ = ["read_python"]
