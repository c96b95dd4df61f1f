"""Checks under `set -e` and `set -u`: whatever bash may get past, the reader gets past.  Held against bash itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from shell_reading import other_ways, plain_run, read

LISTS = {
    "mapfile": "mapfile -t a < <(probe)",
    "a here-string": 'readarray -t a <<< "$(probe)"',
    "words": "a=($(probe))",
    "added": "a=(); a+=($(probe))",
    "a loop that reads": 'a=(); while read -r line; do a+=("$line"); done < <(probe)',
    "a loop over words": 'a=(); for each in $(probe); do a+=("$each"); done',
    "names of files": 'a=("$FOLDER"/*.part)',
    "parameters": 'set -- $(probe); a=("$@")',
    "a function's arguments": 'keep() { a=("$@"); }; keep $(probe)',
    "a copy": 'mapfile -t first < <(probe); a=("${first[@]}")',
    "read": 'read -d "" -r -a a <<< "$(probe) " || true',
    "by key": "declare -A a=(); for each in $(probe); do a[$each]=1; done",
}
CHECKS = {
    "double brackets": '[[ "${#a[@]}" == 3 ]]',
    "numbers": "[[ ${#a[@]} -eq 3 ]]",
    "or exit": '[[ "${#a[@]}" == 3 ]] || exit 1',
    "brackets": '[ "${#a[@]}" -eq 3 ]',
    "test": "test ${#a[@]} -eq 3",
    "arithmetic": "(( ${#a[@]} == 3 ))",
    "a number kept": "n=${#a[@]}; (( n == 3 ))",
    "a number made of it": "n=$(( ${#a[@]} - 2 )); (( n == 1 ))",
    "let": 'n=${#a[@]}; let "n == 3"',
    "if": 'if [[ "${#a[@]}" != 3 ]]; then exit 2; fi',
    "if not": 'if ! [[ "${#a[@]}" == 3 ]]; then exit 2; fi',
    "and, or": "[[ ${#a[@]} -gt 0 ]] && [[ ${#a[@]} -eq 3 ]] || { echo no; exit 3; }",
    "case": "case ${#a[@]} in 3) ;; *) exit 4 ;; esac",
    "case of what is wrong": "case ${#a[@]} in 0 | 1) exit 4 ;; esac",
    "while": "while (( ${#a[@]} < 3 )); do exit 1; done",
    "until": "until [[ ${#a[@]} -ge 3 ]]; do exit 1; done",
    "an element": '[[ -n "${a[2]}" ]]',
    "an element or nothing": '[[ -n "${a[2]:-}" ]]',
    "an element demanded": ': "${a[2]:?three}"',
    "an element that is set": "[[ -v a[2] ]]",
    "an element, another way": '[[ -n "${a[2]+x}" ]]',
    "each": 'for i in 0 1 2; do [[ -n "${a[$i]:-}" ]]; done',
    "keys": '[[ "${!a[*]}" == "0 1 2" ]]',
    "a slice": '[[ -n "${a[*]:2}" ]]',
    "one of them": 'found=0; for each in "${a[@]}"; do [[ $each == c ]] && found=1; done; (( found ))',
    "counted": 'n=0; for each in "${a[@]}"; do n=$((n + 1)); done; [[ $n == 3 ]]',
    "joined": '[[ "$(IFS=,; echo "${a[*]}")" == a,b,c ]]',
    "in a function": '(( 1 )); check() { [ $# -eq 3 ]; }; check "${a[@]}"',
    "in a function that exits": 'check() { [[ $# == 3 ]] || exit 7; }; check "${a[@]}"',
    "in a subshell": '( [[ "${#a[@]}" == 3 ]] )',
    "in a substitution": 'said=$( [[ "${#a[@]}" == 3 ]] && echo yes ); [[ $said == yes ]]',
    "a flag": 'fine=no; if [[ "${#a[@]}" == 3 ]]; then fine=yes; fi; [[ $fine == yes ]]',
}
_PROBE = "probe() { printf 'a\\nb\\nc\\n'; }\n"


def _script(made: str, check: str) -> str:
    return f"set -euo pipefail\n{made}\n{check}\nrun training\n"


@pytest.fixture(scope="module")
def got_past(tmp_path_factory: pytest.TempPathFactory) -> frozenset[tuple[str, str]]:
    """The scripts that bash gets to the end of where the list that it cannot know beforehand has the elements a, b and c."""
    folder: Path = tmp_path_factory.mktemp("parts")
    for name in "abc":
        (folder / f"{name}.part").touch()
    log = folder / "log"
    pieces = [f"FOLDER={folder}\n{_PROBE}"]
    for made in LISTS:
        for check in CHECKS:
            told = f'run() {{ echo "{made}|{check}" >> "{log}"; }}\n'
            pieces.append(f"( {told}{_script(LISTS[made], CHECKS[check])})\n")
    subprocess.run(["bash", "-c", "".join(pieces)], capture_output=True, check=False, timeout=60)
    pairs = (line.split("|") for line in log.read_text().splitlines())
    return frozenset((made, check) for made, check in pairs)


@pytest.mark.parametrize("made", LISTS)
def test_what_bash_may_get_past_is_got_past(made: str, got_past: frozenset[tuple[str, str]]) -> None:
    past = [check for check in CHECKS if (made, check) in got_past]
    assert len(past) > len(CHECKS) // 3
    lost = []
    for check in past:
        commands = read(_script(LISTS[made], CHECKS[check]), environment={"FOLDER": "/parts"}).commands
        if not any(command.words[0].text == "run" for command in commands):
            lost.append(check)
    assert lost == []


@pytest.mark.parametrize("check", ["double brackets", "numbers", "brackets", "test", "arithmetic", "an element"])
@pytest.mark.parametrize("made", ["mapfile", "words", "names of files"])
def test_a_check_of_what_is_not_known_assumes_nothing(made: str, check: str) -> None:
    runs = plain_run(_script(LISTS[made], CHECKS[check]), environment={"FOLDER": "/parts"})
    assert ["run", "training"] in runs


def test_a_known_number_is_known() -> None:
    assert plain_run("set -e\na=(x y 'p q')\n(( ${#a[@]} == 3 ))\nrun 3") == [["run", "3"]]
    assert plain_run('set -e\na=("$(probe)" y)\n(( ${#a[@]} == 2 ))\nrun 2')[-1] == ["run", "2"]
    assert plain_run("a=(x y)\nif (( ${#a[@]} != 2 )); then run wrong; fi\nrun right") == [["run", "right"]]


ASSUMED = {
    "a check that fails": ("set -e\nX=a\n[[ $X == b ]]\nrun $X", [(("$X == b",), ["run", "b"])]),
    "two of them": (
        'set -e\n[ "$1" = a ]\ntest "$2" = b\nrun $1 $2',
        [(('"$1" = a', '"$2" = b'), ["run", "a", "b"])],
    ),
    "in a loop": (
        "set -e\nfor i in 1 2 3; do [[ $X == $i* ]]; done\nrun x",
        [(("$X == $i*",), ["run", "x"])],
    ),
    "false is meant": ("set -e\nfalse\nrun x", []),
    "a folder that must be there": (
        'if [[ ! -d "$D" ]]; then exit 1; fi\nrun x',
        [(('-d "$D"',), ["run", "x"])],
    ),
    "not, before the brackets": ('if ! [ "$1" = a ]; then exit 1; fi\nrun x', [(('"$1" = a',), ["run", "x"])]),
    "a program that must succeed": ("if ! check now; then exit 1; fi\nrun x", []),
    "not of a part": (
        "if [[ ! -f a && $1 != b ]]; then run 1; exit; fi\nrun 2",
        [(("not (! -f a && $1 != b)",), ["run", "2"])],
    ),
    "until": ("until [ -d /data ]; do exit 1; done\nrun x", [(("-d /data",), ["run", "x"])]),
    "a number": ("X=1\nif (( ! X )); then run 1; else run 2; fi", [(("(( ! X ))",), ["run", "1"])]),
}


@pytest.mark.parametrize("name", ASSUMED)
def test_what_is_assumed_reads_plainly(name: str) -> None:
    script, expected = ASSUMED[name]
    assert [way for way in other_ways(script) if way[1][0] == "run"] == expected


def test_keys_are_no_positions() -> None:
    assert plain_run('declare -A a=([x]=1 [y]=2)\nrun "${a[*]:1:1}"') == [["run", "2"]]
