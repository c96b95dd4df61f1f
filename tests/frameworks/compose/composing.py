"""Composes with Hydra itself and with klaudit, and compares the two leaf by leaf."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from klaudit.frameworks.compose.configuration import Configuration
from klaudit.frameworks.compose.hydra import compose_hydra
from klaudit.model import Setting, Unknown, Value
from klaudit.tree import Tree


def write(root: Path, files: Mapping[str, str]) -> Tree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tree(root)


def with_hydra(root: Path, folder: str, name: str, overrides: Sequence[str], version_base: str | None = "1.3") -> Any:
    """What Hydra composes; raises whatever Hydra raises.  Relative entries of the search path are relative to `root`."""
    GlobalHydra.instance().clear()
    before = Path.cwd()
    os.chdir(root)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with initialize_config_dir(str(root / folder), version_base=version_base):
                return compose(name, overrides=list(overrides))
    finally:
        os.chdir(before)


def same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours):
        return math.isnan(theirs)
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(same(ours[key], theirs[key]) for key in ours)
    return ours == theirs


def has_unknown(value: Value) -> bool:
    if isinstance(value, Unknown):
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(has_unknown(each) for each in inner)


def names(value: Any, above: str = "") -> Iterator[str]:
    """The dotted names of everything in a plain config, branches and list items included."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        name = f"{above}.{key}" if above else str(key)
        yield name
        yield from names(inner, name)


def resolved(config: Any, name: str) -> tuple[bool, Any]:
    """Whether OmegaConf can read a name, and its value."""
    try:
        value = OmegaConf.select(config, name, throw_on_missing=True)
        if OmegaConf.is_config(value):
            value = OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
    except Exception:
        return False, None
    return True, value


def differences(config: Any, configuration: Configuration) -> list[tuple[str, Any, Setting | None]]:
    """Names of which klaudit says something else than OmegaConf does.  A value that OmegaConf cannot read must be Unknown."""
    found = []
    plain = OmegaConf.to_container(config, resolve=False)
    for name in names(plain):
        setting = configuration.get(name)
        can_be_read, value = resolved(config, name)
        if setting is None or (can_be_read and not same(setting.value, value)):
            found.append((name, value, setting))
        elif not can_be_read and not has_unknown(setting.value):
            found.append((name, "unreadable", setting))
    known = set(names(plain))
    found.extend(
        (name, "absent", None) for name in configuration.names() if name not in known and name.split(".")[0] != "hydra"
    )
    return found


def agree(root: Path, tree: Tree, folder: str, name: str, overrides: Sequence[str], version_base: str = "1.3") -> str:
    """Compose both ways; an empty text where the two agree, refusals included."""
    ours = compose_hydra(tree, [folder], name, overrides, version_base=version_base, directory=".")  # type: ignore[arg-type]
    try:
        config = with_hydra(root, folder, name, overrides, version_base)
    except Exception as error:
        is_noticed = ours.refused is not None or ours.unseen  # what is not in the tree may be elsewhere
        return "" if is_noticed else f"Hydra refuses ({error}), klaudit does not"
    if ours.refused is not None or ours.unseen:
        return f"Hydra composes, klaudit says {ours.refused} {ours.unseen}"
    return "\n".join(map(str, differences(config, ours)))
