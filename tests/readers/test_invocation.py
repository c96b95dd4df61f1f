"""Which program runs behind launchers, and what its own arguments are."""

from __future__ import annotations

import pytest
from shell_reading import read

from klaudit.model import Span
from klaudit.readers.document import Command, Piece, Word
from klaudit.readers.invocation import invocation

NOWHERE = Span("x.py", 0, 0, 1, 1, 1, 1)


def command(*words: str, directory: str | None = ".") -> Command:
    """A command given as a list, as Python code has it."""
    made = tuple(Word((Piece(word, NOWHERE),), NOWHERE, NOWHERE) for word in words)
    return Command(made, NOWHERE, directory=directory)


def found(line: str) -> tuple[str, str, list[str]] | None:
    (started,) = read(line).commands
    result = invocation(started)
    return None if result is None else (result.kind, result.target, [word.shown for word in result.arguments])


PYTHON = ("module", "pkg.main", ["a=b", "--c"])
SCRIPT = ("script", "dir/train.py", ["a=b", "--c"])


@pytest.mark.parametrize(
    "line",
    [
        "python -m pkg.main a=b --c",
        "/opt/env/bin/python3.11 -u -X dev -Wignore -m pkg.main a=b --c",
        "python -um pkg.main a=b --c",
        '"$PYTHON" -m pkg.main a=b --c',
        "$CONDA_PREFIX/bin/python -m pkg.main a=b --c",
        "torchrun --standalone --nnodes=1 --nproc_per_node 8 -m pkg.main a=b --c",
        "torchrun --nnodes $N --rdzv_endpoint $HOST:29500 --module pkg.main a=b --c",
        "python -m torch.distributed.run --nproc_per_node 8 -m pkg.main a=b --c",
        "python3 -m torch.distributed.launch --use_env --nproc_per_node=8 -m pkg.main a=b --c",
        "accelerate launch --config_file c.yaml --num_processes 8 --multi_gpu -m pkg.main a=b --c",
        "deepspeed --include localhost:0,1 --module pkg.main a=b --c",
        "deepspeed --module pkg.main a=b --c",
        "uv run --isolated --extra fsdp --with x==1 --env-file .env -m pkg.main a=b --c",
        "uv run --project p -- python -m pkg.main a=b --c",
        "uv run python -m pkg.main a=b --c",
        'ray job submit --address=x --runtime-env-json=\'{"a": "$PWD"}\' -- python3 -m pkg.main a=b --c',
        "ray job submit --address x --working-dir . python3 -m pkg.main a=b --c",
        "ray job submit --no-wait -- env A=1 python3 -m pkg.main a=b --c",
        "srun --overlap -N 1 --ntasks=1 -w $NODE --container-image img python -m pkg.main a=b --c",
        "srun -N1 -n 8 torchrun --nproc_per_node 8 -m pkg.main a=b --c",
        "mpirun -np 8 -H a,b -x PATH python -m pkg.main a=b --c",
        "nohup python -m pkg.main a=b --c",
        "env -u B A=1 C=2 python -m pkg.main a=b --c",
        "timeout -k 5 10h nice -n 10 python -m pkg.main a=b --c",
        "taskset 0xff numactl --cpunodebind=0 -m 0 python -m pkg.main a=b --c",
        "conda run -n env --no-capture-output python -m pkg.main a=b --c",
        "poetry run python -m pkg.main a=b --c",
        "docker run --rm -it --gpus all -v $PWD:/w -e A=1 image:tag python -m pkg.main a=b --c",
        "docker exec -it name python -m pkg.main a=b --c",
        "apptainer exec --nv --bind /a image.sif python -m pkg.main a=b --c",
        "nsys profile -o out --trace=cuda,nvtx -t cuda python -m pkg.main a=b --c",
        "ssh -p 22 user@host python -m pkg.main a=b --c",
        "sudo -u me stdbuf -oL python -m pkg.main a=b --c",
        "xargs -n 1 -P 4 python -m pkg.main a=b --c",
        "python mason.py --cluster x --gpus 8 -- python -m pkg.main a=b --c",
        "gantry run --workspace x -- python -m pkg.main a=b --c",
    ],
)
def test_modules_behind_launchers(line: str) -> None:
    assert found(line) == PYTHON


@pytest.mark.parametrize(
    "line",
    [
        "python dir/train.py a=b --c",
        "python -W error -- dir/train.py a=b --c",
        "dir/train.py a=b --c",
        "torchrun --nproc_per_node=8 dir/train.py a=b --c",
        "accelerate launch --config_file c.yaml dir/train.py a=b --c",
        "deepspeed --num_gpus 8 --master_port 1 dir/train.py a=b --c",
        "uv run --with x dir/train.py a=b --c",
        "uv run dir/train.py a=b --c",
        "coverage run -p dir/train.py a=b --c",
    ],
)
def test_scripts_behind_launchers(line: str) -> None:
    assert found(line) == SCRIPT


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("trl grpo --beta 0.04", ("program", "trl", ["grpo", "--beta", "0.04"])),
        ("uv run trl grpo --beta 0.04", ("program", "trl", ["grpo", "--beta", "0.04"])),
        ("NPROC=8 /usr/local/bin/swift rlhf --beta 0.04", ("program", "swift", ["rlhf", "--beta", "0.04"])),
        ("python -c 'import x'", None),
        ("python - a", None),
        ("python", None),
        ("bash run.sh a", None),
        ("$LAUNCHER a=b", None),
        ("srun", None),
    ],
)
def test_programs_and_what_is_none(line: str, expected: tuple[str, str, list[str]] | None) -> None:
    assert found(line) == expected


def test_arguments_stop_at_operators_left_in_lists() -> None:
    for operator in ("2>&1", "|", ";", "&", "&&", ">", ">>log", "2>/dev/null"):
        result = invocation(command("python", "-m", "pkg.main", "a=b", operator, "tee"))
        assert result is not None
        assert [word.text for word in result.arguments] == ["a=b"], operator


def test_the_program_among_joined_commands() -> None:
    result = invocation(command("ray", "job", "submit", "--", "cd", "x", "&&", "python", "-m", "pkg.main", "a=b"))
    assert result is not None
    assert (result.target, [word.text for word in result.arguments]) == ("pkg.main", ["a=b"])


def test_directory_and_environment() -> None:
    local = invocation(command("env", "A=1", "uv", "run", "--directory", "sub", "python", "train.py", directory="dir"))
    assert local is not None
    assert (local.directory, dict(local.environment)) == ("dir/sub", {"A": "1"})
    elsewhere = invocation(command("docker", "run", "image", "python", "train.py"))
    assert elsewhere is not None
    assert elsewhere.directory is None


def test_the_target_keeps_its_word() -> None:
    script = "M=pkg.main\npython -m $M a"
    (started,) = read(script).commands
    result = invocation(started)
    assert result is not None
    span = result.target_word.pieces[0].span
    assert script[span.start : span.end] == "pkg.main"
    assert result.command is started


def test_unknown_modules_are_shown_by_what_they_hang_on() -> None:
    assert found("python -m $HOME.main a") == ("module", "${HOME}.main", ["a"])


def test_launchers_in_launchers_are_bounded() -> None:
    assert invocation(command(*["nohup"] * 5_000, "python", "train.py")) is None
