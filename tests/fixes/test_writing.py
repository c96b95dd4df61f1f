"""Writing is atomic: whatever fails, and whenever, each file is old or new, and nothing is left lying about."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from klaudit.fixes import writing
from klaudit.fixes.writing import WriteError, write_all

OLD = {"a.sh": b"old a\r\n", "sub/b.yaml": b"\xef\xbb\xbfold b", "c.py": b"old c\n"}
NEW = {"a.sh": b"new a\r\n", "sub/b.yaml": b"\xef\xbb\xbfnew b", "c.py": b"new c\n"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, data in OLD.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "tree" / "a.sh").chmod(0o751)
    return tmp_path / "tree"


def contents(tree: Path) -> dict[str, bytes]:
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_written_with_its_mode(tree: Path) -> None:
    assert write_all(str(tree), OLD, NEW) == ["a.sh", "c.py", "sub/b.yaml"]
    assert contents(tree) == NEW
    assert stat.S_IMODE((tree / "a.sh").stat().st_mode) == 0o751


def test_a_changed_file_is_refused_and_nothing_is_written(tree: Path) -> None:
    (tree / "sub/b.yaml").write_bytes(b"somebody else")
    with pytest.raises(WriteError, match="changed on disk"):
        write_all(str(tree), OLD, NEW)
    assert contents(tree) == {**OLD, "sub/b.yaml": b"somebody else"}


@pytest.mark.parametrize("call", ["replace", "fsync", "fchmod"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_error_leaves_everything_old(tree: Path, monkeypatch: pytest.MonkeyPatch, call: str, at: int) -> None:
    real, calls = getattr(os, call), []

    def failing(*args: object) -> object:
        calls.append(args)
        if len(calls) == at + 1:
            raise OSError(28, "no space left")
        return real(*args)

    monkeypatch.setattr(writing.os, call, failing)
    with pytest.raises(WriteError, match="no space left"):
        write_all(str(tree), OLD, NEW)
    assert contents(tree) == OLD


@pytest.mark.parametrize("at", range(4))
def test_a_crash_between_writes_leaves_each_file_old_or_new(tree: Path, at: int) -> None:
    """The process dies at the moment of a rename: no clean-up runs."""
    child = os.fork()
    if child == 0:
        real, calls = os.replace, []

        def dying(source: str, target: str) -> None:
            if len(calls) == at:
                os._exit(9)
            calls.append(target)
            real(source, target)

        os.replace = dying  # type: ignore[assignment]
        write_all(str(tree), OLD, NEW)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (9 if at < 3 else 0)
    left = {name: data for name, data in contents(tree).items() if not Path(name).name.startswith(".klaudit-")}
    assert set(left) == set(OLD)
    assert all(left[name] in (OLD[name], NEW[name]) for name in left)
    assert sum(left[name] == NEW[name] for name in left) == min(at, 3)


STEPS = ("replace", "fsync", "fchmod", "open", "close", "fdopen")


@pytest.mark.parametrize("at", range(40))
def test_a_crash_at_any_step_leaves_each_file_whole(tree: Path, at: int) -> None:
    """The process dies before its `at`-th call of the system, whichever that is."""
    child = os.fork()
    if child == 0:
        steps = 0

        def dying(real: Callable[..., object]) -> Callable[..., object]:
            def step(*given: object, **named: object) -> object:
                nonlocal steps
                if steps == at:
                    os._exit(9)
                steps += 1
                return real(*given, **named)

            return step

        for name in STEPS:
            setattr(os, name, dying(getattr(os, name)))
        write_all(str(tree), OLD, NEW)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 9)
    left = {name: data for name, data in contents(tree).items() if not Path(name).name.startswith(".klaudit-")}
    assert set(left) == set(OLD)
    assert all(left[name] in (OLD[name], NEW[name]) for name in left)
    if os.waitstatus_to_exitcode(status) == 0:
        assert left == NEW
        assert set(contents(tree)) == set(NEW)


def test_there_are_no_more_steps_than_are_tried(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    for name in STEPS:
        real = getattr(os, name)

        def counted(*given: object, _name: str = name, _real: Callable[..., object] = real, **named: object) -> object:
            steps.append(_name)
            return _real(*given, **named)

        monkeypatch.setattr(os, name, counted)
    write_all(str(tree), OLD, NEW)
    assert steps.count("replace") == len(NEW)
    assert len(steps) < 40


def test_symlinks(tree: Path) -> None:
    outside = tree.parent / "outside.sh"
    outside.write_bytes(b"old a\r\n")
    (tree / "a.sh").unlink()
    (tree / "a.sh").symlink_to(outside)
    with pytest.raises(WriteError, match="out of the tree"):
        write_all(str(tree), OLD, NEW)
    assert outside.read_bytes() == b"old a\r\n"
    (tree / "real.sh").write_bytes(OLD["a.sh"])
    (tree / "a.sh").unlink()
    (tree / "a.sh").symlink_to("real.sh")
    write_all(str(tree), OLD, NEW)
    assert (tree / "a.sh").is_symlink()
    assert (tree / "real.sh").read_bytes() == NEW["a.sh"]


class TestNewFiles:
    """A file whose original is None is made, with its folders, and never in place of another."""

    def test_made_with_the_mode_that_new_files_have(self, tree: Path) -> None:
        (tree / "made.txt").write_bytes(b"")
        assert write_all(str(tree), {"x/y/new.yml": None, **OLD}, {"x/y/new.yml": b"new\n", **NEW})[-1] == "x/y/new.yml"
        assert contents(tree) == {**NEW, "x/y/new.yml": b"new\n", "made.txt": b""}
        assert (tree / "x/y/new.yml").stat().st_mode == (tree / "made.txt").stat().st_mode

    @pytest.mark.parametrize("there", ["file", "link", "dangling"])
    def test_what_is_there_is_left_alone(self, tree: Path, there: str) -> None:
        if there == "file":
            (tree / "new.yml").write_bytes(b"mine")
        else:
            (tree / "new.yml").symlink_to("a.sh" if there == "link" else "nowhere")
        with pytest.raises(WriteError, match="is there already"):
            write_all(str(tree), {"new.yml": None, **OLD}, {"new.yml": b"new", **NEW})
        assert {name: contents(tree)[name] for name in OLD} == OLD
        assert not (tree / "nowhere").exists()

    def test_a_folder_that_leads_out_is_refused(self, tree: Path, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        (tree / "x").symlink_to(tmp_path / "outside", target_is_directory=True)
        with pytest.raises(WriteError, match="leads out of the tree"):
            write_all(str(tree), {"x/y/new.yml": None}, {"x/y/new.yml": b"new"})
        assert list((tmp_path / "outside").iterdir()) == []

    def test_what_was_made_is_taken_back_where_the_rest_fails(
        self, tree: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        replace = os.replace

        def failing(source: str, target: str) -> None:
            if target.endswith("c.py"):
                raise OSError(28, "No space left on device")
            replace(source, target)

        monkeypatch.setattr(writing.os, "replace", failing)
        with pytest.raises(WriteError, match="No space left"):
            write_all(str(tree), {"b.new": None, **OLD}, {"b.new": b"new", **NEW})
        assert contents(tree) == OLD
