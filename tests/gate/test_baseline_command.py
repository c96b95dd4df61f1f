"""`klaudit baseline` and `klaudit scan --baseline`, as they are typed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from klaudit.cli import main
from klaudit.gate.baseline_file import read
from tests.gate.scratch import BETTER, LAUNCH, Folder, launch

FILE = "klaudit-baseline.json"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write({"run.sh": LAUNCH, "sub/other.sh": LAUNCH, ".git/HEAD": "ref: refs/heads/main\n"})
    return folder


@pytest.fixture
def run(folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(folder.root)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["klaudit", *arguments])
        status = main()
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def paths(folder: Folder, file: str = FILE) -> list[tuple[str, int]]:
    return [(row.path, row.count) for row in read(str(folder.root / file))]


def test_write_then_scan_then_update_then_prune(folder: Folder, run: Run) -> None:
    assert run("scan", "-q")[0] == 1
    status, out, err = run("baseline", "write")
    assert (status, out) == (0, "")
    assert err.splitlines()[0] == f"2 findings listed in {FILE}"
    assert f'`baseline = "{FILE}"`' in err
    assert run("scan", "-q", "--baseline", FILE) == (0, "", "")

    folder.write({"new.sh": LAUNCH, "run.sh": BETTER})
    status, out, _ = run("scan", "-q", "--baseline", FILE)
    assert status == 1 and out.startswith("new.sh:3:") and len(out.splitlines()) == 1
    assert run("baseline", "prune", "--check") == (
        1,
        "",
        f"{FILE}: 0 would be added, 1 would be taken out, 1 finding listed\n",
    )
    assert paths(folder) == [("run.sh", 1), ("sub/other.sh", 1)]
    assert run("baseline", "prune")[0] == 0
    assert paths(folder) == [("sub/other.sh", 1)]
    assert run("baseline", "prune", "--check")[0] == 0
    assert run("baseline", "update", "--check")[0] == 1
    assert run("baseline", "update") == (0, "", f"{FILE}: 1 added, 0 taken out, 2 findings listed\n")
    assert paths(folder) == [("new.sh", 1), ("sub/other.sh", 1)]
    before = (folder.root / FILE).stat().st_mtime_ns
    assert run("baseline", "update", "-q") == (0, "", "")
    assert (folder.root / FILE).stat().st_mtime_ns == before


def test_write_does_not_overwrite_unless_forced(folder: Folder, run: Run) -> None:
    folder.write({FILE: "precious"})
    status, _, err = run("baseline", "write")
    assert status == 2 and "exists: `klaudit baseline update`" in err
    assert (folder.root / FILE).read_text() == "precious"
    assert run("baseline", "write", "--force", "-q")[0] == 0
    assert len(paths(folder)) == 2


@pytest.mark.parametrize("command", ["update", "prune"])
def test_there_must_be_a_file_to_renew(run: Run, command: str) -> None:
    status, _, err = run("baseline", command)
    assert status == 2 and "no such file: `klaudit baseline write` makes one" in err


def test_the_configuration_names_the_file_from_its_own_folder(
    folder: Folder, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write({"klaudit.toml": 'baseline = "ci/known.json"\n', "ci/x": ""})
    status, _, err = run("scan", "-q")
    assert status == 2 and "ci/known.json: no such file" in err
    monkeypatch.chdir(folder.root / "sub")
    assert run("baseline", "write", "-q", "..")[0] == 0
    assert paths(folder, "ci/known.json") == [("../run.sh", 1), ("../sub/other.sh", 1)]
    assert run("scan", "-q", "..") == (0, "", "")
    assert run("scan", "-q", "other.sh") == (0, "", "")
    assert run("scan", "-q", "--isolated", "other.sh")[0] == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [("3", "must be the name of a file"), ('""', "must be the name of a file"), ('"../b.json"', "leads out of the folder"), ('"a\\u0000b"', "null byte")],
)  # fmt: skip
def test_a_configured_name_that_cannot_be_is_an_error_with_its_line(
    folder: Folder, run: Run, value: str, message: str
) -> None:
    folder.write({"klaudit.toml": f"jobs = 1\nbaseline = {value}\n"})
    status, _, err = run("scan", "-q")
    assert status == 2 and message in err and "klaudit.toml:2:" in err


def test_a_link_may_not_lead_the_configured_file_out_of_the_tree(
    folder: Folder, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("outside") / "b.json"
    (folder.root / "link.json").symlink_to(target)
    folder.write({"klaudit.toml": 'baseline = "link.json"\n'})
    status, _, err = run("baseline", "write")
    assert status == 2 and "leads out of the folder" in err
    assert not target.exists()


def test_a_part_is_renewed_and_the_rest_stays(folder: Folder, run: Run) -> None:
    assert run("baseline", "write", "-q")[0] == 0
    folder.write({"run.sh": BETTER, "sub/other.sh": LAUNCH + launch("actor_rollout_ref.actor.kl_loss_coef=0.5")})
    assert run("baseline", "update", "-q", "sub/other.sh")[0] == 0
    assert paths(folder) == [("run.sh", 1), ("sub/other.sh", 1), ("sub/other.sh", 1)]


def test_a_file_that_cannot_be_read_keeps_its_rows_and_is_told(folder: Folder, run: Run) -> None:
    assert run("baseline", "write", "-q")[0] == 0
    folder.write({"run.sh": b"python3 -m verl.trainer.main_ppo use_kl_loss=True\0"})
    status, _, err = run("baseline", "update")
    assert status == 2 and "run.sh" in err
    assert paths(folder) == [("run.sh", 1), ("sub/other.sh", 1)]


def test_a_renamed_file_is_renamed_in_the_baseline(folder: Folder, run: Run) -> None:
    assert run("baseline", "write", "-q")[0] == 0
    folder.write({"run.sh": None, "renamed.sh": LAUNCH})
    assert run("baseline", "prune", "-q")[0] == 0
    assert paths(folder) == [("renamed.sh", 1), ("sub/other.sh", 1)]


def test_standard_input_has_no_baseline(run: Run) -> None:
    status, _, err = run("baseline", "write", "-", "--stdin-filename", "x.sh")
    assert status == 2 and "not of standard input" in err


def test_names_in_a_hostile_baseline_stay_inert(folder: Folder, run: Run) -> None:
    assert run("baseline", "write", "-q")[0] == 0
    text = (folder.root / FILE).read_text()
    folder.write({FILE: text.replace('"run.sh"', '"\\u001b[31m::error::\\nx\\u202e"')})
    status, out, err = run("scan", "--baseline", FILE)
    assert status == 0 and "taken for" in out
    assert not any(character in out + err for character in "\x1b\u202e") and "::error::\nx" not in out + err


def test_help_tells_the_commands_apart(run: Run) -> None:
    status, out, _ = run("baseline", "--help")
    assert status == 0
    for line in ("List every finding of today.", "Add new findings, take out those that are gone.", "add none."):
        assert line in out
