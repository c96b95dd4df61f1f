"""The parts of the page: score weights and their plots, excerpts, links, colours."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from klaudit.model import Report, Setup, Severity, Span, Term
from klaudit.readers.source import Source
from klaudit.reports import View
from klaudit.reports.html.links import links
from klaudit.reports.html.page import asset
from klaudit.reports.html.plot import symbol
from klaudit.reports.html.source import Excerpts
from klaudit.reports.html.weights import shape_of, shapes, why_no_shape
from klaudit.theory import TABLE, ScoreWeight
from tests.reports.html.conftest import parse, text_of, words_of

# --- score weights -------------------------------------------------------------------------------------------------------------------


def _term(estimator: str, placement: str, weight: str, coefficient: float | None = 0.1, **rest: object) -> Term:
    given = {"gradient": "pathwise", "active": True, "verdict": "biased", **rest}
    return Term(placement, estimator, coefficient=coefficient, score_weight=weight, **given)  # type: ignore[arg-type]


K3_LOSS = _term("k3", "loss", "1 - exp(-d)", 0.04)
K3_REWARD = _term("k3", "reward", "d + exp(-d) - 1", 0.04)
K1_REWARD = _term("k1", "reward", "d", 0.02)


@pytest.fixture
def setup(report: Report) -> Setup:
    return report.setups[1]


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ((K3_LOSS,), "1 - exp(-d)"),
        ((K3_LOSS, K3_REWARD), "d"),
        ((K3_LOSS, K1_REWARD), "0.5*d + 1 - exp(-d)"),
        ((K3_LOSS, replace(K1_REWARD, active=False)), "1 - exp(-d)"),
        ((replace(K1_REWARD, coefficient=None),), "d"),
        ((replace(K1_REWARD, coefficient=-0.02),), "-d"),
        ((_term("abs", "loss", "rho*sign(d)"),), "sign(d)"),
    ],
)
def test_the_shape_of_a_sum(setup: Setup, terms: tuple[Term, ...], expected: str) -> None:
    shape = shape_of(replace(setup, terms=terms))
    assert shape is not None and shape.formula == str(shape.weight) == expected


@pytest.mark.parametrize(
    "terms",
    [
        (),
        (replace(K1_REWARD, active=False),),
        (replace(K3_LOSS, coefficient=None), K1_REWARD),
        (replace(K1_REWARD, normalised_by_group_std=True),),
        (_term("full", "loss", "sum over the vocabulary of pi*(log pi - log ref)"),),
        (_term("k3", "loss", "something else"),),
    ],
)
def test_no_shape_where_there_is_none(setup: Setup, terms: tuple[Term, ...]) -> None:
    without = replace(setup, terms=terms)
    assert shape_of(without) is None
    assert bool(why_no_shape(without)) == any(term.active for term in terms)


def test_every_row_of_the_theory_that_has_a_weight_can_be_drawn(setup: Setup) -> None:
    for row in TABLE.values():
        term = _term(row.estimator, row.placement, row.weight_text, gradient=row.gradient)
        shape = shape_of(replace(setup, terms=(term,)))
        assert (shape and shape.weight) == row.weight or row.gradient == "none"


def test_shapes_are_counted_whatever_their_coefficient(setup: Setup) -> None:
    one = replace(setup, terms=(K3_LOSS,))
    other = replace(setup, terms=(replace(K3_LOSS, coefficient=0.5),))
    assert list(shapes([one, other, replace(setup, terms=(K1_REWARD,))]).values()) == [2, 1]


def _points(path: str) -> list[tuple[float, float]]:
    """d and w of a curve's points, from the pixels of a frame 240 by 160 for 5 by 7 nats."""
    pairs = re.findall(r"[ML]([\d.]+) ([\d.]+)", path)
    return [(float(x) / 48 - 2.5, 3.5 - float(y) / 160 * 7) for x, y in pairs]


def test_a_curve_goes_through_the_weights_values() -> None:
    weight = TABLE["k3", "loss", "pathwise"].weight
    assert weight is not None
    found = re.search(r'd="([^"]*)" class="found"', symbol(weight, "x"))
    assert found
    points = _points(found[1])
    assert len(points) > 60 and all(w == pytest.approx(weight(d), abs=0.05) for d, w in points)
    assert min(w for _, w in points) >= -3.5  # at d = -2.5 it would be -11


def test_the_right_weight_is_in_every_plot() -> None:
    drawn = symbol(ScoreWeight.of(square=0.5), "x")
    right = re.search(r'd="([^"]*)" class="right"', drawn)
    assert right and all(w == pytest.approx(d, abs=0.05) for d, w in _points(right[1]))


# --- excerpts ------------------------------------------------------------------------------------------------------------------------


def _excerpt(data: str, span: Span) -> str:
    return Excerpts(View(source=lambda path: Source(path, data.encode()))).of(span, ())


@pytest.mark.parametrize(
    "line", ["a = beta + 1", "\ta = beta", "奖励 = beta  # 中", "a\u0301 = beta", "\x1b[0m = beta"]
)
def test_the_marked_text_is_what_the_span_holds(line: str) -> None:
    start = line.index("beta")
    span = Span("x.py", start, start + 4, 1, start + 1, 1, start + 5)
    (mark,) = parse(f"<!DOCTYPE html><title>x</title><body>{_excerpt(line, span)}").iter("mark")
    assert words_of(mark) == "beta" and mark.get("class") == "main"


def test_lines_have_their_numbers(report: Report, view: View) -> None:
    shown = Excerpts(view).of(report.findings[1].span, report.findings[1].related)
    tree = parse(f"<!DOCTYPE html><title>x</title><body>{shown}")
    lines = {words_of(line[0]): words_of(line[1]) for line in tree.iter("span") if line.get("class") == "line"}
    assert "value of kl_loss_coef" in lines["2"] and "sets use_kl_loss" in lines["6"]
    assert [words_of(mark) for mark in tree.iter("mark") if mark.get("class")] == [
        "actor_rollout_ref.actor.kl_loss_type=low_var_kl"
    ]


def test_an_excerpt_stands_in_the_page_once(report: Report, view: View) -> None:
    twice = replace(report, findings=(report.findings[1], replace(report.findings[1], message="again")), setups=())
    text = text_of(twice, view)
    assert text.count('<div class="source') == 1
    (link,) = re.findall(r'<a href="#(x\d+)">', text)
    assert f'id="{link}"' in text and f'data-sources="{link}"' in text


def test_a_file_that_has_gone_is_no_matter(report: Report) -> None:
    parse(text_of(report, View()))
    assert '<div class="source' not in text_of(report, View())


# --- which finding is about which set-up -----------------------------------------------------------------------------------------------


def test_findings_are_linked_with_their_setups(report: Report) -> None:
    about = links(report)
    told = [
        (report.findings[at].rule, [report.setups[i].path for i in setups]) for at, setups in enumerate(about.setups)
    ]
    assert told == [("KLA102", ["conf/ppo.yaml"]), ("KLA101", ["examples/run.sh"])]
    assert about.findings == {0: (0,), 1: (1,)}


def test_of_two_launches_in_a_file_the_one_with_the_evidence(report: Report) -> None:
    launch = report.setups[1]
    other = replace(launch, terms=(), span=replace(launch.span, start=9000, end=9001))
    about = links(replace(report, setups=(other, launch), findings=(report.findings[1],)))
    assert about.setups == [(1,)]


# --- accessibility that needs no browser ---------------------------------------------------------------------------------------------


def test_tables_and_drawings_have_names(report: Report, view: View) -> None:
    tree = parse(text_of(report, view))
    for table in tree.iter("table"):
        assert words_of(table.find("caption"))  # type: ignore[arg-type]
    assert all(cell.get("scope") in ("row", "col") for cell in tree.iter("th"))
    for name in ("svg", "{http://www.w3.org/2000/svg}svg"):
        for drawing in tree.iter(name):
            assert drawing.get("aria-label") or drawing.get("aria-hidden") == "true"
    landmarks = {str(e.tag) for e in tree.iter()} & {"header", "main", "form"}
    assert landmarks == {"header", "main", "form"}
    assert [e.get("aria-live") for e in tree.iter("output")] == ["polite"]


COLOURS = dict(re.findall(r"--([\w-]+): light-dark\(([^)]*)\)", asset("style.css")))
TEXT = [(ink, ground) for ink in ("ink", "soft", "link") for ground in ("page", "raised", "sunken", "faint-tint")]
TAGS = [(name, f"{name}-tint") for name in ("error", "warning", "note", "good")] + [
    ("ink", "mark"),
    ("ink", "error-tint"),
]
SHAPES = [("bar-error", "raised"), ("bar-warning", "raised"), ("bar-good", "raised"), ("focus", "page")]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "ground", "least"),
    [*((*p, 4.5) for p in TEXT + TAGS), *((*p, 2.6) for p in SHAPES[:2]), *((*p, 3.0) for p in SHAPES[2:])],
)
def test_contrast(theme: int, ink: str, ground: str, least: float) -> None:
    """WCAG 2.2: 4.5 for text.  Bars are told in words beside them."""
    lighter, darker = sorted((_luminance(COLOURS[name].split(", ")[theme]) for name in (ink, ground)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= least


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# --- size ----------------------------------------------------------------------------------------------------------------------------


def test_many_setups_stay_small(report: Report, view: View) -> None:
    """About 3 KB a set-up or finding, most of which a browser does not parse before it is wanted."""
    launch, finding = report.setups[1], report.findings[1]
    many = replace(
        report,
        setups=tuple(
            replace(launch, path=f"run{at}.sh", span=replace(launch.span, path=f"run{at}.sh")) for at in range(500)
        ),
        findings=tuple(replace(finding, span=replace(finding.span, path=f"run{at}.sh")) for at in range(500)),
    )
    text = text_of(many, view)
    outside = re.sub(r"<noscript>.*?</noscript>", "", text, flags=re.DOTALL)
    assert len(text) < 1000 * 3_600 + 60_000
    assert len(outside) < 1000 * 1_000 + 60_000


# --- the rules that were found ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("severities", [("note",), ("warning",), ("note", "warning"), ("warning", "error", "note")])
def test_a_rule_is_as_severe_as_its_findings(report: Report, view: View, severities: tuple[Severity, ...]) -> None:
    """Whatever its default: code judges some of them more severely than others, and so may the configuration."""
    found = [
        replace(report.findings[0], rule="KLA305", name="unstable-exponential", severity=each) for each in severities
    ]
    tree = parse(text_of(replace(report, findings=tuple(found)), view))
    (section,) = [e for e in tree.iter("section") if e.get("aria-labelledby") == "rules"]
    tags = [words_of(e) for e in section.iter("span") if (e.get("class") or "").startswith("tag ")]
    assert tags == sorted(severities, key=("error", "warning", "note").index)
