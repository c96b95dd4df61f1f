"""What other branches would start, and what they assume."""

from __future__ import annotations

import pytest
from shell_reading import other_ways, plain_run, read

Ways = list[tuple[tuple[str, ...], list[str]]]

CASES: dict[str, tuple[str, Ways]] = {
    "an argument": (
        'if [ "$1" = "megatron" ]; then run meg $1; else run fsdp; fi',
        [(('"$1" = "megatron"',), ["run", "meg", "megatron"])],
    ),
    "the branch not taken by a constant": (
        "B=fsdp\nif [ $B = fsdp ]; then run 1; else run 2; fi",
        [(("not ($B = fsdp)",), ["run", "2"])],
    ),
    "an assumed value reaches what follows": (
        'MODE=${MODE:-a}\nif [ "$MODE" == b ]; then X=1; else X=0; fi\n[ $MODE = b ] && Y=1\nrun $X $MODE $Y',
        [(('"$MODE" == b',), ["run", "1", "b", "1"]), (("$MODE = b",), ["run", "0", "b", "1"])],
    ),
    "inequality assumed to fail": (
        'X=a\nif [ "$X" != b ]; then run 1; else run 2 $X; fi',
        [(('not ("$X" != b)',), ["run", "2", "b"])],
    ),
    "case": (
        "case $1 in fsdp) run f ;; meg|megatron) run m $1 ;; *) echo usage; exit 1 ;; esac",
        [(("$1 = fsdp",), ["run", "f"]), (("$1 = meg | megatron",), ["run", "m", "meg"])],
    ),
    "the arm for all others": (
        "X=a\ncase $X in a) run 1 ;; *) run 2 ;; esac",
        [(("not ($X = a)",), ["run", "2"])],
    ),
    "and, or": (
        '[ -n "$DEBUG" ] && FLAG=--debug\nrun $FLAG',
        [(('-n "$DEBUG"',), ["run", "--debug"])],
    ),
    "usage check": (
        'if [ $# -lt 1 ]; then echo "usage: x"; exit 1; fi\nrun $1',
        [(("not ($# -lt 1)",), ["run"])],
    ),
    "an argument that must not be empty": (
        'if [ -z "$1" ]; then exit 1; fi\nrun model=$1',
        [(('not (-z "$1")',), ["run", "model=${1}"])],
    ),
    "a variable that must be set": ("set -u\nrun kl=$KL", [(("$KL is set",), ["run", "kl=${KL}"])]),
    "several that must be set, in one command": (
        "set -eu\nrun $1 kl=$KL\nrun $KL $MODE",
        [
            (("$1 is set", "$KL is set"), ["run", "${1}", "kl=${KL}"]),
            (("$1 is set", "$KL is set", "$MODE is set"), ["run", "${KL}", "${MODE}"]),
        ],
    ),
    "a variable demanded": ("run kl=${KL:?set it}", [(("$KL is set",), ["run", "kl=${KL}"])]),
    "a variable demanded inside a substitution": (
        "set -eu\nX=$(basename $1)\nrun $X",
        [(("$1 is set",), ["run", "${1}"])],
    ),
    "a command that may fail": (
        "if nvidia-smi; then N=8; else N=0; fi\nrun $N",
        [(("not (nvidia-smi)",), ["run", "0"])],
    ),
    "an unknown list": ("for f in $(ls data); do run $f; done", [(("f in $(ls data)",), ["run", "${$(ls data)}"])]),
    "an unknown loop": ("while read -r x; do run $x; done < /data/list", [(("read -r x",), ["run", "${read}"])]),
    "nested": (
        'if [ "$1" = a ]; then if [ "$2" = b ]; then run 1; else run 2; fi; fi',
        [(('"$1" = a',), ["run", "2"]), (('"$1" = a', '"$2" = b'), ["run", "1"])],
    ),
    "nothing new": ('if [ -n "$X" ]; then echo yes; else echo no; fi\nrun 1', []),
    "the same words again": ('if [ -n "$X" ]; then run 1; else run 1; fi', []),
    "inside functions": (
        'main() { if [ "$1" = x ]; then run 1; else run 2; fi; }\nmain "$@"\nrun end',
        [(('"$1" = x',), ["run", "1"])],
    ),
    "double brackets": ('if [[ "$M" == "b" ]]; then run $M; fi', [(('"$M" == "b"',), ["run", "b"])]),
    "arithmetic": ("N=1\nif (( N > 1 )); then run many; else run one; fi", [(("N > 1",), ["run", "many"])]),
}


@pytest.mark.parametrize("name", CASES)
def test_other_branches_name_what_they_assume(name: str) -> None:
    script, expected = CASES[name]
    programs = {"nvidia-smi", "ls"}
    assert [way for way in other_ways(script) if way[1][0] not in programs] == expected


def test_many_branches_are_followed_one_at_a_time() -> None:
    script = "".join(f'if [ "$V{n}" = on ]; then F{n}=--f{n}; fi\n' for n in range(40)) + "run $F0 $F20 $F39\n"
    assert plain_run(script) == [["run"]]
    assert other_ways(script) == [
        (('"$V0" = on',), ["run", "--f0"]),
        (('"$V20" = on',), ["run", "--f20"]),
        (('"$V39" = on',), ["run", "--f39"]),
    ]


def test_the_number_of_runs_is_bounded() -> None:
    script = "".join(f'if [ "$1" = {n} ]; then run {n}; fi\n' for n in range(150))
    assert 0 < len(other_ways(script)) <= 64


def test_assumed_values_are_spelled_in_the_condition() -> None:
    script = 'case "$1" in fsdp) run $1 ;; esac'
    (command,) = read(script).commands
    (piece,) = command.words[1].pieces
    assert (piece.text, piece.variable) == ("fsdp", "1")
    assert script[piece.span.start : piece.span.end] == "fsdp"


def test_an_argument_given_decides() -> None:
    script = 'if [ "$1" = a ]; then run 1; else run 2; fi'
    assert plain_run(script, arguments=["a"]) == [["run", "1"]]
    assert plain_run("run ${KL:-0} $KL", environment={"KL": "0.1"}) == [["run", "0.1", "0.1"]]


CHECKS = {
    "one after the other": '[ "$(id -u)" = 0 ] || exit 1\ntest -d /data || { echo no; exit 1; }\n[ -n "$X" ] || exit 1\n',
    "of arguments": 'if [ $# -ne 3 ]; then echo usage; exit 1; fi\n[ -f "$1" ] || exit 2\n[ "$2" = train ] || exit 3\n',
    "of several kinds": '[[ $1 =~ ^[0-9]+$ ]] || exit 1; [[ -z ${2-} ]] && exit 1; [[ "${3:-}" == run ]] || exit 1\n',
    "in a function": 'check() { [ -f "$1" ] || { echo no; exit 1; }; }\ncheck a\ncheck b\n[ -d x ] || exit 1\n',
    "in a loop": "for f in a b c; do if ! [ -f $f ]; then exit 1; fi; done\n[ -d x ] || exit 1\n",
    "of words": 'case "$1" in a) ;; *) exit 1 ;; esac\ncase "$2" in b) ;; *) exit 1 ;; esac\n',
    "many": "".join(f"[ -f f{number} ] || exit {number}\n" for number in range(40)),
}


@pytest.mark.parametrize("name", CHECKS)
def test_what_stands_behind_any_number_of_checks_is_seen(name: str) -> None:
    found = [command for _, command in other_ways(CHECKS[name] + "train a\nif [ $MODE = x ]; then train b; fi\n")]
    assert ["train", "a"] in found
    assert ["train", "b"] in found
