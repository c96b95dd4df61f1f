"""What is read again after an edit is all that may have changed: the same as if the whole tree were read again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaudit.configuration import Options
from klaudit.discover import list_files, locate
from klaudit.fixes.rereading import Reading, Rereader, reading
from klaudit.fixes.watched import WatchedTree, stale
from klaudit.scanner import Scanner

HYDRA = "python3 -m verl.trainer.main_ppo"
LOSS = "actor_rollout_ref.actor.use_kl_loss"
FILES = {
    "requirements.txt": "verl==0.7.0\n",
    "common.sh": f"KL={LOSS}=True\n",
    "one.sh": f"source common.sh\n{HYDRA} $KL\n",
    "two.sh": f"source common.sh\n{HYDRA} $KL algorithm.adv_estimator=grpo\n",
    "caller.sh": f"KL_COEF=0.5 bash called.sh {LOSS}=True\n",
    "called.sh": f'{HYDRA} actor_rollout_ref.actor.kl_loss_coef=$KL_COEF "$@"\n',
    "config/base.yaml": "algorithm: {adv_estimator: gae}\nactor_rollout_ref: {actor: {use_kl_loss: false, kl_loss_coef: 0.1}}\n",
    "config/own.yaml": "defaults: [base, _self_]\nactor_rollout_ref: {actor: {use_kl_loss: true}}\n",
    "hydra.sh": f"{HYDRA} --config-path=config --config-name=own\n",
    "job.yaml": "run: |\n  export KL_COEF=0.25\n  bash called.sh actor_rollout_ref.actor.use_kl_loss=True\n",
    "trl/settings.py": "from trl import GRPOConfig\n\nclass Own(GRPOConfig):\n    beta: float = 0.1\n",
    "trl/train.py": "from settings import Own\n\nargs = Own(output_dir='o')\n",
    "trl/run.sh": "python train.py --beta 0.2\n",
    "alone.sh": f"{HYDRA} {LOSS}=True\n",
}
EDITS = {
    "requirements.txt": ("0.7.0", "0.3.0"),
    "common.sh": ("True", "False"),
    "called.sh": ("$KL_COEF", "0.75"),
    "config/base.yaml": ("0.1", "0.2"),
    "config/own.yaml": ("true", "false"),
    "trl/settings.py": ("0.1", "0.3"),
    "alone.sh": ("True", "False"),
    "one.sh": ("$KL", "trainer.n=1"),
    "job.yaml": ("0.25", "0.35"),
}


def write(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read_all(folder: Path, overlay: Mapping[str, bytes]) -> tuple[Scanner, dict[str, Reading]]:
    targets = locate([str(folder)], Options())
    files = list_files(targets, Options()).files
    tree = WatchedTree(targets.root, dict(overlay))
    scanner = Scanner(tree, files, Options())
    return scanner, {path: reading(scanner, tree, path) for path in files}


def launches(readings: Mapping[str, Reading]) -> dict[str, object]:
    return {path: each.launches for path, each in readings.items()}


def edited(names: frozenset[str]) -> dict[str, bytes]:
    return {name: FILES[name].replace(*EDITS[name]).encode() for name in names}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    write(folder)
    return folder


SETS = st.frozensets(st.sampled_from(sorted(EDITS)), max_size=4)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SETS, SETS)
def test_it_is_as_if_all_were_read_again(tree: Path, first: frozenset[str], second: frozenset[str]) -> None:
    scanner, before = read_all(tree, {})
    rereader = Rereader(str(tree), scanner, before, 1)
    for names in (first, second):  # each starts from the one before
        contents = edited(names)
        assert launches(rereader.all(contents)) == launches(read_all(tree, contents)[1])
    some = rereader.some(edited(first), ["one.sh", "hydra.sh"])
    whole = read_all(tree, edited(first))[1]
    assert launches(some) == {path: whole[path].launches for path in ("one.sh", "hydra.sh")}


def test_every_edit_is_seen_where_it_counts(tree: Path) -> None:
    _, before = read_all(tree, {})
    for name in EDITS:
        after = read_all(tree, edited(frozenset({name})))[1]
        changed = {path for path in before if before[path].launches != after[path].launches}
        assert changed, name  # else the edits above prove nothing
        assert changed <= stale({name}, {path: each.drawn_on for path, each in before.items()})


def test_a_script_of_its_own_concerns_no_other(tree: Path) -> None:
    _, before = read_all(tree, {})
    assert stale({"alone.sh"}, {path: each.drawn_on for path, each in before.items()}) == {"alone.sh"}
    assert stale({"common.sh"}, {path: each.drawn_on for path, each in before.items()}) == {
        "common.sh",
        "one.sh",
        "two.sh",
    }
