"""Known findings do not count, whatever becomes of their lines; one more of the same kind does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.gate.baseline_file import BaselineError, read, row_of, write
from klaudit.gate.comparison import prefix_of
from klaudit.model import Report
from tests.gate.scratch import BETTER, LAUNCH, Folder, launch, places

FILE = "klaudit-baseline.json"
K3 = "KLA101"


def known(folder: Folder, *paths: str, at: str = FILE) -> None:
    """Lists what a scan finds, in the folder's baseline."""
    report = folder.scan(*paths)
    assert report.findings
    where = (folder.root / at).parent
    write(str(folder.root / at), [row_of(each, prefix_of(str(where), str(folder.root))) for each in report.findings])


def new(folder: Folder, *paths: str, at: str = FILE) -> list[str]:
    return places(folder.scan(*paths, baseline=at).findings)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write({"run.sh": LAUNCH, "other.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.2")})
    known(folder)
    return folder


def test_what_is_listed_does_not_count_and_is_told(folder: Folder) -> None:
    report = folder.scan(baseline=FILE)
    assert report.findings == () and report.remarks == ()
    assert {(each.by, each.reason) for each in report.withheld} == {("baseline", f"listed in {FILE}")}
    assert len(report.withheld) == 2


QUOTED = LAUNCH.replace("algorithm.adv_estimator=grpo", '"algorithm.adv_estimator=grpo"').replace("=True", "='True'")


@pytest.mark.parametrize(
    "text",
    [
        "# moved\n\n\n" + LAUNCH,
        LAUNCH.replace(" \\\n    ", " "),
        QUOTED,
        LAUNCH.replace("    ", "\t \t"),
        "set -x\nX=1\n" + LAUNCH + "# end\n",
    ],
    ids=["moved", "one line", "quoted", "indented", "surrounded"],
)
def test_shell_laid_out_anew_is_the_same(folder: Folder, text: str) -> None:
    folder.write({"run.sh": text})
    assert new(folder) == []


def test_settings_in_another_order_are_the_same(folder: Folder) -> None:
    first, *rest = LAUNCH.rstrip("\n").split(" \\\n")
    folder.write({"run.sh": " \\\n".join([first, "    trainer.nnodes=2", *reversed(rest)]) + "\n"})
    assert new(folder) == []


def test_a_value_that_changed_is_the_same_finding(folder: Folder) -> None:
    folder.write({"other.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.5")})
    assert new(folder) == []


CALL = "from trl import GRPOConfig\n\n\ndef main():\n    config = GRPOConfig(beta=0.04, loss_type='bnpo')\n    return config\n"
YAML = "model_name_or_path: x\nbeta: 0.1\nkl_loss_type: low_var_kl\n"
LOSS = """import torch


class Trainer:
    def loss(self, logps, old_logps, ref_logps, adv):
        kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1
        return (-(logps - old_logps).exp() * adv + self.beta * kl).mean()
"""


@pytest.mark.parametrize(
    ("text", "again"),
    [
        (CALL, CALL.replace("'bnpo'", '"bnpo"').replace("(beta", "(  # why\n        beta").replace("main", "main")),
        (
            CALL,
            "import os\n" + CALL.replace("beta=0.04, loss_type='bnpo'", "loss_type='bnpo',\n        beta=0.04,\n    "),
        ),
        (
            LOSS,
            LOSS.replace("torch.exp(ref_logps - logps)", "torch.exp(ref_logps-logps)").replace("class", "\n\nclass"),
        ),
        (
            LOSS,
            LOSS.replace(
                "kl = torch.exp(ref_logps - logps) - (",
                "kl = torch.exp(\n            ref_logps - logps,  # the ratio\n        ) - (",
            ),
        ),
    ],
)
def test_python_laid_out_anew_is_the_same(tmp_path: Path, text: str, again: str) -> None:
    folder = Folder(tmp_path)
    folder.write({"train.py": text})
    known(folder)
    folder.write({"train.py": again})
    report = folder.scan(baseline=FILE)
    assert report.findings == () and report.remarks == ()


# --- one more ----------------------------------------------------------------------------------------------------------------------


def test_a_second_one_in_the_same_file_counts(folder: Folder) -> None:
    folder.write({"run.sh": LAUNCH + LAUNCH})
    assert len(new(folder)) == 1


def test_of_several_that_are_alike_the_one_with_other_values_is_the_new_one(folder: Folder) -> None:
    added = launch("actor_rollout_ref.actor.kl_loss_coef=0.5")
    for text, line in ((added + LAUNCH, 3), (LAUNCH + added, 7)):
        folder.write({"run.sh": text})
        assert new(folder) == [f"run.sh:{line} {K3}"]


def test_the_same_in_another_file_counts(folder: Folder) -> None:
    folder.write({"third.sh": LAUNCH})
    assert new(folder) == [f"third.sh:3 {K3}"]


def test_another_rule_in_the_same_file_counts(folder: Folder) -> None:
    folder.write(
        {"run.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.1", "actor_rollout_ref.actor.kl_loss_coef=0.2")}
    )
    assert {place.rpartition(" ")[2] for place in new(folder)} == {"KLA208"}


def test_taking_away_the_first_of_two_makes_nothing_new(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write({"run.sh": LAUNCH + launch("actor_rollout_ref.actor.kl_loss_coef=0.5")})
    known(folder)
    folder.write({"run.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.5")})
    report = folder.scan(baseline=FILE)
    assert report.findings == ()
    assert report.remarks == (
        f"{FILE} lists 1 finding that is fixed or suppressed: run.sh (KLA101); `klaudit baseline prune` takes it out",
    )


@settings(max_examples=12)
@given(
    st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=4),
    st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=4),
)
def test_as_many_count_as_are_more_than_listed(
    tmp_path_factory: pytest.TempPathFactory, before: list[float], after: list[float]
) -> None:
    folder = Folder(tmp_path_factory.mktemp("counts"))
    folder.write({"run.sh": "".join(launch(f"actor_rollout_ref.actor.kl_loss_coef={each}") for each in before)})
    known(folder)
    folder.write({"run.sh": "".join(launch(f"actor_rollout_ref.actor.kl_loss_coef={each}") for each in after)})
    report = folder.scan(baseline=FILE)
    assert len(report.findings) == max(len(after) - len(before), 0)
    assert len(report.findings) + len(report.withheld) == len(after)
    if not set(after) & set(before) and report.findings:
        assert len({each.span.line for each in report.findings}) == len(report.findings)


# --- moved files -----------------------------------------------------------------------------------------------------------------------


def test_a_renamed_file_is_taken_for_the_same_and_told(folder: Folder) -> None:
    folder.write({"run.sh": None, "renamed.sh": LAUNCH})
    report = folder.scan(baseline=FILE)
    assert report.findings == ()
    assert report.remarks == (f"renamed.sh is taken for run.sh, which {FILE} lists",)


def test_a_folder_that_moved_is_followed_by_the_names_in_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    names = [f"run_{number}.sh" for number in range(4)]
    folder.write({f"examples/grpo/{name}": LAUNCH for name in names})
    known(folder)
    folder.write({f"examples/grpo/{name}": None for name in names} | {f"recipes/grpo/{name}": LAUNCH for name in names})
    report = folder.scan(baseline=FILE)
    assert report.findings == ()
    assert len(report.remarks) == 4


@pytest.mark.parametrize(
    "files",
    [
        {"run.sh": None, "one.sh": LAUNCH, "two.sh": LAUNCH},
        {"run.sh": None, "one.sh": LAUNCH + LAUNCH},
        {"run.sh": None, "one.sh": launch("actor_rollout_ref.actor.kl_loss_coef=0.5")},
        {"run.sh": None, "elsewhere/one.sh": LAUNCH},
        {"one.sh": LAUNCH},
    ],
    ids=["two candidates", "one more in it", "another value", "another folder and name", "a copy"],
)
def test_what_may_be_another_file_is_new(folder: Folder, files: dict[str, str | None]) -> None:
    folder.write(files)
    assert new(folder)


# --- entries that are gone ---------------------------------------------------------------------------------------------------------------


def gone(report: Report) -> list[str]:
    return [remark for remark in report.remarks if " fixed or suppressed: " in remark]


def test_an_entry_whose_finding_is_fixed_is_told(folder: Folder) -> None:
    folder.write({"run.sh": BETTER})
    (remark,) = gone(folder.scan(baseline=FILE))
    assert "lists 1 finding that is fixed or suppressed: run.sh (KLA101)" in remark


def test_an_entry_whose_file_is_gone_is_told(folder: Folder) -> None:
    folder.write({"run.sh": None})
    assert len(gone(folder.scan(baseline=FILE))) == 1


@pytest.mark.parametrize(
    "options",
    [
        Options(select=("KLA2",)),
        Options(ignore=("k3-in-loss",)),
        Options(frameworks=("trl",)),
        Options(timeout=1e-9),
    ],
)
def test_what_the_scan_did_not_look_for_is_not_called_gone(folder: Folder, options: Options) -> None:
    folder.write({"run.sh": BETTER})
    from msgspec.structs import replace

    report = scan([str(folder.root)], replace(options, jobs=1, baseline=str(folder.root / FILE)))
    assert gone(report) == []


def test_a_part_of_the_tree_says_nothing_of_the_rest(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    (tmp_path / ".git").mkdir()
    folder.write({"a/run.sh": LAUNCH, "b/run.sh": LAUNCH, "c.sh": LAUNCH})
    known(folder)
    for paths in (["a"], ["a", "b"], ["a/run.sh"], ["c.sh"]):
        report = folder.scan(*paths, baseline=FILE)
        assert report.findings == () and report.remarks == (), paths
    folder.write({"c.sh": BETTER, "a/run.sh": BETTER})
    assert len(gone(folder.scan("c.sh", baseline=FILE))) == 1
    assert "c.sh" in gone(folder.scan("c.sh", baseline=FILE))[0]
    assert gone(folder.scan("b/run.sh", baseline=FILE)) == []


def test_a_file_that_cannot_be_read_is_not_called_gone(folder: Folder) -> None:
    folder.write({"run.sh": b"python3 -m verl.trainer.main_ppo\0"})
    report = folder.scan(baseline=FILE)
    assert report.errors and gone(report) == []


def test_a_suppressed_finding_needs_no_row(folder: Folder) -> None:
    folder.write({"run.sh": "# klaudit: ignore-file[KLA101] because\n" + LAUNCH})
    report = folder.scan(baseline=FILE)
    assert {each.by for each in report.withheld} == {"suppression", "baseline"}
    assert len(gone(report)) == 1


def test_what_a_threshold_withholds_keeps_its_row(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write({"run.sh": LAUNCH.replace("use_kl_loss=", "use_kl_los=")})  # a likely misspelling: medium confidence
    known(folder)
    report = scan([str(tmp_path)], Options(jobs=1, min_confidence="high", baseline=str(tmp_path / FILE)))
    assert {each.by for each in report.withheld} >= {"confidence"}
    assert gone(report) == []


# --- identity ----------------------------------------------------------------------------------------------------------------------------


def test_fingerprints_do_not_depend_on_where_the_scan_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prints: set[frozenset[str]] = set()
    for place in ("one", "two/deeper"):
        folder = Folder(tmp_path / place)
        folder.write(
            {
                "a/b/run.sh": LAUNCH + LAUNCH,
                "a/b/train.py": CALL,
                ".git/HEAD": "ref: refs/heads/main\n",
                ".git/objects/x": "",
            }
        )
        for start in (".", "a", "a/b", "a/b/run.sh"):
            report = folder.scan(start)
            prints.add(frozenset(each.fingerprint for each in report.findings if each.span.path.endswith("run.sh")))
        monkeypatch.chdir(folder.root / "a")
        prints.add(
            frozenset(
                each.fingerprint for each in scan(["b"], Options(jobs=1)).findings if each.span.path.endswith("run.sh")
            )
        )
    assert len(prints) == 1 and len(next(iter(prints))) == 2


def test_a_baseline_in_a_folder_of_its_own_names_files_from_there(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write({"a/run.sh": LAUNCH, "ci/x": ""})
    known(folder, at="ci/known.json")
    assert [row.path for row in read(str(tmp_path / "ci/known.json"))] == ["../a/run.sh"]
    assert new(folder, at="ci/known.json") == []
    assert new(folder, "a", at="ci/known.json") == []
    assert new(folder, "a/run.sh", at="ci/known.json") == []


def test_a_missing_baseline_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="no such file: `klaudit baseline write` makes one"):
        Folder(tmp_path).scan(baseline=FILE)
