"""What is a comment in each format, and what it is about."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tokenize
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import klaudit
from klaudit.gate.comments import pieces_of
from klaudit.gate.comments.python import python_piece
from klaudit.readers.source import Source


def about(path: str, text: str) -> dict[str, str]:
    """By the letter in its brackets: what each comment is about, in the file's own words, lines joined."""
    data = text.encode()
    source = Source(path, data)
    found: dict[str, str] = {}
    for piece in pieces_of(source):
        for comment in piece.comments:
            letter = re.match(rb"#\s*klaudit: ignore\[(\w+)\]", piece.data[slice(*comment)])
            if letter is not None:
                spans = [piece.source.span(*unit) for unit in piece.covered(comment)]
                found[letter[1].decode()] = " | ".join(
                    " ".join(data[span.start : span.end].decode().split()) for span in spans
                )
    return found


SHELL = r"""#!/bin/bash
# klaudit: ignore[above] x
python -m a \
    b=c \
    d=e  # klaudit: ignore[behind] x
echo "# klaudit: ignore[no1]" '# klaudit: ignore[no2]' x#klaudit:
cat <<EOF > run.sh  # klaudit: ignore[heredoc] x
# klaudit: ignore[no3]
EOF
cat <<-'END'
	# klaudit: ignore[no4]
	END
words=(
    # klaudit: ignore[array] x
    f=g
)
one=$(two  # klaudit: ignore[substitution] x
)
three &&
    four  # klaudit: ignore[list] x
five | \
    six  # klaudit: ignore[pipe] x
seven \
    # klaudit: ignore[cut] x
    eight
if nine; then  # klaudit: ignore[condition] x
    # a usual comment
    # klaudit: ignore[skips] x

    ten; eleven
fi
case $# in *) twelve ;; esac  # klaudit: ignore[case] x
for x in "$#"; do thirteen; done  # klaudit: ignore[for] x
f() {
    # klaudit: ignore[function] x
    fourteen
}
# klaudit: ignore[nothing] x
"""


def test_shell() -> None:
    assert about("run.sh", SHELL) == {
        "above": r"python -m a \ b=c \ d=e",
        "behind": r"d=e | python -m a \ b=c \ d=e",
        "heredoc": "cat <<EOF > run.sh | cat <<EOF > run.sh # klaudit: ignore[heredoc] x # klaudit: ignore[no3] EOF",
        "array": "words=( # klaudit: ignore[array] x f=g )",
        "substitution": "one=$(two # klaudit: ignore[substitution] x )",
        "list": "four | three && four",
        "pipe": r"six | five | \ six",
        "cut": "eight | seven \\",
        "condition": "if nine; then | nine",
        "skips": "ten; eleven",
        "case": "case $# in *) twelve ;; esac | twelve",
        "for": 'for x in "$#"; do thirteen; done | thirteen',
        "function": "fourteen",
        "nothing": "",
    }


PYTHON = '''# klaudit: ignore[top] x
"""A text: # klaudit: ignore[no1]"""
call(  # klaudit: ignore[open] x
    a=1,
    # klaudit: ignore[within] x
    b=2,
)
text = "# klaudit: ignore[no2]"; more = 1  # klaudit: ignore[behind] x
# klaudit: ignore[decorated] x

@decorator
def function(a):  # klaudit: ignore[header] x
    # klaudit: ignore[body] x
    return f"{a} # klaudit: ignore[no3]"
joined = 1 + \\
    2  # klaudit: ignore[joined] x
'''


def test_python() -> None:
    whole = "call( # klaudit: ignore[open] x a=1, # klaudit: ignore[within] x b=2, )"
    assert about("a.py", PYTHON) == {
        "top": '"""A text: # klaudit: ignore[no1]"""',
        "open": whole,
        "within": whole,
        "behind": 'text = "# klaudit: ignore[no2]"; more = 1 | text = "# klaudit: ignore[no2]"; more = 1',
        "decorated": "@decorator def function(a):",
        "header": "def function(a): | @decorator def function(a):",
        "body": 'return f"{a} # klaudit: ignore[no3]"',
        "joined": "2 | joined = 1 + \\ 2",
    }


def test_python_that_does_not_parse() -> None:
    text = "a = 'open # klaudit: ignore[no]\nb = (1 # klaudit: ignore[yes] x\n"
    assert about("a.py", text) == {"yes": "b = (1 | b = (1"}


YAML = """# klaudit: ignore[first] x
actor:  # klaudit: ignore[key] x
  # klaudit: ignore[entry] x
  use: true
  kind: low  # klaudit: ignore[value] x
  quoted: "a # klaudit: ignore[no1]"
  single: 'a # klaudit: ignore[no2]'
  plain: a#klaudit:ignore[no3]
  flow: {a: 1, b: 2}  # klaudit: ignore[flow] x
steps:
  # klaudit: ignore[item] x
  - name: é  # klaudit: ignore[name] x
    run: |  # klaudit: ignore[block] x
      # klaudit: ignore[inner] x
      python -m a \\
        b=c
      echo "# klaudit: ignore[no4]"
    other: >
      # klaudit: ignore[no5]
  - run: 'python -m a  # klaudit: ignore[no6]'
# klaudit: ignore[last] x
"""


def test_yaml() -> None:
    found = about("a.yaml", YAML)
    actor = found.pop("first")
    assert actor.startswith("actor:") and actor.endswith("b: 2}")
    assert found.pop("key") == f"actor: | {actor}"
    assert found.pop("item").startswith("name: é #") and found.pop("block").startswith("run: | | run: | #")
    assert found == {
        "entry": "use: true",
        "value": "kind: low | kind: low",
        "flow": "flow: {a: 1, b: 2} | b: 2",
        "name": "- name: é | name: é",
        "inner": "python -m a \\ b=c",
        "last": "",
    }


TOML = '''# klaudit: ignore[first] x
a = "# klaudit: ignore[no1]"
[table]  # klaudit: ignore[table] x
# klaudit: ignore[array] x
b = [
    1,  # klaudit: ignore[item] x
]
c = """
# klaudit: ignore[no2]
"""
d = '# klaudit: ignore[no3]'
'''


def test_toml() -> None:
    found = about("a.toml", TOML)
    assert found.pop("table").startswith("[table] | table]")
    assert found == {
        "first": 'a = "# klaudit: ignore[no1]"',
        "array": "b = [ 1, # klaudit: ignore[item] x ]",
        "item": "1, | 1",
    }


def notebook(*cells: str) -> str:
    rows = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": cell.splitlines(True)}
        for cell in cells
    ]
    return json.dumps({"cells": rows, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def test_notebooks() -> None:
    text = notebook(
        '# klaudit: ignore[python] x\na = "é # klaudit: ignore[no]"\n!run \\\n  b=c  # klaudit: ignore[magic] x',
        "%%bash\n# klaudit: ignore[bash] x\nfoo \\\n  bar\n",
        "# klaudit: ignore[alone] x",
    )
    found = about("a.ipynb", text)
    assert found["python"].startswith("a = ") and found["alone"] == ""
    assert found["bash"].startswith("foo ") and found["bash"].endswith("bar")
    assert found["magic"].count("!run") == 1
    assert "no" not in found


def test_markdown() -> None:
    text = "# klaudit: ignore[title] x\n\n> ```bash\n> # klaudit: ignore[fence] x\n> run a \\\n>   b\n> ```\n"
    assert about("a.md", text) == {"fence": "run a \\ > b"}


def test_json_and_what_cannot_be_read_have_none() -> None:
    assert about("a.json", '{"a": "# klaudit: ignore[x]"}') == {}
    assert about("a.yaml", "a: {{ b }}: c\n# klaudit: ignore[x] y\n") == {}
    assert about("a.sh", "a\0b\n# klaudit: ignore[x] y\nc\n") == {}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("path", "text"), [("a.sh", SHELL), ("a.py", PYTHON), ("a.yaml", YAML), ("a.toml", TOML)])
def test_line_ends_byte_order_marks_and_a_cut_end_change_nothing(path: str, text: str, newline: str) -> None:
    text = text.rstrip("\n")
    expected = about(path, text + "\n")
    assert about(path, text.replace("\n", newline)) == expected
    if path != "a.sh":  # the kernel would not know its first line
        assert about(path, "\ufeff" + text) == expected


# --- against the real thing --------------------------------------------------------------------------------------------------------------

MODULES = sorted(Path(klaudit.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES[::12], ids=lambda path: path.name)
def test_comments_and_statements_are_those_of_tokenize(module: Path) -> None:
    data = module.read_bytes()
    piece = python_piece(Source("a.py", data))
    lines = [0]
    for line in data.splitlines(True):
        lines.append(lines[-1] + len(line))
    comments, statements, start = [], 0, None
    for token in tokenize.tokenize(io.BytesIO(data).readline):
        if token.type == tokenize.COMMENT:
            at = lines[token.start[0] - 1] + len(token.line[: token.start[1]].encode())
            comments.append((at, at + len(token.string.encode())))
        elif token.type == tokenize.NEWLINE:
            statements += 1
            start = None
        elif start is None and token.type in (tokenize.NAME, tokenize.OP, tokenize.STRING):
            start = token.start
    decorators = len(re.findall(rb"(?m)^\s*@\w", data))
    assert list(piece.comments) == comments
    assert len(piece.statements()) == statements - decorators


BLOCKS = (
    "echo a{n}  # klaudit: ignore[c] x\n",
    "# klaudit: ignore[c] x\n",
    "echo 'b{n} # klaudit: ignore[no]' \"# klaudit: ignore[no]\"\n",
    "cat <<E{n}\n# klaudit: ignore[no] $((1#1))\nE{n}\n",
    "cat <<-'E{n}'\n\t# klaudit: ignore[no]\n\tE{n}\n",
    "c=(\n  # klaudit: ignore[c] x\n  d 'e # klaudit: ignore[no]'  # klaudit: ignore[c] x\n)\necho \"${{c[@]}}\"\n",
    'echo "$(echo f  # klaudit: ignore[c] x\n)"\n',
    "if true; then  # klaudit: ignore[c] x\n  echo g#klaudit: ignore[no]\nfi\n",
    "for h in 1 \\\n  2; do echo $h $#; done # klaudit: ignore[c] x\n",
    "case i in\n  # klaudit: ignore[c] x\n  i) echo i ;;  # klaudit: ignore[c] x\nesac\n",
    "true &&\n  # klaudit: ignore[c] x\n  echo ${{#PATH}} \\# klaudit: ignore[no] >/dev/null\n",
    "function j{n}() {{  # klaudit: ignore[c] x\n  echo j\n}}\nj{n}\n",
)


@given(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=8))
@settings(max_examples=15)
def test_without_its_comments_a_script_prints_the_same(blocks: list[str]) -> None:
    script = "".join(block.format(n=n) for n, block in enumerate(blocks))
    data = script.encode()
    piece = pieces_of(Source("a.sh", data))[0]
    assert len(piece.comments) == script.count("# klaudit: ignore[c]")
    bare = bytearray(data)
    for start, end in reversed(piece.comments):
        del bare[start:end]

    def printed(text: bytes) -> bytes:
        return subprocess.run(["bash"], input=text, capture_output=True, check=False, timeout=20).stdout

    assert printed(bytes(bare)) == printed(data)
    assert b"ignore[c]" not in bytes(bare)


VALUES = (
    "1",
    "'a # klaudit: ignore[no]'",
    '"b # klaudit: ignore[no]"',
    "{a: 1, b: [2, 3]}",
    "|\n    # klaudit: ignore[no]\n    x",
    "é",
    "!!str c",
)


@given(st.lists(st.tuples(st.sampled_from(VALUES), st.booleans(), st.booleans()), min_size=1, max_size=6))
@settings(max_examples=30)
def test_without_its_comments_yaml_says_the_same(entries: list[tuple[str, bool, bool]]) -> None:
    text, count = "", 0
    for n, (value, above, behind) in enumerate(entries):
        behind = behind and "\n" not in value
        text += "# klaudit: ignore[c] x\n" * above + f"k{n}: {value}" + "  # klaudit: ignore[c] x" * behind + "\n"
        count += above + behind
    data = text.encode()
    piece = pieces_of(Source("a.yaml", data))[0]
    assert len(piece.comments) == count
    bare = bytearray(data)
    for start, end in reversed(piece.comments):
        del bare[start:end]
    assert yaml.safe_load(bytes(bare)) == yaml.safe_load(data)
