"""Reads settings and commands from Python source, without running it."""

from klaudit.readers.python.defaults import argument_defaults, dataclass_defaults, flatten_dataclass, module_loader
from klaudit.readers.python.reader import read_classes_of, read_module, read_python
from klaudit.readers.python.syntax import parse

__all__ = [
    "argument_defaults",
    "dataclass_defaults",
    "flatten_dataclass",
    "module_loader",
    "parse",
    "read_classes_of",
    "read_module",
    "read_python",
]
