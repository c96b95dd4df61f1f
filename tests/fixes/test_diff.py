"""Patches are what git takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaudit.fixes.diff import unified

LINES = st.lists(st.binary(max_size=6).map(lambda data: data.replace(b"\n", b"").replace(b"\0", b"")), max_size=8)
NAMES = st.sampled_from(["a.sh", "a b.sh", "sub/ü.yaml", 'quo"te.sh', "tab\there.sh"])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, LINES, NAMES, st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.booleans())
def test_git_applies_it(
    tmp_path: Path, old: list[bytes], new: list[bytes], name: str, line_end: bytes, old_ends: bool, new_ends: bool
) -> None:
    before = b"first" + line_end + line_end.join(old) + (line_end if old_ends else b"")
    after = b"first" + line_end + line_end.join(new) + (line_end if new_ends else b"")
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before)
    patch = "".join(unified(name, before, after)).encode("utf-8", "surrogateescape")
    assert bool(patch) == (before != after)
    if patch:
        subprocess.run(
            ["git", "-c", "core.autocrlf=false", "apply", "-"],
            input=patch,
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    assert file.read_bytes() == after
