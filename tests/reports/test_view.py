"""Where something stands, as people are told."""

from __future__ import annotations

import pytest

from klaudit.reports import View


@pytest.mark.parametrize(
    ("prefix", "inside", "path", "shown"),
    [
        ("", "", "a/run.sh", "a/run.sh"),
        ("../tree/", "", "a/run.sh", "../tree/a/run.sh"),
        ("../../", "a/b", "a/b/run.sh", "run.sh"),
        ("../../", "a/b", "a/run.sh", "../run.sh"),
        ("../../", "a/b", "c/run.sh", "../../c/run.sh"),
        ("/r/", "a/b", "c/run.sh", "../../c/run.sh"),
        ("../../", "a/b", "/none", "/none"),
        ("../tree/", "", "/none", "/none"),
    ],
)
def test_a_path_is_shown_as_seen_from_the_working_directory(prefix: str, inside: str, path: str, shown: str) -> None:
    assert View(prefix=prefix, inside=inside).path(path) == shown
    assert View(prefix=prefix, inside=inside).place(path, 3, 5, 0) == f"{shown}:3:5 (cell 1)"
