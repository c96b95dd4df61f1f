"""Scripts that make an edit hard, fixed, and run by bash: what the program would be given differs in what was to change alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.fixes.migration import Plan, Request
from klaudit.fixes.planning import plan
from klaudit.fixes.writing import WriteError, write_all

START = "python3 -m verl.trainer.main_ppo"
ACTOR = "actor_rollout_ref.actor."
GRPO = "algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=8"
INTENDED = {
    f"{ACTOR}use_kl_loss", f"{ACTOR}kl_loss_coef", f"{ACTOR}kl_loss_type", "algorithm.use_kl_in_reward",
    "algorithm.kl_ctrl.kl_coef", "algorithm.norm_adv_by_std_in_grpo",
}  # fmt: skip
RECORD = 'python3() { printf \'%s\\0\' "$@" >> "$RECORD"; printf \'\\1\' >> "$RECORD"; }\nexport -f python3\n'


def run(folder: Path, script: str = "run.sh", **environment: str) -> list[dict[str, str]]:
    """The settings that bash hands to the program, one mapping a start."""
    record, prelude = folder.parent / "record", folder.parent / "prelude"
    record.write_bytes(b"")
    prelude.write_text(RECORD)
    text = (folder / script).read_bytes().replace(b"\r\n", b"\n")  # bash itself takes no \r
    subprocess.run(
        ["bash", "-c", text.decode(), script], cwd=folder, check=True, capture_output=True,
        env={"PATH": os.environ["PATH"], "BASH_ENV": str(prelude), "RECORD": str(record), **environment},
    )  # fmt: skip
    starts = record.read_bytes().decode().split("\1")[:-1]
    return [dict(word.lstrip("+").split("=", 1) for word in start.split("\0") if "=" in word) for start in starts]


def tree(tmp_path: Path, files: dict[str, str | bytes]) -> Path:
    folder = tmp_path / "tree"
    for name, text in {"requirements.txt": "verl==0.7.0\n", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def fix(folder: Path) -> Plan:
    made = plan([str(folder)], Options(), Request())
    write_all(made.root, made.originals, made.contents)
    return made


def differing(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


SCRIPTS = {
    "variables": f'COEF=0.01\nKL="{ACTOR}use_kl_loss=True {ACTOR}kl_loss_coef=$COEF"\n{START} {GRPO} $KL trainer.n=1\n',
    "defaults": f"COEF=${{COEF:-0.01}}\n{START} {GRPO} {ACTOR}use_kl_loss=${{KL:-True}} {ACTOR}kl_loss_coef=$COEF\n",
    "array": f'A=(\n  {ACTOR}use_kl_loss=True   # loss\n  "{ACTOR}kl_loss_coef=0.01"\n)\n{START} {GRPO} "${{A[@]}}" trainer.n=1\n',
    "appended": f'A=({GRPO})\nA+=({ACTOR}use_kl_loss=True)\nA+=("{ACTOR}kl_loss_coef=0.01" trainer.n=1)\n{START} "${{A[@]}}"\n',
    "heredoc": f"ARGS=$(cat <<'EOT'\n{GRPO}\n{ACTOR}use_kl_loss=True\n{ACTOR}kl_loss_coef=0.01\nEOT\n)\n{START} $ARGS trainer.n=1\n",
    "twice": f"{START} {GRPO} {ACTOR}use_kl_loss=False {ACTOR}kl_loss_coef=0.5 {ACTOR}use_kl_loss=True {ACTOR}kl_loss_coef=0.01\n",
    "continued": f"{START} \\\n    {GRPO} \\\n    {ACTOR}kl_loss_coef=0.01 \\\n    {ACTOR}use_kl_loss=True \\\n    trainer.name='a b' $@\n",
    "function": f'start() {{\n  {START} {GRPO} "$@"\n}}\nstart {ACTOR}use_kl_loss=True {ACTOR}kl_loss_coef=0.01 trainer.n=1\n',
    "subshell": f"(cd / && {START} {GRPO} {ACTOR}use_kl_loss=True {ACTOR}kl_loss_coef=0.01) 2>&1 | cat\n",
    "bash -c": f'bash -c "{START} {GRPO} {ACTOR}use_kl_loss=True {ACTOR}kl_loss_coef=0.01 trainer.n=1"\n',
    "loop": f"for seed in 1 2; do {START} {GRPO} {ACTOR}use_kl_loss=True {ACTOR}kl_loss_coef=0.01 trainer.seed=$seed; done\n",
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_bash_gives_the_program_what_was_promised(tmp_path: Path, name: str, end: str) -> None:
    text = SCRIPTS[name].replace("\n", end)
    if end == "\r\n" and name in ("heredoc", "continued", "array"):
        pytest.skip("a carriage return is part of these words")
    folder = tree(tmp_path, {"run.sh": text})
    before = run(folder)
    made = fix(folder)
    assert made.migrations, [each.why for each in made.unchanged]
    after = run(folder)
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        assert differing(old, new) <= INTENDED
        assert new[f"{ACTOR}use_kl_loss"] == "False"
        assert new["algorithm.use_kl_in_reward"] == "True"
        assert new["algorithm.kl_ctrl.kl_coef"] == "0.01"
        assert new["algorithm.norm_adv_by_std_in_grpo"] == "False"
    written = (folder / "run.sh").read_bytes()
    assert (b"\r\n" in written) == (end == "\r\n")
    assert end == "\n" or b"\n" not in written.replace(b"\r\n", b"")
    assert not fix(folder).contents


def test_what_the_environment_gives_is_carried_over(tmp_path: Path) -> None:
    folder = tree(tmp_path, {"run.sh": SCRIPTS["defaults"]})
    fix(folder)
    assert run(folder, COEF="0.7")[0]["algorithm.kl_ctrl.kl_coef"] == "0.7"


def test_a_config_that_ten_launches_share(tmp_path: Path) -> None:
    """Nine could be migrated in the one place; the tenth needs what stands there, so the scripts say it instead."""
    config = (
        "algorithm: {adv_estimator: grpo}\nactor_rollout_ref:\n  actor: {use_kl_loss: true, kl_loss_coef: 0.02}\n"
        "  rollout: {n: 8}\n"
    )
    start = f"{START} --config-path=. --config-name=own"
    scripts = {f"run{at}.sh": f"{start} trainer.n={at}\n" for at in range(9)}
    folder = tree(tmp_path, {"own.yaml": config, **scripts, "run9.sh": f"{start} {ACTOR}kl_loss_type=kl\n"})
    others = {name: run(folder, name)[0] for name in (*scripts, "run9.sh")}
    made = fix(folder)
    assert made.migrations or made.unchanged
    for name, before in others.items():
        assert differing(before, run(folder, name)[0]) <= INTENDED
    if (folder / "own.yaml").read_text() != config:  # then the tenth is one of those that were migrated
        assert {each.path for each in made.migrations} >= {*scripts, "run9.sh"}


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    folder = tree(
        tmp_path,
        {
            "own.json": b'\xef\xbb\xbf{"actor_rollout_ref": {"actor": {"use_kl_loss": true}}, "algorithm": {"adv_estimator": "gae"}}'
        },
    )
    fix(folder)
    written = (folder / "own.json").read_bytes()
    assert written.startswith(b"\xef\xbb\xbf{")
    assert b'"use_kl_loss": false' in written


def test_a_symlink_within_the_tree_is_followed_once(tmp_path: Path) -> None:
    folder = tree(tmp_path, {"real/run.sh": SCRIPTS["variables"]})
    (folder / "run.sh").symlink_to("real/run.sh")
    fix(folder)
    assert (folder / "run.sh").is_symlink()
    assert run(folder)[0]["algorithm.use_kl_in_reward"] == "True"
    assert (folder / "real/run.sh").read_text().count("use_kl_in_reward") == 1


def test_a_symlink_that_leads_out_is_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside.sh"
    outside.write_text(SCRIPTS["variables"])
    folder = tree(tmp_path, {"other.sh": "true\n"})
    (folder / "run.sh").symlink_to(outside)
    fix(folder)
    assert outside.read_text() == SCRIPTS["variables"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    folder = tree(tmp_path, {"run.sh": SCRIPTS["variables"]})
    folder.chmod(0o555)
    try:
        with pytest.raises(WriteError):
            fix(folder)
    finally:
        folder.chmod(0o755)
    assert (folder / "run.sh").read_text() == SCRIPTS["variables"]


def test_a_read_only_file_keeps_its_mode(tmp_path: Path) -> None:
    """As with any editor that replaces files: the folder decides."""
    folder = tree(tmp_path, {"run.sh": SCRIPTS["variables"]})
    (folder / "run.sh").chmod(0o444)
    fix(folder)
    assert (folder / "run.sh").stat().st_mode & 0o777 == 0o444


def test_a_file_that_changed_after_it_was_read_is_refused(tmp_path: Path) -> None:
    folder = tree(tmp_path, {"run.sh": SCRIPTS["variables"], "two.sh": SCRIPTS["twice"]})
    made = plan([str(folder)], Options(), Request())
    (folder / "two.sh").write_text(SCRIPTS["twice"] + "echo done\n")
    with pytest.raises(WriteError, match="changed on disk"):
        write_all(made.root, made.originals, made.contents)
    assert (folder / "run.sh").read_text() == SCRIPTS["variables"]


def test_a_part_of_the_tree_knows_what_stands_above_it(tmp_path: Path) -> None:
    """The version is pinned at the root, and a script outside the part needs a line of a file within it."""
    folder = tree(
        tmp_path,
        {
            ".git/HEAD": "",
            "requirements.txt": "verl==0.3.0\n",
            "part/common.sh": f"KL={ACTOR}use_kl_loss=True\n",
            "part/run.sh": f"cd $(dirname $0)\nsource common.sh\n{START} algorithm.adv_estimator=gae $KL\n",
            "run.sh": f"source part/common.sh\n{START} algorithm.adv_estimator=grpo {ACTOR}kl_loss_type=mse $KL\n",
        },
    )
    made = plan([str(folder / "part")], Options(), Request(), whole_repository=True)
    assert {each.before.version.value for each in made.migrations} == {"0.3.0"}
    assert set(made.contents) == {"part/run.sh"}, [each.why for each in made.unchanged]
    by_name = plan([str(folder / "part" / "run.sh")], Options(), Request(), whole_repository=True)
    assert by_name.contents == made.contents
