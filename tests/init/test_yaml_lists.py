"""One more item in a list of a YAML file: it is there, and nothing else has changed by a byte."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from klaudit.init.yaml_lists import CannotAppendError, append

ITEM = "- repo: local\n  hooks:\n    - id: klaudit\n"
HOOK = {"repo": "local", "hooks": [{"id": "klaudit"}]}
FILES = {
    "indented": "repos:\n  - repo: a # why\n    hooks: [{id: x}]\n",
    "flush": "# head\nrepos:\n- repo: a\n  hooks:\n  - id: x   # spaces\n# tail\nci:\n  skip: [x]\n",
    "no line end": "repos:\n- repo: a",
    "windows": "repos:\r\n  - repo: a\r\nfail_fast: true\r\n",
    "empty list": "fail_fast: true\nrepos: []  # none yet\nci: {}\n",
    "absent": "fail_fast: true",
    "empty file": "",
    "only comments": "# nothing\n",
    "block scalar at the end": "repos:\n- repo: local\n  hooks:\n  - id: x\n    entry: |\n      one\n\n      two\n\nci: {}\n",
    "byte order mark": "\ufeffrepos:\n- repo: ä\n",
    "document marks": "---\nrepos:\n- repo: a\n",
    "anchors": "x: &x {id: a}\nrepos:\n- repo: a\n  hooks: [*x]\n",
}
REFUSED = {
    "repos: {a: 1}\n": "not a list",
    "repos:\n": "is empty",
    "repos: [{repo: a}]\n": "on one line",
    "- repo: a\n": "not one mapping",
    "repos: []\n---\nrepos: []\n": "not one mapping",
    "repos: [\n": "",
    "a: &a [{repo: x}]\nrepos: *a\n": "",
    "repos: &a\n- x\nmore: *a\n": "unusual",
    "repos:\n- x\n...\n# after the end\n": "",
}


@pytest.mark.parametrize("name", FILES)
def test_the_item_is_added_and_the_rest_kept(name: str) -> None:
    before = FILES[name].encode()
    after = append("x.yaml", before, "repos", ITEM)
    old, new = yaml.safe_load(before.decode("utf-8-sig")) or {}, yaml.safe_load(after.decode("utf-8-sig"))
    assert new == {**old, "repos": [*(old.get("repos") or []), HOOK]}
    added = after.decode()
    for line in before.decode().replace(" []", "").splitlines():
        assert line.strip() in added
    if b"\r\n" in before:
        assert after.count(b"\n") == after.count(b"\r\n")
    if b"[]" not in before:  # an insertion
        shared = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
        assert after.endswith(before[shared:])


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_added_to_is_refused(text: str) -> None:
    try:
        after = append("x.yaml", text.encode(), "repos", ITEM)
    except CannotAppendError as error:
        assert REFUSED[text] in str(error)
    else:
        assert not REFUSED[text]
        assert yaml.safe_load(after)["repos"][-1] == HOOK


def test_tags_of_gitlab_are_no_obstacle() -> None:
    before = b"include:\n  - local: a.yml\njob:\n  script:\n    - !reference [.setup, script]\n"
    after = append(".gitlab-ci.yml", before, "include", "- local: b.yml\n")
    assert after == before.replace(b"a.yml\n", b"a.yml\n  - local: b.yml\n")


@given(
    st.lists(st.sampled_from(["- repo: a\n", "- repo: b  # c\n  rev: 1\n", "# comment\n", "\n", "-   repo: d\n    hooks:\n    -   id: e\n"]), max_size=6),
    st.sampled_from(["", "  ", "    "]),
    st.sampled_from(["", "ci: {}\n", "# end\n"]),
)  # fmt: skip
def test_any_layout_is_added_to_or_refused(items: list[str], indent: str, tail: str) -> None:
    body = "".join(indent + line for item in items for line in item.splitlines(keepends=True))
    before = f"repos:\n{body}{tail}".encode()
    try:
        after = append("x.yaml", before, "repos", ITEM)
    except CannotAppendError:
        return
    assert yaml.safe_load(after)["repos"] == [*yaml.safe_load(before)["repos"], HOOK]
    at = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
    assert after.endswith(before[at:])
