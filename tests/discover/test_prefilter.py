"""The byte funnel lets through exactly the files in which a keyword occurs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.discover import Prefilter

_LETTERS = st.sampled_from([b"k", b"l", b"_", b"e", b"K", b"z", b".", b"\xff", b"\n"])
_BYTES = st.lists(_LETTERS, max_size=8).map(b"".join)


@settings(max_examples=300, deadline=None)
@given(keywords=st.frozensets(_BYTES, max_size=6), data=st.lists(_BYTES, max_size=4).map(b"".join))
def test_it_is_the_plain_search(keywords: frozenset[bytes], data: bytes) -> None:
    plain = any(keyword.lower() in data.lower() for keyword in keywords) or not keywords
    assert Prefilter(keywords).may_matter(data) == plain


_SYLLABLES = st.lists(
    st.sampled_from([b"kl", b"k", b"_loss", b"loss", b"grpo", b".", b"-", b"main"]), min_size=1, max_size=4
)
_WORDS = st.frozensets(_SYLLABLES.map(b"".join), min_size=1, max_size=12)


@settings(max_examples=300, deadline=None)
@given(keywords=_WORDS, data=_SYLLABLES.map(b"".join))
def test_it_is_the_plain_search_among_words_that_share_their_parts(keywords: frozenset[bytes], data: bytes) -> None:
    assert Prefilter(keywords).may_matter(data) == any(keyword in data for keyword in keywords)


@given(data=st.binary(max_size=50))
def test_it_is_the_plain_search_in_any_bytes(data: bytes) -> None:
    keywords = frozenset((b"kl_loss", b"beta", b"\x00\xff"))
    assert Prefilter(keywords).may_matter(data) == any(keyword in data.lower() for keyword in keywords)


def test_case_does_not_matter() -> None:
    assert Prefilter([b"GRPOConfig"]).may_matter(b"from trl import grpoconfig")
    assert Prefilter([b"grpoconfig"]).may_matter(b"from trl import GRPOConfig")


def test_without_keywords_everything_passes() -> None:
    assert Prefilter([]).may_matter(b"")
