"""The file of known findings: one form, merged line by line; anything else is an error with its line."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaudit.gate.baseline_file import MAX_BYTES, BaselineError, Row, read, row_of, write
from klaudit.model import Finding, Fix, Span

SCHEMA = json.loads((Path(__file__).parents[2] / "rules" / "schema" / "baseline.json").read_text(encoding="utf-8"))
ROW = Row("a.sh", "KLA101", "0123456789abcdef0123", "k3 in the loss", 2)
HEAD = '{\n  "format": "klaudit-baseline/1",\n  "klaudit": "0.1.0",\n  "findings": [\n'
LINE = '    {"path": "a.sh", "rule": "KLA101", "fingerprint": "0123456789abcdef0123", "message": "k3", "count": 1}'
TAIL = "\n  ]\n}\n"


def test_the_form(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    write(str(file), [ROW, Row("a.sh", "KLA101", "0123456789abcdef0123", "another"), ROW])
    text = file.read_text(encoding="ascii")
    assert re.sub(r'"klaudit": "[^"]+"', '"klaudit": "V"', text) == (
        '{\n  "format": "klaudit-baseline/1",\n  "klaudit": "V",\n  "findings": [\n'
        '    {"path": "a.sh", "rule": "KLA101", "fingerprint": "0123456789abcdef0123", "message": "another", "count": 1},\n'
        '    {"path": "a.sh", "rule": "KLA101", "fingerprint": "0123456789abcdef0123", "message": "k3 in the loss", "count": 4}\n'
        "  ]\n}\n"
    )


TEXTS = st.text(min_size=1, max_size=20).filter(lambda text: not any("\ud800" <= each <= "\udfff" for each in text))
ROWS = st.builds(
    Row, TEXTS, st.from_regex(r"KLA[0-9]{3}", fullmatch=True), st.from_regex(r"[0-9a-f]{20}", fullmatch=True), TEXTS, st.integers(1, 9)
)  # fmt: skip


@given(st.lists(ROWS, max_size=6, unique_by=lambda row: (row.path, row.rule, row.fingerprint, row.message)))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    file = tmp_path_factory.mktemp("rows") / "b.json"
    write(str(file), rows)
    assert list(read(str(file))) == sorted(rows)
    text = file.read_text(encoding="ascii")
    jsonschema.validate(json.loads(text), SCHEMA)
    assert all(line.startswith("    {") for line in text.splitlines()[4 : 4 + len(rows)])


def test_the_schema_is_that_of_the_records() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
    from make_baseline_schema import as_text

    assert json.loads(as_text()) == SCHEMA, "run tools/make_baseline_schema.py"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


BROKEN: list[tuple[str | bytes, int | None, str]] = [
    ("", 1, "empty"),
    ("[]", None, "Expected `object`"),
    ("null", None, "Expected `object`"),
    ("{}", None, "missing required field `format`"),
    (HEAD.replace("line/1", "line/2") + LINE + TAIL, None, "Invalid enum value"),
    (HEAD + LINE + "," + TAIL, 5, "a comma before the closing"),
    (HEAD + LINE + "\n" + LINE + TAIL, 6, "not JSON"),
    (HEAD + LINE + ",\n" + LINE.replace('"count": 1', '"count": 0') + TAIL, 6, ">= 1"),
    (HEAD + LINE + ",\n" + LINE.replace('"count": 1', '"count": "1"') + TAIL, 6, "Expected `int`"),
    (HEAD + LINE + ",\n" + LINE.replace("KLA101", "k3-in-loss") + TAIL, 6, "matching regex"),
    (HEAD + LINE + ",\n" + LINE.replace("0123456789", "012345678X") + TAIL, 6, "matching regex"),
    (HEAD + LINE + ",\n" + LINE.replace('"a.sh"', '""') + TAIL, 6, "length"),
    (HEAD + LINE + ",\n" + LINE.replace('"count"', '"line"') + TAIL, 6, "unknown field `line`"),
    (HEAD + LINE + ",\n<<<<<<< HEAD\n" + LINE + TAIL, 6, "left over from a merge"),
    (HEAD + LINE + ",\n    7" + TAIL, 6, "Expected `object`"),
    ('{"findings": ' + "[" * 100_000, 1, "nest"),
    (b"\xff\xfe", 1, "UTF-8"),
    (HEAD.encode() + LINE.encode().replace(b"k3", b"\xff") + TAIL.encode(), 5, "UTF-8"),
    (HEAD + LINE + TAIL + "x", 8, "more text"),
    (HEAD + LINE.replace('"k3"', '"\\ud800"') + TAIL, None, "surrogate"),
]


@pytest.mark.parametrize(("content", "line", "message"), BROKEN)
def test_a_broken_file_is_an_error_with_its_line(
    tmp_path: Path, content: str | bytes, line: int | None, message: str
) -> None:
    file = tmp_path / "b.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BaselineError, match=message) as caught:
        read(str(file))
    text = str(caught.value)
    assert text.startswith(f"{file}:{line}: " if line else f"{file}") and len(text) < 500
    assert "\n" not in text


def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none", "/dev/zero", str(tmp_path / "a\0b")):
        with pytest.raises(BaselineError):
            read(str(path))


def test_a_file_that_is_too_large_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    with file.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    with pytest.raises(BaselineError, match="larger than 20 MB"):
        read(str(file))


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "real.json"
    write(str(file), [])
    assert read(str(file)) == ()
    file.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    write(str(link), [ROW])
    assert link.is_symlink() and read(str(file)) == (ROW,)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "real.json"]


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="cannot be written"):
        write(str(tmp_path / "no" / "b.json"), [ROW])


def test_messages_and_names_are_made_fit_for_the_file() -> None:
    place = Span(os.fsdecode(b"d/../\xff.sh"), 0, 1, 1, 1, 1, 2)
    finding = Finding(
        "KLA208",
        "x",
        "note",
        "high",
        place,
        "given again on line 17\nmore" + "x" * 1000,
        "",
        Fix("none", ""),
        identity="0" * 20,
    )
    row = row_of(finding, "./a/")
    assert row == Row("a/\ufffd.sh", "KLA208", "0" * 20, "given again on another line")
    assert (
        len(row_of(Finding("KLA208", "x", "note", "high", place, "x" * 1000, "", Fix("none", "")), "").message) == 300
    )
