"""A static abstract interpreter of shell scripts."""

from klaudit.readers.shell.reader import read_shell

__all__ = ["read_shell"]
