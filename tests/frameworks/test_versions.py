"""Version ranges: the plain order of PEP 440, unlike the specifiers of `packaging`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from klaudit.frameworks.versions import EVERY_VERSION, VersionRange, parse_version

_numbers = st.integers(min_value=0, max_value=3)
_suffixes = st.sampled_from(["", ".dev0", "a1", "rc1", ".post1", ".post1.dev2", "+local.1"])
versions = st.builds(lambda a, b, c, suffix: f"{a}.{b}.{c}{suffix}", _numbers, _numbers, _numbers, _suffixes)


@pytest.mark.parametrize(
    ("version", "text", "inside"),
    [
        ("0.8.0.dev0", "<0.8.0", True),  # a specifier leaves pre-releases of its bound out
        ("0.8.0.dev0", ">=0.8.0", False),
        ("0.8.0rc1", "<0.8.0", True),
        ("0.3.0.post1", ">0.3.0", True),  # a specifier leaves post-releases of its bound out
        ("0.3.0.post1", "<=0.3.0", False),
        ("0.3.0.post1", ">=0.2,<0.4.0", True),
        ("0.2.0", "==0.2", True),
        ("0.2", ">=0.2.dev0,<0.2", False),
        ("0.2.dev0", ">=0.2.dev0, <0.2", True),
        ("0.4.1", "!=0.4.1", False),
        ("0.4.1", "", True),
        ("1!0.1", ">9", True),
    ],
)
def test_ranges_follow_the_order_of_versions(version: str, text: str, inside: bool) -> None:
    assert (parse_version(version) in VersionRange.parse(text)) is inside


@given(versions, versions)
def test_a_bound_splits_all_versions_in_two(version: str, bound: str) -> None:
    here = Version(version)
    assert (here in VersionRange.parse(f"<{bound}")) != (here in VersionRange.parse(f">={bound}"))
    assert (here in VersionRange.parse(f"<={bound}")) != (here in VersionRange.parse(f">{bound}"))
    assert (here in VersionRange.parse(f"=={bound}")) != (here in VersionRange.parse(f"!={bound}"))


@given(versions, versions, versions)
def test_all_bounds_must_hold(version: str, low: str, high: str) -> None:
    here = Version(version)
    both = here in VersionRange.parse(f">={low},<{high}")
    assert both == (here in VersionRange.parse(f">={low}") and here in VersionRange.parse(f"<{high}"))


@given(versions)
def test_the_empty_range_holds_every_version(version: str) -> None:
    assert Version(version) in EVERY_VERSION


@pytest.mark.parametrize("text", ["0.4.0", "~=0.4", ">=", ">=x", "=> 1.0", "<0.2;>0.1", ">=0.4.*"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ersion"):
        VersionRange.parse(text)


def test_what_is_no_version_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid version: 'latest'"):
        parse_version("latest")
