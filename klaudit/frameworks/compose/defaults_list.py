"""Hydra's defaults list: which config files are merged, in which order, and at which package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from klaudit.frameworks.compose.config_files import ConfigFile, VersionBase
from klaudit.frameworks.compose.default_entry import Default
from klaudit.frameworks.compose.found import Found
from klaudit.frameworks.compose.interpolation import Resolver
from klaudit.frameworks.compose.items import Branch, Leaf, Nowhere, from_value
from klaudit.frameworks.compose.merging import RefusedError
from klaudit.frameworks.compose.overrides import Override
from klaudit.model import Unknown, Value

MAX_DEPTH = 50
MAX_CONFIGS = 2_000
_HYDRA_NAMES = "output launcher sweeper help hydra_help hydra_logging job_logging callbacks env"
HYDRA_GROUPS = frozenset(f"hydra/{name}" for name in _HYDRA_NAMES.split())  # every launch chooses from them already


class Chosen(Struct, frozen=True):
    """A config to merge at a package; `file` is None where the tree does not have it."""

    config: str
    package: str
    file: ConfigFile | None
    is_primary: bool


class _Choice(Struct):
    """A choice that overrides the defaults lists' own; `config` is the config that makes it, None for the command line."""

    value: str | list[str] | None
    config: str | None
    is_used: bool = False


class _Deletion(Struct):
    option: str | None
    is_used: bool = False


class _Choices(Struct):
    """What has been decided about config groups so far."""

    overriding: dict[str, _Choice] = field(default_factory=dict)
    appended: list[Default] = field(default_factory=list)
    deletions: dict[str, _Deletion] = field(default_factory=dict)
    known: dict[str, str | None] = field(default_factory=dict)


def choose(
    primary: str,
    overrides: Sequence[Override],
    load: Callable[[str], ConfigFile | None],
    version_base: VersionBase,
    environment: Mapping[str, str | None] | None = None,
) -> list[Chosen]:
    """The configs that a primary config and group overrides choose, in the order of merging.

    Raises RefusedError where Hydra does: choices that do not exist, are made twice, or are malformed.
    """
    return _DefaultsList(overrides, load, version_base, environment).choose(primary)


class _DefaultsList:
    def __init__(
        self,
        overrides: Sequence[Override],
        load: Callable[[str], ConfigFile | None],
        version_base: VersionBase,
        environment: Mapping[str, str | None] | None,
    ) -> None:
        self._environment = environment
        self._load = load
        self._version_base = version_base
        self._choices = _Choices()
        self._configs = 0
        self._is_whole = True  # no config is missing whose own defaults list could hold what an override is for
        for override in overrides:
            self._take(override)

    def choose(self, primary: str) -> list[Chosen]:
        root = Default(None, primary, version_base=self._version_base, is_primary=True)
        root.place("", "")
        self._expand(root, is_root=True, is_interpolated=False, depth=0)
        chosen: list[Chosen] = []
        self._flatten(root, chosen, set())
        if self._is_whole:
            self._refuse_unused()
        return chosen

    def _refuse_unused(self) -> None:
        for key, choice in self._choices.overriding.items():
            if not choice.is_used and not key.startswith("hydra/"):
                where = "" if choice.config is None else f"{choice.config}: "
                raise RefusedError(f"{where}the defaults list has no {key} to override")
        for key, deletion in self._choices.deletions.items():
            if not deletion.is_used and not key.startswith("hydra/"):
                raise RefusedError(f"the defaults list has no {key} to delete")

    def _take(self, override: Override) -> None:
        """A group override of the command line."""
        key = override.key if override.package is None else f"{override.key}@{override.package}"
        value = override.value
        if override.prefix == "++":
            raise RefusedError(f"a config group cannot be forced: ++{key}")
        if override.prefix == "~":
            if value is not None and not isinstance(value, str):
                raise RefusedError(f"{key}: the option to delete is no text")
            self._choices.deletions[key] = _Deletion(value)
            return
        options = _option_of(key, value)
        if override.prefix == "+":
            default = Default(
                override.key, options, override.package, version_base=self._version_base, is_appended=True
            )
            self._choices.appended.append(default)
        else:
            self._choices.overriding[key] = _Choice(options, None)

    def _expand(self, default: Default, *, is_root: bool, is_interpolated: bool, depth: int) -> None:
        """Fill in the children of a default: later ones first, since their overrides apply to earlier ones."""
        self._configs += 1
        if depth > MAX_DEPTH or self._configs > MAX_CONFIGS:
            raise RefusedError(f"the defaults list of {default.config_path} includes itself")
        choices = self._choices
        if default.name != "???" and default.name is not None:
            default.file = self._load(default.config_path)
            if default.file is not None:
                default.set_header(default.file.package)
        if default.group is not None:
            deletion = choices.deletions.get(default.override_key)
            if deletion is not None and deletion.option in (None, default.name):
                deletion.is_used = default.is_deleted = True
                return
            self._set_known(default)
        if default.name is None:
            return
        if default.config_path.endswith("???"):
            raise RefusedError(f"a choice of {default.override_key} must be given")
        if default.file is None:
            default.is_deleted = default.is_optional or default.config_path.startswith("hydra/")
            self._is_whole = self._is_whole and default.is_deleted
            return
        if default.file.problem is not None:
            problem = default.file.problem
            raise RefusedError(f"{problem.path}:{problem.line or 1}: {problem.message}")
        defaults = [
            Default(
                entry.group,
                entry.value,
                entry.package,
                version_base=self._version_base,
                is_optional=entry.is_optional,
                is_override=entry.is_override,
            )
            for entry in default.file.defaults
        ]
        is_self_added = False
        if defaults or (is_root and choices.appended):
            is_self_added = self._add_self(default, defaults)
        if is_root:
            defaults.extend(choices.appended)
        self._place(default, defaults, is_interpolated=is_interpolated)
        children: list[Default] = []
        deferred: list[Default] = []
        for inner in reversed(defaults):
            if inner.is_self or inner.is_override:
                if inner.is_self:
                    children.append(inner)
                continue
            if inner.group is not None and (choice := choices.overriding.get(inner.override_key)) is not None:
                inner.value = choice.value
                choice.is_used = True
            if isinstance(inner.value, list):
                children.extend(self._options(default, inner, is_interpolated=is_interpolated, depth=depth))
                continue
            children.append(inner)
            if inner.is_interpolation:
                deferred.append(inner)
            else:
                self._expand(inner, is_root=False, is_interpolated=is_interpolated, depth=depth + 1)
        if deferred:
            known = self._known(defaults, is_self_added=is_self_added)
            for inner in deferred:
                inner.value = _resolved(inner, Resolver(known, self._environment), known)
                self._expand(inner, is_root=False, is_interpolated=True, depth=depth + 1)
        default.children = children[::-1]

    def _add_self(self, default: Default, defaults: list[Default]) -> bool:
        """Put the config's own content last where the list does not say; whether it does not."""
        count = sum(inner.is_self for inner in defaults)
        if count > 1:
            raise RefusedError(f"{default.config_path}: the defaults list has _self_ twice")
        if not defaults or (count == 0 and any(not inner.is_override for inner in defaults)):
            defaults.append(Default(None, "_self_", version_base=self._version_base))
        return count == 0

    def _place(self, parent: Default, defaults: list[Default], *, is_interpolated: bool) -> None:
        """Tell the defaults where they stand, and note their overrides."""
        has_override = False
        for inner in defaults:
            if inner.is_self:
                continue
            inner.place(parent.group_path, parent.final_package())
            is_legacy = (
                self._version_base == "1.1"
                and inner.group is not None
                and not inner.is_override
                and inner.group.startswith("hydra/")
            )
            if has_override and not (inner.is_override or inner.is_appended or is_legacy):
                raise RefusedError(f"{parent.config_path}: overrides must stand at the end of the defaults list")
            if inner.group is None:
                continue
            if is_legacy:
                inner.is_override = True
            elif not inner.is_override and inner.group_path in HYDRA_GROUPS:
                raise RefusedError(f"{parent.config_path}: {inner.group_path} is chosen twice; use override")
            if inner.is_override:
                has_override = has_override or not is_legacy
                if is_interpolated:
                    raise RefusedError(f"{parent.config_path}: no overrides below an interpolated default")
                choice = _Choice(inner.value, parent.config_path)
                self._choices.overriding.setdefault(inner.override_key, choice)

    def _options(self, parent: Default, default: Default, *, is_interpolated: bool, depth: int) -> list[Default]:
        """Several options of one group, the last one first."""
        options = []
        for name in reversed(default.value if isinstance(default.value, list) else []):
            if "${" in name:
                raise RefusedError(f"{parent.config_path}: no interpolations in a list of options")
            path = f"{default.group}/{name}"
            option = Default(
                None, path, default.package, version_base=self._version_base, is_optional=default.is_optional
            )
            option.place(parent.group_path, parent.final_package())
            self._expand(option, is_root=False, is_interpolated=is_interpolated, depth=depth + 1)
            options.append(option)
        return options

    def _set_known(self, default: Default) -> None:
        known = self._choices.known
        if known.setdefault(default.override_key, default.name) != default.name:
            raise RefusedError(f"{default.override_key} is chosen twice: use override to change it")

    def _known(self, defaults: list[Default], *, is_self_added: bool) -> Branch:
        """What interpolations in a defaults list can refer to: the choices so far, and the list itself."""
        entries: list[Value] = []
        for inner in defaults:
            if inner.is_self and is_self_added:
                continue
            if inner.group is None:
                entries.append("_self_" if inner.is_self else inner.config_path)
            else:
                entries.append({inner.override_key: [*inner.value] if isinstance(inner.value, list) else inner.value})
        root = from_value({**self._choices.known, "defaults": entries}, Nowhere())
        return root if isinstance(root, Branch) else Branch({}, Nowhere())

    def _flatten(self, default: Default, chosen: list[Chosen], keys: set[str]) -> None:
        if not default.children:
            if default.is_deleted or default.name in (None, "???"):
                return
            if default.group is not None:
                if default.override_key in keys:
                    raise RefusedError(f"{default.override_key} is chosen more than once")
                keys.add(default.override_key)
            chosen.append(Chosen(default.config_path, default.final_package(), default.file, default.is_primary))
            return
        for inner in default.children:
            if inner.is_self:
                package = default.final_package()
                chosen.append(Chosen(default.config_path, package, default.file, default.is_primary))
            else:
                self._flatten(inner, chosen, keys)


def _option_of(key: str, value: Value) -> str | list[str]:
    if isinstance(value, str):
        return value
    options = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    if not isinstance(value, list) or len(options) < len(value):
        raise RefusedError(f"{key}: an option is a text")
    return options


def _resolved(default: Default, resolver: Resolver, known: Branch) -> str:
    """The text of an interpolated default."""
    text = default.config_path if default.group is None else str(default.value)
    leaf = Leaf(text, Nowhere())
    value, _ = resolver.value(Found(leaf, (known,), ("",)))
    if isinstance(value, Unknown):
        raise RefusedError(f"{text} in the defaults list leads nowhere")
    if not isinstance(value, str):
        raise RefusedError(f"{text} in the defaults list is no text")
    return value
