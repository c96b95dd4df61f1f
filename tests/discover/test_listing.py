"""Which files of a tree are looked at, the same with git and without it."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import klaudit.discover.files as files
import klaudit.discover.git as git_listing
from klaudit.configuration import Options
from klaudit.discover import discover, list_files, locate
from klaudit.discover.walk import list_by_walk
from klaudit.globs import Globs

GitRun = Callable[..., None]
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def write(root: Path, *paths: str, text: str = "x: 1\n") -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def found(root: Path, options: Options | None = None) -> list[str]:
    return discover(root, options or Options())


def test_candidates_are_found_by_suffix_in_sorted_order(tmp_path: Path, listing: str) -> None:
    kept = [
        "a/b.py",
        "a/run.slurm",
        "conf.yaml",
        "n.IPYNB",
        "p.toml",
        "q.json",
        "run.sbatch",
        "run.sh",
        "x.bash",
        "y.yml",
    ]
    write(tmp_path, *kept, "README.md", "data.csv", "logo.png", "notes.txt", "run.sh.orig")
    assert found(tmp_path) == sorted(kept)


def test_markdown_is_looked_at_on_request(tmp_path: Path, listing: str) -> None:
    write(tmp_path, "README.md", "run.sh")
    assert found(tmp_path, Options(include_markdown=True)) == ["README.md", "run.sh"]


@pytest.mark.parametrize(
    ("first_line", "is_shell"),
    [
        ("#!/bin/bash", True),
        ("#!/bin/sh -e", True),
        ("#! /usr/bin/env bash", True),
        ("#!/usr/bin/env -S bash -x", True),
        ("#!/usr/local/bin/zsh\r", True),
        ("#!bash", True),
        ("#!/usr/bin/env python", False),
        ("#!/usr/bin/fish", False),
        ("#!/bin/shasum", False),
        (" #!/bin/bash", False),
        ("echo hi", False),
        ("", False),
    ],
)
def test_a_file_without_suffix_needs_a_shell_shebang(
    tmp_path: Path, listing: str, first_line: str, is_shell: bool
) -> None:
    (tmp_path / "launch").write_bytes(first_line.encode() + b"\necho hi\n")
    assert found(tmp_path) == (["launch"] if is_shell else [])


def test_folders_of_tools_and_builds_are_left_out(tmp_path: Path, listing: str) -> None:
    write(tmp_path, "keep/run.sh", ".github/workflows/ci.yml", "docker/build.sh")
    for folder in (
        "node_modules/p",
        ".venv/lib",
        "lib/site-packages/trl",
        "build",
        "sub/dist",
        "wandb/run-1",
        "o/.hydra",
    ):
        write(tmp_path, f"{folder}/config.yaml")
    assert found(tmp_path) == [".github/workflows/ci.yml", "docker/build.sh", "keep/run.sh"]


def test_a_named_folder_is_scanned_even_if_it_is_one_that_is_left_out(
    tmp_path: Path, git: GitRun, listing: str
) -> None:
    git("init")
    write(tmp_path, ".gitignore", text="/build/\n*.json\n")
    write(tmp_path, "build/out/run.sh", "build/out/data.json")
    assert found(tmp_path) == []
    assert found(tmp_path / "build") == ["out/data.json", "out/run.sh"]
    assert found(tmp_path / "build" / "out") == ["data.json", "run.sh"]
    write(tmp_path, ":(glob)a*/run.sh", ":(glob)a*/x.json")
    assert found(tmp_path / ":(glob)a*") == ["run.sh"]


def test_ignored_files_are_left_out_and_tracked_ones_kept_by_git(tmp_path: Path, git: GitRun) -> None:
    git("init")
    write(tmp_path, "a.yaml", "b.yaml", "c.yaml")
    write(tmp_path, ".gitignore", text="b.yaml\nc.yaml\n")
    git("add", "--force", "a.yaml", "b.yaml", ".gitignore")
    assert found(tmp_path) == ["a.yaml", "b.yaml"]


def test_ignore_files_above_and_beside_the_tree_count(tmp_path: Path, git: GitRun, listing: str) -> None:
    git("init")
    write(tmp_path, ".gitignore", text="*.json\n/sub/only.sh\n!deep.json\n")
    write(tmp_path, ".git/info/exclude", text="local.sh\n")
    write(tmp_path, "sub/only.sh", "sub/x/only.sh", "sub/a.json", "sub/x/deep.json", "sub/local.sh", "sub/b.sh")
    assert found(tmp_path / "sub") == ["b.sh", "x/deep.json", "x/only.sh"]


def test_only_a_line_feed_ends_a_pattern(tmp_path: Path, git: GitRun, listing: str) -> None:
    git("init")
    write(tmp_path, ".gitignore", text="a.sh\x0cb.sh\u2028*\x85\rb.sh\nc.sh\n")
    write(tmp_path, "b.sh", "c.sh")
    assert found(tmp_path) == ["b.sh"]


def test_an_ignore_file_counts_outside_a_repository(tmp_path: Path, listing: str) -> None:
    write(tmp_path, ".gitignore", text="outputs/\n")
    write(tmp_path, "outputs/config.yaml", "run.sh")
    assert found(tmp_path) == ["run.sh"]


def test_repositories_in_the_repository_are_scanned_by_their_own_rules(
    tmp_path: Path, git: GitRun, listing: str
) -> None:
    git("init")
    write(tmp_path, ".gitignore", text="*.json\n")
    write(tmp_path, "vendor/inner/a.json", "vendor/inner/b.yaml", "c.json")
    git("init", folder=tmp_path / "vendor/inner")
    assert found(tmp_path) == ["vendor/inner/a.json", "vendor/inner/b.yaml"]


def test_a_submodule_and_a_work_tree_are_read_through_their_git_file(tmp_path: Path, git: GitRun) -> None:
    main, work = tmp_path / "main", tmp_path / "work"
    write(main, "run.sh")
    write(main, ".gitignore", text="kept.yaml\n")
    write(main, "kept.yaml")
    git("init", folder=main)
    git("add", "--force", ".", folder=main)
    git("commit", "-m", "x", folder=main)
    git("worktree", "add", str(work), folder=main)
    assert found(work) == ["kept.yaml", "run.sh"]  # the ignored but tracked file shows that the index was read


def test_deleted_files_and_changed_kinds_are_left_out(tmp_path: Path, git: GitRun) -> None:
    git("init")
    write(tmp_path, "gone.sh", "now_a_folder.sh", "here.sh")
    git("add", ".")
    (tmp_path / "gone.sh").unlink()
    (tmp_path / "now_a_folder.sh").unlink()
    write(tmp_path, "now_a_folder.sh/x.yaml")
    assert found(tmp_path) == ["here.sh", "now_a_folder.sh/x.yaml"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX file kinds")
def test_symlinks_and_special_files_are_never_followed(tmp_path: Path, listing: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(outside, "secret.yaml")
    write(root, "real/run.sh")
    (root / "loop").symlink_to(".", target_is_directory=True)
    (root / "real" / "up").symlink_to("..", target_is_directory=True)
    (root / "out").symlink_to(outside, target_is_directory=True)
    (root / "secret.yaml").symlink_to(outside / "secret.yaml")
    (root / "self.sh").symlink_to("self.sh")
    (root / "broken.sh").symlink_to("nowhere")
    os.mkfifo(root / "pipe.sh")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket.sh"))
        assert found(root) == ["real/run.sh"]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes only there")
def test_names_that_are_no_text_or_no_single_line_survive(tmp_path: Path, git: GitRun, listing: str) -> None:
    git("init")
    names = [
        b"caf\xe9.sh",
        b"new\nline.sh",
        b"esc\x1b[31m.sh",
        b'quo"te.sh',
        b" lead.sh",
        b"-rf.sh",
        "\u202egnp.sh".encode(),
    ]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(b"x")
    assert sorted(os.fsencode(path) for path in found(tmp_path)) == sorted(names)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="a folder cannot be made unreadable for this user"
)
def test_an_unreadable_folder_is_a_problem(tmp_path: Path, listing: str) -> None:
    write(tmp_path, "shut/run.sh", "open/run.sh")
    (tmp_path / "shut").chmod(0)
    options = Options()
    result = list_files(locate([str(tmp_path)], options), options)
    (tmp_path / "shut").chmod(0o700)
    assert result.files == ("open/run.sh",)
    assert [problem.path for problem in result.problems] == ["shut"]


def test_a_folder_that_cannot_be_read_is_a_problem_of_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "shut/run.sh", "open/run.sh")
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert list_by_walk(str(tmp_path), frozenset()) == (["open/run.sh"], [("shut", "Permission denied")])


def test_a_folder_deeper_than_any_is_a_problem_and_the_rest_is_found(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 120)
    deep.mkdir(parents=True)
    write(deep, "hidden.sh")
    write(tmp_path, "run.sh")
    listed, unreadable = list_by_walk(str(tmp_path), frozenset())
    assert listed == ["run.sh"]
    assert [message for _, message in unreadable] == ["more than 100 folders deep"]


class TestExclude:
    def test_patterns_are_relative_to_their_base(self, tmp_path: Path, listing: str) -> None:
        write(tmp_path, "sub/a/x.sh", "sub/b/x.sh", "sub/c.yaml")
        root = os.path.realpath(tmp_path)
        sub = Path(root, "sub")
        above = Options(exclude=(Globs(root, ("/sub/a/",)),))
        assert found(sub, above) == ["b/x.sh", "c.yaml"]
        below = Options(exclude=(Globs(str(sub / "b"), ("/x.sh",)),))
        assert found(tmp_path, below) == ["sub/a/x.sh", "sub/c.yaml"]
        elsewhere = Options(exclude=(Globs("/elsewhere", ("*",)),))
        assert found(sub, elsewhere) == ["a/x.sh", "b/x.sh", "c.yaml"]

    def test_several_are_all_in_force_and_a_later_pattern_overrules_an_earlier(self, tmp_path: Path) -> None:
        write(tmp_path, "a.sh", "b.sh", "c.yaml")
        base = os.path.realpath(tmp_path)
        options = Options(exclude=(Globs(base, ("*.sh", "!b.sh")), Globs(base, ("*.yaml",))))
        assert found(tmp_path, options) == ["b.sh"]

    def test_a_named_file_is_scanned_unless_force_excluded(self, tmp_path: Path) -> None:
        write(tmp_path, "old/x.txt", "build/y.sh")
        named = [str(tmp_path / "old/x.txt"), str(tmp_path / "build/y.sh")]
        for forced, expected in ((False, 2), (True, 0)):
            options = Options(exclude=(Globs(os.path.realpath(tmp_path), ("old/",)),), force_exclude=forced)
            assert len(list_files(locate(named, options), options).files) == expected

    def test_a_tool_that_names_files_does_not_make_scripts_of_prose(self, tmp_path: Path) -> None:
        write(tmp_path, "LICENSE", "notes.txt")
        (tmp_path / "train").write_text("#!/bin/bash\n", encoding="utf-8")
        named = [str(tmp_path / name) for name in ("LICENSE", "notes.txt", "train")]
        for forced, expected in ((False, ("LICENSE", "notes.txt", "train")), (True, ("notes.txt", "train"))):
            options = Options(force_exclude=forced)
            assert list_files(locate(named, options), options).files == expected


class TestHostileRepository:
    """What is scanned must not be able to start programs, or to stop the scan."""

    def test_its_git_configuration_is_never_read(self, tmp_path: Path, git: GitRun) -> None:
        git("init")
        write(tmp_path, "run.sh", "linked/deep/x.yaml")
        git("add", ".")
        bait = tmp_path.parent / f"{tmp_path.name}-bait"
        program = f"touch {bait}; false"
        git("config", "core.fsmonitor", program)
        assert subprocess.run(["git", "ls-files", "-o"], cwd=tmp_path, capture_output=True, timeout=20).returncode == 0
        assert bait.exists(), "the bait does not work: git itself did not take it"
        bait.unlink()
        for key in ("core.hooksPath", "core.sshCommand", "core.pager", "pager.ls-files", "alias.ls-files"):
            git("config", key, program)
        git("config", "core.worktree", "/")
        assert found(tmp_path) == ["linked/deep/x.yaml", "run.sh"]
        assert not bait.exists()

    def test_the_environment_of_a_git_hook_does_not_mislead(
        self, tmp_path: Path, git: GitRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path, "run.sh")
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXEC_PATH", "GIT_CONFIG_PARAMETERS"):
            monkeypatch.setenv(name, "/nowhere")
        assert git_listing.list_by_git(os.path.realpath(tmp_path)) == ["run.sh"]

    @pytest.mark.skipif(sys.platform == "win32", reason="needs a FIFO")
    def test_a_git_that_waits_for_ever_is_stopped(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(git_listing, "TIMEOUT", 0.3)
        write(tmp_path, "run.sh")
        os.mkfifo(tmp_path / ".gitignore")
        assert found(tmp_path) == ["run.sh"]

    @pytest.mark.parametrize("index", [b"", b"DIRC", b"\0" * 100, b"DIRC\0\0\0\2\xff\xff\xff\xff" + b"a" * 50])
    def test_a_broken_index_leaves_the_walk(self, tmp_path: Path, git: GitRun, index: bytes) -> None:
        git("init")
        write(tmp_path, "run.sh")
        (tmp_path / ".git" / "index").write_bytes(index)
        assert found(tmp_path) == ["run.sh"]

    @pytest.mark.parametrize("text", ["gitdir: /dev/\n", "gitdir: \0\n", "gitdir: ../../..\n", "nonsense", ""])
    def test_a_git_file_that_leads_astray(self, tmp_path: Path, text: str) -> None:
        write(tmp_path, "run.sh")
        write(tmp_path, ".git", text=text)
        assert found(tmp_path) == ["run.sh"]

    def test_git_is_not_started_without_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(60):
            write(tmp_path, f"r{number}/x.sh")
            write(tmp_path, f"r{number}/.git/HEAD", text="ref: refs/heads/main\n")
            (tmp_path / f"r{number}/.git/objects").mkdir()
            (tmp_path / f"r{number}/.git/refs").mkdir()
        started: list[str] = []

        def count(folder: str) -> list[str] | None:
            started.append(folder)
            return git_listing.list_by_git(folder)

        monkeypatch.setattr(files, "list_by_git", count)
        assert len(found(tmp_path)) == 60
        assert len(started) == 50
        started.clear()
        monkeypatch.setattr(files, "list_by_git", lambda folder: started.append(folder))
        assert len(found(tmp_path)) == 60
        assert len(started) == 1

    def test_ignore_patterns_cannot_cost_for_ever(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "list_by_git", lambda folder: None)
        write(tmp_path, "a" * 200 + ".sh", "b.sh")
        write(tmp_path, ".gitignore", text="*a" * 40 + "b\n" + "**/a/" * 40 + "b\n[z-a]\n!\n\\\nb.sh\n")
        assert found(tmp_path) == ["a" * 200 + ".sh"]

    def test_git_in_the_working_directory_is_not_started(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake = tmp_path / "git"
        fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/taken\n", encoding="utf-8")
        fake.chmod(0o755)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        write(tmp_path, "run.sh")
        assert "run.sh" in found(tmp_path)
        assert not (tmp_path / "taken").exists()


_NAMES = ["a", "b", "lib", "x.sh", "y.yaml", "build"]
_PATTERNS = [
    "a",
    "/a",
    "a/",
    "b/*",
    "!b/x.sh",
    "*.sh",
    "!x.sh",
    "lib/**",
    "**/y.yaml",
    "/lib/a/",
    "!lib/",
    "x.*",
    "# c",
    "",
    "\\#a",
    "a/b",
    "!a/b/",
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    paths=st.lists(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4), max_size=12),
    ignores=st.dictionaries(
        st.lists(st.sampled_from(_NAMES), max_size=2).map(tuple),
        st.lists(st.sampled_from(_PATTERNS), max_size=4),
        max_size=3,
    ),
)
def test_the_walk_sees_what_git_sees(
    tmp_path_factory: pytest.TempPathFactory, paths: list[list[str]], ignores: dict[tuple[str, ...], list[str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for folder, patterns in ignores.items():
        _try_write(root.joinpath(*folder, ".gitignore"), "\n".join(patterns))
    for parts in paths:
        _try_write(root.joinpath(*parts), "x")
    by_git = git_listing.list_by_git(os.path.realpath(root))
    by_walk, unreadable = list_by_walk(os.path.realpath(root), frozenset())
    assert unreadable == []
    assert by_git is not None
    assert set(by_git) <= set(by_walk)
    folders = {part for path in by_walk for part in path.split("/")[:-1]}
    readmitted = {
        pattern.strip("!/").split("/")[-1] for each in ignores.values() for pattern in each if pattern[:1] == "!"
    }
    if not folders & readmitted:  # the walk takes `!folder` to mean all that lies in it as well, so that it sees more
        assert sorted(set(by_git)) == sorted(by_walk)
    shutil.rmtree(root)


def _try_write(file: Path, text: str) -> None:
    """Writes unless a generated name is a file here and a folder there."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        pass


def test_order_does_not_depend_on_the_order_of_the_file_system(tmp_path: Path, listing: str) -> None:
    names = [f"d{i % 3}/f{i}.sh" for i in range(20)]
    random.Random(0).shuffle(names)
    write(tmp_path, *names)
    assert found(tmp_path) == sorted(names)
