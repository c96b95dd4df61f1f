"""The hashes of lines against those of the program that GitHub compares them with."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from klaudit.reports.line_hashes import line_hashes

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "standards" / "line_hashes.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"])
def test_hashes_are_those_of_the_upload_action(row: dict[str, Any]) -> None:
    data = base64.b64decode(row["base64"])
    assert line_hashes(data, range(1, 10_000), 10_000) == {int(line): value for line, value in row["hashes"].items()}


def test_only_the_wanted_lines_are_given_but_all_before_are_counted() -> None:
    data = b"same\n" * 200
    every = line_hashes(data, range(1, 300), 300)
    assert line_hashes(data, {7, 90}, 90) == {7: every[7], 90: every[90]}
    assert every[90].endswith(":90")


def test_lines_that_are_not_there_have_none() -> None:
    assert line_hashes(b"a\n", {3, 99}, 99) == {}


@pytest.mark.parametrize("data", [b"\xff\n", b"a\n\xed\xa0\x80", b"\xe5"])
def test_what_is_not_utf_8_has_none(data: bytes) -> None:
    assert line_hashes(data, {1}, 1) == {}


def test_a_file_of_one_long_line_takes_no_time() -> None:
    assert line_hashes(b"x" * 20_000_000, {1}, 1).keys() == {1}


def test_moved_lines_keep_theirs() -> None:
    script = b"python3 -m train \\\n    kl=0.1 \\\n    type=k3\n" + b"# end\n" * 40
    before = line_hashes(script, {3}, 3)[3]
    after = line_hashes(b"#!/bin/bash\n\n# new\n" + script, {6}, 6)[6]
    assert before == after
