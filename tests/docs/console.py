"""Console blocks of the documentation: the commands they show, what they say is printed, and whether that is so."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_PIECE = re.compile(r"<!-- run in: (?P<folder>\S+) -->\n|^```console\n(?P<block>.*?)^```$", re.DOTALL | re.MULTILINE)
_SECONDS = re.compile(r"\d+\.\d\d s\.")
_ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
_END = "-- end of a command, status "


class Session(NamedTuple):
    """Blocks of a page that run one after the other in a copy of `folder`."""

    page: str
    folder: str
    blocks: tuple[str, ...]


def sessions(page: Path) -> Iterator[Session]:
    """Raises AssertionError for a block that says nowhere where it runs."""
    folder, blocks = "", []
    for piece in _PIECE.finditer(page.read_text(encoding="utf-8")):
        if piece["folder"]:
            if blocks:
                yield Session(page.name, folder, tuple(blocks))
            folder, blocks = piece["folder"], []
        else:
            assert folder, f"{page.name}: a console block before any `run in`"
            blocks.append(piece["block"])
    if blocks:
        yield Session(page.name, folder, tuple(blocks))


def steps(block: str) -> list[tuple[str, list[str]]]:
    """Commands with the lines that follow them."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def run(session: Session, scratch: Path) -> list[tuple[str, list[str], list[str]]]:
    """Every command in one shell: command, lines that are shown, lines that come out."""
    shutil.copytree(ROOT / session.folder, scratch)
    all_steps = [step for block in session.blocks for step in steps(block)]
    script = "".join(
        f"( exit $status )\n{command}\nstatus=$?; printf '\\n{_END}%s\\n' $status\n" for command, _ in all_steps
    )
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    environment = {**os.environ, **_ENVIRONMENT, "PATH": path}
    done = subprocess.run(
        ["bash", "-c", f"status=0\n{script}"], cwd=scratch, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=300, check=False,
    )  # fmt: skip
    outputs = re.split(rf"\n{_END}\d+\n", done.stdout)[: len(all_steps)]
    assert len(outputs) == len(all_steps), done.stdout
    return [(command, shown, output.splitlines()) for (command, shown), output in zip(all_steps, outputs, strict=True)]


def differs(shown: list[str], came: list[str]) -> str:
    """Empty where the output is as shown; a line `...` stands for any lines, and at a line's end for the rest of it."""
    wanted, got = _trimmed(map(_plain, shown)), _trimmed(map(_plain, came))
    parts = [f"(?:{re.escape(line[:-3])}[^\n]*\n)" if line.endswith("...") and line != "..." else
             "(?:[^\n]*\n)*?" if line == "..." else f"(?:{re.escape(line)}\n)" for line in wanted]  # fmt: skip
    text = "".join(f"{line}\n" for line in got)
    return "" if re.fullmatch("".join(parts), text) else f"shown:\n{chr(10).join(wanted)}\n\ncame:\n{text}"


def _plain(line: str) -> str:
    return _SECONDS.sub("0.00 s.", line.rstrip())


def _trimmed(lines: Iterable[str]) -> list[str]:
    text = "\n".join(lines).strip("\n")
    return text.split("\n") if text else []


def commands(text: str) -> list[list[str]]:
    """Words of the klaudit commands that a page's code blocks of any shell show."""
    blocks = re.findall(r"```(?:sh|console)[^\n]*\n(.*?)```", text, re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    found = (re.search(r"(?:^|[\s/&;])(klaudit\s+[a-z].*)", line) for line in lines)
    return [shlex.split(each[1], comments=True) for each in found if each]
