"""Defaults that a framework's own source in the tree states: they overrule what is known of its releases."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from klaudit.frameworks.classes import Classes
from klaudit.frameworks.conditions import Lookup, holds
from klaudit.frameworks.rules import SourceDefaults, Trainer
from klaudit.frameworks.versions import parse_version
from klaudit.model import FrameworkVersion, Setting
from klaudit.readers.python.defaults import argument_defaults, flatten_dataclass, module_loader
from klaudit.tree import Tree


class OwnDefaults:
    def __init__(self, tree: Tree, classes: Classes) -> None:
        self._tree = tree
        self._classes = classes
        self._known: dict[tuple[str, str, str], Mapping[str, Setting]] = {}

    def of(self, trainer: Trainer, root: str | None, version: FrameworkVersion, target: str) -> Mapping[str, Setting]:
        """Settings by name, for the framework's source at `root` and a launch of `target`; empty where there is none."""
        if root is None:
            return {}
        release = parse_version(version.value)
        lookup = Lookup(lambda name: target if name == "$entry-point" else None, lambda name: False)
        found: dict[str, Setting] = {}
        for rule in trainer.source_defaults:
            if release in rule.versions and holds(rule.when, lookup) is not False:
                found.update(self._read(rule, root))
        return found

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
