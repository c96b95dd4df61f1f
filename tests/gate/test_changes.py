"""Only what is new since a commit counts: by identity, values in force and lines, whatever file the change stands in."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit import engine
from klaudit.cli import main
from klaudit.configuration import Options
from klaudit.discover import history
from klaudit.discover.history import RevisionError
from klaudit.gate.baseline_file import row_of, write
from klaudit.globs import Globs
from tests.gate.scratch import BETTER, LAUNCH, Folder, Repository, launch, places

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
K3 = "KLA101"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository", {"old.sh": LAUNCH, "README.md": "text\n"})


# --- what counts ----------------------------------------------------------------------------------------------------------------------


def test_nothing_changed_is_nothing_new(repository: Repository) -> None:
    report = repository.scan(diff_base="HEAD")
    assert report.findings == ()
    assert [each.by for each in report.withheld] == ["unchanged"]
    assert report.withheld[0].reason.startswith("as in HEAD (")


@pytest.mark.parametrize("how", ["untracked", "staged", "committed"])
def test_a_new_script_counts_and_the_old_one_does_not(repository: Repository, how: str) -> None:
    base = repository.git("rev-parse", "HEAD")
    repository.write({"new.sh": LAUNCH})
    if how != "untracked":
        repository.git("add", "new.sh")
    if how == "committed":
        repository.commit()
    assert repository.new(base) == [f"new.sh:3 {K3}"]


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n\n" + LAUNCH,
        "set -e\nexport A=1\n" + LAUNCH + "echo done\n",
        LAUNCH.replace("    ", "\t"),
        LAUNCH.replace("\n", "\r\n"),
        LAUNCH.replace("algorithm.adv_estimator=grpo \\\n    ", "").rstrip()
        + " \\\n    algorithm.adv_estimator=grpo\n",
        LAUNCH.rstrip() + " trainer.n_gpus_per_node=4\n",
    ],
    ids=["lines above", "lines around", "indentation", "line ends", "order of settings", "another setting"],
)
def test_moved_lines_are_no_change(repository: Repository, text: str) -> None:
    repository.write({"old.sh": text})
    if "\r" in text:
        text = text.replace(" \\\r\n", " \\\n")  # a backslash before a carriage return continues nothing
        repository.write({"old.sh": text})
    report = repository.scan(diff_base="HEAD")
    assert report.findings == () and len(report.withheld) == 1


def test_a_value_that_changed_counts(repository: Repository) -> None:
    repository.write({"old.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.3")})
    assert repository.new() == [f"old.sh:3 {K3}"]


def test_a_default_written_out_is_no_change(repository: Repository) -> None:
    repository.write({"old.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.001")})
    assert repository.new() == []


def test_a_line_that_was_touched_counts(repository: Repository) -> None:
    repository.write({"old.sh": LAUNCH.replace("actor.use_kl_loss=True", "actor.use_kl_loss=true")})
    assert repository.new() == [f"old.sh:3 {K3}"]


def test_a_second_one_in_the_same_file_counts_wherever_it_stands(repository: Repository) -> None:
    for text, line in ((LAUNCH + "\n" + LAUNCH, 8), ("# first\n" + LAUNCH + "echo between\n" + LAUNCH, 8)):
        repository.write({"old.sh": text})
        (found,) = repository.new()
        assert found in (f"old.sh:{line} {K3}", f"old.sh:4 {K3}")
    repository.commit({"old.sh": "echo one\n" + LAUNCH + "echo two\n"})
    repository.write({"old.sh": LAUNCH + "echo zero\necho one\n" + LAUNCH + "echo two\n"})
    assert repository.new() == [f"old.sh:3 {K3}"]


def test_one_of_two_taken_away_is_nothing_new(repository: Repository) -> None:
    repository.commit({"old.sh": LAUNCH + "\n" + launch("actor_rollout_ref.actor.kl_loss_coef=0.3")})
    repository.write({"old.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.3")})
    assert repository.new() == []


COEFFICIENTS = st.lists(st.sampled_from([0.1, 0.2, 0.3]), max_size=4)
PADDING = st.lists(st.sampled_from(["# a comment\n", "\n", "echo done\n", "X=1\n"]), max_size=3)


def script(coefficients: list[float], padding: list[str]) -> str:
    return "".join(padding) + "".join(
        launch(f"actor_rollout_ref.actor.kl_loss_coef={each}") + "".join(padding) for each in coefficients
    )


@settings(max_examples=12)
@given(COEFFICIENTS, COEFFICIENTS, PADDING, PADDING)
def test_as_many_count_as_there_are_more_of_each_value(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[float],
    after: list[float],
    above: list[str],
    below: list[str],
) -> None:
    repository = Repository(tmp_path_factory.mktemp("counts"), {"run.sh": script(before, above), "x.sh": LAUNCH})
    repository.write({"run.sh": script(after, below)})
    report = repository.scan(diff_base="HEAD")
    assert len(report.findings) == (Counter(after) - Counter(before)).total()
    assert len(report.findings) + len(report.withheld) == len(after) + 1


# --- changes elsewhere ----------------------------------------------------------------------------------------------------------------

SOURCING = "source ./common.sh\n" + launch("actor_rollout_ref.actor.kl_loss_coef=$COEF")
READS_ARGUMENTS = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=$KL actor_rollout_ref.actor.kl_loss_type=low_var_kl\n"


def test_a_sourced_script_that_changes_a_value_counts(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"run.sh": SOURCING, "common.sh": "COEF=0.001\n", "other.sh": LAUNCH})
    repository.write({"common.sh": "# note\nCOEF=0.001\n"})
    assert repository.new() == []
    repository.write({"common.sh": "COEF=0.5\n"})
    assert repository.new() == [f"run.sh:4 {K3}"]


def test_a_sourced_script_that_switches_a_penalty_on_counts(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"run.sh": ". ./common.sh\n" + READS_ARGUMENTS, "common.sh": "KL=False\n"})
    assert repository.new() == []
    repository.write({"common.sh": "KL=True\n"})
    assert repository.new() == [f"run.sh:2 {K3}"]


def test_a_base_configuration_that_flips_a_launch_elsewhere_counts(tmp_path: Path) -> None:
    base = "actor_rollout_ref:\n  actor:\n    use_kl_loss: false\n    kl_loss_type: low_var_kl\nalgorithm:\n  adv_estimator: grpo\n"
    run = 'python3 -m verl.trainer.main_ppo --config-path="$PWD/conf" --config-name=base trainer.nnodes=1\n'
    repository = Repository(tmp_path, {"conf/base.yaml": base, "run.sh": run, "old.sh": LAUNCH})
    repository.write({"conf/base.yaml": "# a note\n" + base})
    assert repository.new() == []
    repository.write({"conf/base.yaml": base.replace("false", "true")})
    assert repository.new() == [f"conf/base.yaml:3 {K3}", f"run.sh:1 {K3}"]
    assert repository.new("HEAD", "run.sh") == [f"run.sh:1 {K3}"]


def test_a_pin_that_changes_the_verdict_counts(tmp_path: Path) -> None:
    call = "from trl import GRPOConfig\nconfig = GRPOConfig(learning_rate=1e-6)\n"
    repository = Repository(tmp_path, {"train.py": call, "requirements.txt": "trl==1.0.0\n"})
    assert repository.scan().findings == ()
    repository.commit({"requirements.txt": "trl==0.14.0\n"})
    assert repository.new("HEAD~1") == [f"train.py:2 {K3}"]
    repository.write({"requirements.txt": "trl==0.14.1\n"})
    assert repository.new() == []


# --- renames --------------------------------------------------------------------------------------------------------------------------


def test_a_renamed_file_is_the_same_file(repository: Repository) -> None:
    repository.git("mv", "old.sh", "renamed.sh")
    report = repository.scan(diff_base="HEAD")
    assert report.findings == ()
    assert len(report.remarks) == 1 and report.remarks[0].startswith("renamed.sh was old.sh in HEAD (")


def test_a_renamed_and_edited_file_is_the_same_file(repository: Repository) -> None:
    repository.write({"old.sh": None, "deep/er/new.sh": "# moved\n" + LAUNCH + "echo\n"})
    assert repository.new() == []


def test_a_file_with_another_letter_case_is_the_same_file(repository: Repository) -> None:
    repository.git("mv", "old.sh", "OLD.sh")
    assert repository.new() == []


def test_a_copy_is_new(repository: Repository) -> None:
    repository.write({"copy.sh": LAUNCH})
    assert repository.new() == [f"copy.sh:3 {K3}"]


def test_of_two_copies_of_a_gone_file_one_is_new(repository: Repository) -> None:
    repository.write({"old.sh": None, "one.sh": LAUNCH, "two.sh": LAUNCH})
    assert len(repository.new()) == 1


def test_another_file_in_place_of_one_is_new(repository: Repository) -> None:
    repository.write({"old.sh": None, "other.sh": "".join(f"echo {number}\n" for number in range(20)) + LAUNCH})
    assert repository.new() == [f"other.sh:23 {K3}"]


@pytest.mark.parametrize("old", ["run.txt", "build/run.sh", "run", "old/run.sh", "run.md"])
def test_what_no_scan_has_looked_at_comes_as_new(tmp_path: Path, old: str) -> None:
    repository = Repository(tmp_path, {old: LAUNCH})
    options = Options(jobs=1, diff_base="HEAD", exclude=(Globs(str(tmp_path), ("old/**",)),))
    assert engine.scan([str(tmp_path)], options).findings == ()
    repository.write({old: None, "run.sh": LAUNCH})
    assert places(engine.scan([str(tmp_path)], options).findings) == [f"run.sh:3 {K3}"]


def test_a_script_without_a_suffix_that_is_renamed_is_the_same(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"run": "#!/bin/bash\n" + LAUNCH})
    repository.write({"run": None, "train.sh": "#!/bin/bash\n" + LAUNCH})
    assert repository.new() == []


# --- which commit ---------------------------------------------------------------------------------------------------------------------


def test_the_commit_where_the_branch_began_is_compared_with(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"feature.sh": LAUNCH})
    repository.git("checkout", "-q", "main")
    repository.commit({"old.sh": BETTER})
    repository.git("checkout", "-q", "feature")
    assert repository.new("main") == [f"feature.sh:3 {K3}"]


def test_tags_ids_and_ancestors_are_commits(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.git("tag", "-a", "-m", "t", "v1")
    repository.commit({"new.sh": LAUNCH})
    for ref in ("v1", first, first[:10], "HEAD~1", "HEAD^", "main~1", "refs/tags/v1"):
        assert repository.new(ref) == [f"new.sh:3 {K3}"], ref
    repository.git("pack-refs", "--all")
    repository.git("gc", "-q")
    assert repository.new("v1") == [f"new.sh:3 {K3}"]


def test_histories_without_a_common_commit_are_compared_as_they_are(repository: Repository) -> None:
    repository.git("checkout", "-q", "--orphan", "other")
    repository.commit({"new.sh": LAUNCH})
    assert repository.new("main") == [f"new.sh:3 {K3}"]


NO_COMMITS = (
    "nowhere", "", " ", "--output=x", "-x", "HEAD:old.sh", "HEAD^{tree}", "main...HEAD", "main..HEAD", "@{u}", "a\nb", "0" * 40, "é",
    "\udcff", "a\0b",
)  # fmt: skip


def test_what_is_no_commit_is_an_error(repository: Repository) -> None:
    for ref in NO_COMMITS:
        with pytest.raises(RevisionError, match="no commit"):
            repository.scan(diff_base=ref)
    assert sorted(os.listdir(repository.root)) == [".git", "README.md", "old.sh"]


def test_a_bad_commit_is_an_error_also_where_nothing_is_found(tmp_path: Path) -> None:
    with pytest.raises(RevisionError):
        Repository(tmp_path, {"a.txt": "x"}).scan(diff_base="nowhere")


def test_no_repository_and_no_commit_are_errors(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "plain")
    folder.write({"old.sh": LAUNCH})
    if not any((parent / ".git").exists() for parent in tmp_path.parents):
        with pytest.raises(RevisionError, match="in no git repository"):
            folder.scan(diff_base="HEAD")
    empty = Repository(tmp_path / "empty")
    empty.write({"old.sh": LAUNCH})
    with pytest.raises(RevisionError, match="no commit `HEAD`"):
        empty.scan(diff_base="HEAD")


# --- kinds of repositories ------------------------------------------------------------------------------------------------------------


def test_a_shallow_clone_says_what_to_do(repository: Repository, tmp_path: Path) -> None:
    for number in range(3):
        repository.commit({"count": str(number)})
    base = repository.git("rev-parse", "HEAD~2")
    Repository(tmp_path / "x").git(
        "clone", "-q", "--depth", "1", f"file://{repository.root}", str(tmp_path / "shallow")
    )
    shallow = Folder(tmp_path / "shallow")
    with pytest.raises(RevisionError, match="fetch-depth: 0"):
        shallow.scan(diff_base=base)
    assert shallow.new("origin/main") == []


def test_a_shallow_clone_without_the_common_commit_says_what_to_do(repository: Repository, tmp_path: Path) -> None:
    repository.git("checkout", "-q", "-b", "feature")
    for name in ("feature", "main"):
        repository.git("checkout", "-q", name)
        for number in range(2):
            repository.commit({name: str(number)})
    clone = Repository(tmp_path / "x")
    clone.git(
        "clone",
        "-q",
        "--depth",
        "1",
        "--no-single-branch",
        "-b",
        "feature",
        f"file://{repository.root}",
        str(tmp_path / "shallow"),
    )
    with pytest.raises(RevisionError, match="this clone is shallow, fetch the whole history"):
        Folder(tmp_path / "shallow").scan(diff_base="origin/main")


def test_a_merge_of_a_pull_request_is_compared_with_its_first_parent(repository: Repository, tmp_path: Path) -> None:
    """As GitHub checks one out: two commits deep are enough."""
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"feature.sh": LAUNCH})
    repository.git("checkout", "-q", "main")
    repository.commit({"meanwhile.sh": LAUNCH})
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "feature")
    Repository(tmp_path / "x").git(
        "clone", "-q", "--depth", "2", f"file://{repository.root}", str(tmp_path / "shallow")
    )
    assert Folder(tmp_path / "shallow").new("HEAD^1") == [f"feature.sh:3 {K3}"]


def test_the_command_line(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.root)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["klaudit", "scan", *arguments])
        return main()

    assert run("-q") == 1
    assert run("--diff-base", "HEAD") == 0
    assert "1 finding withheld" in capsys.readouterr().out
    repository.write({"new.sh": LAUNCH})
    assert run("--diff-base", "HEAD", "-q") == 1
    assert capsys.readouterr().out.count("\n") == 1
    for ref in ("--diff-base=--output=x", "--diff-base=nowhere", "--diff-base="):
        assert run(ref) == 2
        assert capsys.readouterr().err.startswith("Error: --diff-base: no commit `")
    assert not (repository.root / "x").exists()


def test_a_linked_work_tree(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", "-b", "linked", str(tmp_path / "linked"))
    linked = Folder(tmp_path / "linked")
    assert linked.new() == []
    linked.write({"new.sh": LAUNCH})
    assert linked.new("main") == [f"new.sh:3 {K3}"]


def test_objects_named_by_sha256(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"old.sh": LAUNCH}, "--object-format=sha256")
    repository.git("mv", "old.sh", "renamed.sh")
    repository.write({"new.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.3")})
    assert repository.new() == [f"new.sh:3 {K3}"]


def test_a_bare_repository_is_no_work_tree(repository: Repository, tmp_path: Path) -> None:
    repository.git("clone", "-q", "--bare", str(repository.root), str(tmp_path / "bare.git"))
    with pytest.raises(RevisionError, match="in no git repository"):
        Folder(tmp_path / "bare.git").scan(diff_base="HEAD")


def test_names_of_all_kinds(tmp_path: Path) -> None:
    names = [
        "a b.sh",
        "a\nb.sh",
        'a"b.sh',
        "é—日.sh",
        "-x.sh",
        ":x.sh",
        "a\tb.sh",
        "[a].sh",
        "*.sh",
        os.fsdecode(b"\xff.sh"),
    ]
    repository = Repository(tmp_path, dict.fromkeys(names, LAUNCH) | {"d/" + name: LAUNCH for name in names})
    assert repository.new() == []
    repository.write(dict.fromkeys(names, "\n" + LAUNCH))
    repository.write({"e/" + name: launch("actor_rollout_ref.actor.kl_loss_coef=0.3") for name in names})
    assert sorted(repository.new()) == sorted(f"e/{name}:3 {K3}" for name in names)


def test_files_that_are_checked_out_with_other_line_ends(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path,
        {"run.py": "from trl import GRPOConfig\nGRPOConfig(beta=0.04)\n", ".gitattributes": "*.py text eol=crlf\n"},
    )
    repository.write({"run.py": "from trl import GRPOConfig\r\nGRPOConfig(beta=0.04)\r\n"})
    assert len(repository.scan().findings) == 1
    assert repository.new() == []


def test_links_are_followed_in_the_commit_as_on_disk(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    (tmp_path / "link.sh").symlink_to("real/common.sh")
    (tmp_path / "outside.sh").symlink_to("../../etc/passwd")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "folder").symlink_to("real")
    repository.commit(
        {
            "real/common.sh": "COEF=0.001\n",
            "run.sh": SOURCING.replace("./common.sh", "./link.sh"),
            "other.sh": SOURCING.replace("./common.sh", "./folder/common.sh"),
            "third.sh": SOURCING.replace("./common.sh", "./round/outside.sh"),
        }
    )
    assert len(repository.scan().findings) == 3
    assert repository.new() == []
    repository.write({"real/common.sh": "COEF=0.3\n"})
    assert repository.new() == [f"other.sh:4 {K3}", f"run.sh:4 {K3}"]


def test_a_part_of_a_repository(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"a/run.sh": LAUNCH, "b/run.sh": LAUNCH, "a/old.sh": LAUNCH})
    repository.write({"a/run.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.3"), "b/new.sh": LAUNCH})
    assert repository.new("HEAD", "a") == [f"run.sh:3 {K3}"]
    assert repository.new("HEAD", "a/run.sh") == [f"a/run.sh:3 {K3}"]
    assert repository.new("HEAD", "a/old.sh") == []
    assert repository.new("HEAD", "a", "b") == [f"a/run.sh:3 {K3}", f"b/new.sh:3 {K3}"]


def test_a_submodule_is_read_as_of_the_commit_that_the_base_names(tmp_path: Path) -> None:
    library = Repository(tmp_path / "library", {"common.sh": "COEF=0.001\n"})
    repository = Repository(tmp_path / "repository", {"run.sh": SOURCING.replace("./", "third/library/")})
    repository.git("submodule", "add", "-q", str(library.root), "third/library")
    repository.commit()
    assert len(repository.scan().findings) == 1
    assert repository.new() == []
    inside = Repository(repository.root / "third/library")
    inside.commit({"common.sh": "COEF=0.3\n", "run.sh": LAUNCH})
    assert repository.new() == [f"run.sh:4 {K3}"]
    assert inside.new("HEAD~1") == [f"run.sh:3 {K3}"]
    shutil.rmtree(repository.root / ".git/modules/third/library/objects")
    (repository.root / ".git/modules/third/library/objects").mkdir()
    report = repository.scan(diff_base="HEAD")
    assert len(report.findings) == 1
    assert any(remark.startswith("third/library: commit ") for remark in report.remarks)


def test_a_repository_within_that_nobody_tracks_is_new(repository: Repository) -> None:
    Repository(repository.root / "clone", {"run.sh": LAUNCH})
    assert repository.new() == [f"clone/run.sh:3 {K3}"]


def test_what_git_ignores_is_the_same_then_and_now(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path, {"run.sh": SOURCING, ".gitignore": "common.sh\nlocal/\n", "deep.sh": SOURCING.replace("./", "local/")}
    )
    repository.write({"common.sh": "COEF=0.3\n", "local/common.sh": "COEF=0.4\n"})
    assert len(repository.scan().findings) == 2
    assert repository.new() == []


def test_a_file_that_could_not_be_read_then_counts_as_new(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"run.py": "from trl import GRPOConfig\nGRPOConfig(beta=0.04\n"})
    repository.write({"run.py": "from trl import GRPOConfig\nGRPOConfig(beta=0.04)\n"})
    report = repository.scan(diff_base="HEAD")
    assert len(report.findings) == 1 and report.errors == ()
    assert any("run.py: cannot be read in HEAD" in remark for remark in report.remarks)


# --- together with the other steps of the gate -----------------------------------------------------------------------------------------


def test_a_suppression_that_is_taken_away_counts(tmp_path: Path) -> None:
    suppressed = "# klaudit: ignore-file[KLA101] because\n" + LAUNCH
    repository = Repository(tmp_path, {"run.sh": suppressed})
    assert [each.by for each in repository.scan(diff_base="HEAD").withheld] == ["suppression"]
    repository.write({"run.sh": LAUNCH})
    assert repository.new() == [f"run.sh:3 {K3}"]


def test_a_suppressed_old_one_makes_no_room_for_a_new_one(tmp_path: Path) -> None:
    one_line = LAUNCH.replace(" \\\n    ", " ")
    repository = Repository(tmp_path, {"run.sh": one_line})
    repository.write({"run.sh": one_line.rstrip() + "  # klaudit: ignore[KLA101] known\n" + one_line})
    report = repository.scan(diff_base="HEAD")
    assert [each.by for each in report.withheld] == ["suppression"]
    assert places(report.findings) == [f"run.sh:2 {K3}"]
    repository.commit({"run.sh": one_line.rstrip() + "  # klaudit: ignore[KLA101] known\n" + one_line})
    assert repository.new() == []


def test_a_listed_old_one_makes_no_room_for_a_new_one(repository: Repository) -> None:
    (old,) = repository.scan().findings
    write(str(repository.root / "b.json"), [row_of(old, "./")])
    repository.write({"old.sh": LAUNCH + "\n" + LAUNCH})
    report = repository.scan(baseline="b.json", diff_base="HEAD")
    assert [each.by for each in report.withheld] == ["baseline"]
    assert len(report.findings) == 1


# --- processes ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are looked up in /proc")
def test_workers_read_the_commit_for_themselves_and_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(engine, "_POOL_PAYS", 0.0)
    repository = Repository(tmp_path / "repository", {f"{number}.sh": LAUNCH for number in range(12)})
    repository.write({f"{number}.sh": "\n" + LAUNCH for number in range(12)} | {"new.sh": LAUNCH})
    report = engine.scan([str(repository.root)], Options(jobs=3, file_timeout=50.0, diff_base="HEAD"))
    assert places(report.findings) == [f"new.sh:3 {K3}"]
    assert not list(scratch.iterdir())
    time.sleep(0.2)  # what has been told to end may still be listed
    assert not [line for line in command_lines() if bytes(scratch) in line]


def command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            yield path.read_bytes()


# --- nothing is run -------------------------------------------------------------------------------------------------------------------


def test_nothing_that_a_repository_names_is_run(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho $0 $@ >> {ran}\ncat\n")
    trap.chmod(0o755)
    repository.commit({".gitattributes": "* filter=x diff=x merge=x\n"})
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "post-commit"):
        file = repository.root / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        shutil.copy(trap, file)
    with (repository.root / ".git" / "config").open("a") as config:
        config.write(
            f"[core]\nfsmonitor = {trap}\nhooksPath = {tmp_path}\npager = {trap}\nsshCommand = {trap}\nattributesFile = /dev/null\n"
            f'[filter "x"]\nclean = {trap}\nsmudge = {trap}\nprocess = {trap}\nrequired = true\n[diff]\nexternal = {trap}\n'
            f'[diff "x"]\ntextconv = {trap}\ncommand = {trap}\n[alias]\nls-tree = !{trap}\nrev-parse = !{trap}\n'
            f'[extensions]\npartialClone = origin\n[remote "origin"]\nurl = ext::{trap}\npromisor = true\n[include]\npath = {trap}\n'
        )
    for name in ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_PAGER", "GIT_ASKPASS"):
        monkeypatch.setenv(name, str(trap))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(trap))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    repository.write({"new.sh": LAUNCH, "old.sh": "\n" + LAUNCH})
    before = sorted((path, path.stat().st_mtime_ns) for path in repository.root.rglob("*"))
    assert repository.new() == [f"new.sh:3 {K3}"]
    assert not ran.exists()
    assert sorted((path, path.stat().st_mtime_ns) for path in repository.root.rglob("*")) == before


@pytest.mark.parametrize("file", ["HEAD", "config", "packed-refs", "refs/heads/main", "shallow", "commondir"])
def test_a_broken_repository_is_an_error_or_is_read(repository: Repository, file: str) -> None:
    for content in (b"", b"\xff\0", b"ref: ../../x\n", b"[include\n" * 1000, b"../../../../..\n"):
        (repository.root / ".git" / file).write_bytes(content)
        try:
            repository.scan(diff_base="main")
        except RevisionError as error:
            assert "\n" not in str(error)


def test_more_files_than_can_be_compared_are_an_error(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MOST_OUTPUT", 60)
    with pytest.raises(RevisionError, match="more files than"):
        repository.scan(diff_base="HEAD")


def test_a_git_that_waits_for_ever_is_stopped(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "TIMEOUT", 0.3)
    os.mkfifo(repository.root / ".git" / "refs" / "heads" / "pipe")
    with pytest.raises(RevisionError, match=r"took longer than 0\.3 s|no commit"):
        repository.scan(diff_base="pipe")


def test_a_file_too_large_to_read_counts_as_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(tmp_path, {"run.sh": LAUNCH + "# " + "x" * 2000, "other.sh": LAUNCH})
    repository.write({"run.sh": LAUNCH})
    monkeypatch.setattr(history, "MAX_BYTES", 1000)
    report = repository.scan(diff_base="HEAD")
    assert places(report.findings) == [f"run.sh:3 {K3}"]
    assert "run.sh: cannot be read in HEAD" in report.remarks[0]


def test_missing_objects_are_an_error(repository: Repository) -> None:
    repository.commit({"old.sh": LAUNCH + "# changed\n"})
    tree = repository.git("rev-parse", "HEAD~1^{tree}")
    (repository.root / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(RevisionError, match="are missing"):
        repository.scan(diff_base="HEAD~1")
