"""Recorded commands -> the settings each launch would train with, found without klaudit: by Hydra, or by the program's own plain rules."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fix.recorder import Commands

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch of a script.  `settings` are all of its effective settings by dotted name or flag, None where it is refused (`error`)."""

    script: str
    program: str
    settings: Settings | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class HydraPrograms:
    """`entries`: module -> (folder of its configs, primary config), relative to the tree."""

    entries: Mapping[str, tuple[str, str]]

    def launches(self, tree: Path, commands: Commands) -> list[Launched]:
        from hydra import compose, initialize_config_dir
        from hydra.core.global_hydra import GlobalHydra
        from omegaconf import OmegaConf

        warnings.simplefilter("ignore")
        found = []
        for script, module, words in _started(commands, self._module):
            folder, name, overrides = self._arguments(tree, script, module, words)
            GlobalHydra.instance().clear()
            try:
                with _working_in(tree), initialize_config_dir(str((tree / folder).resolve()), version_base=None):
                    config = OmegaConf.to_container(compose(name, overrides=overrides), resolve=False)
                found.append(Launched(script, module, dict(flat(config))))
            except Exception as error:  # Hydra's refusal is part of the truth
                found.append(Launched(script, module, None, f"{type(error).__name__}: {str(error).splitlines()[0]}"))
        return found

    def _module(self, argv: Sequence[str]) -> int | None:
        return next((at for at in range(1, len(argv)) if argv[at] in self.entries and argv[at - 1] == "-m"), None)

    def _arguments(self, tree: Path, script: str, module: str, words: Sequence[str]) -> tuple[str, str, list[str]]:
        folder, name = self.entries[module]
        overrides: list[str] = []
        rest = iter(words)
        for word in rest:
            if option := re.match(r"--config-(name|path|dir)(?:=(.*))?$", word):
                value = option[2] if option[2] is not None else next(rest, "")
                if option[1] == "name":
                    name = value.removesuffix(".yaml")
                else:
                    folder = _config_folder(tree, script, module, value.removeprefix("/TREE/")) or folder
            elif "=" in word or word.startswith("~"):
                overrides.append(word)
        return folder, name, overrides


@dataclass(frozen=True, slots=True)
class DotlistPrograms:
    """`program`: what the program's word looks like; `defaults`: the class whose fields are the defaults of `prefix`."""

    program: str
    prefix: str
    defaults: tuple[str, str]  # file, class

    def launches(self, tree: Path, commands: Commands) -> list[Launched]:
        from omegaconf import OmegaConf

        found = []
        for script, program, words in _started(commands, self._program):
            settings = dict(self._defaults(tree))
            given = [word for word in words if re.match(r"\+{0,2}[\w.@/-]+=", word)]
            try:
                parsed = OmegaConf.from_dotlist([word.lstrip("+") for word in given])
                settings |= dict(flat(OmegaConf.to_container(parsed, resolve=False)))
                found.append(Launched(script, program, settings))
            except Exception as error:
                found.append(Launched(script, program, None, f"{type(error).__name__}: {error}"))
        return found

    def _program(self, argv: Sequence[str]) -> int | None:
        return next((at for at, word in enumerate(argv) if re.search(self.program, word)), None)

    def _defaults(self, tree: Path) -> Iterator[tuple[str, Any]]:
        path, defined = self.defaults
        module = ast.parse((tree / path).read_text())
        for statement in ast.walk(module):
            if isinstance(statement, ast.ClassDef) and statement.name == defined:
                for field in statement.body:
                    match field:
                        case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)):
                            yield self.prefix + name, value


@dataclass(frozen=True, slots=True)
class FlagPrograms:
    """Flags with a value or none; `defaults` where one is not given."""

    program: str
    defaults: Mapping[str, str]

    def launches(self, tree: Path, commands: Commands) -> list[Launched]:
        found = []
        for script, program, words in _started(commands, self._program):
            settings: dict[str, Any] = dict(self.defaults)
            name = ""
            for word in words:
                if word.startswith("--"):
                    name, equals, value = word.partition("=")
                    settings[name] = value if equals else True
                elif name:
                    settings[name] = word if settings[name] is True else f"{settings[name]} {word}"
            found.append(Launched(script, program, settings))
        return found

    def _program(self, argv: Sequence[str]) -> int | None:
        return next((at for at, word in enumerate(argv) if re.search(self.program, word)), None)


@contextmanager
def _working_in(tree: Path) -> Iterator[None]:
    """Entries of `hydra.searchpath` may be relative to it."""
    here = Path.cwd()
    os.chdir(tree)
    try:
        yield
    finally:
        os.chdir(here)


def flat(node: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested mappings by dotted name; an empty mapping is a leaf."""
    if isinstance(node, dict) and node:
        for key, below in node.items():
            yield from flat(below, f"{name}.{key}" if name else str(key))
    else:
        yield name, node


def _started(commands: Commands, find: Any) -> Iterator[tuple[str, str, list[str]]]:
    """(script, program, its words) of every command that runs a known program; a command line given as one word is split."""
    for script, runs in commands.items():
        for argv in runs:
            words = [part for word in argv for part in (word.split() if "\n" in word or "-m " in word else [word])]
            at = find(words)
            if at is not None:
                yield script, words[at], list(_until_end(words[at + 1 :]))


def _until_end(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word in (";", "|", "&", "2>&1", "&&"):
            return
        yield word


def _config_folder(tree: Path, script: str, module: str, value: str) -> str | None:
    for base in (tree.joinpath(*module.split(".")).parent, tree, (tree / script).parent):
        if (base / value).is_dir():
            return str((base / value).resolve().relative_to(tree.resolve()))
    return None
