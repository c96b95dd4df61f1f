"""Defaults that a framework's own source in the tree states: they overrule what is known of its releases."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from klaudit.frameworks.classes import Classes
from klaudit.frameworks.conditions import Lookup, holds
from klaudit.frameworks.rules import SourceDefaults, Trainer
from klaudit.frameworks.versions import parse_version
from klaudit.model import FrameworkVersion, Setting
from klaudit.readers.python.defaults import argument_defaults, flatten_dataclass, module_loader
from klaudit.tree import Tree

# A parser that other functions complete: `add_more(parser)`, `ArgumentParser(parents=[...])`.
_HANDED_ON = re.compile(r"\bparents\s*=|[(,]\s*parser\s*[,)]")


class OwnDefaults:
    def __init__(self, tree: Tree, classes: Classes) -> None:
        self._tree = tree
        self._classes = classes
        self._known: dict[tuple[str, str, str], Mapping[str, Setting]] = {}

    def of(self, trainer: Trainer, root: str | None, version: FrameworkVersion, target: str) -> Mapping[str, Setting]:
        """Settings by name, for the framework's source at `root` and a launch of `target`; empty where there is none."""
        found: dict[str, Setting] = {}
        for rule in _fitting(trainer, version, target) if root is not None else ():
            found.update(self._read(rule, root or ""))
        return found

    def undeclared(
        self, trainer: Trainer, root: str | None, version: FrameworkVersion, target: str
    ) -> tuple[str, str] | None:
        """An option that the source at `root` reads although the parser of `target` does not declare it, and why that stops a launch."""
        for rule in _fitting(trainer, version, target) if root is not None else ():
            program = posixpath.join(root or "", rule.path)
            text = self._tree.text(program) if rule.needed_by else None
            if text is None or not self._read(rule, root or "") or _HANDED_ON.search(text):
                continue
            for name, file in rule.needed_by.items():
                reader = posixpath.join(root or "", str(file))
                reading = re.search(
                    rf"(?m)^[^#\n]*\bargs\.{re.escape(name)}\b(?!\s*=[^=])", self._tree.text(reader) or ""
                )
                if reading is not None and name not in text:
                    line = reading.string.count("\n", 0, reading.end()) + 1
                    return name, f"{program} declares no --{name}, which {reader}:{line} reads: AttributeError"
        return None

    def _read(self, rule: SourceDefaults, root: str) -> Mapping[str, Setting]:
        key = (root, rule.path, rule.symbol)
        if key not in self._known:
            self._known[key] = self._settings(rule, root)
        return self._known[key]

    def _settings(self, rule: SourceDefaults, root: str) -> dict[str, Setting]:
        path = posixpath.join(root, rule.path)
        if not self._tree.is_file(path):
            return {}
        if rule.kind == "arguments":
            document = self._classes.document(path)
            settings = argument_defaults(document) if document is not None else ()
        else:
            module = rule.path.removesuffix(".py").replace("/", ".")
            settings = flatten_dataclass(module_loader(self._tree, (root,)), f"{module}.{rule.symbol}")
        prefix = f"{rule.prefix}." if rule.prefix else ""
        return {prefix + setting.name: setting for setting in settings}


def _fitting(trainer: Trainer, version: FrameworkVersion, target: str) -> Iterator[SourceDefaults]:
    release = parse_version(version.value)
    lookup = Lookup(lambda name: target if name == "$entry-point" else None, lambda name: False)
    for rule in trainer.source_defaults:
        if release in rule.versions and holds(rule.when, lookup) is not False:
            yield rule
