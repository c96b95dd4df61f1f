"""Defaults that a framework's own source declares: of its dataclasses, nested and inherited, and of its command-line options."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from klaudit.model import Setting, Unknown
from klaudit.readers.document import ConfigObject, FieldSpec, PythonDocument
from klaudit.readers.python.reader import read_python
from klaudit.readers.source import UnreadableError
from klaudit.tree import Tree

MAX_NESTING = 12  # classes within classes
MAX_MODULES = 200  # looked through for one re-exported name
MAX_SETTINGS = 5_000

Load: TypeAlias = Callable[[str], "PythonDocument | None"]
_Found: TypeAlias = "tuple[PythonDocument, ConfigObject]"


def argument_defaults(document: PythonDocument) -> tuple[Setting, ...]:
    """The default of every command-line option that a module declares, one setting a flag, named without leading dashes."""
    return tuple(setting for made in document.objects if made.kind == "arguments" for setting in made.settings)


def dataclass_defaults(document: PythonDocument, class_name: str) -> tuple[Setting, ...]:
    """The defaults of a class and of its bases within the module.  Empty where there is no such class."""
    made = _class_in(document, class_name)
    if made is None:
        return ()
    fields = _fields(lambda name: None, document, made, 0)
    return tuple(setting for _, settings, _ in fields.values() for setting in settings)


def flatten_dataclass(load: Load, root_class: str) -> tuple[Setting, ...]:
    """The defaults of a class of nested config classes, under dotted names.

    `root_class` is a qualified name; `load` gives the document of the module that holds (or re-exports) a qualified name, None where
    that is not in the tree: fields of such classes are left as Unknown.
    """
    found = _find(load, root_class)
    if found is None:
        return ()
    settings: list[Setting] = []
    _flatten(load, *found, "", 0, settings)
    return tuple(settings)


def module_loader(tree: Tree, roots: Sequence[str] = ("",)) -> Load:
    """A `load` for `flatten_dataclass` that looks for modules below the given folders of a tree, and remembers them."""
    documents: dict[str, PythonDocument | None] = {}

    def read(path: str) -> PythonDocument | None:
        if path not in documents:
            try:
                source = tree.readable(path)
                documents[path] = read_python(source) if source is not None else None
            except UnreadableError:
                documents[path] = None
        return documents[path]

    def load(name: str) -> PythonDocument | None:
        parts = [part for part in name.split(".") if part]
        for length in range(len(parts), 0, -1):
            for root in roots:
                base = posixpath.join(root, *parts[:length])
                for path in (f"{base}.py", f"{base}/__init__.py"):
                    document = read(path)
                    if document is not None:
                        return document
        return None

    return load


def _find(load: Load, name: str, local: PythonDocument | None = None, seen: set[str] | None = None) -> _Found | None:
    """The class behind a qualified name, through re-exports; `local` is the module that uses the name."""
    if local is not None and (made := _class_in(local, name)) is not None:
        return local, made
    seen = seen if seen is not None else set()
    document = load(name) if name not in seen and len(seen) < MAX_MODULES else None
    if document is None:
        return None
    seen.add(name)
    last = name.rpartition(".")[2]
    if (made := _class_in(document, last)) is not None:
        return document, made
    for exported, symbol in document.imports:
        target = symbol if exported == last else f"{symbol}.{last}" if exported == "*" else None
        if target is not None and target != name and (found := _find(load, target, None, seen)) is not None:
            return found
    return None


def _class_in(document: PythonDocument, name: str) -> ConfigObject | None:
    return next((made for made in document.objects if made.kind == "class" and made.symbol == name), None)


_Field: TypeAlias = "tuple[FieldSpec, tuple[Setting, ...], PythonDocument]"


def _fields(load: Load, document: PythonDocument, made: ConfigObject, depth: int) -> dict[str, _Field]:
    """Fields by name with the settings that give their defaults, base classes first."""
    found: dict[str, _Field] = {}
    if depth < MAX_NESTING:
        for base in reversed(made.bases):
            parent = _find(load, base, document)
            if parent is not None and parent[1] is not made:
                found.update(_fields(load, *parent, depth + 1))
    for spec in made.arguments:
        if isinstance(spec, FieldSpec):
            own = tuple(replace(setting, origin="default") for setting in _settings_of(made, spec.name))
            found[spec.name] = (spec, own, document)
    return found


def _settings_of(made: ConfigObject, name: str) -> Iterator[Setting]:
    return (setting for setting in made.settings if setting.name == name or setting.name.startswith(f"{name}."))


def _flatten(
    load: Load, document: PythonDocument, made: ConfigObject, prefix: str, depth: int, settings: list[Setting]
) -> None:
    for name, (spec, own, holder) in _fields(load, document, made, 0).items():
        nested = _find(load, spec.factory, holder) if spec.factory is not None and depth < MAX_NESTING else None
        if nested is None or len(settings) > MAX_SETTINGS:
            settings.extend(replace(setting, name=prefix + setting.name) for setting in own)
            continue
        below: dict[str, list[Setting]] = {}
        _put(below, _flattened(load, nested, f"{prefix}{name}.", depth))
        for setting in spec.given:  # what the call that makes the default sets
            full = f"{prefix}{name}.{setting.name}"
            made_here = _made_class(load, setting, holder)
            for replaced in [key for key in below if key == full or key.startswith(f"{full}.")]:
                del below[replaced]
            if made_here is not None:
                _put(below, _flattened(load, made_here, f"{full}.", depth + 1))
            else:
                below[full] = [replace(setting, name=full, origin="default")]
        settings.extend(setting for group in below.values() for setting in group)


def _flattened(load: Load, found: _Found, prefix: str, depth: int) -> list[Setting]:
    settings: list[Setting] = []
    if depth < MAX_NESTING:
        _flatten(load, *found, prefix, depth + 1, settings)
    return settings


def _put(below: dict[str, list[Setting]], settings: list[Setting]) -> None:
    for setting in settings:
        below.setdefault(setting.name, []).append(setting)


def _made_class(load: Load, setting: Setting, holder: PythonDocument) -> _Found | None:
    """The class that a setting's value is an object of, where the tree has it."""
    value = setting.value
    if isinstance(value, Unknown) and value.hangs_on == (f"{value.text}()",):
        return _find(load, value.text, holder)
    return None
