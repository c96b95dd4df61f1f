"""The option grammars of programs that run another program: what stands between their name and the command they run.

Facts about command lines only.  Which option takes a value decides where the inner command begins.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

# What comes after the options: a command, a Python target (`-m` or `--module` make it a module), or whatever `uv run` takes (either).
Inner: TypeAlias = Literal["command", "target", "either"]


class Grammar(Struct, frozen=True):
    """How to read the words between a launcher and what it runs.

    Options in `named` take a value (or, with `others_take_values`, are the only ones that take none).  `operands` words follow the
    options before the inner command: a host, an image, a duration.  `elsewhere`: the command runs in another file system.
    `directory` names the options that change the working directory.  `is_joined`: the words become one text that a shell reads.
    """

    named: frozenset[str] = frozenset()
    others_take_values: bool = False
    operands: int = 0
    inner: Inner = "command"
    elsewhere: bool = False
    directory: frozenset[str] = frozenset()
    is_joined: bool = False

    def takes_value(self, option: str) -> bool:
        return (option in self.named) != self.others_take_values


def _with_values(
    options: str = "", *, operands: int = 0, inner: Inner = "command", elsewhere: bool = False, directory: str = ""
) -> Grammar:
    """These options take a value, others do not."""
    return Grammar(frozenset(options.split()), False, operands, inner, elsewhere, frozenset(directory.split()))


def _with_flags(flags: str = "", *, inner: Inner = "command", directory: str = "") -> Grammar:
    """These options take no value, others do."""
    return Grammar(frozenset(flags.split()), True, inner=inner, directory=frozenset(directory.split()))


_UV = _with_values(
    "--extra --no-extra --group --no-group --only-group --with --with-editable --with-requirements --env-file --python -p --project"
    " --directory --index --default-index --index-url -i --extra-index-url --find-links -f --index-strategy --keyring-provider"
    " --upgrade-package -P --resolution --prerelease --config-setting -C --no-build-isolation-package --exclude-newer --link-mode"
    " --reinstall-package --refresh-package --no-build-package --no-binary-package --package --cache-dir --config-file --color"
    " --allow-insecure-host --no-editable-package --python-platform --env-file -w",
    inner="either",
    directory="--directory",
)
_TORCHRUN = _with_flags(
    "-m --module --standalone --no-python --no_python --run-path --run_path --use-env --use_env -h --help --signals-to-handle",
    inner="target",
)
_ACCELERATE = _with_flags(
    "-m --module --cpu --multi_gpu --tpu --ipex --use_mps_device --use_deepspeed --use_fsdp --use_megatron_lm --use_xpu --quiet -q"
    " --same_network --no_tpu_cluster --tpu_use_cluster --tpu_use_sudo --debug --no_python --enable_cpu_affinity --dynamo_use_fullgraph"
    " --dynamo_use_dynamic --dynamo_use_regional_compilation --use_parallelism_config --multi-gpu --use-deepspeed --use-fsdp --no-python",
    inner="target",
)
_DEEPSPEED = _with_flags(
    "--module --no_python --no_local_rank --no_ssh --no_ssh_check --force_multi --bind_cores_to_rank --save_pid --enable_elastic_training",
    inner="target",
)
_SRUN = _with_flags(
    "--overlap --exclusive --exact --label -l --unbuffered -u --pty --no-kill -k --kill-on-bad-exit -K --verbose -v --quiet -Q"
    " --preserve-env -E --overcommit -O --oversubscribe -s --immediate -I --no-container-mount-home --container-mount-home"
    " --container-writable --container-remap-root --no-container-remap-root --no-container-entrypoint --multi-prog --spread-job"
    " --use-min-nodes --contiguous --disable-status -X --join -j --whole --no-shell",
    directory="--chdir -D",
)
_MPIRUN = _with_values(
    "-n -np --np -c -N -npernode --npernode -ppn -host --host -H -hostfile --hostfile -machinefile --machinefile -f -x -bind-to --bind-to"
    " -map-by --map-by -rank-by --rank-by -wdir --wdir -output-filename --output-filename -prefix --prefix -genvlist -env -genv -iface"
    " --report-bindings-file -tag-output-file"
)
_DOCKER = _with_values(
    "-v --volume -e --env --env-file --name -w --workdir --gpus --shm-size -p --publish --network --net --ipc --pid --user -u --entrypoint"
    " --mount --ulimit --cap-add --device --memory -m --cpus --hostname -h --label -l --runtime --platform --security-opt --restart"
    " --add-host --tmpfs --log-driver --log-opt --cpuset-cpus --memory-swap --group-add --pull --expose --dns --cidfile --userns",
    operands=1,
    elsewhere=True,
)
_CONTAINER = _with_values(
    "--bind -B --env --env-file --pwd --overlay -o --home -H --workdir -W --network --add-caps --drop-caps --mount --security --app"
    " --hostname --fusemount --apply-cgroups --cpus --memory --scratch -S",
    operands=1,
    elsewhere=True,
)
_CONDA = _with_values("-n --name -p --prefix --cwd -v", directory="--cwd")
_NSYS = _with_values(
    "-o --output -t --trace -s --sample -c --capture-range --capture-range-end --force-overwrite -f -w --show-output -x --stop-on-exit"
    " --cuda-memory-usage --cudabacktrace --python-backtrace --pytorch --trace-fork-before-exec --backtrace --delay -y --duration -d"
    " --export --session-new --gpu-metrics-device --gpu-metrics-devices --gpu-metrics-frequency --nic-metrics --stats --cuda-graph-trace"
    " -p --nvtx-capture --nvtx-domain-include --kill --wait --cpuctxsw --osrt-threshold -e --env-var --python-sampling"
)
_RAY = _with_values(
    "--address --runtime-env --runtime-env-json --working-dir --submission-id --job-id --entrypoint-num-cpus --entrypoint-num-gpus"
    " --entrypoint-memory --entrypoint-resources --metadata-json --headers --verify --log-style --log-color",
    inner="command",
)
_SSH = replace(
    _with_values("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w", operands=1, elsewhere=True),
    is_joined=True,
)

# A launcher is named by its program, or by the program and the words after it.
LAUNCHERS: dict[tuple[str, ...], Grammar] = {
    ("uv", "run"): _UV,
    ("torchrun",): _TORCHRUN,
    ("accelerate", "launch"): _ACCELERATE,
    ("accelerate-launch",): _ACCELERATE,
    ("deepspeed",): _DEEPSPEED,
    ("colossalai", "run"): _with_flags("-h", inner="target"),
    ("ray", "job", "submit"): _RAY,
    ("srun",): _SRUN,
    ("mpirun",): _MPIRUN,
    ("mpiexec",): _MPIRUN,
    ("horovodrun",): _MPIRUN,
    ("docker", "run"): _DOCKER,
    ("docker", "exec"): _DOCKER,
    ("podman", "run"): _DOCKER,
    ("podman", "exec"): _DOCKER,
    ("kubectl", "exec"): _with_values("-n --namespace -c --container", operands=1, elsewhere=True),
    ("apptainer", "exec"): _CONTAINER,
    ("apptainer", "run"): _CONTAINER,
    ("singularity", "exec"): _CONTAINER,
    ("singularity", "run"): _CONTAINER,
    ("enroot", "start"): _with_values("-m --mount -e --env -c --conf", operands=1, elsewhere=True),
    ("ssh",): _SSH,
    ("modal", "run"): _with_values("--env -e --name -m", inner="target"),
    ("conda", "run"): _CONDA,
    ("mamba", "run"): _CONDA,
    ("micromamba", "run"): _CONDA,
    ("poetry", "run"): _with_values(),
    ("pdm", "run"): _with_values("-p --project"),
    ("hatch", "run"): _with_values("-e --env"),
    ("pixi", "run"): _with_values("-e --environment --manifest-path"),
    ("rye", "run"): _with_values(),
    ("pipenv", "run"): _with_values(),
    ("nsys", "profile"): _NSYS,
    ("nsys", "launch"): _NSYS,
    ("ncu",): _with_values(
        "-o --export --set -k --kernel-name -c --launch-count -s --launch-skip --target-processes --section --metrics"
    ),
    ("rocprof",): _with_values("-i -o -d -t"),
    ("py-spy", "record"): _with_values("-o --output -r --rate -d --duration -f --format"),
    ("coverage", "run"): _with_flags(
        "-m --module -p --parallel-mode -a --append --branch -L --pylib --timid", inner="target"
    ),
    ("kernprof",): _with_values("-o --outfile -s --setup", inner="target"),
    ("memray", "run"): _with_values("-o --output", inner="either"),
    ("viztracer",): _with_values("-o --output_file --tracer_entries", inner="either"),
    ("nohup",): _with_values(),
    ("time",): _with_values("-f -o --format --output"),
    ("timeout",): _with_values("-k --kill-after -s --signal", operands=1),
    ("nice",): _with_values("-n --adjustment"),
    ("ionice",): _with_values("-c --class -n --classdata"),
    ("chrt",): _with_values("-T -P -D", operands=1),
    ("taskset",): _with_values(operands=1),
    ("numactl",): _with_values(
        "-i -N -m -C -p -l -P --interleave --cpunodebind --membind --physcpubind --preferred --touch --offset --length"
    ),
    ("stdbuf",): _with_values("-i -o -e --input --output --error"),
    ("unbuffer",): _with_values(),
    ("setsid",): _with_values(),
    ("sudo",): _with_values(
        "-u --user -g --group -h --host -p --prompt -C -r -t -T -D --chdir", directory="-D --chdir"
    ),
    ("gosu",): _with_values(operands=1),
    ("su-exec",): _with_values(operands=1),
    ("xargs",): _with_values(
        "-n -P -I -i -d -L -s -a -E --max-args --max-procs --replace --delimiter --max-lines --arg-file"
    ),
    ("strace",): _with_values("-o -e -p -s -u -E"),
    ("ltrace",): _with_values("-o -e -p -s -u"),
    ("xvfb-run",): _with_values("-n --server-num -s --server-args -f --auth-file -e --error-file"),
    ("systemd-run",): _with_values("-p --property --unit --slice --uid --gid --working-directory -E --setenv"),
    ("tini",): _with_values("-p -e"),
    ("dumb-init",): _with_values("-r --rewrite"),
    ("catchsegv",): _with_values(),
    ("exec",): _with_values("-a"),
    ("command",): _with_values(),
}

LONGEST_NAME = max(map(len, LAUNCHERS))

# Modules and scripts of Python that launch another Python program.
PYTHON_LAUNCHERS: dict[str, Grammar] = {
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "accelerate.commands.launch": _ACCELERATE,
    "deepspeed.launcher.runner": _DEEPSPEED,
    "coverage": _with_flags("run -m --module -p --parallel-mode -a --append --branch", inner="target"),
    "kernprof": _with_values("-o --outfile -s --setup", inner="target"),
    "memray": _with_values("-o --output run", inner="either"),
}
