"""Composition of config trees, held against Hydra: written for one rule each, and generated."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from composing import agree, with_hydra, write
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from klaudit.frameworks.compose.hydra import compose_hydra

ACTOR = "use_kl_loss: false\nkl_loss_coef: 0.001\noptim: {lr: 1e-6, betas: [0.9, 0.999]}\nmicro: ${.optim.lr}\n"
TREE = {
    "conf/trainer.yaml": """\
defaults:
  - actor@actor_rollout_ref.actor: dp
  - /data@data: gsm8k
  - reward
  - optional critic: absent
  - model_engine: fsdp
  - ref@actor_rollout_ref.ref: ${model_engine}_ref
  - _self_
actor_rollout_ref:
  actor: {kl_loss_type: low_var_kl}
algorithm: {adv_estimator: gae, kl_ctrl: {type: fixed, kl_coef: 1e-3}, off_policy: off, missing: ???}
total: ${oc.select:actor_rollout_ref.actor.steps,10}
epochs: ${total}
name: run-${actor_rollout_ref.actor.kl_loss_type}-${total}
""",
    "conf/actor/base.yaml": ACTOR,
    "conf/actor/dp.yaml": "defaults:\n  - base\n  - _self_\nstrategy: fsdp\noptim: {lr: 2e-6}\n",
    "conf/actor/megatron.yaml": "defaults:\n  - base\n  - ../optim@optim: adam\nstrategy: megatron\n",
    "conf/optim/adam.yaml": "name: adam\nlr: 3e-4\n",
    "conf/data/gsm8k.yaml": "files: [a, b]\nshuffle: on\n",
    "conf/reward.yaml": "# @package reward_model\nenable: False\nsize: 1_000\n",
    "conf/model_engine/fsdp.yaml": "# @package _global_\nengine: fsdp\n",
    "conf/model_engine/megatron.yaml": "# @package _global_\nengine: megatron\nalgorithm: {adv_estimator: grpo}\n",
    "conf/ref/fsdp_ref.yaml": "fsdp: 1\nsame: ${actor_rollout_ref.actor.optim}\n",
    "conf/ref/megatron_ref.yaml": "megatron: 1\n",
    "conf/critic/big.yaml": "size: 7\n",
    "conf/first.yaml": "defaults:\n  - _self_\n  - trainer\nengine: mine\nalgorithm: {adv_estimator: rloo}\n",
    "conf/implicit.yaml": "defaults:\n  - trainer\nalgorithm: {adv_estimator: rloo}\n",
    "conf/overriding.yaml": """\
defaults:
  - trainer
  - _self_
  - override actor@actor_rollout_ref.actor: megatron
  - override model_engine: megatron
""",
    "conf/options.yaml": "defaults:\n  - actor: [base, dp]\n  - data@_global_: gsm8k\n  - optim@_here_: adam\nx: 1\n",
    "conf/sub/inner.yaml": "defaults:\n  - /optim@opt: adam\n  - other\n  - _self_\na: 1\n",
    "conf/sub/other.yaml": "b: ${.a}\nc: ${..sub.a}\n",
    "conf/more.yaml": "hydra:\n  searchpath:\n    - file://extra\ndefaults:\n  - outside\n  - _self_\nx: 1\n",
    "extra/outside.yaml": "y: 2\nx: 3\n",
    "conf/merged.yaml": "defaults:\n  - base1\n  - base2\n  - _self_\nlink: {z: 3}\n",
    "conf/base1.yaml": "d: {x: 1, y: [1, 2], n: null}\nlink: ${d}\nt: {a: 1}\n",
    "conf/base2.yaml": "d: {x: {deep: 1}, y: [3], n: {a: 1}}\nt: null\nu: ???\n",
    "conf/listed.yaml": "defaults:\n  - base1\nd: [1]\n",
    "conf/twice.yaml": "a: 1\na: 2\n",
    "conf/unresolved.yaml": "defaults:\n  - data: ${nothing}\n",
    "conf/unchosen.yaml": "defaults:\n  - data: ???\n",
    "conf/again.yaml": "defaults:\n  - data: gsm8k\n  - data: gsm8k\n",
    "conf/selfish.yaml": "defaults:\n  - _self_\n  - _self_\na: 1\n",
    "conf/early.yaml": "defaults:\n  - override data: gsm8k\n  - data: gsm8k\n",
    "conf/broken.yaml": "a: ${b\n",
    "conf/empty.yaml": "",
}  # fmt: skip

COMPOSED = [
    ("trainer", ""),
    ("trainer", "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=1e-2 algorithm.kl_ctrl.kl_coef=0"),
    ("trainer", "algorithm.off_policy=off algorithm.adv_estimator="),
    ("trainer", "+algorithm.new=1 ++algorithm.kl_ctrl.horizon=5 ++algorithm.adv_estimator=grpo"),
    ("trainer", "~algorithm.kl_ctrl ~data.shuffle=true"),
    ("trainer", "algorithm.kl_ctrl={type:adaptive}"),
    ("trainer", "+algorithm={a:{b:1}} +algorithm.c.d=[1,{e:2}]"),
    ("trainer", "algorithm.missing=${total} actor_rollout_ref.actor.optim.lr=${oc.decode:'1e-5'}"),
    ("trainer", "model_engine=megatron"),
    ("trainer", "actor@actor_rollout_ref.actor=megatron ref@actor_rollout_ref.ref=megatron_ref"),
    ("trainer", "+critic=big ~reward"),
    ("trainer", "+critic=big"),
    ("trainer", "+optim@data.opt=adam"),
    ("trainer", "~data@data"),
    ("trainer", "data.files=[c] data.files.0=d"),
    ("trainer", "total=3 total=4"),
    ("trainer", "actor_rollout_ref.ref.same.lr=1"),
    ("trainer", "++actor_rollout_ref.ref.same.lr=1"),
    ("first", ""),
    ("implicit", "algorithm.kl_ctrl.type=x"),
    ("overriding", ""),
    ("overriding", "model_engine=fsdp"),
    ("options", ""),
    ("options", "actor=dp"),
    ("options", "actor=[dp,megatron]"),
    ("sub/inner", ""),
    ("sub/inner", "sub.a=5"),
    ("more", ""),
    ("trainer", "hydra.searchpath=[file://extra] +critic=big"),
    ("merged", "link.z=4"),
    ("empty", "+a=1"),
]  # fmt: skip

REFUSED = [
    ("trainer", "algorithm.typo=1"),
    ("trainer", "+algorithm.adv_estimator=grpo"),
    ("trainer", "+total=3"),
    ("trainer", "~algorithm.typo"),
    ("trainer", "~algorithm.adv_estimator=grpo"),
    ("trainer", "algorithm.adv_estimator.x=1"),
    ("trainer", "algorithm.kl_ctrl={typo:1}"),
    ("trainer", "algorithm.kl_ctrl=[1]"),
    ("trainer", "data.files={a:1}"),
    ("trainer", "data.files.5=1"),
    ("trainer", "data.files.x=1"),
    ("trainer", "total=a=b"),
    ("trainer", "total"),
    ("trainer", "total=1,2"),
    ("trainer", "total=choice(1,2)"),
    ("trainer", "total=nope(1)"),
    ("trainer", "total='${a'"),
    ("trainer", "model_engine=null"),
    ("trainer", "model_engine=3"),
    ("trainer", "++model_engine=megatron"),
    ("trainer", "critic=big"),
    ("trainer", "actor=megatron"),
    ("trainer", "~critic"),
    ("trainer", "nogroup@x=1"),
    ("trainer", "+name.x={a:1} +missing_link=${oc.env:K} ~algorithm.missing"),
    ("listed", ""),
    ("twice", ""),
    ("unresolved", ""),
    ("unchosen", ""),
    ("again", ""),
    ("selfish", ""),
    ("early", ""),
    ("broken", ""),
]  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    write(folder, TREE)
    return folder


@pytest.mark.parametrize(("name", "overrides"), COMPOSED)
def test_composes_as_hydra_does(root: Path, name: str, overrides: str) -> None:
    assert agree(root, write(root, {}), "conf", name, overrides.split()) == ""


@pytest.mark.parametrize(("name", "overrides"), REFUSED)
def test_refuses_what_hydra_refuses(root: Path, name: str, overrides: str) -> None:
    with pytest.raises(Exception):  # noqa: B017 - Hydra has many ways to say no
        with_hydra(root, "conf", name, overrides.split())
    assert compose_hydra(write(root, {}), ["conf"], name, overrides.split()).refused is not None


OLD = {
    "conf/main.yaml": """\
defaults:
  - db: mysql
  - hydra/job_logging: none
  - db2/odd
  - {nothing: here, optional: true}
  - named@x._name_: one
a: 1
""",
    "conf/db/mysql.yaml": "# @package _group_\nhost: h\n",
    "conf/db2/odd.yml": "# @package _group_._name_\nz: 1\n",
    "conf/named/one.yaml": "v: 1\n",
}  # fmt: skip


def test_version_base_1_1(tmp_path: Path) -> None:
    tree = write(tmp_path, OLD)
    assert agree(tmp_path, tree, "conf", "main", ["db.host=x"], "1.1") == ""


# --- generated trees ------------------------------------------------------------------------------------------------------------------

GROUPS, OPTIONS, KEYS = ["db", "model", "db/sub", "opt"], ["x", "y"], ["a", "b", "lr", "n"]
links = st.sampled_from(["${a}", "${.b}", "${db.a}", "${..n}", "x${a}", "${db}", "${model.lr}", "${oc.select:p.q.a,1}"])
leaf = st.sampled_from([1, 0.5, True, None, "s", "???", "k3", {}, []]) | links
value = st.recursive(
    leaf,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=4,
)
body = st.dictionaries(st.sampled_from([*KEYS, "db", "model"]), value, max_size=4)
package = st.sampled_from(["", "", "", "", "@_global_", "@_here_", "@p.q", "@_group_", "@_global_.r", "@db"])
group = st.tuples(st.sampled_from(["", "", "", "", "/"]), st.sampled_from(GROUPS), package).map("".join)
option = st.sampled_from([*OPTIONS, *OPTIONS, *OPTIONS, "${model}", ["x", "y"], None])
choice = st.tuples(st.sampled_from(["", "", "", "", "", "optional ", "override "]), group, option)
entry = choice.map(lambda c: {c[0] + c[1]: c[2]}) | st.just("_self_") | st.sampled_from(["db/x", "opt/y@z", "other"])


def text_of(defaults: list[Any] | None, content: dict[str, Any], header: str) -> str:
    config = content if defaults is None else {"defaults": defaults, **content}
    return header + (yaml.safe_dump(config, sort_keys=False) if config else "")


def orderly(entries: list[Any]) -> list[Any]:
    """Overrides last and one `_self_`, so that Hydra has something to compose."""
    kept = [e for at, e in enumerate(entries) if e != "_self_" or "_self_" not in entries[:at]]
    return sorted(kept, key=lambda e: isinstance(e, dict) and next(iter(e)).startswith("override"))


config = st.builds(
    text_of,
    st.none() | st.none() | st.none() | st.lists(entry, max_size=2).map(orderly),
    body,
    st.sampled_from(["", "", "", "", "", "# @package _global_\n", "# @package foo.bar\n"]),
)
primary = st.builds(text_of, st.lists(entry, max_size=4).map(orderly), body, st.just(""))
files = st.fixed_dictionaries(
    {"conf/base.yaml": primary, "conf/other.yaml": config}
    | {f"conf/{g}/{o}.yaml": config for g in GROUPS for o in OPTIONS}
)
override = st.builds(
    lambda prefix, key, given: prefix + key + ("" if prefix == "~" else f"={given}"),
    st.sampled_from(["", "", "", "+", "++", "~"]),
    st.sampled_from(["a", "b", "db.a", "model.lr", "p.q.n", "a.0", "db", "model", "opt@p.q", "db/sub"]),
    st.sampled_from(["1", "k3", "null", "[1,2]", "{a:1}", "${a}", "x", "y", "", "x,y"]),
)


@settings(
    max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # shrinking takes minutes
@given(files, st.lists(override, max_size=3), st.sampled_from(["1.3", "1.2", "1.1"]))
def test_any_tree_is_composed_as_hydra_does(texts: dict[str, str], overrides: list[str], version_base: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = write(Path(folder), texts)
        assert agree(Path(folder), tree, "conf", "base", overrides, version_base) == "", (texts, overrides)
