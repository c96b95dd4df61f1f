"""The gate as a team meets it: a pull request in a scratch repository, judged by the command line."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from klaudit.cli import main
from tests.gate.scratch import LAUNCH, Repository, launch
from tests.integrations.actions_runner import commands

SCHEMA = Path(__file__).parents[1] / "reports" / "standards" / "sarif-schema-2.1.0.json"
LINE = 3  # of LAUNCH, where the penalty is switched on


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def annotations(self) -> list[tuple[str, str, int]]:
        """What GitHub would show beside the lines of a pull request."""
        shown = [each for each in commands(self.out + self.err) if each[0] in ("error", "warning")]
        return [(name, given["file"], int(given["line"])) for name, given, _ in shown]


class Gate(Repository):
    """A repository with a finding on main, and a branch that is checked out."""

    def __init__(self, root: Path, run: Callable[..., Outcome]) -> None:
        super().__init__(root, {"old.sh": LAUNCH, "pyproject.toml": "[project]\nname = 'x'\n"})
        self.git("checkout", "-q", "-b", "change")
        self._run = run

    def judge(self, *arguments: str) -> Outcome:
        """As the action does for a pull request."""
        return self._run("scan", "--diff-base", "main", "--format", "github", *arguments)

    def report(self, *arguments: str) -> Any:
        return json.loads(self._run("scan", "--diff-base", "main", "--format", "json", *arguments).out)

    def sarif(self) -> Any:
        log = json.loads(self._run("scan", "--diff-base", "main", "--format", "sarif").out)
        jsonschema.Draft4Validator(json.loads(SCHEMA.read_bytes())).validate(log)
        return log

    def fingerprints(self) -> list[Any]:
        return [
            (result["ruleId"], result["partialFingerprints"]["klaudit/v1"])
            for result in self.sarif()["runs"][0]["results"]
            if not result.get("suppressions")
        ]

    def call(self, *arguments: str) -> Outcome:
        return self._run(*arguments)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gate:
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["klaudit", *arguments])
        status = main()
        return Outcome(status, *capsys.readouterr())

    gate = Gate(tmp_path / "repository", run)
    monkeypatch.chdir(gate.root)
    return gate


# --- what must hold -----------------------------------------------------------------------------------------------------------------


def test_a_change_that_adds_k3_to_a_loss_fails_with_one_annotation_on_its_line(gate: Gate) -> None:
    gate.commit({"jobs/new.sh": "#!/bin/bash\nset -e\n\n" + LAUNCH})
    outcome = gate.judge()
    assert outcome.status == 1
    assert outcome.annotations == [("warning", "jobs/new.sh", 3 + LINE)]


def test_the_same_finding_in_old_code_does_not(gate: Gate) -> None:
    gate.commit({"note.md": "text\n"})
    outcome = gate.judge()
    assert (outcome.status, outcome.annotations) == (0, [])
    (withheld,) = gate.report()["withheld"]
    assert (withheld["finding"]["path"], withheld["by"]) == ("old.sh", "unchanged")
    assert gate.call("scan", "--quiet").status == 1  # it is still there


def test_a_base_config_that_flips_an_old_launch_does(gate: Gate) -> None:
    gate.git("checkout", "-q", "main")
    gate.commit(
        {"base.yaml": "beta: 0.0\n", "run.sh": "trl grpo --config base.yaml\n", "requirements.txt": "trl==0.17.0\n"}
    )
    gate.git("checkout", "-q", "-b", "flip")
    gate.commit({"base.yaml": "beta: 0.04\n"})
    outcome = gate.judge()
    assert outcome.status == 1
    assert {file for _, file, _ in outcome.annotations} <= {"run.sh", "base.yaml"} and outcome.annotations


def test_a_suppression_with_a_reason_passes(gate: Gate) -> None:
    gate.commit({"new.sh": "# klaudit: ignore[KLA101] reproduces the paper\n" + LAUNCH})
    assert (gate.judge().status, gate.judge().annotations) == (0, [])
    (withheld,) = [each for each in gate.report()["withheld"] if each["path"] == "new.sh"]
    assert (withheld["by"], withheld["reason"]) == ("suppression", "reproduces the paper")


def test_one_without_a_reason_does_not_where_reasons_are_required(gate: Gate) -> None:
    settings = '[project]\nname = "x"\n[tool.klaudit]\nrequire-reasons = true\n'
    gate.commit({"new.sh": "# klaudit: ignore[KLA101]\n" + LAUNCH, "pyproject.toml": settings})
    outcome = gate.judge()
    assert outcome.status == 1
    assert ("new.sh", 1) in [(file, line) for _, file, line in outcome.annotations]


def test_a_baseline_passes_and_one_more_does_not(gate: Gate) -> None:
    gate.commit({"new.sh": LAUNCH})
    assert gate.call("baseline", "write").status == 0
    assert gate.call("scan", "--baseline", "klaudit-baseline.json", "--quiet").status == 0
    gate.write({"third.sh": LAUNCH})
    outcome = gate.call("scan", "--baseline", "klaudit-baseline.json", "--format", "github")
    assert (outcome.status, outcome.annotations) == (1, [("warning", "third.sh", LINE)])


def test_the_fix_makes_it_pass(gate: Gate) -> None:
    gate.commit({"new.sh": LAUNCH})
    assert gate.judge().status == 1
    assert gate.call("fix", "new.sh", "--write").status == 0
    assert (gate.judge().status, gate.judge().annotations) == (0, [])
    assert "use_kl_in_reward=True" in (gate.root / "new.sh").read_text(encoding="utf-8")
    assert (gate.root / "old.sh").read_text(encoding="utf-8") == LAUNCH


def test_sarif_is_valid_and_fingerprints_survive_moved_lines(gate: Gate) -> None:
    gate.commit({"new.sh": LAUNCH})
    before = gate.fingerprints()
    assert [rule for rule, _ in before] == ["KLA101"]
    gate.commit({"new.sh": "#!/bin/bash\n# moved\n\n\n" + LAUNCH + "echo done\n"})
    assert gate.fingerprints() == before
    gate.commit({"new.sh": launch("trainer.n_gpus_per_node=8")})
    assert gate.fingerprints() == before
    gate.commit({"other.sh": LAUNCH})
    assert len(set(gate.fingerprints())) == 2


def test_init_then_everything_passes_until_something_is_added(gate: Gate) -> None:
    """The newcomer's path: klaudit set up on old code blocks nobody, and then what is new."""
    assert gate.call("init", "--baseline", "--pre-commit", "--github", "--write").status == 0
    gate.commit()
    assert gate.call("scan", "--quiet").status == 0
    gate.write({"new.sh": LAUNCH})
    assert gate.call("scan", "--quiet").out.startswith(f"new.sh:{LINE}:")


# --- hostile content -------------------------------------------------------------------------------------------------------------------

FORGED = "::error file=forged.py,line=1::forged"
MARKUP = "<img src=x onerror=alert(1)><script>alert(1)</script>|`x`|[a](javascript:alert(1)) @octocat #1"
FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit", "markdown", "html")
HOSTILE_NAMES = {
    f"{FORGED}.sh": LAUNCH,
    f"a\n{FORGED}\nb.sh": LAUNCH,
    "esc\x1b[2J\x1b]0;owned\x07.sh": LAUNCH,
    "rtl\u202egnp.sh": LAUNCH,
    "##[error]forged.sh": LAUNCH,
    "<img src=x onerror=alert(1)>.sh": LAUNCH,
    "x.sh": launch(f"'trainer.name={MARKUP}\n{FORGED}'", estimator=f"'low_var_kl\n{FORGED}\x1b[31m'"),
    "y.sh": f"# klaudit: ignore[KLA101] {MARKUP} {FORGED} \x1b[31m\n{LAUNCH}",
    f"{FORGED}.py": b"use_kl_loss = '\xff'\n",
    "value.yaml": f'actor_rollout_ref: {{actor: {{use_kl_loss: true, kl_loss_type: "{FORGED}\\e[31m<b>"}}}}\n',
}
needs_names = pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes only there")


class TestHostile:
    @needs_names
    @pytest.mark.parametrize("format_name", FORMATS)
    def test_nothing_is_forged_in_any_format(self, gate: Gate, format_name: str) -> None:
        gate.commit(HOSTILE_NAMES)
        outcome = gate.call("scan", "--diff-base", "main", "--format", format_name)
        assert outcome.status == 2  # a file that cannot be read
        printed = outcome.out + outcome.err
        assert not {c for c in printed if unicodedata.category(c) in ("Cc", "Cf", "Cs")} - {"\n"}
        found = commands(printed)
        assert bool(found) == (format_name == "github")
        assert {name for name, _, _ in found} <= {"error", "warning", "notice", "group", "endgroup"}
        assert "forged.py" not in {given.get("file") for _, given, _ in found}
        if format_name in ("json", "sarif", "gitlab"):
            assert json.loads(outcome.out)
        elif format_name == "junit":
            assert ElementTree.fromstring(outcome.out) is not None
        elif format_name == "markdown":
            prose = re.sub(r"(`+)[^`\n](?:.*?[^`])?\1(?!`)", "", outcome.out)
            assert not re.search(
                r"<(?:img|script|b>)|javascript:|(?<![\w&])@octocat", re.sub(r"(?s)```.*?```", "", prose)
            )
        elif format_name == "html":
            assert "<img" not in outcome.out.lower() and "onerror=alert(1)>" not in outcome.out

    @needs_names
    def test_nor_where_the_gate_tells_of_faults(self, gate: Gate) -> None:
        gate.write({f"bad\n{FORGED}.toml": "", "klaudit.toml": f'"x\\n{FORGED}\\u001b[31m" = 1\n'})
        for arguments in (
            ("scan",),
            ("fix",),
            ("setups",),
            ("config",),
            ("init",),
            ("baseline", "write"),
            ("scan", "--isolated", "--diff-base", f"x\n{FORGED}"),
            ("scan", "--isolated", "--diff-base", "--output=owned"),
            ("scan", "--isolated", "--diff-base", "--upload-pack=touch owned"),
            ("scan", "--isolated", "--diff-base", "HEAD:old.sh"),
            ("scan", "--isolated", "--baseline", f"x\n{FORGED}"),
            ("scan", "--config", f"bad\n{FORGED}.toml", f"no\n{FORGED}"),
        ):
            outcome = gate.call(*arguments)
            assert outcome.status == 2, arguments
            assert commands(outcome.out + outcome.err) == [], arguments
            assert "\x1b" not in outcome.out + outcome.err
        assert not (gate.root / "owned").exists()

    def test_no_configuration_of_git_is_obeyed(self, gate: Gate, tmp_path: Path) -> None:
        ran = tmp_path / "ran"
        touch = f"touch {ran}"
        gate.commit({"new.sh": LAUNCH, ".gitattributes": "* filter=x diff=x merge=x\n"})
        hooks = gate.root / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
            (hooks / name).write_text(f"#!/bin/sh\n{touch}\n", encoding="utf-8")
            (hooks / name).chmod(0o755)
        (tmp_path / "more").write_text(f"[core]\n\tpager = {touch}\n\tsshCommand = {touch}\n", encoding="utf-8")
        with (gate.root / ".git" / "config").open("a", encoding="utf-8") as config:
            config.write(
                f"[core]\n\tfsmonitor = {touch}\n\teditor = {touch}\n[include]\n\tpath = {tmp_path / 'more'}\n"
                f'[filter "x"]\n\tclean = {touch}\n\tsmudge = {touch}\n\tprocess = {touch}\n[diff]\n\texternal = {touch}\n'
                f'[diff "x"]\n\ttextconv = {touch}\n\tcommand = {touch}\n[credential]\n\thelper = !{touch}\n'
                f"[alias]\n\tdiff = !{touch}\n\tcat-file = !{touch}\n\tls-files = !{touch}\n[gpg]\n\tprogram = {touch}\n"
            )
        assert gate.judge().annotations == [("warning", "new.sh", LINE)]
        for arguments in (
            ("scan",),
            ("fix",),
            ("init", "--write"),
            ("baseline", "write"),
            ("suppress", "new.sh", "--reason", "x"),
        ):
            assert gate.call(*arguments).status in (0, 1), arguments
        assert not ran.exists()

    def test_nothing_outside_the_tree_is_read(self, gate: Gate, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        (secret / "frameworks").mkdir(parents=True)
        (secret / "run.sh").write_text(launch("trainer.name=hunter2"), encoding="utf-8")
        (secret / "base.yaml").write_text("beta: 0.04\nrun_name: hunter2\n", encoding="utf-8")
        (secret / "baseline.json").write_text("hunter2", encoding="utf-8")
        for name, target in {"linked.sh": "run.sh", "base.yaml": "base.yaml"}.items():
            (gate.root / name).symlink_to(secret / target)
        (gate.root / "folder").symlink_to(secret, target_is_directory=True)
        gate.commit({
            "a.sh": "trl grpo --config base.yaml\ntrl grpo --config ../secret/base.yaml\ntrl grpo --config folder/base.yaml\n",
            "b.sh": f"source {secret}/run.sh\n. ../secret/run.sh\nbash folder/run.sh\n",
        })  # fmt: skip
        for arguments in (
            ("scan", "--verbose"),
            ("scan", "--format", "json"),
            ("setups",),
            ("fix",),
            ("scan", "--format", "html"),
        ):
            outcome = gate.call(*arguments)
            assert "hunter2" not in outcome.out + outcome.err, arguments
        assert not [path for path in gate.report()["setups"] if path["path"] in ("linked.sh", "folder/run.sh")]

    @pytest.mark.parametrize(
        "setting",
        ['rules = ["../secret"]', 'rules = ["folder"]', 'baseline = "../secret/b.json"', 'baseline = "linked.json"'],
    )
    def test_a_configuration_cannot_point_out_of_the_tree(self, gate: Gate, tmp_path: Path, setting: str) -> None:
        (tmp_path / "secret" / "frameworks").mkdir(parents=True)
        (gate.root / "folder").symlink_to(tmp_path / "secret", target_is_directory=True)
        (gate.root / "linked.json").symlink_to(tmp_path / "secret" / "b.json")
        gate.write({"klaudit.toml": setting + "\n"})
        outcome = gate.judge()
        assert outcome.status == 2
        assert "klaudit.toml:1: " in outcome.err and "leads out of the folder of this file" in outcome.err

    def test_no_link_is_written_through(self, gate: Gate, tmp_path: Path) -> None:
        mine = tmp_path / "mine.txt"
        mine.write_text("mine", encoding="utf-8")
        for name in ("out.sarif", "klaudit-baseline.json", "summary.md", "new.sh"):
            (gate.root / name).symlink_to(mine)
        (gate.root / "folder").symlink_to(tmp_path, target_is_directory=True)
        for arguments in (
            ("scan", "--output", "sarif=out.sarif"),
            ("scan", "--output", "json=folder/mine.txt"),
            ("scan", "--output", "out.sarif"),
            ("baseline", "write", "--force"),
            ("baseline", "write", "--force", "--baseline", "folder/mine.txt"),
            ("fix", "--summary", "summary.md"),
            ("fix", "--write", "new.sh"),
        ):
            outcome = gate.call(*arguments)
            assert outcome.status == 2 or arguments[-1] == "new.sh", (arguments, outcome)
            assert mine.read_text(encoding="utf-8") == "mine", arguments
        assert list(tmp_path.glob("klaudit*")) == []

    def test_the_gate_cannot_be_made_to_hang(self, gate: Gate) -> None:
        gate.commit({
            "a.sh": "A=ab\n" + "A=$A$A\n" * 60 + LAUNCH,
            "b.py": "from trl import GRPOConfig\n" + "x = [1]\n" + "x = [*x, *x]\n" * 60 + "GRPOConfig(beta=x)\n",
            "c.sh": LAUNCH + " {a,b}" * 60 + "\n" + "(" * 5_000,
            "d.yaml": "a0: &a0 {beta: 1}\n" + "".join(f"a{i + 1}: &a{i + 1} {{x: *a{i}, y: *a{i}}}\n" for i in range(30)),
            ".gitignore": "*a*b*c*d*e*f*g*h*i*j\n",
        })  # fmt: skip
        if hasattr(os, "mkfifo"):
            for name in ("pipe.sh", "requirements.txt", "klaudit-baseline.json"):
                with contextlib.suppress(FileExistsError):
                    os.mkfifo(gate.root / name)
        started = time.monotonic()
        outcome = gate.call(
            "scan", "--diff-base", "main", "--timeout", "20", "--file-timeout", "5", "--format", "github", "--jobs", "1"
        )
        assert time.monotonic() - started < 25
        assert outcome.status in (1, 2)
        outcome = gate.call("scan", "--baseline", "klaudit-baseline.json")
        assert outcome.status == 2 and "not a file" in outcome.err
