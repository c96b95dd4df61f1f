"""The README names every command, finding and framework that there is, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from klaudit.cli import COMMANDS
from klaudit.findings import catalogue
from klaudit.frameworks.load import load_frameworks

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_command_is_shown_and_exists() -> None:
    shown = set(re.findall(r"(?m)^\$ klaudit (\w+)", section("Everyday use")))
    assert shown == set(COMMANDS)


def test_every_finding_is_listed_by_its_name() -> None:
    listed = re.findall(r"(KLA\d{3})\s+([\w-]+\w)", section("Findings"))
    assert sorted(listed) == [(entry.id, entry.name) for entry in catalogue.load()]


def test_every_framework_is_listed_by_its_title() -> None:
    listed = re.sub(r"\s+", " ", section("Frameworks").partition(". `klaudit frameworks`")[0]).strip()
    titles = sorted((each.title for each in load_frameworks() if each.id != "generic"), key=str.lower)
    assert listed.replace("SkyRL (also as skyrl-train)", "SkyRL, SkyRL (skyrl-train)").split(", ") == titles


def test_there_are_two_commands_to_set_up() -> None:
    marked = re.findall(r"<!-- (set up and \w+) -->\n```sh\n([^\n]+)\n```\n", README)
    assert [name for name, _ in marked] == ["set up and scan", "set up and test"]
    assert README.count("```sh") == 2
