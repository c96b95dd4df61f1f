"""The library: light to import, typed, honest about what is wrong, and the same as the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import klaudit
from klaudit.gate.baseline_file import row_of, write
from klaudit.reports import json as json_report
from klaudit.reports.view import View
from tests.gate.scratch import Repository

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
LAUNCH = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True"
    " actor_rollout_ref.actor.kl_loss_type=low_var_kl actor_rollout_ref.actor.kl_loss_coef=0.001\n"
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "run.sh").write_text(LAUNCH, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_report_is_that_of_the_command_line(tree: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "klaudit", "scan", "--format", "json"], capture_output=True, check=False
    )
    printed = json.loads(done.stdout)
    returned = json.loads("".join(json_report.render(klaudit.scan(), View())))
    for document in (printed, returned):
        del document["summary"]["seconds"]
    assert returned == printed
    assert returned["summary"]["by_rule"]["KLA101"] == 1


def test_nothing_is_written(tree: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (tree, *tree.rglob("*"))}
    klaudit.scan(tree, tree / "run.sh")
    assert {path: path.stat().st_mtime_ns for path in (tree, *tree.rglob("*"))} == before


@pytest.mark.parametrize(
    ("above", "told"),
    [
        ({"requirements.txt": "verl==0.7.0\n"}, "requirements.txt above it asks for verl 0.7.0"),
        (
            {"verl/trainer/main_ppo.py": "", "verl/version/version": "0.3.0\n"},
            "the source above it is that of verl 0.3.0",
        ),
    ],
)
def test_a_folder_of_a_repository_is_told_what_stands_above_it(tree: Path, above: dict[str, str], told: str) -> None:
    (tree / "scripts").mkdir()
    (tree / "scripts" / "run.sh").write_text(LAUNCH, encoding="utf-8")
    assert not klaudit.scan("scripts").remarks
    (tree / ".git").mkdir()
    assert not klaudit.scan("scripts").remarks
    for path, text in above.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, encoding="utf-8")
    (remark,) = klaudit.scan("scripts").remarks
    assert remark.startswith("`scripts` is judged by itself, with verl ")
    assert told in remark
    for report in (
        klaudit.scan("."),
        klaudit.scan("scripts/run.sh"),  # a file is a part of its repository
        klaudit.scan("scripts", "run.sh"),
        klaudit.scan("scripts", framework_versions={"verl": "0.7.0"}),
        klaudit.scan("scripts", frameworks=["trl"]),
    ):
        assert not report.remarks


class TestOptions:
    def test_they_overrule_the_configuration(self, tree: Path) -> None:
        (tree / "klaudit.toml").write_text('ignore = ["k3-in-loss"]\n', encoding="utf-8")
        assert not klaudit.scan().findings
        for report in (klaudit.scan(isolated=True), klaudit.scan(select={"KLA101"})):
            assert [finding.rule for finding in report.findings] == ["KLA101"]
        (tree / "other.toml").write_text('select = ["KLA2"]\n', encoding="utf-8")
        assert not klaudit.scan(config=tree / "other.toml").findings
        assert not klaudit.scan(isolated=True, exclude=["*.sh"]).setups
        assert not klaudit.scan(isolated=True, frameworks=["trl"]).setups
        required = klaudit.scan(isolated=True, select=["KLA4"], require=["k1-in-reward"]).findings
        assert [finding.rule for finding in required] == ["KLA401"]

    def test_a_version_is_judged_by(self, tree: Path) -> None:
        (setup,) = klaudit.scan(framework_versions={"verl": "0.4.0"}).setups
        assert (setup.version.value, setup.version.source) == ("0.4.0", "option")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"select": ["k3-in-lss"]}, "unknown rule `k3-in-lss`: did you mean `k3-in-loss`"),
            ({"ignore": ["KLA9"]}, "unknown rule `KLA9`"),
            ({"frameworks": ["vrel"]}, "unknown framework `vrel`: did you mean `verl`"),
            ({"framework_versions": {"verl": "new"}}, "`new` is no version"),
            ({"exclude": ["*a*b*c*d*e"]}, "is no usable pattern"),
            ({"config": "no-such.toml"}, "no such file"),
            ({"config": "klaudit.toml", "isolated": True}, "exclude each other"),
            ({"min_confidence": "hihg"}, "min_confidence must be one of high, medium, low"),
            ({"require": ["k1-in-rewrad"]}, "unknown set-up `k1-in-rewrad` in require: did you mean `k1-in-reward`"),
            ({"timeout": 0}, "must be a positive number of seconds"),
            ({"file_timeout": float("nan")}, "must be a positive number of seconds"),
            ({"jobs": -1}, "jobs must be a number"),
        ],
    )
    def test_unusable_ones_are_refused(self, tree: Path, options: dict[str, Any], message: str) -> None:
        with pytest.raises(klaudit.ConfigurationError, match=re.escape(message)) as caught:
            klaudit.scan(**options)
        assert isinstance(caught.value, klaudit.KlauditError)

    def test_a_string_is_not_several(self, tree: Path) -> None:
        with pytest.raises(TypeError, match="select takes several strings"):
            klaudit.scan(select="KLA1")

    def test_the_line_of_a_configuration_file_is_named(self, tree: Path) -> None:
        (tree / "klaudit.toml").write_text('jobs = 1\nselect = ["KLA9"]\n', encoding="utf-8")
        with pytest.raises(klaudit.ConfigurationError) as caught:
            klaudit.scan()
        assert (caught.value.path, caught.value.line) == (str(tree / "klaudit.toml"), 2)

    def test_broken_rules_are_refused(self, tree: Path) -> None:
        (tree / "own" / "frameworks").mkdir(parents=True)
        (tree / "own" / "frameworks" / "mine.yaml").write_text("id: [", encoding="utf-8")
        (tree / "klaudit.toml").write_text('rules = ["own"]\n', encoding="utf-8")
        with pytest.raises(klaudit.RulesError, match=r"mine\.yaml") as caught:
            klaudit.scan()
        assert isinstance(caught.value, klaudit.KlauditError)


class TestOnlyWhatIsNew:
    def test_since_a_commit(self, tmp_path: Path) -> None:
        repository = Repository(tmp_path / "repository", {"old.sh": LAUNCH})
        repository.write({"new.sh": LAUNCH})
        report = klaudit.scan(repository.root, diff_base="HEAD")
        assert [finding.span.path for finding in report.findings] == ["new.sh"]
        assert [(each.finding.span.path, each.by) for each in report.withheld] == [("old.sh", "unchanged")]
        with pytest.raises(klaudit.KlauditError, match="no commit `nope`"):
            klaudit.scan(repository.root, diff_base="nope")

    def test_beside_a_baseline(self, tree: Path) -> None:
        with pytest.raises(klaudit.KlauditError, match=r"known\.json: no such file"):
            klaudit.scan(baseline="known.json")
        write("known.json", [row_of(finding, "") for finding in klaudit.scan().findings])
        (tree / "new.sh").write_text(LAUNCH, encoding="utf-8")
        for baseline in ("known.json", tree / "known.json"):
            assert [each.span.path for each in klaudit.scan(baseline=baseline).findings] == ["new.sh"]


def test_any_thread_may_scan(tree: Path) -> None:
    """Time budgets must not need signals, which only the main thread gets."""
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda seconds: klaudit.scan(timeout=seconds, file_timeout=seconds), [30.0] * 8))
    assert {tuple(finding.rule for finding in report.findings) for report in reports} == {("KLA101",)}


def test_what_cannot_be_read_is_a_row(tree: Path) -> None:
    (tree / "broken.py").write_bytes(b"use_kl_loss = '\xff'\n")
    report = klaudit.scan(tree, tree / "missing.sh")
    assert sorted(os.path.basename(error.path) for error in report.errors) == ["broken.py", "missing.sh"]
    assert [setup.path for setup in report.setups] == ["run.sh"]


class TestExport:
    def test_names_are_pinned(self) -> None:
        """Each of them is a promise: docs/api.md names it."""
        assert [name for name in klaudit.__all__ if f"`{name}`" not in DOCUMENT] == ["__version__", "scan"]
        assert set(klaudit.__all__) <= set(dir(klaudit))
        assert all(getattr(klaudit, name) is not None for name in klaudit.__all__)
        assert not hasattr(klaudit, "scna")

    def test_the_import_is_light(self) -> None:
        script = (
            "import sys, time; before = set(sys.modules); start = time.process_time(); import klaudit;"
            " print(time.process_time() - start); print(sorted(set(sys.modules) - before))"
        )
        seconds = []
        for _ in range(3):
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
            cost, modules = done.stdout.splitlines()
            assert modules == "['klaudit']"
            seconds.append(float(cost))
        assert min(seconds) < 0.005

    def test_a_scan_imports_neither_torch_nor_the_command_line(self, tree: Path) -> None:
        script = (
            "import klaudit, sys; klaudit.scan('.', isolated=True);"
            " print([name for name in ('torch', 'click', 'rich', 'klaudit.cli') if name in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.stdout == "[]\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_of_the_documentation_run(tree: Path, example: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(compile(example, "docs/api.md", "exec"), names)
    printed = capsys.readouterr().out
    if "test_every_launch" in example:
        with pytest.raises(AssertionError, match="k3 in the loss"):
            names["test_every_launch_descends_the_right_kl"]()
    elif "report.findings" in example:
        assert printed.startswith("run.sh:1 KLA101 ")
    elif "evidence" in example:
        assert "loss k3 0.001 1 - exp(-d)" in printed
        assert "actor_rollout_ref.actor.kl_loss_coef = 0.001 from run.sh 1" in printed
    else:
        assert printed.startswith("unknown rule `k3-in-lss`: did you mean `k3-in-loss`")


CONSUMER = """\
from pathlib import Path

import klaudit


def failing(root: Path) -> list[str]:
    least: klaudit.Confidence = "medium"
    report: klaudit.Report = klaudit.scan(
        root, select=["KLA1"], framework_versions={"verl": "0.7.0"}, min_confidence=least, require=["k1-in-reward"]
    )
    if report.errors:
        raise SystemExit(report.errors[0].message)
    shown = [f"{each.span.path}:{each.span.line}: {each.message}" for each in report.findings if each.severity == "error"]
    for setup in report.setups:
        for term in setup.terms:
            coefficient: float | None = term.coefficient
            active: bool | None = term.active
            shown += [str(coefficient), str(active), term.verdict, *(each.setting for each in term.evidence)]
    for withheld in report.withheld:
        finding: klaudit.Finding = withheld.finding
        shown.append(f"{finding.rule} {withheld.by} {withheld.reason}")
    return shown


try:
    failing(Path("."))
except klaudit.ConfigurationError as error:
    print(error.path, error.line)
except klaudit.KlauditError as error:
    print(error)
"""
MISTAKES = {
    "klaudit.scna('.')": "attr-defined",
    "klaudit.scan('.', selekt=['KLA1'])": "call-arg",
    "klaudit.scan('.', select=1)": "arg-type",
    "klaudit.scan('.', min_confidence='hihg')": "arg-type",
    "klaudit.scan('.').findings[0].rulle": "attr-defined",
    "len(klaudit.scan('.').findings[0].span.line)": "arg-type",
}


def test_a_consumer_is_type_checked(tmp_path: Path) -> None:
    assert (ROOT / "klaudit" / "py.typed").is_file()
    (tmp_path / "consumer.py").write_text(CONSUMER, encoding="utf-8")
    (tmp_path / "mistaken.py").write_text("import klaudit\n" + "\n".join(MISTAKES) + "\n", encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-color",
            "--no-error-summary",
            "--cache-dir",
            ROOT / ".mypy_cache/api",
            "consumer.py",
            "mistaken.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    told = re.findall(r"mistaken\.py:(\d+): error: .*\[([\w-]+)\]", done.stdout)
    assert told == [(str(line), kind) for line, kind in enumerate(MISTAKES.values(), 2)], done.stdout + done.stderr
    assert "consumer.py" not in done.stdout
