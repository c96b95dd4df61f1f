"""Config files that name their parents, held against OmegaConf's merge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from composing import differences, write
from omegaconf import DictConfig, ListConfig, OmegaConf

from klaudit.frameworks.compose.inherit import compose_inherited
from klaudit.model import Unknown
from klaudit.readers.document import Piece, Word
from klaudit.readers.source import Source
from klaudit.tree import Tree

FILES = {
    "c/grandparent.yaml": "loss: {beta: 0.01, type: k3, extra: [1, 2]}\npolicy: {name: a, lr: 1e-6}\nbase: ${loss.beta}\n",
    "c/parent.yaml": "defaults: grandparent.yaml\nloss: {type: k2}\ndata: {train: {x: 1}, test: {y: 2}}\n",
    "c/other.yml": "loss: {beta: 0.5}\nother: ${policy.name}\n",
    "c/recipes/child.yaml": """\
defaults:
  - ../parent.yaml
  - ../other.yml
loss:
  type: k1
  extra: [3]
data:
  _override_: true
  train: {z: 3}
missing: ???
flag: off
""",
    "c/alone.yaml": "loss: {beta: 1}\n",
    "c/orphan.yaml": "defaults: gone.yaml\na: 1\n",
    "c/self.yaml": "defaults: self.yaml\n",
    "c/round.yaml": "defaults: robin.yaml\n",
    "c/robin.yaml": "defaults: round.yaml\n",
    "c/twice.yaml": "a: 1\na: 2\n",
    "c/list.yaml": "- 1\n",
    "c/clash.yaml": "defaults: parent.yaml\nloss: [1]\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return write(tmp_path, FILES)


def word(text: str) -> Word:
    span = Source("run.sh", text.encode()).span(0, len(text))
    return Word((Piece(text, span),), span, span)


def with_omegaconf(path: Path) -> DictConfig:
    """Parents depth-first, later ones over earlier ones, the child over all; a marked section replaces."""
    child: Any = OmegaConf.load(path)
    parents = child.pop("defaults") if "defaults" in child else ListConfig([])
    merged: Any = OmegaConf.create({})
    for parent in parents if isinstance(parents, ListConfig) else [parents]:
        merged = OmegaConf.merge(merged, with_omegaconf(path.parent / parent))
    for key in list(child):
        section = child._get_node(key)
        if isinstance(section, DictConfig) and section.pop("_override_", False):
            merged.pop(key, None)
    result = OmegaConf.merge(merged, child)
    assert isinstance(result, DictConfig)
    return result


@pytest.mark.parametrize("name", ["c/alone.yaml", "c/parent.yaml", "c/recipes/child.yaml"])
def test_merges_as_omegaconf_does(tree: Tree, tmp_path: Path, name: str) -> None:
    configuration = compose_inherited(tree, name, ())
    assert configuration.refused is None
    assert differences(with_omegaconf(tmp_path / name), configuration) == []


def test_every_value_knows_its_file(tree: Tree) -> None:
    configuration = compose_inherited(tree, "c/recipes/child.yaml", (word("policy.lr=2"),))
    places = {
        "loss.type": "c/recipes/child.yaml",
        "loss.beta": "c/other.yml",
        "policy.name": "c/grandparent.yaml",
        "policy.lr": "run.sh",
    }
    for name, path in places.items():
        found = configuration.get(name)
        assert found is not None
        assert found.value_span.path == path
    assert [each.value for each in configuration.given("loss.type")] == ["k1"]
    assert configuration.given("loss.beta") == ()


def test_overrides_are_hydras_in_struct_mode(tree: Tree) -> None:
    assert compose_inherited(tree, "c/alone.yaml", (word("loss.beta=2"), word("+new=1"))).refused is None
    assert compose_inherited(tree, "c/alone.yaml", (word("loss.typo=2"),)).refused is not None


def test_a_parent_outside_the_tree_is_unseen(tree: Tree) -> None:
    configuration = compose_inherited(tree, "c/orphan.yaml", (word("b.c=1"),))
    assert [each.config for each in configuration.unseen] == ["gone.yaml"]
    assert configuration.refused is None
    assert configuration.get("a") is not None
    assert not isinstance(configuration.get("a").value, Unknown)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["c/self.yaml", "c/round.yaml", "c/twice.yaml", "c/list.yaml", "c/clash.yaml"])
def test_what_cannot_be_loaded_is_refused(tree: Tree, name: str) -> None:
    assert compose_inherited(tree, name, ()).refused is not None
