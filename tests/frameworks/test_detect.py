"""Which version a tree has, and what is said of versions that nobody released."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.frameworks.detect import Detector, beyond_releases
from klaudit.frameworks.load import load_frameworks
from klaudit.tree import Tree


def test_versions_beyond_all_releases_are_remarked_on() -> None:
    given = {"verl": "77", "trl": "0.1.0", "openrlhf": "0.8.0"}
    older, newer = beyond_releases(load_frameworks(()), given)
    assert "trl 0.1.0 is older than" in older and "verl 77 is newer than" in newer


@pytest.mark.parametrize(
    ("framework", "path", "text", "version"),
    [
        ("llama-factory", "src/llamafactory/extras/env.py", 'import sys\n\nVERSION = "{}"\n', "0.9.3"),
        ("llama-factory", "src/llamafactory/extras/env.py", 'VERSION = "{}"\n', "0.9.1"),
        ("ms-swift", "swift/version.py", "__version__ = '{}'\n", "3.6.0"),
        ("verl", "verl/version/version", "{}\n", "0.5.0"),
    ],
)
def test_the_source_in_the_tree_says_its_version(
    tmp_path: Path, framework: str, path: str, text: str, version: str
) -> None:
    (each,) = (each for each in load_frameworks(()) if each.id == framework)
    for marker in (*each.vendored.markers, path):
        (tmp_path / marker).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / marker).write_text(text.format(version) if marker == path else "", encoding="utf-8")
    tree = Tree(tmp_path)
    found = Detector(tree, [*each.vendored.markers, path], {}).version(each, "run.sh")
    assert (found.value, found.source) == (version, "vendored")
