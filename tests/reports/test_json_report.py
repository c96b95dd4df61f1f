"""The report for programs: follows its schema, whatever stands in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from klaudit import __version__, model
from klaudit.model import (
    Edit,
    Evidence,
    Finding,
    Fix,
    FrameworkVersion,
    Problem,
    Report,
    Setup,
    Span,
    Term,
    Unknown,
    Withheld,
)
from klaudit.reports import View
from klaudit.reports.json import render, render_setups

SCHEMA = json.loads((Path(__file__).parents[2] / "rules" / "schema" / "report.json").read_text(encoding="utf-8"))


def parsed(report: Report) -> Any:
    text = "".join(render(report, View()))
    assert text.isascii()
    assert not set(text) & {chr(code) for code in range(32)} - {"\n"}
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@pytest.fixture(scope="module")
def validate() -> Callable[[Any], None]:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return validator.validate


def test_the_whole_report(
    report: Report, expected: Callable[[str, str], None], validate: Callable[[Any], None]
) -> None:
    expected(
        "report.json", "".join(render(report, View())).replace(f'"klaudit": "{__version__}"', '"klaudit": "VERSION"')
    )
    validate(parsed(report))


def test_an_empty_report(empty_report: Report, validate: Callable[[Any], None]) -> None:
    validate(parsed(empty_report))
    assert parsed(empty_report)["setups"] == []


def test_what_the_gate_took_out_and_says(gated: Report, validate: Callable[[Any], None]) -> None:
    document = parsed(gated)
    validate(document)
    assert document["summary"]["findings"] == 1
    assert document["summary"]["withheld"] == {"suppression": 2, "baseline": 1}
    first, _, third = document["withheld"]
    assert (first["by"], first["reason"], first["path"], first["line"]) == (
        "suppression", "ablation of table 3", "conf/ppo.yaml", 3,
    )  # fmt: skip
    assert first["finding"]["rule"] == "KLA102"
    assert (third["by"], third["reason"]) == ("baseline", "")
    assert document["remarks"] == ["1 entry of the baseline is stale"]


def test_nothing_that_is_quoted_is_a_command(nasty_report: Report, validate: Callable[[Any], None]) -> None:
    document = parsed(nasty_report)
    validate(document)
    assert "##" not in "".join(render(nasty_report, View()))


def test_setups_alone(report: Report, validate: Callable[[Any], None]) -> None:
    document = json.loads("".join(render_setups(report)))
    validate(document)
    assert document["format"] == "klaudit-setups/1"
    assert document["setups"] == parsed(report)["setups"]


def test_what_cannot_be_known_is_null_and_says_on_what_it_hangs(report: Report) -> None:
    (term,) = parsed(report)["setups"][0]["terms"]
    assert (term["coefficient"], term["active"]) == (None, None)
    (evidence,) = term["evidence"]
    assert (evidence["value"], evidence["unknown"]) == (None, ["COEF"])


def test_rows_stand_on_lines_of_their_own(report: Report) -> None:
    text = "".join(render(report, View()))
    rows = [line.strip().rstrip(",") for line in text.splitlines() if line.startswith("    {")]
    assert len([json.loads(row) for row in rows]) == len(report.setups) + len(report.findings) + len(report.errors)


def test_it_comes_in_pieces(report: Report) -> None:
    many = replace(report, setups=report.setups * 1000)
    assert max(map(len, render(many, View()))) < 5_000


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        10**5000,
        -(10**30),
        "\ud800",
        "\x00\x1b[31m\u202e",
        b"\xff".decode(errors="surrogateescape"),
        {"a": [float("nan"), {"b": Unknown(("X",))}]},
        "x" * 1_000_000,
        [0] * 100_000,
        1e-300,
        -0.0,
        None,
        True,
        "",
        {"": ""},
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_can_be_written(report: Report, validate: Callable[[Any], None], value: Any) -> None:
    evidence = Evidence("s", value, "file", "p", 1)
    term = replace(report.setups[0].terms[0], evidence=(evidence,))
    document = parsed(replace(report, setups=(replace(report.setups[0], terms=(term,)),)))
    validate(document)
    assert len(json.dumps(document)) < 20_000


def test_deep_values_do_not_recurse_without_end(report: Report, validate: Callable[[Any], None]) -> None:
    deep: Any = "x"
    for _ in range(50_000):
        deep = [deep]
    term = replace(report.setups[0].terms[0], evidence=(Evidence("s", deep, "file", "p", 1),))
    validate(parsed(replace(report, setups=(replace(report.setups[0], terms=(term,)),))))


@pytest.mark.parametrize("coefficient", [float("nan"), float("inf"), -float("inf")])
def test_a_coefficient_that_is_no_number_is_null(report: Report, coefficient: float) -> None:
    term = replace(report.setups[0].terms[0], coefficient=coefficient)
    document = parsed(replace(report, setups=(replace(report.setups[0], terms=(term,)),)))
    assert document["setups"][0]["terms"][0]["coefficient"] is None


def test_edits_are_never_cut(report: Report) -> None:
    edit = Edit("p", 0, 1, "x" * 1_000_000)
    finding = replace(report.findings[0], fix=Fix("safe", "t", (edit,)))
    (row,) = parsed(replace(report, findings=(finding,)))["findings"]
    assert row["fix"]["edits"] == [{"path": "p", "start": 0, "end": 1, "replacement": edit.replacement}]


@pytest.mark.parametrize(
    ("record", "elsewhere", "row"),
    [
        (Setup, {"span": {"line", "column", "cell"}, "version": {"framework_version"}}, "setup"),
        (Term, {}, "term"),
        (Evidence, {"span": set()}, "evidence"),
        (
            Finding,
            {"span": {"path", "line", "column", "end_line", "end_column", "cell"}, "launch": set(), "identity": set()},
            "finding",
        ),
        (Withheld, {}, "withheld"),
        (Problem, {}, "error"),
        (Edit, {}, "edit"),
        (FrameworkVersion, {}, None),
    ],
)
def test_every_field_of_the_model_is_in_the_schema(
    record: type, elsewhere: dict[str, set[str]], row: str | None
) -> None:
    rows = SCHEMA["$defs"]
    properties = set(rows[row]["properties"] if row else rows["setup"]["properties"]["framework_version"]["properties"])
    names = {field.name for field in fields(record)}
    stated = {name for field in names for name in elsewhere.get(field, {field})}
    assert stated == properties - {"unknown"}


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (model.EstimatorName, ("term", "estimator")),
        (model.Placement, ("term", "placement")),
        (model.Gradient, ("term", "gradient")),
        (model.Verdict, ("verdict",)),
        (model.Origin, ("evidence", "origin")),
        (model.Severity, ("finding", "severity")),
        (model.Confidence, ("finding", "confidence")),
        (model.SetupKind, ("setup", "kind")),
        (model.WithheldBy, ("withheld_by",)),
    ],
)
def test_vocabularies_are_those_of_the_model(words: Any, path: tuple[str, ...]) -> None:
    stated = SCHEMA["$defs"][path[0]]
    for key in path[1:]:
        stated = stated["properties"][key]
    assert tuple(stated["enum"]) == get_args(words)


_TEXT = st.text(max_size=6) | st.sampled_from(["\x1b[0m", "\ud800", "\u202e"])
_VALUE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT | st.builds(Unknown, st.tuples(_TEXT)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(text=_TEXT, value=_VALUE, number=st.none() | st.floats())
def test_any_report_follows_the_schema(
    validate: Callable[[Any], None], text: str, value: Any, number: float | None
) -> None:
    path = text or "p"
    place = Span(path, 0, 1, 1, 1, 1, 2)
    evidence = Evidence(text, value, "default", None, None, None, text)
    term = Term("loss", "k3", "pathwise", number, None, text, "unknown", (evidence,), None, text, (text,))
    version = FrameworkVersion(text, "assumed", text)
    setup = Setup(path, place, "code", text, version, text, text, text, (text,), text, "unknown", (term,))
    finding = Finding(
        "KLA101",
        "a-b",
        "note",
        "low",
        place,
        path,
        text,
        Fix("none", text, (Edit(path, 0, 0, text),)),
        text,
        (evidence,),
    )
    validate(parsed(Report((setup,), (finding,), (Problem(path, None, path),), 1, 1, 0.1, {"KLA101": 1})))
