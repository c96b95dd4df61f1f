"""What the configuration requires, allows and counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

import klaudit
from klaudit.cli import cli
from klaudit.cli.scan import exit_status
from klaudit.configuration import Options, load
from klaudit.engine import scan
from klaudit.findings import catalogue
from klaudit.fixes.migration import TARGETS
from klaudit.model import Report, Setup, Span, Term
from klaudit.theory.naming import SETUP_NAMES, is_named
from tests.gate.test_suppressions import CALL, LAUNCH

VERSIONS = {"verl": "0.9.1", "trl": "1.9.0"}

REWARD = """python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    algorithm.norm_adv_by_std_in_grpo=False \\
    algorithm.use_kl_in_reward=True \\
    algorithm.kl_penalty=kl
"""
NORMALISED = REWARD.replace(
    "norm_adv_by_std_in_grpo=False", "norm_adv_by_std_in_grpo=True actor_rollout_ref.rollout.n=8"
)
NO_KL = LAUNCH.replace("use_kl_loss=True", "use_kl_loss=False")
K2 = LAUNCH.replace("low_var_kl", "mse")
STRAIGHT = LAUNCH.replace("low_var_kl", "low_var_kl+")
UNKNOWN = LAUNCH.replace("=low_var_kl", "=$1").replace("python3", 'set -u; : "$1"\npython3')


def scanned(folder: Path, files: dict[str, str], configuration: str = "", **changes: object) -> Report:
    for name, text in {**files, "klaudit.toml": configuration}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    options = load(folder / "klaudit.toml").options
    options = replace(options, framework_versions=VERSIONS, jobs=1)
    return scan([str(folder)], replace(options, **changes))


def rules(report: Report) -> list[str]:
    return [f"{each.span.path} {each.rule} {each.severity}" for each in report.findings]


def status(folder: Path, report: Report) -> int:
    options = load(folder / "klaudit.toml").options
    return exit_status(report, options, str(folder.resolve()))


# --- required set-ups ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("required", "script", "expected"),
    [
        ('"k1-in-reward"', REWARD, []),
        ('"k1-in-reward"', LAUNCH, ["error"]),
        ('"k1-in-reward"', K2, ["error"]),
        ('"k1-in-reward"', NORMALISED, ["error"]),
        ('"k1-in-reward"', NO_KL, ["error"]),
        ('["k1-in-reward", "no-kl"]', NO_KL, []),
        ('"no-kl"', NO_KL, []),
        ('"no-kl"', LAUNCH, ["error"]),
        ('"k2-in-loss"', K2, []),
        ('"k2-in-loss"', STRAIGHT, ["error"]),
        ('"straight-through"', STRAIGHT, []),
        ('"straight-through"', K2, ["error"]),
        ('"k3-in-loss"', LAUNCH, []),
        ('"unbiased"', REWARD, []),
        ('"unbiased"', K2, ["error"]),
        ('"unbiased-per-token"', K2, []),
        ('"unbiased-per-token"', REWARD, []),
        ('"unbiased-per-token"', LAUNCH, ["error"]),
        ('"k2-in-loss"', UNKNOWN, ["warning"]),
        ('"k1-in-reward"', UNKNOWN, ["error"]),
        ('"unbiased"', UNKNOWN, ["warning"]),
        ("[]", LAUNCH, []),
    ],
)
def test_whatever_is_not_required_is_a_finding(tmp_path: Path, required: str, script: str, expected: list[str]) -> None:
    report = scanned(tmp_path, {"run.sh": script}, f'require = {required}\nselect = ["KLA401"]')
    assert [each.severity for each in report.findings] == expected
    assert status(tmp_path, report) == bool(expected)


def test_the_finding_says_what_there_is_and_what_should_be(tmp_path: Path) -> None:
    (finding,) = scanned(
        tmp_path, {"run.sh": LAUNCH}, 'require = ["k1-in-reward", "no-kl"]\nselect = ["KLA4"]'
    ).findings
    assert finding.message == "trains with k3-in-loss; required: k1-in-reward or no-kl"
    assert finding.fix.title == "`klaudit fix --target k1-in-reward` shows the change"
    assert finding.launch == finding.span and finding.related


def test_other_paths_may_require_something_else(tmp_path: Path) -> None:
    configuration = """
require = "k1-in-reward"
select = ["KLA401"]
[[per-path]]
paths = ["research/"]
require = ["k3-in-loss"]
[[per-path]]
paths = ["scratch/"]
require = []
"""
    files = {"run.sh": LAUNCH, "research/a.sh": LAUNCH, "research/b.sh": REWARD, "scratch/c.sh": LAUNCH}
    assert rules(scanned(tmp_path, files, configuration)) == ["research/b.sh KLA401 error", "run.sh KLA401 error"]


def test_code_that_only_reports_a_penalty_trains_with_nothing(tmp_path: Path) -> None:
    text = "def step(policy, reference):\n    d = policy.log_probs - reference.log_probs\n    return {'kl': d.mean()}\n"
    assert scanned(tmp_path, {"a.py": text}, 'require = "k1-in-reward"\nselect = ["KLA401"]').findings == ()


def test_a_comment_suppresses_it(tmp_path: Path) -> None:
    script = f"# klaudit: ignore[KLA401] a known ablation\n{K2}"
    report = scanned(tmp_path, {"run.sh": script}, 'require = "k1-in-reward"\nselect = ["KLA401", "KLA001"]')
    assert rules(report) == [] and [held.finding.rule for held in report.withheld] == ["KLA401"]


def term(estimator: str, placement: str, gradient: str, **more: object) -> Term:
    values = {"coefficient": 0.1, "active": True, "score_weight": "w", "verdict": "unbiased-per-token", **more}
    return Term(placement, estimator, gradient, **values)  # type: ignore[arg-type]


def setup(*terms: Term, verdict: str = "biased") -> Setup:
    place = Span("a.sh", 0, 1, 1, 1, 1, 2)
    return Setup("a.sh", place, "launch", "x", None, "", "", "", (), "w", verdict, terms)  # type: ignore[arg-type]


K1 = term("k1", "reward", "score")
MAYBE = term("k3", "loss", "pathwise", active=None)


@pytest.mark.parametrize(
    ("name", "terms", "expected"),
    [
        ("k1-in-reward", (K1,), True),
        ("k1-in-reward", (K1, term("k3", "loss", "pathwise")), False),
        ("k1-in-reward", (K1, term("k3", "loss", "pathwise", active=False)), True),
        ("k1-in-reward", (K1, MAYBE), None),
        ("k1-in-reward", (K1, term("k3", "metric", "none", active=True)), True),
        ("k1-in-reward", (term("k1", "reward", "score", normalised_by_group_std=None),), None),
        ("k1-in-reward", (term("k1", "reward", "score", normalised_by_group_std=True),), False),
        ("k1-in-reward", (term("unknown", "reward", "score"),), None),
        ("k1-in-reward", (term("unknown", "loss", "pathwise"),), False),
        ("no-kl", (), True),
        ("no-kl", (MAYBE,), None),
        ("no-kl", (K1, MAYBE), False),
        ("k3-in-loss", (MAYBE,), None),
        ("k3-in-loss", (term("k3", "loss", "straight-through-k2"),), False),
        ("k3-in-loss", (term("k3", "loss", "none"),), False),
        ("importance-weighted", (term("k3", "loss", "importance-weighted"),), True),
        ("importance-weighted", (term("k2", "loss", "importance-weighted", verdict="biased"),), False),
        ("straight-through", (term("unknown", "loss", "straight-through-k2"),), None),
        ("straight-through", (K1,), False),
    ],
)
def test_names_of_set_ups(name: str, terms: tuple[Term, ...], expected: bool | None) -> None:
    assert is_named(setup(*terms), name) is expected


@pytest.mark.parametrize(
    ("verdict", "name", "expected"),
    [
        ("unbiased", "unbiased", True),
        ("unbiased-per-token", "unbiased", False),
        ("unbiased", "unbiased-per-token", True),
        ("rescaled", "unbiased-per-token", False),
        ("unknown", "unbiased", None),
    ],
)
def test_verdicts_are_names_too(verdict: str, name: str, expected: bool | None) -> None:
    assert is_named(setup(K1, verdict=verdict), name) is expected


def test_the_targets_of_fix_are_names() -> None:
    assert set(TARGETS) <= set(SETUP_NAMES)
    assert len(SETUP_NAMES) == len(set(SETUP_NAMES))


# --- allowed findings --------------------------------------------------------------------------------------------------------------------


ALLOW = '[[allow]]\nreason = "table 3"\n'


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ('rule = "KLA101"', []),
        ('rule = "k3-in-loss"', []),
        ('rule = ["KLA2", "KLA1"]', []),
        ('setup = "k3-in-loss"', []),
        ('rule = "KLA101"\nsetup = ["no-kl", "k3-in-loss"]', []),
        ('rule = "KLA101"\npaths = ["old/**", "*.sh"]', []),
        ('rule = "KLA101"\npaths = "old/"', ["run.sh KLA101 warning"]),
        ('rule = "KLA102"', ["run.sh KLA101 warning"]),
        ('setup = "k2-in-loss"', ["run.sh KLA101 warning"]),
        ('rule = "KLA101"\nsetup = "no-kl"', ["run.sh KLA101 warning"]),
    ],
)
def test_what_is_allowed_does_not_count(tmp_path: Path, entry: str, expected: list[str]) -> None:
    report = scanned(tmp_path, {"run.sh": LAUNCH}, f"{ALLOW}{entry}\n")
    assert rules(report) == expected
    if not expected:
        (held,) = report.withheld
        assert (held.by, held.reason, held.line) == ("allowed", "table 3", 1)
        assert held.path == str(tmp_path / "klaudit.toml")
    assert bool(report.remarks) == bool(expected)
    assert all("is not needed any more" in remark and "table 3" in remark for remark in report.remarks)


@pytest.mark.parametrize("changes", [{"select": ("KLA2",)}, {"frameworks": ("trl",)}])
def test_nothing_is_said_of_entries_that_were_not_looked_for(tmp_path: Path, changes: dict[str, object]) -> None:
    report = scanned(tmp_path, {"run.sh": REWARD}, f'{ALLOW}rule = "KLA101"\n', **changes)
    assert report.remarks == ()


@pytest.mark.parametrize("part", [".", "production"])
def test_a_policy_from_outside_the_repository_names_its_paths(tmp_path: Path, part: str) -> None:
    """As in a pipeline that does not believe the configuration of a pull request."""
    (tmp_path / "ours.toml").write_text(
        'exclude = ["old/**"]\n[per-file-ignores]\n"tests/**" = ["KLA101"]\n'
        '[[allow]]\npaths = ["figures/**"]\nrule = "KLA101"\nreason = "r"\n'
        '[[per-path]]\npaths = ["production/**"]\nrequire = "no-kl"\n'
    )
    root = tmp_path / "repository"
    for name in ("old", "tests", "figures", "production", ".git"):
        (root / name).mkdir(parents=True)
        (root / name / "run.sh").write_text(LAUNCH)
    for place in (tmp_path, tmp_path / "elsewhere"):
        place.mkdir(exist_ok=True)
        file = (tmp_path / "ours.toml").rename(place / "ours.toml")
        report = klaudit.scan(root / part, config=file, select=["KLA101", "KLA401"])
        prefix = "" if part != "." else "production/"
        found = {(each.span.path, each.rule) for each in report.findings}
        assert found == {(f"{prefix}run.sh", "KLA101"), (f"{prefix}run.sh", "KLA401")}
        file.rename(tmp_path / "ours.toml")


def test_nothing_is_said_where_only_a_part_is_scanned(tmp_path: Path) -> None:
    scanned(tmp_path, {"sub/run.sh": REWARD, "run.sh": LAUNCH}, f'{ALLOW}rule = "KLA101"\n')
    options = load(tmp_path / "klaudit.toml").options
    for part in ("sub", "sub/run.sh"):
        assert scan([str(tmp_path / part)], options).remarks == ()


def test_fix_leaves_alone_what_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned(tmp_path, {"run.sh": LAUNCH}, f'{ALLOW}setup = "k3-in-loss"\n')
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["fix", "--write", "--framework-version", "verl=0.9.1"])
    assert "KLA101 is allowed by klaudit.toml:1: table 3" in done.output
    assert (tmp_path / "run.sh").read_text() == LAUNCH


# --- severities, confidence, paths ----------------------------------------------------------------------------------------------------------


def test_severities_by_rule_name_and_path(tmp_path: Path) -> None:
    configuration = """
ignore = ["KLA107"]
[severity]
KLA101 = "error"
token-level-only = "warning"
[[per-path]]
paths = ["old/"]
severity = {k3-in-loss = "note"}
"""
    files = {"a.sh": LAUNCH, "b.sh": K2, "old/c.sh": LAUNCH}
    report = scanned(tmp_path, files, configuration)
    assert rules(report) == ["a.sh KLA101 error", "b.sh KLA106 warning", "old/c.sh KLA101 note"]


def test_confidence(tmp_path: Path) -> None:
    configuration = 'min-confidence = "high"\nrequire = "unbiased"\nselect = ["KLA401"]\n'
    report = scanned(tmp_path, {"a.sh": UNKNOWN, "b.sh": LAUNCH}, configuration)
    assert rules(report) == ["b.sh KLA401 error"]
    assert [(held.by, held.reason) for held in report.withheld] == [
        ("confidence", "below the confidence that counts here (high)")
    ]
    configuration += '[[per-path]]\npaths = "a.sh"\nmin-confidence = "low"\n'
    assert len(scanned(tmp_path, {}, configuration).findings) == 2


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ("", 1),
        ('fail-on = "error"', 0),
        ('fail-on = "never"', 0),
        ('fail-on = "never"\n[[per-path]]\npaths = "run.sh"\nfail-on = "warning"', 1),
        ('[[per-path]]\npaths = "run.sh"\nfail-on = "error"', 0),
        ('[[per-path]]\npaths = "*"\nfail-on = "never"\n[[per-path]]\npaths = "run.*"\nfail-on = "note"', 1),
        ('[[per-path]]\npaths = "other.sh"\nfail-on = "never"', 1),
    ],
)
def test_what_fails_is_said_by_path(tmp_path: Path, configuration: str, expected: int) -> None:
    report = scanned(tmp_path, {"run.sh": LAUNCH}, configuration)
    assert report.findings and status(tmp_path, report) == expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ('select = ["KLA2"]', []),
        ('ignore = ["KLA101"]', []),
        ('select = ["KLA101"]', ["old/run.sh KLA101 warning"]),
        ("ignore = []", ["old/run.sh KLA101 warning"]),
    ],
)
def test_selection_by_path(tmp_path: Path, part: str, expected: list[str]) -> None:
    configuration = f'ignore = ["KLA1"]\n[[per-path]]\npaths = ["old/"]\n{part}\n'
    assert rules(scanned(tmp_path, {"old/run.sh": LAUNCH, "run.sh": LAUNCH}, configuration)) == expected


# --- the command line overrules --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "configuration", "expected"),
    [
        (("--exit-zero",), "", 0),
        (("--exit-zero",), '[[per-path]]\npaths = "*"\nfail-on = "note"', 0),
        (("--fail-on", "warning"), '[[per-path]]\npaths = "*"\nfail-on = "never"', 1),
        (("--require", "k3-in-loss", "--select", "KLA401"), 'require = "no-kl"', 0),
        (("--require", "k3-in-loss,no-kl", "--select", "KLA401"), "", 0),
        (("--require", "k2-in-loss", "--select", "KLA401"), '[[per-path]]\npaths = "*"\nrequire = "k3-in-loss"', 1),
        (("--ignore", "KLA101"), '[[per-path]]\npaths = "*"\nignore = ["KLA2"]', 0),
        (("--select", "KLA101"), '[[per-path]]\npaths = "*"\nselect = ["KLA2"]', 1),
        (("--min-confidence", "high"), "", 1),
        (("--require", "k9-in-loss"), "", 2),
    ],
)
def test_what_is_given_holds_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], configuration: str, expected: int
) -> None:
    scanned(tmp_path, {"run.sh": LAUNCH}, configuration)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["scan", "--framework-version", "verl=0.9.1", *arguments])
    assert done.exit_code == expected, done.output


@pytest.mark.parametrize(("arguments", "expected"), [((), 0), (("--no-suppressions",), 1)])
def test_suppressions_can_be_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: int
) -> None:
    (tmp_path / "run.sh").write_text(f"# klaudit: ignore[KLA101] known\n{LAUNCH}")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["scan", "--isolated", "--framework-version", "verl=0.9.1", *arguments])
    assert done.exit_code == expected, done.output


def test_python_set_ups_are_held_to_it_as_well(tmp_path: Path) -> None:
    report = scanned(tmp_path, {"a.py": CALL}, 'require = "unbiased-per-token"\nselect = ["required-setup"]')
    assert rules(report) == ["a.py KLA401 error"]


def test_without_any_policy_a_report_stays_what_it_is(tmp_path: Path) -> None:
    report = scanned(tmp_path, {"run.sh": LAUNCH})
    assert rules(report) == ["run.sh KLA101 warning"] and report.withheld == () and report.remarks == ()
    assert "required-setup" in catalogue.names() and Options().require == ()
