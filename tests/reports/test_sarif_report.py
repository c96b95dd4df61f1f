"""SARIF: follows the standard's schema and what code scanning asks for, whatever stands in the report."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from klaudit.findings import catalogue
from klaudit.model import Edit, Evidence, Finding, Fix, Problem, Report, Span
from klaudit.readers.source import Source
from klaudit.reports import View, sarif

SCHEMA = json.loads((Path(__file__).parent / "standards" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
Validate = Callable[[Any], None]


@pytest.fixture(scope="module")
def validate() -> Validate:
    checker = jsonschema.FormatChecker()
    assert {"uri", "uri-reference"} <= checker.checkers.keys(), "needs rfc3986-validator"
    return jsonschema.Draft4Validator(SCHEMA, format_checker=checker).validate


def log(report: Report, view: View) -> Any:
    text = "".join(sarif.render(report, view))
    assert text.isascii() and "##" not in text and not set(text) & {chr(code) for code in range(32)} - {"\n"}
    return json.loads(text)


def run_of(report: Report, view: View) -> Any:
    (run,) = log(report, view)["runs"]
    return run


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


# --- the standard and code scanning --------------------------------------------------------------------------------------------------


def test_it_follows_the_schema(
    report: Report, empty_report: Report, gated: Report, view: View, validate: Validate
) -> None:
    for each in (report, empty_report, gated):
        for shown in (view, View(), replace(view, verbose=True)):
            validate(log(each, shown))


def test_it_follows_the_schema_whatever_it_quotes(nasty_report: Report, nasty_view: View, validate: Validate) -> None:
    validate(log(nasty_report, nasty_view))
    assert_all_that_code_scanning_requires(log(nasty_report, nasty_view))


def test_it_has_all_that_code_scanning_requires(report: Report, view: View) -> None:
    assert_all_that_code_scanning_requires(log(report, view))


def assert_all_that_code_scanning_requires(document: Any) -> None:
    """docs.github.com, SARIF support for code scanning; an empty text counts as none there."""
    assert document["$schema"].endswith("sarif-schema-2.1.0.json") and document["version"] == "2.1.0"
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "klaudit" and driver["semanticVersion"]
    for rule in driver["rules"]:
        assert rule["id"] and 0 < len(rule["name"]) <= 255
        assert 0 < len(rule["shortDescription"]["text"]) <= 1024
        assert 0 < len(rule["fullDescription"]["text"]) <= 1024
        assert rule["help"]["text"] and rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] in ("note", "warning", "error")
        assert len(rule["properties"]["tags"]) <= 20
        assert rule["properties"]["precision"] in ("very-high", "high", "medium", "low")
        assert rule["properties"]["problem.severity"] in ("error", "warning", "recommendation")
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"] and result["level"] in ("note", "warning", "error")
        assert result["partialFingerprints"]
        (location,) = result["locations"]
        assert_a_place(location["physicalLocation"])
        for related in result.get("relatedLocations", ()):
            assert_a_place(related["physicalLocation"])
            assert f"]({related['id']})" in result["message"]["text"]


def assert_a_place(place: Any) -> None:
    name = place["artifactLocation"]["uri"]
    assert name and not name.startswith(("/", "file:", "..")) and "://" not in name and "\\" not in name
    assert place["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    region = place["region"]
    assert region["startLine"] >= 1 and region.get("startColumn", 1) >= 1
    if "endLine" in region:
        assert region["endLine"] == region["startLine"] and region["endColumn"] >= region["startColumn"]


def test_every_rule_of_the_catalogue_is_described(empty_report: Report, view: View) -> None:
    rules = run_of(empty_report, view)["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [entry.id for entry in catalogue.load()]
    for rule, entry in zip(rules, catalogue.load(), strict=True):
        assert entry.fix in rule["help"]["markdown"]
        assert all(example.right.strip() in rule["help"]["markdown"] for example in entry.examples)


def test_a_rule_that_the_catalogue_lacks_is_described_by_its_finding(
    report: Report, view: View, validate: Validate
) -> None:
    odd = replace(report.findings[0], rule="KLA999", name="of-a-policy", why="not what the policy requires")
    document = log(replace(report, findings=(odd,)), view)
    validate(document)
    assert_all_that_code_scanning_requires(document)
    assert document["runs"][0]["tool"]["driver"]["rules"][-1]["id"] == "KLA999"


# --- results -------------------------------------------------------------------------------------------------------------------------


def test_the_most_severe_come_first(report: Report, view: View) -> None:
    reverse = replace(report, findings=report.findings[::-1])
    assert [row["level"] for row in run_of(reverse, view)["results"]] == ["error", "warning"]


def test_places_and_provenance(report: Report, view: View) -> None:
    _, loss = run_of(report, replace(view, repository_prefix="train ing/"))["results"]
    (place,) = loss["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "train%20ing/examples/run.sh"
    assert place["physicalLocation"]["region"] == {"startLine": 8, "startColumn": 5, "endLine": 8, "endColumn": 52}
    assert [row["message"]["text"] for row in loss["relatedLocations"]] == [
        "actor_rollout_ref.actor.use_kl_loss = true",
        "actor_rollout_ref.actor.kl_loss_coef = 0.001",
    ]
    assert loss["message"]["text"].endswith("See [run.sh:6](1), [run.sh:2](2).")
    assert "To mend it: set algorithm.use_kl_in_reward=True" in loss["message"]["text"]


def test_the_cell_of_a_notebook_is_named(report: Report, view: View) -> None:
    where = Source("train.ipynb", b'{"beta": 1}', cell=4).span(1, 7)
    (row,) = run_of(replace(report, findings=(replace(report.findings[0], span=where),)), view)["results"]
    assert row["locations"][0]["logicalLocations"] == [{"name": "cell 5", "kind": "module"}]


def test_fingerprints(report: Report, view: View) -> None:
    reward, _ = run_of(report, view)["results"]
    assert reward["partialFingerprints"]["klaudit/v1"] == "abc"
    assert reward["partialFingerprints"]["primaryLocationLineHash"].endswith(":1")
    reward, _ = run_of(report, View())["results"]
    assert reward["partialFingerprints"] == {"klaudit/v1": "abc"}  # of a file that is gone no line is known


@pytest.mark.parametrize(
    "quoted",
    ["[click](https://evil.example)", "a[0](1)", "[](2)", "[[x]](1)", "\\[x](1)", "[x](javascript:alert(1))"],
)
def test_no_link_comes_out_of_a_file(report: Report, view: View, quoted: str) -> None:
    finding = replace(
        report.findings[1],
        message=quoted,
        fix=Fix("safe", quoted, report.findings[0].fix.edits),
        related=(Evidence(quoted, quoted, "file", "conf/ppo.yaml", 2, None, quoted),),
    )
    (row,) = run_of(replace(report, findings=(finding,)), view)["results"]
    links = [text for text in texts(row) if "](" in text]
    assert links == [row["message"]["text"]] and links[0].count("](") == 1
    assert links[0].endswith("See [ppo.yaml:2](1).")


def test_evidence_that_lies_outside_is_not_pointed_at(report: Report, view: View) -> None:
    related = (Evidence("a", 1, "file", "../x.yaml", 1), Evidence("b", 1, "file", "/etc/x.yaml", 1))
    (row,) = run_of(replace(report, findings=(replace(report.findings[0], related=related),)), view)["results"]
    assert "relatedLocations" not in row


def test_suppressed_findings_are_results_only_when_asked(gated: Report, view: View, validate: Validate) -> None:
    assert len(run_of(gated, view)["results"]) == 1
    run = run_of(gated, replace(view, verbose=True))
    _, first, second = run["results"]
    assert first["suppressions"] == [
        {
            "kind": "inSource",
            "justification": "ablation of table 3",
            "location": {
                "physicalLocation": {
                    "artifactLocation": {"uri": "conf/ppo.yaml", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 3},
                }
            },
        }
    ]
    assert second["suppressions"] == [{"kind": "inSource"}]


# --- fixes ---------------------------------------------------------------------------------------------------------------------------


def test_a_fix_is_told(report: Report, view: View) -> None:
    reward, loss = run_of(report, view)["results"]
    (change,) = reward["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "conf/ppo.yaml"
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 3, "startColumn": 15, "endLine": 3, "endColumn": 25},
            "insertedContent": {"text": "kl"},
        }
    ]
    assert "fixes" not in loss


def replaced(text: str, replacements: list[Any]) -> str:
    """As an editor does it: lines and columns, in UTF-16 code units, of a text whose byte order mark is gone."""
    lines = [line.encode("utf-16-le") for line in text.split("\n")]
    starts = [sum(len(line) + 2 for line in lines[:at]) for at in range(len(lines))]
    data = text.encode("utf-16-le")
    for each in reversed(replacements):
        place = each["deletedRegion"]
        start = starts[place["startLine"] - 1] + 2 * (place["startColumn"] - 1)
        end = starts[place["endLine"] - 1] + 2 * (place["endColumn"] - 1)
        data = data[:start] + each["insertedContent"]["text"].encode("utf-16-le") + data[end:]
    return data.decode("utf-16-le")


@settings(max_examples=80, deadline=None)
@given(
    st.text(st.sampled_from("ab\r\n\té\U0001f600"), max_size=12),
    st.lists(st.integers(0, 12), min_size=2, max_size=4),
    st.booleans(),
)
def test_a_fix_gives_what_its_bytes_give(text: str, cuts: list[int], has_mark: bool) -> None:
    mark = "\ufeff" if has_mark else ""
    data = (mark + text).encode()
    offsets = sorted({len((mark + text[:cut]).encode()) for cut in cuts})
    edits = tuple(Edit("f", a, b, "N\U0001d518\n") for a, b in zip(offsets[::2], offsets[1::2], strict=False))
    expected = data
    for edit in reversed(edits):
        expected = expected[: edit.start] + edit.replacement.encode() + expected[edit.end :]
    finding = Finding(
        "KLA101", "k3-in-loss", "note", "high", Span("f", 0, 0, 1, 1, 1, 1), "m", "w", Fix("safe", "t", edits)
    )
    report = Report((), (finding,), (), 1, 1, 0.0)
    (row,) = run_of(report, View(source=lambda path: Source(path, data)))["results"]
    changes = row["fixes"][0]["artifactChanges"] if edits else []
    replacements = changes[0]["replacements"] if changes else []
    assert replaced(text, replacements) == expected.decode().removeprefix("\ufeff")


def test_of_a_file_that_is_gone_bytes_are_told(report: Report, validate: Validate) -> None:
    document = log(report, View())
    validate(document)
    (change,) = document["runs"][0]["results"][0]["fixes"][0]["artifactChanges"]
    assert set(change["replacements"][0]["deletedRegion"]) == {"byteOffset", "byteLength"}


def test_half_a_fix_is_none(report: Report, view: View) -> None:
    edits = (*report.findings[0].fix.edits, Edit("../outside.yaml", 0, 1, "x"))
    finding = replace(report.findings[0], fix=Fix("safe", "t", edits))
    (row,) = run_of(replace(report, findings=(finding,)), view)["results"]
    assert "fixes" not in row


# --- the run -------------------------------------------------------------------------------------------------------------------------


def test_what_could_not_be_read_is_an_error_of_the_run(report: Report, empty_report: Report, view: View) -> None:
    (invocation,) = run_of(report, view)["invocations"]
    assert invocation["executionSuccessful"] is False
    first, _ = invocation["toolExecutionNotifications"]
    assert first["level"] == "error" and first["message"]["text"].startswith("broken.yaml: found a tab")
    (place,) = first["locations"]
    assert place["physicalLocation"]["region"] == {"startLine": 3}
    assert run_of(empty_report, view)["invocations"] == [
        {"executionSuccessful": True, "toolExecutionNotifications": []}
    ]


def test_a_path_that_does_not_exist_has_no_place(empty_report: Report, view: View, validate: Validate) -> None:
    document = log(
        replace(empty_report, errors=(Problem("../absent", None, "no such file"), Problem('""', None, "x"))), view
    )
    validate(document)
    for each in document["runs"][0]["invocations"][0]["toolExecutionNotifications"]:
        assert "locations" not in each


def test_remarks_and_counts_of_the_gate_are_notes(gated: Report, view: View) -> None:
    (invocation,) = run_of(gated, view)["invocations"]
    notes = [row["message"]["text"] for row in invocation["toolExecutionNotifications"] if row["level"] == "note"]
    assert notes == ["1 entry of the baseline is stale", "3 findings withheld (2 suppressed, 1 in the baseline)"]


def test_no_place_of_this_machine_is_told(report: Report, view: View) -> None:
    bases = run_of(report, view)["originalUriBaseIds"]
    assert list(bases) == ["%SRCROOT%"] and "uri" not in bases["%SRCROOT%"]


# --- limits --------------------------------------------------------------------------------------------------------------------------


def left_out(run: Any) -> list[str]:
    notifications = run["invocations"][0]["toolExecutionNotifications"]
    return [row["message"]["text"] for row in notifications if row["descriptor"]["id"] == "left-out"]


def test_more_results_than_are_taken_are_cut_from_the_least_severe(
    report: Report, view: View, validate: Validate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 7)
    error, warning = report.findings
    document = log(replace(report, findings=(warning,) * 10 + (error,) * 5), view)
    validate(document)
    (run,) = document["runs"]
    assert [row["level"] for row in run["results"]] == ["error"] * 5 + ["warning"] * 2
    assert left_out(run)[0].startswith("8 further findings")
    assert left_out(run_of(replace(report, findings=(error,) * 7), view)) == []


def test_a_report_too_large_for_an_upload_is_cut(
    report: Report, view: View, validate: Validate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sarif, "MOST_BYTES", 1_000_000)
    noise = random.Random(1)
    rows = [replace(report.findings[1], message=noise.randbytes(1_900).hex(), fingerprint=str(n)) for n in range(700)]
    text = "".join(sarif.render(replace(report, findings=tuple(rows)), view))
    document = json.loads(text)
    kept = len(document["runs"][0]["results"])
    assert 500_000 < len(gzip.compress(text.encode(), 6)) < sarif.MOST_BYTES
    assert left_out(document["runs"][0])[0].startswith(f"{700 - kept:,} further findings")
    validate({**document, "runs": [{**document["runs"][0], "results": []}]})


def test_rules_link_to_their_pages_once_there_are_any(
    empty_report: Report, view: View, validate: Validate, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all("helpUri" not in rule for rule in run_of(empty_report, view)["tool"]["driver"]["rules"])
    monkeypatch.setattr("klaudit.reports.links.DOCUMENTATION", "https://docs.example/")
    document = log(empty_report, view)
    validate(document)
    uris = [rule["helpUri"] for rule in document["runs"][0]["tool"]["driver"]["rules"]]
    assert "https://docs.example/rules/KLA101.html" in uris and len(set(uris)) == len(uris)
