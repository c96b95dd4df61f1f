"""What named paths mean: the root, and what lies where below it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from klaudit.configuration import Options, StandardInput
from klaudit.discover import Targets, list_context, list_files, locate

GitRun = Callable[..., None]


def write(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x: 1\n", encoding="utf-8")


def at(*paths: Path | str) -> Targets:
    return locate([str(path) for path in paths], Options())


def test_a_folder_is_its_own_root(tmp_path: Path, git: GitRun) -> None:
    git("init")
    write(tmp_path, "sub/run.sh")
    targets = at(tmp_path / "sub")
    assert (targets.root, targets.folders, targets.files) == (os.path.realpath(tmp_path / "sub"), (".",), ())


def test_a_file_belongs_to_its_repository(tmp_path: Path, git: GitRun) -> None:
    git("init")
    write(tmp_path, "a/b/run.sh")
    targets = at(tmp_path / "a/b/run.sh")
    assert (targets.root, targets.files) == (os.path.realpath(tmp_path), ("a/b/run.sh",))


def test_a_file_outside_a_repository_belongs_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a/b/run.sh")
    assert at(tmp_path / "a/b/run.sh").files == ("run.sh",)
    monkeypatch.chdir(tmp_path)
    targets = at("a/b/run.sh")
    assert (targets.root, targets.files) == (os.path.realpath(tmp_path), ("a/b/run.sh",))


@pytest.mark.parametrize("name", ["pyproject.toml", "setup.py", "klaudit.toml"])
def test_elsewhere_a_file_belongs_to_its_project(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "a/b/run.sh")
    assert at(tmp_path / "a/b/run.sh").files == ("a/b/run.sh",)


def test_or_to_its_package(tmp_path: Path) -> None:
    write(tmp_path, "a/kit/__init__.py", "a/kit/train/__init__.py", "a/kit/train/loss.py")
    assert at(tmp_path / "a/kit/train/loss.py").files == ("kit/train/loss.py",)


def test_a_disk_and_a_home_are_no_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a/b/run.sh")
    monkeypatch.chdir("/")
    assert at(tmp_path / "a/b/run.sh").files == ("run.sh",)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert at("a/b/run.sh").files == ("run.sh",)


def test_several_paths_have_their_common_folder_as_root(tmp_path: Path) -> None:
    write(tmp_path, "a/x/1.sh", "a/y/2.sh", "b.sh")
    targets = at(tmp_path / "a/y", tmp_path / "a/x")
    assert (targets.root, targets.folders) == (os.path.realpath(tmp_path / "a"), ("x", "y"))
    options = Options()
    both = locate([str(tmp_path / "a"), str(tmp_path / "a/x"), str(tmp_path / "a/x/1.sh")], options)
    assert list_files(both, options).files == ("x/1.sh", "y/2.sh")


def test_paths_that_are_not_there_are_problems_and_the_rest_is_found(tmp_path: Path) -> None:
    write(tmp_path, "run.sh")
    missing = str(tmp_path / "missing")
    targets = at(missing, tmp_path, "a\0b")
    assert targets.folders == (".",)
    assert [problem.path for problem in targets.problems] == ["missing", "a\0b"]
    assert targets.problems[0].message == "no such file or folder"


def test_a_path_that_is_not_there_is_named_as_seen_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a/run.sh", "b/other.sh")
    monkeypatch.chdir(tmp_path / "a")
    outside = os.path.realpath(tmp_path.parent / "none")
    targets = at("run.sh", "../b/other.sh", "none", "../none", outside)
    assert targets.root == os.path.realpath(tmp_path)
    assert [problem.path for problem in targets.problems] == ["a/none", "none", outside]
    assert [problem.path for problem in at("../none", outside).problems] == ["../none", outside]


def test_an_unset_variable_does_not_mean_the_working_directory() -> None:
    targets = at("")
    assert (targets.folders, [problem.message for problem in targets.problems]) == ((), ["an empty path"])


def test_nothing_but_missing_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    targets = at("missing")
    assert (targets.root, targets.folders, targets.files) == (os.path.realpath(tmp_path), (), ())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a FIFO")
def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sh")
    assert [problem.message for problem in at(tmp_path / "pipe.sh").problems] == ["neither a file nor a folder"]


def test_a_named_symlink_stands_for_what_it_leads_to(tmp_path: Path) -> None:
    write(tmp_path, "real/run.sh")
    (tmp_path / "link").symlink_to("real", target_is_directory=True)
    assert at(tmp_path / "link").root == os.path.realpath(tmp_path / "real")
    assert at(tmp_path / "link/run.sh").root == os.path.realpath(tmp_path / "real")


def test_standard_input_is_read_as_if_it_lay_on_disk(tmp_path: Path, git: GitRun) -> None:
    git("init")
    write(tmp_path, "sub/other.sh")
    options = Options(stdin=StandardInput(str(tmp_path / "sub/new.sh"), b"echo"))
    targets = locate(["-"], options)
    assert (targets.root, targets.files, dict(targets.overlay)) == (
        os.path.realpath(tmp_path),
        ("sub/new.sh",),
        {"sub/new.sh": b"echo"},
    )
    assert list_files(targets, options).files == ("sub/new.sh",)


@pytest.mark.parametrize("name", ["pyproject.toml", "setup.py"])
def test_a_file_of_a_project_is_judged_with_the_rest_of_it(tmp_path: Path, name: str) -> None:
    write(tmp_path, "kit/loss.py", "kit/run.sh")
    targets = at(tmp_path / "kit/run.sh")
    assert list_context(targets, list_files(targets, Options()), Options()) == ("run.sh",)
    write(tmp_path, name)
    targets = at(tmp_path / "kit/run.sh")
    context = list_context(targets, list_files(targets, Options()), Options())
    assert {"kit/loss.py", "kit/run.sh"} <= set(context)
