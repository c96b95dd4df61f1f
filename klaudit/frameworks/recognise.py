"""Which framework a program, a class or a file of keys belongs to."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct

from klaudit.frameworks.rules import ConfigClass, ConfigSignature, EntryPoint, Framework, NeverExisted, Trainer
from klaudit.model import Setting
from klaudit.readers.invocation import Invocation
from klaudit.tree import Tree


class ProgramMatch(Struct, frozen=True):
    """`defaults` are those of the program's own argument classes, which stand between the framework's and the command."""

    framework: Framework
    trainer: Trainer
    entry_point: EntryPoint
    defaults: tuple[Setting, ...] = ()


class ClassMatch(Struct, frozen=True):
    framework: Framework
    trainer: Trainer
    config_class: ConfigClass


class FileMatch(Struct, frozen=True):
    framework: Framework
    trainer: Trainer
    signature: ConfigSignature


class Index:
    """All frameworks' marks, by what is looked up."""

    def __init__(self, frameworks: Iterable[Framework]) -> None:
        self.frameworks = tuple(frameworks)
        self._modules: dict[str, list[ProgramMatch]] = {}
        self._patterns: list[tuple[str, ProgramMatch]] = []
        self._scripts: dict[str, list[tuple[str, ProgramMatch]]] = {}
        self._programs: dict[str, list[tuple[tuple[str, ...], ProgramMatch]]] = {}
        self._uses: dict[str, list[ProgramMatch]] = {}
        self._classes: dict[str, list[ClassMatch]] = {}
        self._signatures: list[FileMatch] = []
        for framework in self.frameworks:
            for trainer in framework.trainers:
                self._add(framework, trainer)
        self._phantoms = {name for each in self.frameworks for api in each.never_existed for name in api.symbols}
        self._used_names = tuple({symbol.rpartition(".")[2].encode() for symbol in (*self._uses, *self._classes)})

    def programs(self, invocation: Invocation) -> list[ProgramMatch]:
        """The trainers that an invocation starts, most specific first."""
        found: list[ProgramMatch] = []
        if invocation.kind == "module":
            found = [*self._modules.get(invocation.target, ())]
            found += [match for pattern, match in self._patterns if fnmatch.fnmatchcase(invocation.target, pattern)]
        elif invocation.kind == "script":
            target = posixpath.normpath(invocation.target)
            for ending, match in self._scripts.get(posixpath.basename(target), ()):
                if target == ending or target.endswith("/" + ending):
                    found.append(match)
        else:
            name = posixpath.basename(invocation.target)
            words = (name, *(word.text or "" for word in invocation.arguments[:3]))
            found = [match for program, match in self._programs.get(name, ()) if words[: len(program)] == program]
        return [match for match in found if fits(match.entry_point, invocation)]

    def using(self, symbols: Iterable[str], *, by_parser: bool) -> list[ProgramMatch]:
        """The trainers that a script of the tree makes use of.

        With `by_parser`, `symbols` are the classes that it parses its flags into; otherwise what it imports, which tells only for
        programs that take whole configurations.
        """
        found = [match for symbol in symbols for match in self._uses.get(symbol, ())]
        return [match for match in found if (match.entry_point.system == "flags") == by_parser]

    def classes(self, symbol: str) -> list[ClassMatch]:
        return self._classes.get(symbol, [])

    def file(self, path: str, keys: frozenset[str]) -> list[FileMatch]:
        """The trainers that a file with these dotted keys configures."""
        return [match for match in self._signatures if _signed(match.signature, path, keys)]

    def naming(self, keys: frozenset[str]) -> list[FileMatch]:
        """The trainers whose own compound settings (`a.b`, `a-b`) are among `keys`: enough to know an override list by."""
        branches = frozenset(iter_keys(keys))
        return [
            match
            for match in self._signatures
            if any(key in keys and ("." in key or "-" in key) for key in match.signature.any_of)
            and all(key in branches for key in match.signature.all_of)
        ]

    def mentions_a_class(self, tree: Tree, path: str) -> bool:
        """Whether a script so much as names one of the argument classes: cheaper than reading it."""
        data = tree.data(path)
        return data is not None and any(name in data for name in self._used_names)

    def never_existed(self, symbol: str, keywords: Iterable[str]) -> tuple[Framework, NeverExisted] | None:
        """An API of this name and these keywords that no release ever had."""
        if not self.is_phantom(symbol):
            return None
        given = set(keywords)
        for framework in self.frameworks:
            for api in framework.never_existed:
                if (symbol in api.symbols or symbol.rpartition(".")[2] in api.symbols) and given & set(api.keywords):
                    return framework, api
        return None

    def is_phantom(self, symbol: str) -> bool:
        """Whether an API of this name never existed, at least with some keywords."""
        return symbol in self._phantoms or symbol.rpartition(".")[2] in self._phantoms

    @cached_property
    def packaged_keys(self) -> dict[str, frozenset[str]]:
        """The top-level keys of the settings that frameworks ship Hydra configs for, by the name of the package."""
        found: dict[str, frozenset[str]] = {}
        for framework in self.frameworks:
            trainers = [
                each for each in framework.trainers if any(entry.system == "hydra" for entry in each.entry_points)
            ]
            names = (name.name for each in trainers for spec in each.settings.values() for name in spec.names)
            keys = frozenset(re.split("[./]", name)[0] for name in names)
            for name in {each.replace("-", "_") for each in (framework.id, *framework.distributions)} if keys else ():
                found[name] = found.get(name, frozenset()) | keys
        return found

    def keywords(self) -> frozenset[bytes]:
        """Literals of which every file that matters holds at least one."""
        return self._encoded(in_code=False)

    def code_keywords(self) -> frozenset[bytes]:
        """The same for Python: a package's bare name stands in every import there, and a bare key is any name."""
        packages = {
            name.lower().replace("-", "_") for each in self.frameworks for name in (each.id, *each.distributions)
        }
        return frozenset(word for word in self._encoded(in_code=True) if word.decode() not in packages)

    def _encoded(self, *, in_code: bool) -> frozenset[bytes]:
        return frozenset(word.lower().encode() for each in self.frameworks for word in _keywords(each, in_code))

    def _add(self, framework: Framework, trainer: Trainer) -> None:
        for entry in trainer.entry_points:
            match = ProgramMatch(framework, trainer, entry)
            for module in entry.modules:
                if "*" in module:
                    self._patterns.append((module, match))
                else:
                    self._modules.setdefault(module, []).append(match)
            for script in entry.scripts:
                self._scripts.setdefault(posixpath.basename(script), []).append((script, match))
            for program in entry.programs:
                self._programs.setdefault(program[0], []).append((tuple(program), match))
            for symbol in entry.uses:
                self._uses.setdefault(symbol, []).append(match)
        for config_class in trainer.classes:
            for name in config_class.names:
                self._classes.setdefault(name, []).append(ClassMatch(framework, trainer, config_class))
        self._signatures += [FileMatch(framework, trainer, signature) for signature in trainer.config_files]


def _keywords(framework: Framework, in_code: bool) -> set[str]:
    words = set(framework.keywords)
    words |= {symbol.rpartition(".")[2] for api in framework.never_existed for symbol in api.symbols}
    for trainer in framework.trainers:
        for entry in trainer.entry_points:
            words |= _entry_keywords(entry)
        for config_class in trainer.classes:
            words |= {symbol.rpartition(".")[2] for symbol in config_class.names}
        for signature in trainer.config_files:
            needed = [(key,) for key in signature.all_of] + ([signature.any_of] if signature.any_of else [])
            keys = max(needed, key=lambda each: min(map(_telling, each)), default=())  # any of these alone will do
            keys = tuple(key for key in keys if "." in key) if in_code else keys
            words |= {key.rpartition(".")[2] for key in keys if not _holds_one(key, framework.keywords)}
    return words - {""}


def _telling(key: str) -> int:
    """How rare a key may be in files of other kinds: the field's own words first, then length."""
    name = key.rpartition(".")[2]
    return len(name) + (100 if any(word in key for word in ("kl", "grpo", "ppo", "rlhf", "rloo", "generations")) else 0)


def _holds_one(key: str, keywords: Iterable[str]) -> bool:
    """Whether a part of a dotted key has one of the framework's own keywords in it, and so needs none of its own."""
    parts = key.lower().split(".")
    return any(keyword.lower() in part for keyword in keywords for part in parts)


def _entry_keywords(entry: EntryPoint) -> set[str]:
    """Literals of which a file that starts this program holds at least one.

    A name that could stand anywhere (`main`, `examples.*`) counts with all its parts, or with the words that must stand beside it.
    """
    words = set(entry.requires)
    marks = [*entry.modules, *(script.removesuffix(".py") for script in entry.scripts)] if not entry.requires else []
    for mark in marks:
        name = mark.replace("/", ".").rpartition(".")[2]
        words.add(name if "_" in name else max(mark.split("*"), key=len).strip("./"))
    words |= {" ".join(program) for program in entry.programs}
    return words | {symbol.rpartition(".")[2] for symbol in entry.uses}


def excepts(entry: EntryPoint, target: str) -> bool:
    """Whether a module or script is one of those that do not train, although they read the same settings."""
    return any(fnmatch.fnmatchcase(target, pattern) for pattern in entry.unless)


def fits(entry: EntryPoint, invocation: Invocation) -> bool:
    """Whether the words beside the program are those of this entry point."""
    if excepts(entry, invocation.target):
        return False
    words = [word.text or "" for word in invocation.arguments]
    if entry.requires and not any(word.partition("=")[0].lstrip("+~") in entry.requires for word in words):
        return False
    return all(_flag_value(words, flag) in _wanted(values) for flag, values in entry.needs.items())


def _wanted(values: object) -> set[str]:
    return {str(value) for value in values} if isinstance(values, list) else {str(values)}


def _flag_value(words: list[str], flag: str) -> str | None:
    found = None
    for at, word in enumerate(words):
        if word == flag and at + 1 < len(words):
            found = words[at + 1]
        elif word.startswith(flag + "="):
            found = word[len(flag) + 1 :]
    return found


def _signed(signature: ConfigSignature, path: str, keys: frozenset[str]) -> bool:
    if signature.any_of and not any(key in keys for key in signature.any_of):
        return False
    if not all(key in keys for key in signature.all_of) or any(key in keys for key in signature.none_of):
        return False
    return bool(signature.any_of or signature.all_of) and not any(_matches(path, glob) for glob in signature.skip_paths)


def _matches(path: str, glob: str) -> bool:
    return fnmatch.fnmatchcase(path, glob) or (glob.startswith("**/") and fnmatch.fnmatchcase(path, glob[3:]))


def iter_keys(names: Iterable[str]) -> Iterator[str]:
    """Dotted names and everything above them: `a.b.c` gives `a`, `a.b`, `a.b.c`."""
    for name in names:
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            yield ".".join(parts[:count])
