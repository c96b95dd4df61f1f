"""What cannot be known stays unknown and says what it hangs on; what nothing sets is said to be unset."""

from __future__ import annotations

import pytest
from shell_reading import plain_run, read

from klaudit.readers.document import Word
from klaudit.readers.shell import may_start
from klaudit.readers.source import Source


def argument(script: str, files: dict[str, str] | None = None) -> Word:
    return next(command for command in read(script, files).commands if command.words[0].text == "run").words[1]


@pytest.mark.parametrize(
    ("script", "shown", "hangs_on"),
    [
        ("run $HOME/x", "${HOME}/x", ("HOME",)),
        ("run ~/x", "${HOME}/x", ("HOME",)),
        ("run $SLURM_NNODES", "${SLURM_NNODES}", ("SLURM_NNODES",)),
        ("run x=$RANDOM", "x=${RANDOM}", ("RANDOM",)),
        ("run $(hostname -I)", "${$(hostname -I)}", ("$(hostname -I)",)),
        ("X=$(nvidia-smi -L | wc -l)\nrun n=$X", "n=${$(nvidia-smi -L | wc -l)}", ("$(nvidia-smi -L | wc -l)",)),
        ("N=$(nproc)\nrun $((N * 2))", "${$(nproc)}", ("$(nproc)",)),
        ("run log-$(date +%F).txt", "log-${$(date +%F)}.txt", ("$(date +%F)",)),
        ("D=$(dirname $HOME/a)\nrun $D", "${HOME}", ("HOME",)),
        ('run "$(cd "$(dirname "$0")" && pwd)/c.yaml"', "${PWD}/c.yaml", ("PWD",)),
        ("X=$HOSTNAME\nrun ${X%%.*}", "${HOSTNAME}", ("HOSTNAME",)),
        ("source /etc/site.conf\nrun kl=$KL", "kl=${KL}", ("KL",)),
        ("cmd\nrun $?", "${cmd}", ("cmd",)),
        ("X=$(python -c 'print(1)')\nrun ${X:-8}", "${$(python -c 'print(1)')}", ("$(python -c 'print(1)')",)),
        ("ssh host 'run $K'", "${K}", ("K",)),
    ],
)
def test_unknown_words_name_what_they_hang_on(script: str, shown: str, hangs_on: tuple[str, ...]) -> None:
    word = argument(script)
    assert (word.text, word.shown, word.hangs_on) == (None, shown, hangs_on)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("run ${SLURM_NNODES:-1}", "1"),
        ("run ${CUDA_VISIBLE_DEVICES:-0,1}", "0,1"),
        ("X=a/b/run.sh\nrun $(basename $X .sh)", "run"),
        ("run $(dirname a/b/c)", "a/b"),
        ("run $(echo 0 1 2 | tr ' ' ',')", "0,1,2"),
        ("run $(echo 'a b' | sed 's/ /_/g')", "a_b"),
        ("run $(echo a:b | cut -d: -f2)", "b"),
        ("run $(seq -s, 1 3)", "1,2,3"),
        ("run $(printf '%s\\n' b a | sort | head -n 1)", "a"),
        ("run $(echo abc | grep -o 'b')", "b"),
        ("run $(expr 2 + 3)", "5"),
        ("run $(cat conf/kl)", "0.1"),
        ("run $(<conf/kl)", "0.1"),
        ("run $(wc -l < conf/kl)", "1"),
        ("source conf/site\nrun $K", "7"),
    ],
)
def test_text_tools_are_evaluated_on_known_text(script: str, text: str) -> None:
    assert argument(script, {"conf/kl": "0.1\n", "conf/site": "K=7\n"}).text == text


def test_unset_variables_are_marked_and_give_nothing() -> None:
    word = argument("run a.kl=$KL")
    assert word.text == "a.kl="
    assert [(piece.text, piece.variable, piece.unset) for piece in word.pieces] == [
        ("a.kl=", None, False),
        ("", "KL", True),
    ]


def test_unset_variables_on_their_own_give_no_word() -> None:
    assert plain_run("run $KL end") == [["run", "end"]]


def test_unset_passes_through_strings_and_eval() -> None:
    word = argument('C="run kl=$KL b=1"\neval $C')
    assert [(piece.text, piece.unset) for piece in word.pieces] == [("kl=", False), ("", True)]


def test_nothing_is_unset_after_a_default_or_an_assignment() -> None:
    for script in ("run a=${KL:-}", "KL=\nrun a=$KL", "run a=${KL-}"):
        assert not any(piece.unset for piece in argument(script).pieces), script


def test_activating_an_environment_sets_no_settings() -> None:
    assert argument("source venv/bin/activate\nrun a=$KL").pieces[-1].unset


def test_values_too_long_to_follow_become_unknown() -> None:
    word = argument("A=aaaaaaaaaa\nfor i in {1..60}; do A=$A$A; done\nrun $A")
    assert word.text is None
    assert word.hangs_on == ("A",)


def test_directory_and_environment_of_a_command() -> None:
    script = "export A=1\nB=2\ncd examples/ppo\nC=3 run\ncd /data\nrun\ncd $(mktemp -d)\nrun"
    first, second, third = (command for command in read(script).commands if command.words[0].text == "run")
    assert (first.directory, dict(first.environment)) == ("examples/ppo", {"A": "1", "C": "3"})
    assert (second.directory, third.directory) == (None, None)


def test_a_scripts_own_folder_is_where_it_lies() -> None:
    files = {"jobs/common.sh": "K=1\n"}
    script = 'DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nsource "$DIR/common.sh"\ncd "$DIR/.."\nrun $K'
    (command,) = read(script, files, name="jobs/run.sh").commands
    assert ([word.text for word in command.words], command.directory) == (["run", "1"], ".")


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("$0", "${0}/jobs/llm/run.sh"),
        ("$(basename $0 .sh)", "run"),
        ("${0##*/}", "run.sh"),
        ('$(cd "$(dirname "$0")" && pwd)/c.yaml', "${PWD}/jobs/llm/c.yaml"),
        ("$(dirname $(realpath ${BASH_SOURCE[0]}))", "${BASH_SOURCE}/jobs/llm"),
        ("$(realpath ../conf)", "${$(realpath ../conf)}"),
        ("$(realpath jobs/../conf)", "${PWD}/conf"),
        ("$(echo $0 | sed 's#jobs#conf#; s/.sh/.yaml/')", "${0}/conf/llm/run.yaml"),
        ("$(basename $PWD)", "${PWD}"),
        ("$(echo $PWD | wc -c)", "${PWD}"),
        ("${#PWD}", "${PWD}"),
    ],
)
def test_of_a_path_in_the_tree_only_the_root_is_unknown(expression: str, shown: str) -> None:
    (command,) = read(f"run {expression}", name="jobs/llm/run.sh").commands
    assert command.words[1].shown == shown


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("python -m pkg.main", True),
        ("source common.sh", True),
        ("cd x; . ./common.sh a", True),
        ('eval "$CMD"', True),
        ("bash run.sh 1", True),
        ("nohup ./jobs/run.sh &", True),
        ("mkdir -p x && cp a b", False),
    ],
)
def test_a_cheap_look_tells_scripts_that_may_start_something(script: str, expected: bool) -> None:
    assert may_start(Source("x.sh", script.encode()), [b"pkg.main"]) is expected
