"""One small script for each construct: what bash starts, and that the reader sees the same."""

from __future__ import annotations

import pytest
from shell_reading import BASH, plain_run, run_by_bash

CASES: dict[str, tuple[str, list[list[str]]]] = {
    # --- assignments and parameters
    "assignment": ("X=1\nrun a=$X b=${X}c", [["run", "a=1", "b=1c"]]),
    "empty values": ("X=\nY=''\nrun a=$X \"$Y\" $X end", [["run", "a=", "", "end"]]),
    "unset gives nothing": ('run a=$X $X "$X" end', [["run", "a=", "", "end"]]),
    "default": ("X=\nrun ${X:-a} ${X-b} ${Y:-c} ${Y-d}", [["run", "a", "c", "d"]]),
    "nested default": ("Z=z\nrun ${X:-${Y:-${Z}}}", [["run", "z"]]),
    "assigning default": (': "${X:=a}" ${Y=b}\nrun $X $Y ${X:=c}', [["run", "a", "b", "a"]]),
    "alternative": ('X=1\nrun ${X:+--flag=$X} ${Y:+--no} "${Y:+x}"', [["run", "--flag=1", ""]]),
    "error if unset": ("X=1\nrun ${X:?needed}\nrun ${Y:?needed}\nrun never", [["run", "1"]]),
    "default is split": ("run ${X:-a b} \"${X:-c d}\" ${X:-'e f'}", [["run", "a", "b", "c d", "e f"]]),
    "append": ("X=a\nX+=b\nrun $X", [["run", "ab"]]),
    "length": ("X=abc\nA=(1 2)\nrun ${#X} ${#A[@]} ${#A[0]} $#", [["run", "3", "2", "1", "0"]]),
    "trim": (
        "X=dir/model.tar.gz\nrun ${X#*/} ${X##*.} ${X%.*} ${X%%.*} ${X%none}",
        [["run", "model.tar.gz", "gz", "dir/model.tar", "dir/model", "dir/model.tar.gz"]],
    ),
    "replace": (
        "X=actor.lr.actor\nrun ${X/actor/critic} ${X//actor/critic} ${X//.} ${X/#actor/c} ${X/%actor/c} ${X//[aeiou]/_}",
        [["run", "critic.lr.actor", "critic.lr.critic", "actorlractor", "c.lr.actor", "actor.lr.c", "_ct_r.lr._ct_r"]],
    ),
    "replace slashes": ("X=a/b/c\nrun ${X//\\//_} ${X/\\//-}", [["run", "a_b_c", "a-b/c"]]),
    "letters": ("X=aBc\nrun ${X^^} ${X,,} ${X^} ${X,}", [["run", "ABC", "abc", "ABc", "aBc"]]),
    "substring": (
        "X=abcdef\nN=2\nrun ${X:2} ${X:1:2} ${X: -2} ${X:N:1} ${X::3} ${X:0:-1}",
        [["run", "cdef", "bc", "ef", "c", "abc", "abcde"]],
    ),
    "indirect": ('A=1\nN=A\nrun ${!N} "${!N}"', [["run", "1", "1"]]),
    "attributes": ("declare -i N=2+3\ndeclare -u U=abc\nN+=1\nrun $N $U", [["run", "6", "ABC"]]),
    "quoted for reuse": (
        'X="a \'b\'"\nrun ${X@Q} $(printf %q "$X")',
        [["run", "'a", "'\\''b'\\'''", "a\\", "\\'b\\'"]],
    ),
    # --- quoting
    "quotes": (
        "X='a b'\nrun 'q $X' \"q $X\" a'b'\"c\"d $'t\\tn\\n\\x41\\''",
        [["run", "q $X", "q a b", "abcd", "t\tn\nA'"]],
    ),
    "escapes": ('run a\\ b \\$X "\\$X \\" \\\\ \\a" \\\n  c', [["run", "a b", "$X", '$X " \\ \\a', "c"]]),
    "quotes inside defaults": ('X=\nrun "${X:-\'a\'}" ${X:-\'a\'} "${X:-"b c"}"', [["run", "'a'", "a", "b c"]]),
    "brackets and json": (
        "run a=[1,2] b=['x','y'] '{\"k\": [1]}' {\"a\":1}",
        [["run", "a=[1,2]", "b=[x,y]", '{"k": [1]}', "{a:1}"]],
    ),
    # --- splitting
    "splitting": ('X="a  b\tc"\nrun $X "$X" x$X', [["run", "a", "b", "c", "a  b\tc", "xa", "b", "c"]]),
    "other separators": (
        'IFS=,\nX=a,b,,c\nrun $X\nA=($X)\nrun "${A[*]}" ${#A[@]}',
        [["run", "a", "b", "", "c"], ["run", "a,b,,c", "4"]],
    ),
    "globs stay": ("run *.none [ab]x? a=*", [["run", "*.none", "[ab]x?", "a=*"]]),
    "tilde": (
        'X=~/a\nrun ~ ~/b x~ a.b=~/c "$X"',
        [["run", "/home/user", "/home/user/b", "x~", "a.b=~/c", "/home/user/a"]],
    ),
    "braces": (
        "run {a,b}c x{1..3} {3..1} {a,{b,c}} a{,b} {01..03} {a} {} '{q,r}'",
        [
            [
                "run",
                "ac",
                "bc",
                "x1",
                "x2",
                "x3",
                "3",
                "2",
                "1",
                "a",
                "b",
                "c",
                "a",
                "ab",
                "01",
                "02",
                "03",
                "{a}",
                "{}",
                "{q,r}",
            ]
        ],
    ),
    # --- arithmetic
    "arithmetic": (
        "N=8\nrun $((N*2+1)) $((N/3)) $((N%3)) $((2**5)) $(( N > 3 ? 1 : 0 )) $((0x10))",
        [["run", "17", "2", "2", "32", "1", "16"]],
    ),
    "arithmetic commands": ("i=1\n((i++))\n((i+=5))\nlet i=i*2\nrun $i", [["run", "14"]]),
    # --- arrays
    "arrays": (
        "A=(a 'b c' d)\nA+=(e)\nA[1]=B\nrun \"${A[@]}\" ${A[0]} ${A[-1]} $A",
        [["run", "a", "B", "d", "e", "a", "e", "a"]],
    ),
    "array with comments": ("A=(\n  a=1  # one\n  # b=2\n  c=3\n)\nrun ${A[@]}", [["run", "a=1", "c=3"]]),
    "array slices": (
        'A=(a b c)\nrun ${A[@]:1} ${A[@]:0:1} "${A[*]}" "x${A[@]}y"',
        [["run", "b", "c", "a", "a b c", "xa", "b", "cy"]],
    ),
    "changing all elements": ('A=(a1 b1)\nrun "${A[@]/#/--}" "${A[@]%1}"', [["run", "--a1", "--b1", "a", "b"]]),
    "empty arrays": ('A=()\nrun "${A[@]}" ${A[@]} x "${A[*]}"', [["run", "x", ""]]),
    "associative arrays": (
        "declare -A M=([lr]=1e-6 [kl]=0.1)\nM[n]=5\nK=kl\nrun ${M[lr]} ${M[$K]} ${M[n]}",
        [["run", "1e-6", "0.1", "5"]],
    ),
    "keys": ("A=(x y)\nrun ${!A[@]}", [["run", "0", "1"]]),
    "reading words": (
        "IFS=, read -ra A <<< 'a,b,c'\nread X Y <<< 'p q r'\nrun ${A[1]} $X \"$Y\"",
        [["run", "b", "p", "q r"]],
    ),
    "mapfile": ("mapfile -t A <<< $'a b\\nc'\nrun \"${A[@]}\"", [["run", "a b", "c"]]),
    # --- heredocs
    "heredoc into a variable": (
        "K=1\nread -r -d '' CMD <<EOF\npkg.train \\\n  --a $K \\\n  --b 'x'\nEOF\nrun -m $CMD",
        [["run", "-m", "pkg.train", "--a", "1", "--b", "'x'"]],
    ),
    "literal heredoc": ("X=$(cat <<'EOF'\n$K don't\nEOF\n)\nrun a", [["cat"], ["run", "a"]]),
    "heredoc with more on its line": (
        "run a <<EOF && run b\ntext\nEOF\nrun c",
        [["run", "a"], ["run", "b"], ["run", "c"]],
    ),
    "two heredocs": ("run a <<A <<B\nrun x\nA\nrun y\nB\nrun c", [["run", "a"], ["run", "c"]]),
    "indented heredoc": ("read -r X <<-EOF\n\tab\n\tEOF\nrun $X", [["run", "ab"]]),
    # --- where commands end
    "continuation": ("run a \\\n  b \\\n\nrun c", [["run", "a", "b"], ["run", "c"]]),
    "a comment cuts the command": (
        "run a=1 \\\n  # b=2 \\\n  c.d=3 \\\n  e.f=4\nrun x",
        [["run", "a=1"], ["c.d=3", "e.f=4"], ["run", "x"]],
    ),
    "a blank after the backslash cuts it too": ("run a=1 \\ \n  c.d=3", [["run", "a=1", " "], ["c.d=3"]]),
    "backslash at the end": ("run a \\", [["run", "a"]]),
    "no comment inside words": ("run a#b '#c' #d", [["run", "a#b", "#c"]]),
    "assignments on a line of their own": ("A=1 \\\n B=2\nrun $A$B", [["run", "12"]]),
    "environment prefix": ("X=1\nX=2 run $X\nrun $X", [["run", "1"], ["run", "1"]]),
    "redirections": (
        "run a > /dev/null 2>&1 b < /dev/null\nrun c &> /dev/null\n2>/dev/null run d",
        [["run", "a", "b"], ["run", "c"], ["run", "d"]],
    ),
    "background": ("run a &\nwait\n{ run b; } &\nwait", [["run", "a"], ["run", "b"]]),
    # --- conditions
    "if": (
        'X=a\nif [ "$X" = a ]; then run 1; else run 2; fi\nif [ $X != a ]; then run 3; elif [[ -n $X ]]; then run 4; fi',
        [["run", "1"], ["run", "4"]],
    ),
    "test": (
        'N=3\n[ $N -gt 2 -a $N -lt 5 ] && run 1\ntest -z "$N" || run 2\n[ ! -n "" ] && run 3\n[ -z ] && run 4',
        [["run", "1"], ["run", "2"], ["run", "3"], ["run", "4"]],
    ),
    "double brackets": (
        "X=qwen2-7b\n[[ $X == qwen* && ! $X == *14b ]] && run 1\n[[ $X =~ ^[a-z]+[0-9]-(7|14)b$ ]] && run 2\n"
        '[[ ( -z $X || $X > a ) ]] && run 3\n[[ $X == "qwen*" ]] || run 4',
        [["run", "1"], ["run", "2"], ["run", "3"], ["run", "4"]],
    ),
    "arithmetic condition": ("N=4\n(( N % 2 == 0 )) && run even\nif (( N > 8 )); then run big; fi", [["run", "even"]]),
    "negation": ('! true || run 1\nif ! [ -n "$X" ]; then run 2; fi', [["run", "1"], ["run", "2"]]),
    "case": (
        "for X in a bc 7b x; do case $X in a|b) run 1 ;; b*) run 2 ;; [0-9]*) run 3 ;; *) run 4 ;; esac; done",
        [["run", "1"], ["run", "2"], ["run", "3"], ["run", "4"]],
    ),
    "case falls through": ("case a in a) run 1 ;& b) run 2 ;; *) run 3 ;; esac", [["run", "1"], ["run", "2"]]),
    # --- loops
    "for": ("for x in a 'b c' {1..2}; do run \"$x\"; done", [["run", "a"], ["run", "b c"], ["run", "1"], ["run", "2"]]),
    "for over an array": (
        'A=(p q)\nfor x in "${A[@]}"; do for y in 1 2; do run $x$y; done; done',
        [["run", "p1"], ["run", "p2"], ["run", "q1"], ["run", "q2"]],
    ),
    "counting for": ("for ((i = 0; i < 3; i++)); do run $i; done", [["run", "0"], ["run", "1"], ["run", "2"]]),
    "while": (
        "i=0\nwhile [ $i -lt 2 ]; do run $i; i=$((i + 1)); done\nuntil (( i == 4 )); do ((i++)); done\nrun $i",
        [["run", "0"], ["run", "1"], ["run", "4"]],
    ),
    "break and continue": (
        "for x in 1 2 3 4; do [ $x = 2 ] && continue; [ $x = 4 ] && break; run $x; done",
        [["run", "1"], ["run", "3"]],
    ),
    "reading lines": ("while read -r a b; do run $b; done <<EOF\n1 x\n2 y\nEOF", [["run", "x"], ["run", "y"]]),
    "option parsing without arguments": (
        'while [[ $# -gt 0 ]]; do case $1 in -x) X=$2; shift 2 ;; esac; done\nrun "${X:-default}"',
        [["run", "default"]],
    ),
    # --- functions and scopes
    "functions": (
        'f() { local x=$1; shift; run $x "$@"; }\nfunction g { f "$@" z; }\nx=out\nf a b\ng \'c d\'\nrun $x',
        [["run", "a", "b"], ["run", "c", "d", "z"], ["run", "out"]],
    ),
    "return": ("f() { [ $1 = a ] && return 1; run $1; }\nf a || run no\nf b", [["run", "no"], ["run", "b"]]),
    "subshells": ("X=1\n( X=2; run $X )\nrun $X\n{ X=3; }\nrun $X", [["run", "2"], ["run", "1"], ["run", "3"]]),
    "positional parameters": (
        'set -- a "b c"\nrun "$@" $# "$*" ${2%c}\nshift\nrun $1',
        [["run", "a", "b c", "2", "a b c", "b"], ["run", "b", "c"]],
    ),
    "unset variable": ("X=1\nunset X\nrun a$X ${X:-gone}", [["run", "a", "gone"]]),
    # --- code in words
    "eval": ('X=1\nC=\'run $X "a b"\'\neval $C\neval "run $X" c', [["run", "1", "a b"], ["run", "1", "c"]]),
    "command in a variable": ("C='run a \"b c\"'\n$C", [["run", "a", '"b', 'c"']]),
    "keywords before a command": (
        "time run a\ntime -p run b\ncommand run d",
        [["run", "a"], ["run", "b"], ["run", "d"]],
    ),
    # --- substitutions
    "substitution": (
        'X=$(echo "a b"; printf "%s-%02d\\n" c 7)\nrun "$X" $X `echo d`',
        [["run", "a b\nc-07", "a", "b", "c-07", "d"]],
    ),
    "function in a substitution": ('f() { echo "kl=$1"; }\nrun $(f 0.1) "$(f $(f 2))"', [["run", "kl=0.1", "kl=kl=2"]]),
    "pipeline in a substitution": ('X=$(echo "a b" | while read -r p q; do echo $q; done)\nrun $X', [["run", "b"]]),
    # --- leaving
    "exit": ("run a\n(exit 3)\nrun b\nexit\nrun never", [["run", "a"], ["run", "b"]]),
    "errexit": (
        'set -e\nfalse || run a\nif false; then run b; fi\n! true\nrun c\n[ -n "" ]\nrun never',
        [["run", "a"], ["run", "c"]],
    ),
    "nounset": ("set -u\nrun ${X:-a}\nrun $X\nrun never", [["run", "a"]]),
}


@pytest.mark.parametrize("name", CASES)
def test_reader_starts_what_the_table_says(name: str) -> None:
    script, expected = CASES[name]
    # A home folder is no fact about the script; bash was told to be at home there.
    seen = [[word.replace("${HOME}", "/home/user") for word in command] for command in plain_run(script)]
    assert [command for command in seen if command[0] != "cat"] == [
        command for command in expected if command[0] != "cat"
    ]


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize("name", CASES)
def test_bash_starts_what_the_table_says(name: str) -> None:
    script, expected = CASES[name]
    assert run_by_bash(script)[0] == expected
