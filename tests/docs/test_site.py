"""The site: it builds without a warning, every made page says what the data says, and it loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import html5lib
import pytest
from documentation import command_page, configuration_table, framework_pages, measured, plots, rule_pages
from documentation.markdown import code, fence, linked, marked, prose, table

from klaudit.cli import COMMANDS
from klaudit.configuration_file import KEYS
from klaudit.findings import catalogue
from klaudit.frameworks.load import load_frameworks
from klaudit.theory import TABLE
from tests.docs.console import ROOT

# --- pages made from data --------------------------------------------------------------------------------------------------------------


def test_every_finding_has_a_page() -> None:
    pages = rule_pages.pages()
    for entry in catalogue.load():
        page = pages[f"rules/{entry.id}.md"]
        assert page.startswith(f"# {entry.id} {entry.name} {{: #{entry.name} }}")
        for example in entry.examples:
            assert example.wrong.rstrip() in page and example.right.rstrip() in page
        assert f"[{entry.id}]({entry.id}.md)" in pages["rules/index.md"]


def test_gradient_rules_have_their_plots() -> None:
    assert '<svg class="plot warning"' in rule_pages.pages()["rules/KLA101.md"]
    assert plots.gallery().count("<svg") == sum(
        row.weight is not None and row.gradient in ("pathwise", "score", "importance-weighted")
        for row in TABLE.values()
    )


def test_the_checks_plots_are_drawn() -> None:
    pytest.importorskip("torch")
    drawn = measured.bias()
    assert drawn.count("<svg ") == drawn.count("aria-label") == 2 and "\n\n" not in drawn
    assert "k3-in-loss" in drawn and "Variance" in drawn


def test_the_site_can_be_built_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "find_spec", lambda name: None)
    assert "klaudit verify --plot" in measured.bias() and "<svg" not in measured.bias()


def test_every_fact_of_a_framework_is_on_its_page() -> None:
    pages = framework_pages.pages()
    for framework in load_frameworks():
        page = pages[f"frameworks/{framework.id}.md"]
        assert f"[{prose(framework.title)}]({framework.id}.md)" in pages["frameworks/index.md"]
        for trainer in framework.trainers:
            for spec in trainer.settings.values():
                assert all(code(name.name) in page for name in spec.names), spec.id
                for default in spec.defaults:
                    assert prose(default.source) in page and prose(default.why) in page
            for vocabulary in trainer.vocabularies.values():
                assert all(code(word.value) in page for word in vocabulary.words if isinstance(word.value, str))
            for term in trainer.terms:
                assert all(prose(case.why) in page for case in (*term.ignored, *term.facts, *term.group_std))
            for recipe in trainer.recipes:
                assert prose(recipe.impossible) in page and prose(recipe.explanation) in page


def test_no_fact_is_shown_as_python() -> None:
    for name, page in framework_pages.pages().items():
        assert "Struct" not in page and "VersionRange(" not in page and "<code>None</code>" not in page, name


def test_every_command_and_option_is_in_the_reference() -> None:
    page = command_page.page()
    for name in COMMANDS:
        assert f"## klaudit {name} {{: #{name} }}" in page
    assert code("--diff-base REF") in page and "baseline write" in page


def test_every_key_is_in_the_table() -> None:
    assert all(f"(#{key})" in configuration_table.table_of_keys() for key in KEYS)


# --- Markdown ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["a|b", "x*y*z", "_a_", "<b>", "`c`", "[l](m)", r"\n", "beta*k, a reward subtracts beta*k"]
)
def test_words_come_out_as_they_went_in(text: str) -> None:
    markdown = pytest.importorskip("markdown")
    for made in (prose(text), code(text)):
        shown = markdown.markdown(table(("h",), [(made,)]), extensions=["tables"])
        cells = [("".join(cell.itertext())) for cell in html5lib.parse(shown, namespaceHTMLElements=False).iter("td")]
        assert cells == [text]


def test_the_catalogues_own_marks_are_kept() -> None:
    assert marked("the *value* of `a|b`, 0.5*d") == "the <em>value</em> of <code>a&#124;b</code>, 0.5&#42;d"
    assert linked("arXiv 2512.21852") == "[arXiv 2512.21852](https://arxiv.org/abs/2512.21852)"
    assert linked("see http://joschu.net/blog/kl-approx.html.").startswith("see [http://joschu.net")
    assert fence("a\n```\nb", "sh").startswith("````sh\n")
    assert table(("a", "b"), [("1", ""), ("2", "")]) == "| a |\n| --- |\n| 1 |\n| 2 |\n"


# --- the built site ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the site needs klaudit[docs]")
    pytest.importorskip("material", reason="the site needs klaudit[docs]")
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(built)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    told = "\n".join(
        line for line in done.stderr.splitlines() if "WARNING" in line or "Error" in line or "ERROR" in line
    )
    assert done.returncode == 0, told or done.stderr
    return built


class _References(HTMLParser):
    """What a page loads, what it links to, and which places it has."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next") and "href" in given:
            self.loaded.append(given["href"])
        elif "src" in given:
            self.loaded.append(given["src"])


def _pages(site: Path) -> dict[Path, _References]:
    pages = {}
    for file in site.rglob("*.html"):
        pages[file] = _References()
        pages[file].feed(file.read_text(encoding="utf-8"))
    return pages


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for file, page in _pages(site).items():
        assert page.loaded
        outside = [
            address for address in page.loaded if re.match(r"[a-z]+:|//", address) and not address.startswith("data:")
        ]
        assert not outside, f"{file.name}: {outside}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    pages = _pages(site)
    for file, page in pages.items():
        if file.name == "404.html":
            continue
        for link in page.links:
            if re.match(r"[a-z]+:|//", link) or link in ("", "."):
                continue
            path, _, anchor = link.partition("#")
            target = (file.parent / unquote(path)).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{file.relative_to(site)}: {link}"
            assert not anchor or unquote(anchor) in pages[target].ids or anchor.startswith("__"), f"{file.name}: {link}"


def test_written_pages_hold_what_is_made_for_them(site: Path) -> None:
    assert (site / "theory.html").read_text(encoding="utf-8").count('<svg class="plot') > 10
    assert 'href="#framework-versions"' in (site / "configuration.html").read_text(encoding="utf-8")
    assert not (site / "examples").exists()
    for page in ("rules/KLA101.html", "frameworks/verl.html", "cli.html", "tutorial.html", "results/tensor-cpu.html"):
        assert (site / page).exists()
