"""What is said of versions that nobody released."""

from __future__ import annotations

from klaudit.frameworks.detect import beyond_releases
from klaudit.frameworks.load import load_frameworks


def test_versions_beyond_all_releases_are_remarked_on() -> None:
    given = {"verl": "77", "trl": "0.1.0", "openrlhf": "0.8.0"}
    older, newer = beyond_releases(load_frameworks(()), given)
    assert "trl 0.1.0 is older than" in older and "verl 77 is newer than" in newer
