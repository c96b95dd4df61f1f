"""The written pages: what they show is what happens."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
import pytest

from klaudit.cli import COMMANDS, cli
from klaudit.configuration import load
from klaudit.configuration_file import KEYS
from tests.docs.console import DOCS, ROOT, Session, commands, differs, run, sessions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SESSIONS = [
    each for page in sorted(DOCS.glob("*.md")) if "<!-- run in:" in page.read_text("utf-8") for each in sessions(page)
]
EXAMPLE = DOCS / "examples" / "own-framework"


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: f"{session.page}-{Path(session.folder).name}")
def test_commands_print_what_is_shown(session: Session, tmp_path: Path) -> None:
    if session.page == "verify.md":
        pytest.importorskip("torch")
    problems = [
        f"$ {command}\n{difference}"
        for command, shown, came in run(session, tmp_path / "copy")
        if (difference := differs(shown, came))
    ]
    assert not problems, "\n\n".join(problems)


def test_pages_that_ought_to_be_run_are() -> None:
    assert {session.page for session in SESSIONS} >= {"tutorial.md", "extending.md", "html.md", "fix.md", "verify.md"}
    assert sum(len(session.blocks) for session in SESSIONS) >= 10


def test_differences_are_seen() -> None:
    assert not differs(["a", "...", "d"], ["a", "b", "c", "d"]) and not differs(["a 1.00 s."], ["a 2.34 s.", ""])
    assert not differs(["No findings. ..."], ["No findings. 1 file"])
    assert (
        differs(["a", "...", "d"], ["a", "b"]) and differs(["a"], []) and differs([], ["a"]) and differs(["a"], ["b"])
    )


def test_the_tutorials_script_is_the_fixtures() -> None:
    shown = re.search(r'```sh title="train_grpo.sh"\n(.*?)```', (DOCS / "tutorial.md").read_text("utf-8"), re.DOTALL)
    assert shown and shown[1] == (ROOT / "fixtures/verl-grpo-script/input/train_grpo.sh").read_text("utf-8")


def test_files_are_shown_as_they_are() -> None:
    text = (DOCS / "extending.md").read_text("utf-8")
    shown = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", text, re.DOTALL))
    there = {str(file.relative_to(EXAMPLE)) for file in EXAMPLE.rglob("*") if file.is_file()}
    assert set(shown) == there
    for name, content in shown.items():
        assert (EXAMPLE / name).read_text("utf-8") == content


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_command_that_is_shown_exists(page: Path) -> None:
    for words in commands(page.read_text("utf-8")):
        assert words[1] in COMMANDS, words
        context = click.Context(cli)
        command = cli.get_command(context, words[1])
        assert command is not None
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        if isinstance(command, click.Group):
            continue
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known | {"--help"}, words


# --- configuration -------------------------------------------------------------------------------------------------------------------


def _keys() -> dict[str, str]:
    text = (DOCS / "configuration.md").read_text("utf-8")
    return dict(re.findall(r"^### ([\w-]+) \{: #\1 \}\n\n.*?```toml\n(.*?)```", text, re.DOTALL | re.MULTILINE))


def test_every_key_is_explained_with_an_example() -> None:
    assert set(_keys()) == set(KEYS)


@pytest.mark.parametrize("key", sorted(_keys()))
def test_the_example_of_a_key_is_accepted(key: str, tmp_path: Path) -> None:
    (tmp_path / "our_rules").mkdir()
    (tmp_path / "klaudit-baseline.json").write_text("{}", encoding="utf-8")
    file = tmp_path / "klaudit.toml"
    file.write_text(_keys()[key], encoding="utf-8")
    assert list(tomllib.loads(_keys()[key])) == [key]
    assert KEYS[key] in load(file).origins
