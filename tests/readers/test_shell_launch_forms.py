"""The forms in which training runs are really launched, from the script to the program and its arguments."""

from __future__ import annotations

import os

import pytest
from shell_reading import read

from klaudit.readers.invocation import Invocation, invocation


def launches(script: str, files: dict[str, str] | None = None, **options: object) -> list[Invocation]:
    """The Python programs that a script starts as it is."""
    found = [invocation(command) for command in read(script, files, **options).commands if not command.assumes]
    return [each for each in found if each is not None and each.kind != "program"]


def the_launch(script: str, files: dict[str, str] | None = None) -> tuple[str, list[str]]:
    (launch,) = launches(script, files)
    return launch.target, [word.shown for word in launch.arguments]


FORMS: dict[str, tuple[str, str, list[str]]] = {
    "overrides with a tee": (
        "set -x\nLR=1e-6\npython3 -m pkg.main_ppo \\\n  actor.lr=$LR \\\n  actor.use_kl_loss=True $@ 2>&1 | tee log.txt\n",
        "pkg.main_ppo",
        ["actor.lr=1e-6", "actor.use_kl_loss=True"],
    ),
    "arrays per topic, the last wins": (
        "KL=(\n  actor.use_kl_loss=True\n  # actor.kl_loss_coef=0.1\n  actor.kl_loss_coef=0.001\n)\nEXTRA=()\n"
        'EXTRA+=("actor.use_kl_loss=False")\npython -m pkg.main "${KL[@]}" "${EXTRA[@]}"',
        "pkg.main",
        ["actor.use_kl_loss=True", "actor.kl_loss_coef=0.001", "actor.use_kl_loss=False"],
    ),
    "many lines in one string": (
        'COEF=0.01\nCFG="\n  actor.use_kl_loss=True\n  actor.kl_loss_coef=$COEF"\nCRITIC=${CFG//actor/critic}\n'
        "python3 -m pkg.main $CFG $CRITIC\n",
        "pkg.main",
        ["actor.use_kl_loss=True", "actor.kl_loss_coef=0.01", "critic.use_kl_loss=True", "critic.kl_loss_coef=0.01"],
    ),
    "one variable for two switches": (
        "USE_KL=${USE_KL:-False}\npython3 -m pkg.main loss=$USE_KL reward=${USE_KL}",
        "pkg.main",
        ["loss=False", "reward=False"],
    ),
    "defaults by colon": (
        ': "${KL_COEF:=0.001}"\n: "${N:=$(( 2 * 4 ))}"\nuv run --isolated --extra fsdp -m pkg.main algorithm.kl_loss_coef=$KL_COEF n=$N $@',
        "pkg.main",
        ["algorithm.kl_loss_coef=0.001", "n=8"],
    ),
    "a backslash glued to the value": ("python3 -m pkg.main a=1\\\n b=2", "pkg.main", ["a=1", "b=2"]),
    "module and options in a heredoc": (
        "read -r -d '' training_commands <<EOF\npkg.cli.train \\\n   --init_kl_coef 0.01 \\\n   --bf16\nEOF\n"
        'if [[ ${1} != "slurm" ]]; then\n'
        "    deepspeed --module $training_commands\nfi\n",
        "pkg.cli.train",
        ["--init_kl_coef", "0.01", "--bf16"],
    ),
    "the whole launch in one string": (
        'srun --overlap -N 1 bash -c "pip install x \\\n&& ray job submit --address=http://x:8265 '
        '--runtime-env-json=\'{\\"a\\": \\"b\\"}\' '
        '-- python3 -m pkg.cli.train_ray --init_kl_coef 1e-3" &>> log\n',
        "pkg.cli.train_ray",
        ["--init_kl_coef", "1e-3"],
    ),
    "a command built in a loop": (
        'for kl in 0.01; do\n  CMD="python3 -m pkg.main"\n  CMD="$CMD kl=$kl"\n  eval "$CMD"\ndone',
        "pkg.main",
        ["kl=0.01"],
    ),
    "an own parser of options": (
        'KL=0.001\nwhile [[ $# -gt 0 ]]; do case "$1" in --kl) KL="$2"; shift 2 ;; *) exit 1 ;; esac; done\n'
        'ray job submit --address="http://$IP:8265" --entrypoint-num-cpus=1 -- python -m pkg.main kl=$KL',
        "pkg.main",
        ["kl=0.001"],
    ),
    "containers on a cluster": (
        'srun --nodes=1 -w "$NODE" apptainer run --nv --bind $PWD image.sif python3 -m pkg.main a=b',
        "pkg.main",
        ["a=b"],
    ),
    "interpreter and module in variables": (
        'PYTHON_BIN="${PYTHON_BIN:-python}"\nENTRY=pkg.main\nARGS=(a=1)\nARGS+=("b=$ENTRY")\nexec "$PYTHON_BIN" -m "$ENTRY" "${ARGS[@]}"',
        "pkg.main",
        ["a=1", "b=pkg.main"],
    ),
    "options by condition in a string": (
        'USE=1\nOPTS=""\n[ "$USE" -eq 1 ] && OPTS="$OPTS --use_kl_loss"\npython train.py $OPTS --kl_coef 0.1',
        "train.py",
        ["--use_kl_loss", "--kl_coef", "0.1"],
    ),
    "a process substitution in the background": (
        "python -m pkg.main --kl 0.1 > >(tee -a log) 2>&1 &\nwait",
        "pkg.main",
        ["--kl", "0.1"],
    ),
    "prefixes of the environment": (
        "export A=1\nB=2 nohup env C=3 python -u train.py --kl 0.1 > log &",
        "train.py",
        ["--kl", "0.1"],
    ),
    "plus and tilde": (
        "python -m pkg.main ++a.b=1 +c=2 ~d 'e=[1,2]' f={g:1}",
        "pkg.main",
        ["++a.b=1", "+c=2", "~d", "e=[1,2]", "f={g:1}"],
    ),
    "a subroutine with arguments": (
        'launch() {\n  local name=$1 coef=$2; shift 2\n  python -m pkg.main name=$name kl=$coef "$@"\n}\nlaunch a 0.1 x=1',
        "pkg.main",
        ["name=a", "kl=0.1", "x=1"],
    ),
    "a backslash before the end": (
        "torchrun --nproc_per_node 8 \\\n  -m pkg.main \\\n  --kl 0.1 \\\n",
        "pkg.main",
        ["--kl", "0.1"],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_launch_form(name: str) -> None:
    script, target, arguments = FORMS[name]
    assert the_launch(script) == (target, arguments)


def test_a_comment_cuts_the_command_and_the_rest_is_another() -> None:
    script = "python -m pkg.main \\\n  a.use_kl_loss=True \\\n  # a.kl_loss_coef=0.05 \\\n  a.kl_loss_type=k2 \\\n  a.kl_loss_coef=0.02\n"
    assert the_launch(script) == ("pkg.main", ["a.use_kl_loss=True"])
    cut = read(script).commands[1]
    assert [word.text for word in cut.words] == ["a.kl_loss_type=k2", "a.kl_loss_coef=0.02"]
    assert cut.span.line == 4


def test_one_file_defines_what_another_runs() -> None:
    files = {"scripts/train_dpo.sh": 'read -r -d "" training_commands <<EOF\npkg.cli.dpo \\\n  --beta 0.1\nEOF\n'}
    script = 'training_script="train_dpo.sh"\nsource ./${training_script} slurm\nsrun bash -c "torchrun --nnodes 1 -m ${training_commands}"'
    (launch,) = launches(script, files, name="scripts/slurm.sh")
    assert (launch.target, [word.text for word in launch.arguments]) == ("pkg.cli.dpo", ["--beta", "0.1"])
    assert launch.arguments[1].pieces[0].span.path == "scripts/train_dpo.sh"


def test_many_launches_of_one_script() -> None:
    script = "for env in a b; do for kl in 0.0 0.001; do\n  python -m pkg.main env=$env kl=$kl &\ndone; done; wait"
    assert [[word.text for word in launch.arguments] for launch in launches(script)] == [
        ["env=a", "kl=0.0"],
        ["env=a", "kl=0.001"],
        ["env=b", "kl=0.0"],
        ["env=b", "kl=0.001"],
    ]


def test_scripts_started_by_scripts_are_followed_on_demand() -> None:
    files = {"run.sh": 'KL=${1:-0.1}\npython -m pkg.main kl=$KL "${@:2}"\n'}
    script = "bash run.sh 0.5 a=b\n./run.sh 0.7"
    assert launches(script, files) == []
    followed = launches(script, files, follow_scripts=True)
    assert [[word.text for word in launch.arguments] for launch in followed] == [["kl=0.5", "a=b"], ["kl=0.7"]]
    value = followed[0].arguments[0].pieces[1]
    assert (value.span.path, script[value.span.start : value.span.end]) == ("script.sh", "0.5")


@pytest.mark.parametrize("folder", ["données", "\u202e日", os.fsdecode(b"\xff")])
def test_names_beyond_ascii_are_found_and_shown_as_they_are(folder: str) -> None:
    files = {f"{folder}/bibliothèque.sh": "KL=0.1\n", f"{folder}/run.sh": "python -m pkg.main kl=$KL of=${0##*/}\n"}
    script = 'cd "$(dirname "$0")"\nsource bibliothèque.sh\nexport KL\nbash "$PWD/run.sh"\npython -m pkg.main of="$0"\n'
    called, own = launches(script, files, name=f"{folder}/é.sh", follow_scripts=True)
    assert [word.shown for word in called.arguments] == ["kl=0.1", "of=run.sh"]
    assert (called.directory, own.directory) == (folder, folder)
    assert own.arguments[0].shown.endswith("/" + folder.replace("\udcff", "\ufffd") + "/é.sh")


def test_what_a_job_file_gives_can_be_no_text() -> None:
    (launch,) = launches("python -m pkg.main kl=$KL", environment={"KL": "\ud800"})
    assert launch.arguments[0].text is not None


def test_headers_of_batch_jobs_are_comments() -> None:
    script = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:8\nsrun python -m pkg.main n=$SLURM_NNODES"
    assert the_launch(script) == ("pkg.main", ["n=${SLURM_NNODES}"])


def test_xargs_builds_commands_from_what_it_reads() -> None:
    script = (
        "printf '%s\\n' 0.1 0.2 | xargs -P 2 -I{} python train.py kl={}\necho 1 2 | xargs -n 1 python train.py --seed"
    )
    assert [[word.text for word in launch.arguments] for launch in launches(script)] == [
        ["kl=0.1"],
        ["kl=0.2"],
        ["--seed", "1"],
        ["--seed", "2"],
    ]
