"""What Hydra makes of a launch: the configs of a tree composed by their defaults lists, then the overrides."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from klaudit.frameworks.compose.config_files import Library, SearchPath, VersionBase
from klaudit.frameworks.compose.configuration import Base, Configuration, Own, UnseenConfig
from klaudit.frameworks.compose.defaults_list import Chosen, choose
from klaudit.frameworks.compose.found import UnresolvedError
from klaudit.frameworks.compose.interpolation import Resolver
from klaudit.frameworks.compose.items import Branch, Item, Nowhere
from klaudit.frameworks.compose.launch import launch
from klaudit.frameworks.compose.merging import RefusedError, Work
from klaudit.frameworks.compose.overrides import Override, parse_override
from klaudit.model import Problem, Unknown, Value
from klaudit.readers.document import Word
from klaudit.tree import Tree

StandIn: TypeAlias = Callable[[str], Base | None]
Environment: TypeAlias = Mapping[str, "str | None"]


def compose_hydra(
    tree: Tree,
    search_path: Sequence[str],
    config_name: str,
    overrides: Sequence[Word | str],
    *,
    version_base: VersionBase = "1.3",
    is_multirun: bool = False,
    directory: str | None = None,
    environment: Environment | None = None,
    stand_in: StandIn | None = None,
    packaged: Mapping[str, frozenset[str]] | None = None,
) -> Configuration:
    """The configuration of a program that Hydra launches.

    - `search_path`: folders of the tree, the one of the primary config first.
    - `config_name`: the primary config, relative to them.
    - `overrides`: the command line's arguments without options.
    - `version_base`: as given to `hydra.main`; None there means "1.3".
    - `directory`: the working directory relative to the tree's root, None where unknown.
    - `environment`: environment variables that are known; others count as unset.
    - `stand_in`: shipped defaults for a config that is not in the tree, by its name.
    - `packaged`: the only top-level keys that configs of a package can hold (`pkg://NAME...` on the search path), by its name.

    `refused` says why the launch ends before training.  A config that is missing in the tree is no such reason, since it may well be
    installed elsewhere: it becomes `unseen`.
    """
    parsed = [parse_override(override) for override in overrides]
    return _composer(tree).compose(
        tuple(search_path),
        config_name,
        parsed,
        version_base,
        is_multirun,
        directory,
        environment,
        stand_in,
        packaged or {},
    )


class _Request(Struct, frozen=True):
    """What decides a base, but for the environment."""

    search_path: tuple[str, ...]
    config_name: str
    version_base: VersionBase
    directory: str | None
    searchpath_override: str | None
    groups: tuple[str, ...]
    stand_in: StandIn | None
    heads: frozenset[str] | None


class _Recording(Mapping[str, "str | None"]):
    """An environment that notes what was asked of it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.asked: dict[str, tuple[bool, str | None]] = {}

    def __getitem__(self, name: str) -> str | None:
        return self._environment[name]

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self.asked[name] = (name in self._environment, self._environment.get(name))
        return name in self._environment

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)


class _Composer:
    """Composes over one tree, each base once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._library = Library(tree)
        self._paths: dict[tuple[object, ...], SearchPath] = {}
        self._groups: dict[SearchPath, dict[str, bool]] = {}
        self._bases: dict[_Request, list[tuple[dict[str, tuple[bool, str | None]], Base]]] = {}

    def compose(
        self,
        folders: tuple[str, ...],
        config_name: str,
        overrides: list[Override],
        version_base: VersionBase,
        is_multirun: bool,
        directory: str | None,
        environment: Environment | None,
        stand_in: StandIn | None,
        packaged: Mapping[str, frozenset[str]],
    ) -> Configuration:
        environment = {} if environment is None else environment
        searchpath = next((o for o in overrides if o.key == "hydra.searchpath" and not o.prefix), None)
        path = self._search_path(folders, config_name, searchpath, version_base, directory, environment)
        known_groups = self._groups.setdefault(path, {})
        groups, values, problems = [], [], []
        for override in overrides:
            if override.parsed.alternatives is not None and not is_multirun:
                values.append(replace(override, parsed=replace(override.parsed, problem=_sweep(override))))
            elif self._is_group(path, known_groups, override):
                groups.append(override)
            elif override.is_group_only and override.parsed.problem is None and override.package is not None:
                problem = f"{override.parsed.text}: there is no config group {override.key}"
                if not path.unseen:
                    override = replace(override, parsed=replace(override.parsed, problem=problem))
                    values.append(override)
                else:
                    problems.append(override.complaint(f"{problem} in the tree"))
            else:
                values.append(override)
        request = _Request(
            folders,
            config_name,
            version_base,
            directory,
            None if searchpath is None else searchpath.parsed.text,
            tuple(override.parsed.text for override in groups),
            stand_in,
            _heads(path.unseen, packaged),
        )
        base = self._base(request, path, groups, environment)
        return launch(base, values, environment=environment, problems=problems)

    def _base(self, request: _Request, path: SearchPath, groups: list[Override], environment: Environment) -> Base:
        bases = self._bases.setdefault(request, [])
        for asked, base in bases:
            if all(known == (name in environment, environment.get(name)) for name, known in asked.items()):
                return base
        recording = _Recording(environment)
        base = self._compose_base(request, path, groups, recording)
        bases.append((recording.asked, base))
        return base

    def _compose_base(
        self, request: _Request, path: SearchPath, groups: list[Override], environment: Environment
    ) -> Base:
        work = Work(Branch({}, Nowhere()), environment)
        own: list[Own] = []
        unseen: list[UnseenConfig] = []
        problems: list[Problem] = []
        is_closed, refused = True, None
        primary = self._library.config(path, request.config_name, request.version_base)
        at = primary.path if primary is not None else ""
        problems += [Problem(at, None, f"{entry} of the search path is not in the tree") for entry in path.unseen]
        try:
            chosen = choose(
                request.config_name,
                [_with_known_option(override) for override in groups],
                lambda name: self._library.config(path, name, request.version_base),
                request.version_base,
                environment,
            )
            for each in chosen:
                shipped = request.stand_in(each.config) if each.file is None and request.stand_in is not None else None
                if shipped is not None:
                    work.merge(shipped.root, each.package)
                    is_closed = is_closed and shipped.is_closed
                elif each.file is None or each.file.root is None:
                    work.forget(each.package, each.config, request.heads)
                    unseen.append(UnseenConfig(each.package, each.config))
                    problems.append(Problem(at, None, f"the config {each.config} is not in the tree"))
                else:
                    _check_searchpath(each)
                    work.merge(each.file.root, each.package)
                    if each.is_primary:
                        own.append(Own(each.package, each.file.root))
        except RefusedError as error:
            refused = str(error)
            problems.append(Problem(at, None, f"refused: {refused}"))
        return Base(work.root, is_closed, tuple(own), tuple(problems), refused, tuple(unseen))

    def _search_path(
        self,
        folders: tuple[str, ...],
        config_name: str,
        override: Override | None,
        version_base: VersionBase,
        directory: str | None,
        environment: Environment,
    ) -> SearchPath:
        """The folders, and what `hydra.searchpath` of the command line or else the primary config adds."""
        text = None if override is None else override.parsed.text
        key = (folders, config_name, text, version_base, directory)
        if key in self._paths:
            return self._paths[key]
        present = tuple(posixpath.normpath(folder) for folder in folders if self._tree.is_folder(folder))
        path = SearchPath(present, tuple(folder for folder in folders if not self._tree.is_folder(folder)))
        entries: Value = None
        primary = self._library.config(path, config_name, version_base)
        recording = _Recording(environment)
        if override is not None:
            entries = override.value
        elif primary is not None and isinstance(primary.root, Branch):
            resolver = Resolver(primary.root, recording)
            try:
                found = resolver.find("hydra.searchpath")
                entries = None if found is None else resolver.value(found)[0]
            except UnresolvedError as error:
                entries = Unknown(error.hangs_on)
        if isinstance(entries, list):
            texts = [entry if isinstance(entry, str) else "${unknown}" for entry in entries]
            path = path.with_entries(self._tree, texts, directory)
        elif isinstance(entries, Unknown):
            path = SearchPath(path.folders, (*path.unseen, "hydra.searchpath"))
        if not recording.asked:
            self._paths[key] = path
        return path

    def _is_group(self, path: SearchPath, known: dict[str, bool], override: Override) -> bool:
        parsed = override.parsed
        if "." in parsed.key or parsed.problem is not None or isinstance(parsed.value, dict):
            return False
        if parsed.key not in known:
            is_hydras = parsed.key.startswith("hydra/")
            known[parsed.key] = is_hydras or self._library.has_group(path, parsed.key)
        return known[parsed.key]


@lru_cache(maxsize=4)
def _composer(tree: Tree) -> _Composer:
    return _Composer(tree)


def _heads(unseen: Sequence[str], packaged: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
    """The top-level keys that configs of search path entries outside the tree can hold; None where nobody knows."""
    names = [entry.removeprefix("pkg://").partition(".")[0] for entry in unseen if entry.startswith("pkg://")]
    if not unseen or len(names) < len(unseen) or not all(name in packaged for name in names):
        return None
    return frozenset().union(*(packaged[name] for name in names))


def _with_known_option(override: Override) -> Override:
    """A group override whose option is unknown chooses a config that no tree has."""
    if not isinstance(override.value, Unknown):
        return override
    return replace(override, parsed=replace(override.parsed, value=f"?{','.join(override.value.hangs_on)}"))


def _check_searchpath(chosen: Chosen) -> None:
    if chosen.is_primary or chosen.file is None or chosen.package not in ("", "hydra"):
        return
    item: Item | None = chosen.file.root
    for key in ("searchpath",) if chosen.package else ("hydra", "searchpath"):
        item = item.items.get(key) if isinstance(item, Branch) else None
    if item is not None:
        raise RefusedError(f"{chosen.config}: only the primary config may set hydra.searchpath")


def _sweep(override: Override) -> str:
    text = override.parsed.text
    if override.parsed.is_simple_sweep:
        return f"{text} is ambiguous: a list wants brackets, a text quotes, a sweep --multirun"
    return f"{text} is a sweep, which wants --multirun"
