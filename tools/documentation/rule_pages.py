"""A page for every finding of the catalogue, and their list."""

from __future__ import annotations

import re
from collections.abc import Iterator

from documentation import plots
from documentation.markdown import code, fence, linked, marked, paragraphs, prose, table
from klaudit.findings import catalogue
from klaudit.findings.catalogue import Entry, Example

_GROUPS = {
    "KLA0": "Hygiene",
    "KLA1": "Gradient: what the penalty descends",
    "KLA2": "Settings: what the program really gets",
    "KLA3": "Code: losses and rewards written by hand",
    "KLA4": "Policy: what a repository has decided",
}
_RULE = re.compile(r"\bKLA\d{3}\b")
_PLOTS = {
    "k3-in-loss": ("k3-in-loss", "k1-in-reward"),
    "k3-in-reward": ("k3-in-reward", "k1-in-reward"),
    "k1-in-loss": ("k1-in-loss", "k1-in-reward"),
    "biased-reward-estimator": ("k2-in-reward", "abs-in-reward", "k1-in-reward"),
    "biased-loss-estimator": ("abs-in-loss", "reversed-k3-in-loss", "k2-in-loss-importance-weighted", "k2-in-loss"),
    "token-level-only": ("k2-in-loss", "k3-in-loss-straight-through-k2", "k3-in-loss-importance-weighted"),
    "reversed-ratio": ("reversed-k3-in-loss", "k3-in-loss"),
}


def pages() -> dict[str, str]:
    """Markdown by path."""
    entries = catalogue.load()
    return {"rules/index.md": _index(entries), **{path_of(entry): _page(entry) for entry in entries}}


def path_of(entry: Entry) -> str:
    return f"rules/{entry.id}.md"


def _index(entries: tuple[Entry, ...]) -> str:
    parts = [
        "# Rules\n",
        "What `klaudit scan` reports. Every page has the reasons, what to change, and examples that are run as tests; "
        "`klaudit explain RULE` shows the same in a terminal.\n",
    ]
    for prefix, title in _GROUPS.items():
        rows = [
            (f"[{entry.id}]({entry.id}.md)", entry.name, entry.severity, marked(entry.summary))
            for entry in entries
            if entry.id.startswith(prefix)
        ]
        if rows:
            parts += [f"## {title}\n", table(("rule", "name", "severity", "what it says"), rows)]
    return "\n".join(parts)


def _page(entry: Entry) -> str:
    return "\n".join(_parts(entry))


def _parts(entry: Entry) -> Iterator[str]:
    yield f"# {entry.id} {entry.name} {{: #{entry.name} }}\n"
    yield f"**{marked(entry.summary)}**\n"
    yield f"{entry.severity} by default, since {entry.since}. In a configuration {code(entry.id)} or {code(entry.name)}.\n"
    yield f"## Why {{: #why }}\n\n{_crossed(entry.why, entry)}"
    if entry.name in _PLOTS:
        yield plots.of(_PLOTS[entry.name])
        yield "Solid: the score weight. Dashed: w(d) = d, that of KL(pi||ref). See [the theory](../theory.md).\n"
    yield f"## What to do {{: #fix }}\n\n{_crossed(entry.fix, entry)}"
    if entry.examples:
        yield "## Examples {: #examples }\n"
    for example in entry.examples:
        yield from _example(example)
    if entry.references:
        yield "## References {: #references }\n"
        yield "\n".join(f"- {linked(reference)}" for reference in entry.references) + "\n"


def _crossed(text: str, entry: Entry) -> str:
    """Paragraphs in which other findings are links to their pages."""
    known = set(catalogue.names().values()) - {entry.id}
    return _RULE.sub(lambda found: f"[{found[0]}]({found[0]}.md)" if found[0] in known else found[0], paragraphs(text))


def _example(example: Example) -> Iterator[str]:
    versions = ", ".join(f"{framework} {version}" for framework, version in example.versions)
    if told := " ".join(filter(None, (example.title, f"({versions})" if versions else ""))):
        yield f"{prose(told)}:\n"
    for name, text in example.beside:
        yield fence(text, name.rpartition(".")[2], name)
    if example.configuration:
        yield fence(example.configuration, "toml", "klaudit.toml")
    yield fence(example.wrong, example.language, "wrong")
    yield fence(example.right, example.language, "right")
