"""What comments suppress, and what is said of those that suppress nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from klaudit.configuration import Options, PerFileIgnores
from klaudit.engine import scan
from klaudit.gate.directives import META, directives
from klaudit.globs import Globs
from klaudit.model import Report

OPTIONS = Options(jobs=1, framework_versions={"verl": "0.9.1", "trl": "1.9.0"})

LAUNCH = """python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    actor_rollout_ref.actor.use_kl_loss=True \\
    actor_rollout_ref.actor.kl_loss_type=low_var_kl
"""
CLEAN = LAUNCH.replace("use_kl_loss=True", "use_kl_loss=False")
CALL = "from trl import GRPOConfig\n\nconfig = GRPOConfig(\n    output_dir='x',\n    beta=0.04,\n)\n"


def scanned(folder: Path, text: str, name: str = "run.sh", options: Options = OPTIONS) -> Report:
    (folder / name).write_bytes(text.encode())
    return scan([str(folder)], options)


def told(report: Report) -> list[str]:
    """`line rule severity`, and the message of what is said of comments."""
    return [
        f"{each.span.line} {each.rule} {each.severity}" + (f": {each.message}" if each.rule in META else "")
        for each in report.findings
    ]


# --- what they suppress ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", "# klaudit: ignore[KLA101] why\n" + LAUNCH),
        ("run.sh", "# klaudit: ignore[k3-in-loss] why\n" + LAUNCH),
        ("run.sh", "#klaudit:ignore[kla101,KLA102]: why\n# klaudit: ignore[KLA102]\n" + LAUNCH),
        ("run.sh", LAUNCH.rstrip("\n") + "  # noqa # klaudit: ignore[KLA101] why"),
        ("run.sh", "# klaudit: ignore-start[KLA101] why\necho\n" + LAUNCH + "# klaudit: ignore-end[KLA101]\n"),
        ("run.sh", "# klaudit: ignore-start[KLA101] why\necho\n" + LAUNCH + "# klaudit: ignore-end\n"),
        ("run.sh", "#!/bin/sh\n# klaudit: ignore-file[KLA101] why\necho\n" + LAUNCH),
        ("run.sh", f"function f {{\n\t# klaudit: ignore[KLA101] why\n\t{LAUNCH}}}\nf\n"),
        ("run.sh", "# klaudit: ignore[KLA101] why\r\n" + LAUNCH.replace("\n", "\r\n")),
        ("run.sh", "# klaudit: ignore[KLA101] wegen é ünd 核\n" + LAUNCH),
        (
            "run.sh",
            "# klaudit: ignore[KLA101] why\nA=(\n  actor_rollout_ref.actor.use_kl_loss=True\n"
            "  actor_rollout_ref.actor.kl_loss_type=low_var_kl )\n"
            'python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "${A[@]}"\n',
        ),
        (
            "run.sh",
            "A=(\n  actor_rollout_ref.actor.use_kl_loss=True\n  actor_rollout_ref.actor.kl_loss_type=low_var_kl )\n"
            '# klaudit: ignore[KLA101] why\npython3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "${A[@]}"\n',
        ),
        ("a.py", CALL.replace("beta=0.04,", "beta=0.04,  # klaudit: ignore[KLA101] why")),
        ("a.py", CALL.replace("config =", "# klaudit: ignore[KLA101] why\nconfig =")),
        ("a.py", CALL.replace("GRPOConfig(\n", "GRPOConfig(  # klaudit: ignore[KLA101] why\n")),
        ("a.py", CALL.rstrip("\n") + "  # klaudit: ignore[KLA101] why"),
        ("job.yaml", "# klaudit: ignore[KLA101] why\nrun: |\n  " + LAUNCH.replace("\n", "\n  ")),
        ("job.yaml", "run: |\n  # klaudit: ignore[KLA101] why\n  " + LAUNCH.replace("\n", "\n  ")),
        ("job.yaml", "run: |  # klaudit: ignore[KLA101] why\n  " + LAUNCH.replace("\n", "\n  ")),
    ],
)
def test_a_comment_suppresses(tmp_path: Path, name: str, text: str) -> None:
    report = scanned(tmp_path, text, name)
    assert [each.rule for each in report.findings if each.rule not in META] == []
    assert "KLA101" in [held.finding.rule for held in report.withheld]
    held = next(held for held in report.withheld if held.finding.rule == "KLA101")
    assert (held.by, held.path) == ("suppression", name)
    assert held.reason.startswith(("why", "wegen é ünd 核"))
    assert b"klaudit:" in (tmp_path / name).read_bytes().split(b"\n")[(held.line or 0) - 1]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", LAUNCH + "# klaudit: ignore[KLA101] below\n"),
        ("run.sh", "# klaudit: ignore[KLA101] of another command\necho\n" + LAUNCH),
        ("run.sh", "# klaudit: ignore[KLA102] another rule\n" + LAUNCH),
        ("run.sh", "# klaudit: ignore[KLA1] a prefix\n" + LAUNCH),
        ("run.sh", "# klaudit: ignore no rule\n" + LAUNCH),
        ("run.sh", "# klaudit: ignore[]\n" + LAUNCH),
        ("run.sh", "# klaudit: ignore[KLA101 no end\n" + LAUNCH),
        ("run.sh", "# write `# klaudit: ignore[KLA101]`\n" + LAUNCH),
        ("run.sh", "echo '\n# klaudit: ignore[KLA101] in a string\n'\n" + LAUNCH),
        ("run.sh", "cat <<E\n# klaudit: ignore-file[KLA101] in a heredoc\nE\n" + LAUNCH),
        ("run.sh", "echo x# klaudit: ignore[KLA101] in a word; " + LAUNCH),
        ("run.sh", "# klaudit: ignore-start[KLA101] without an end\n" + LAUNCH),
        ("run.sh", "# klaudit: ignore-start[KLA101] ends\n# klaudit: ignore-end[KLA101]\n" + LAUNCH),
        ("run.sh", "echo\n" * 60 + "# klaudit: ignore-file[KLA101] too far down\n" + LAUNCH),
        ("a.py", CALL + "'''\n# klaudit: ignore-file[KLA101] in a string\n'''\n"),
        ("a.py", CALL.replace("output_dir='x'", "output_dir='# klaudit: ignore[KLA101] x'")),
        ("job.yaml", "note: '# klaudit: ignore-file[KLA101] x'\nrun: |\n  " + LAUNCH.replace("\n", "\n  ")),
        ("job.yaml", "note: |\n  # klaudit: ignore-file[KLA101] x\nrun: |\n  " + LAUNCH.replace("\n", "\n  ")),
    ],
)
def test_what_suppresses_nothing(tmp_path: Path, name: str, text: str) -> None:
    report = scanned(tmp_path, text, name)
    assert "KLA101" in [each.rule for each in report.findings]
    assert report.withheld == ()


def test_a_comment_in_a_base_file_does_not_suppress_what_is_reported_in_the_launch(tmp_path: Path) -> None:
    (tmp_path / "base.sh").write_text(
        "# klaudit: ignore[KLA101] x\nTYPE=actor_rollout_ref.actor.kl_loss_type=low_var_kl\n"
    )
    text = "source base.sh\n" + LAUNCH.replace("actor_rollout_ref.actor.kl_loss_type=low_var_kl", "$TYPE")
    assert "4 KLA101 warning" in told(scanned(tmp_path, text))


def test_nothing_is_suppressed_where_comments_are_ignored(tmp_path: Path) -> None:
    text = "# klaudit: ignore[KLA101]\n# klaudit: ignroe\n" + LAUNCH
    assert told(scanned(tmp_path, text, options=replace(OPTIONS, suppressions=False))) == ["5 KLA101 warning"]


# --- what is said of them --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("ignore[KLA101] x", ["1 KLA001 note: no KLA101 to suppress here"]),
        ("ignore[k3-in-loss, KLA102] x", ["1 KLA001 note: no KLA101, KLA102 to suppress here"]),
        ("ignore-file[KLA101]", ["1 KLA001 note: no KLA101 to suppress here", "1 KLA002 note: KLA101 suppressed without a reason"]),
        ("ingore[KLA101] x", ["1 KLA001 warning: this comment suppresses nothing: `ingore` is nothing klaudit knows: did you mean `ignore` or `ignore-end`?"]),
        ("ignore[KLA110] x", ["1 KLA001 warning: this comment suppresses nothing: unknown rule `KLA110`: did you mean `KLA211` or `KLA210`?"]),
        ("ignore[k3-in-los] x", ["1 KLA001 warning: this comment suppresses nothing: unknown rule `k3-in-los`: did you mean `k3-in-loss` or `k1-in-loss`?"]),
        ("ignore[KLA1] x", ["1 KLA001 warning: this comment suppresses nothing: `KLA1` is many rules: name each one"]),
        ("ignore KLA101 x", ["1 KLA001 warning: this comment suppresses nothing: it names no rule: write `klaudit: ignore[KLA101] and why`"]),
        ("ignore[KLA101 x", ["1 KLA001 warning: this comment suppresses nothing: the `]` after `ignore[` is missing"]),
        ("ignore[KLA001] x", ["1 KLA001 warning: this comment suppresses nothing: KLA001 is about comments, and no comment suppresses it: `ignore` and `per-file-ignores` do"]),
        ("ignore-start[KLA101] x", ["1 KLA001 warning: this comment suppresses nothing: no `ignore-end[KLA101]` follows"]),
        ("ignore-end[KLA101]", ["1 KLA001 warning: this comment suppresses nothing: no `ignore-start[KLA101]` above it is open"]),
        ("ignore-end", ["1 KLA001 warning: this comment suppresses nothing: no `ignore-start` above it is open"]),
    ],
)  # fmt: skip
def test_comments_without_effect(tmp_path: Path, comment: str, expected: list[str]) -> None:
    assert told(scanned(tmp_path, f"# klaudit: {comment}\n{CLEAN}")) == expected


def test_the_part_that_is_not_needed_is_named_and_the_nearest_finding(tmp_path: Path) -> None:
    text = f"# klaudit: ignore[KLA101, KLA102] x\n{LAUNCH}# klaudit: ignore[KLA101] x\necho\n{LAUNCH}"
    assert told(scanned(tmp_path, text)) == [
        "1 KLA001 note: no KLA102 to suppress here",
        "6 KLA001 note: no KLA101 to suppress here; the nearest one is on line 10",
        "10 KLA101 warning",
    ]


def test_nothing_to_be_about(tmp_path: Path) -> None:
    (told_of_it,) = told(scanned(tmp_path, f"{CLEAN}# klaudit: ignore[KLA101] x\n"))
    assert told_of_it.endswith("nothing follows it that it could be about")


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 1),
        ({"select": ("KLA1", "KLA0")}, 1),
        ({"select": ("KLA2", "KLA0")}, 0),
        ({"ignore": ("KLA101",)}, 0),
        ({"ignore": ("unused-suppression",)}, 0),
        ({"select": ("KLA101",)}, 0),
        ({"frameworks": ("trl",)}, 0),
    ],
)
def test_only_rules_that_were_looked_for_are_unused(
    tmp_path: Path, changes: dict[str, tuple[str, ...]], count: int
) -> None:
    text = f"# klaudit: ignore[KLA101] x\n{CLEAN}"
    assert len(scanned(tmp_path, text, options=replace(OPTIONS, **changes)).findings) == count


def test_rules_that_a_file_ignores_are_not_unused(tmp_path: Path) -> None:
    ignores = PerFileIgnores(Globs(str(tmp_path.resolve()), ("run.sh",)), ("KLA101",))
    report = scanned(
        tmp_path, f"# klaudit: ignore[KLA101] x\n{CLEAN}", options=replace(OPTIONS, per_file_ignores=(ignores,))
    )
    assert report.findings == ()


def test_nothing_is_unused_in_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    text = "# klaudit: ignore[KLA101] x\nfrom trl import GRPOConfig\nGRPOConfig(beta=0.1\n"
    report = scanned(tmp_path, text, "a.py")
    assert report.errors and report.findings == ()


def test_files_without_any_word_of_interest_are_looked_at(tmp_path: Path) -> None:
    assert len(scanned(tmp_path, "# klaudit: ignore[KLA101] x\necho\n").findings) == 1


@pytest.mark.parametrize(("require", "severity"), [(False, "note"), (True, "warning")])
def test_reasons(tmp_path: Path, require: bool, severity: str) -> None:
    report = scanned(
        tmp_path, f"# klaudit: ignore[KLA101]\n{LAUNCH}", options=replace(OPTIONS, require_reasons=require)
    )
    assert told(report) == [f"1 KLA002 {severity}: KLA101 suppressed without a reason"]


def test_a_required_reason_that_is_missing_weighs_as_much_as_what_is_suppressed(tmp_path: Path) -> None:
    text = LAUNCH.replace("actor_rollout_ref.actor.use_kl_loss=True", "algorithm.use_kl_in_reward=True")
    text = text.replace("actor_rollout_ref.actor.kl_loss_type=", "algorithm.kl_penalty=")
    report = scanned(
        tmp_path, f"# klaudit: ignore[KLA102, KLA108]\n{text}", options=replace(OPTIONS, require_reasons=True)
    )
    assert ("KLA002", "error") in [(each.rule, each.severity) for each in report.findings]


# --- hostile -----------------------------------------------------------------------------------------------------------------------------


def took(folder: Path, text: str, name: str = "run.sh") -> tuple[Report, float]:
    started = time.perf_counter()
    report = scanned(folder, text, name)
    return report, time.perf_counter() - started


@pytest.mark.parametrize(
    "text",
    [
        "# klaudit: ignore[KLA101] x\n" * 10_000 + LAUNCH,
        "".join(f"# klaudit: ignore-start[KLA101] {n}\n" for n in range(10_000)) + LAUNCH,
        "# klaudit: ignore-start[KLA101] x\n" * 5_000 + LAUNCH + "# klaudit: ignore-end[KLA101]\n" * 5_000,
        "# " + "klaudit: ignore[KLA101] x # " * 10_000 + "\n" + LAUNCH,
        "# klaudit: ignore[" + "KLA101," * 150_000 + "] x\n" + LAUNCH,
        "# klaudit: ignore[" + "x" * 1_000_000 + "\n" + LAUNCH,
        "# klaudit: " + "y" * 1_000_000 + "\n" + LAUNCH,
        "# klaudit: ignore[" + "KLA999," * 20_000 + "] x\n" + LAUNCH,
        "".join(f"# klaudit: ignore[KLB{n}] x\n" for n in range(10_000)) + LAUNCH,
        "#" * 500_000 + " klaudit: ignore[KLA101] x\n" + LAUNCH,
        "#" + " " * 500_000 + "klaudit: ignore[KLA101] x\n" + LAUNCH,
    ],
    ids=[
        "many",
        "unclosed",
        "nested",
        "one-line",
        "long-list",
        "no-bracket",
        "long-word",
        "unknown",
        "unknowns",
        "hashes",
        "blanks",
    ],
)
def test_masses_cost_little(tmp_path: Path, text: str) -> None:
    report, seconds = took(tmp_path, text)
    assert seconds < 8
    assert report.errors == ()
    assert all(len(each.message) < 2_000 for each in report.findings)


@pytest.mark.parametrize("name", ["run.sh", "a.py", "a.yaml", "a.toml", "a.ipynb", "a.json", "run"])
def test_bytes_that_are_no_text(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"#!/bin/sh\n# klaudit: ignore[KLA101] \xff\x1b[31m\n\xfe\n")
    report = scan([str(tmp_path)], OPTIONS)
    assert not [error for error in report.errors if "internal" in error.message]


@pytest.mark.parametrize("reason", ["", " --", " ...", "  # noqa: E501", " # type: ignore", ": \u2026"])
def test_what_is_no_reason(reason: str) -> None:
    assert verbs(f"# klaudit: ignore[KLA101]{reason}") == [("ignore", frozenset({"KLA101"}), "")]


@pytest.mark.parametrize("reason", ["x", "see #12", "核", "# 3 of the list", "a # b"])
def test_what_is_a_reason(reason: str) -> None:
    assert verbs(f"# klaudit: ignore[KLA101] {reason}") == [("ignore", frozenset({"KLA101"}), reason)]


def verbs(comment: str) -> Sequence[tuple[str, frozenset[str], str]]:
    return [(each.verb, each.rules, each.reason) for each in directives(comment)]


def test_several_in_one_comment() -> None:
    assert verbs("# klaudit: ignore[KLA101] one # noqa # klaudit: ignore-file[KLA102]\u2014two") == [
        ("ignore", frozenset({"KLA101"}), "one"),
        ("ignore-file", frozenset({"KLA102"}), "two"),
    ]
