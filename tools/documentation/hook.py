"""The hook of mkdocs.yml: adds the pages that are made from data, and fills in what written pages leave to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]  # mkdocs loads this file by its path alone

from mkdocs.config.defaults import MkDocsConfig  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402

from documentation import command_page, configuration_table, framework_pages, measured, plots, rule_pages  # noqa: E402
from klaudit.findings import catalogue  # noqa: E402
from klaudit.frameworks.load import load_frameworks  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
FILLED: dict[str, Callable[[], str]] = {
    "<!-- plots -->": plots.gallery,
    "<!-- bias -->": measured.bias,
    "<!-- keys -->": configuration_table.table_of_keys,
}
SECTIONS = {"Rules": "rules/index.md", "Frameworks": "frameworks/index.md"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation's sections of made pages get their pages."""
    lists = {
        "Rules": [{f"{entry.id} {entry.name}": rule_pages.path_of(entry)} for entry in catalogue.load()],
        "Frameworks": [{each.title: framework_pages.path_of(each)} for each in load_frameworks()],
    }
    config.nav = list(_filled(config.nav or [], lists))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in made_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    for mark, made in FILLED.items():
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    return markdown.replace("](../benchmarks/results/", "](results/")  # on disk they lie there, in the site beside


def made_pages() -> dict[str, str]:
    """Markdown by path in the site."""
    results = {f"results/{file.name}": file.read_text(encoding="utf-8") for file in sorted(RESULTS.glob("*.md"))}
    return {**rule_pages.pages(), **framework_pages.pages(), "cli.md": command_page.page(), **results}


def _filled(items: list[Any], lists: dict[str, list[Any]]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, dict) and len(item) == 1:
            ((title, content),) = item.items()
            if title in lists and content == SECTIONS[title]:
                yield {title: [content, *lists[title]]}
                continue
            if isinstance(content, list):
                yield {title: list(_filled(content, lists))}
                continue
        yield item
