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

OUTSIDE = {"benchmarks/results": "results", "rules/schema": "schema"}  # folders of the repository -> of the site
FILLED: dict[str, Callable[[], str]] = {
    "<!-- plots -->": plots.gallery,
    "<!-- bias -->": measured.bias,
    "<!-- keys -->": configuration_table.table_of_keys,
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The sections of the navigation whose pages are made get them: `Rules: rules/index.md` the pages below `rules/` and so on."""
    sections: dict[str, list[Any]] = {
        "rules/index.md": [{f"{entry.id} {entry.name}": rule_pages.path_of(entry)} for entry in catalogue.load()],
        "frameworks/index.md": [{each.title: framework_pages.path_of(each)} for each in load_frameworks()],
        "results/": [path for path in outside_pages() if path.startswith("results/")],
    }
    config.nav = list(_filled(config.nav or [], sections))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in made_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    for mark, made in FILLED.items():
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    for folder, of_site in OUTSIDE.items():  # written pages link to what lies beside docs/ on disk
        markdown = markdown.replace(f"](../{folder}/", f"]({of_site}/")
    return markdown


def made_pages() -> dict[str, str]:
    """Markdown, and the schemas of what is written in JSON, by path in the site."""
    return {**rule_pages.pages(), **framework_pages.pages(), "cli.md": command_page.page(), **outside_pages()}


def outside_pages() -> dict[str, str]:
    """What lies outside `docs/` and is linked to from there."""
    files = ((of_site, file) for folder, of_site in OUTSIDE.items() for file in sorted((ROOT / folder).iterdir()))
    return {
        f"{of_site}/{file.name}": file.read_text(encoding="utf-8")
        for of_site, file in files
        if file.suffix in (".md", ".json")
    }


def _filled(items: list[Any], sections: dict[str, list[Any]]) -> Iterator[Any]:
    """The items with the pages of their sections; a folder has no page of its own."""
    for item in items:
        title, content = next(iter(item.items())) if isinstance(item, dict) else ("", item)
        if isinstance(content, list):
            yield {title: list(_filled(content, sections))}
        elif content in sections:
            own = [] if content.endswith("/") else [content]
            yield {title: [*own, *sections[content]]}
        else:
            yield item
