"""The tree of a commit is the tree on disk, as long as nothing has changed: links, folders and what git ignores included."""

from __future__ import annotations

import errno
import os
import shutil
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from klaudit.discover.history import History
from klaudit.gate.commit_tree import CommitTree
from klaudit.tree import Tree
from tests.gate.scratch import Repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

NAMES = ("a", "b", "c.sh")
PATHS = tuple("/".join(parts) for depth in (1, 2, 3) for parts in product(NAMES, repeat=depth))
TARGETS = st.sampled_from(
    [*NAMES, "../a", "../b/c.sh", "a/../b", ".", "..", "../..", "/etc", "nowhere", "b/a", "c.sh/x", "./a/./b"]
)


def leads_in_a_circle(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


@example(entries=[("b/b/a", None, False), ("b/c.sh", "a/../b", False)])
@example(entries=[("b/b", None, False), ("b/c.sh", "a/../b", False)])
@settings(max_examples=25, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.lists(st.tuples(st.sampled_from(PATHS), st.one_of(st.none(), TARGETS), st.booleans()), min_size=1, max_size=9)
)
def test_a_commit_looks_like_its_checkout(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str | None, bool]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    repository = Repository(root)
    ignored: list[str] = []
    for path, target, is_ignored in entries:
        place = root / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(place):
                continue
            if target is None:
                place.write_text(path)
            else:
                place.symlink_to(target)
        except OSError:  # a file or a link where a folder is wanted
            continue
        if is_ignored and target is None:
            ignored.append(f"/{path}\n")
    assume(not any(map(leads_in_a_circle, root.rglob("*"))))  # Python and the kernel disagree where those lead
    (root / ".gitignore").write_text("".join(ignored))
    commit = repository.commit()
    on_disk = Tree(root)
    with History(os.path.realpath(root)) as history:
        tree = CommitTree(str(root), history.entries(commit), history.read)
        for path in (".", *PATHS, "a/../b", "../x", "a/.git", "c.sh/", "./a"):
            now, then = on_disk.source(path), tree.source(path)
            assert (None if now is None else now.data) == (None if then is None else then.data), path
            assert on_disk.is_file(path) == tree.is_file(path), path
            assert on_disk.is_folder(path) == tree.is_folder(path), path
            if path != ".":  # where .git lies
                assert on_disk.files(path) == tree.files(path), path
            assert tree.size(path) == (0 if then is None else len(then.data))


def test_a_link_that_leads_round_in_a_circle_hides_nothing(tmp_path: Path) -> None:
    for name in ("a", "m", "z"):
        (tmp_path / f"{name}.link").symlink_to(f"{name}.link")
        (tmp_path / f"{name}.sh").write_text("x")
    assert Tree(tmp_path).files(".") == {"a.sh", "m.sh", "z.sh"}


def test_later_changes_are_not_seen(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"a.sh": "old", "gone.sh": "was", "d/e.sh": "deep"})
    commit = repository.git("rev-parse", "HEAD")
    repository.write({"a.sh": "new", "gone.sh": None, "d/e.sh": None, "fresh.sh": "x", "f/g.sh": "y"})
    with History(os.path.realpath(tmp_path)) as history:
        tree = CommitTree(str(tmp_path), history.entries(commit), history.read)
        read = {
            path: source.data
            for path in ("a.sh", "gone.sh", "d/e.sh", "fresh.sh", "f/g.sh")
            if (source := tree.source(path))
        }
        assert read == {"a.sh": b"old", "gone.sh": b"was", "d/e.sh": b"deep"}
        assert tree.files(".") == {"a.sh", "gone.sh"}
        assert tree.is_folder("d") and not tree.is_folder("f")
