"""The rules checker on a tiny framework that was never released: no network, no foreign code."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from check_rules import main
from checking import releases

Run = Callable[..., tuple[int, str]]

RULES = """
framework: tiny
title: Tiny
distributions: [tiny-rl]
releases: ["1.0", "2.0"]
trainers:
  - id: ppo
    entry-points:
      - {modules: [tiny.main], system: hydra, folder: tiny/config, config: base}
    source-defaults:
      - {kind: dataclass, path: tiny/config.py, symbol: Config, versions: ">=2.0"}
      - {kind: arguments, path: tiny/flags.py, symbol: build, versions: ">=2.0"}
    vocabularies:
      kl:
        checked-in: [{kind: words, path: tiny/core.py, symbol: penalty, key: kind, suffixes: [+]}]
        words:
          - {value: kl, estimator: k1}
          - {value: k3, estimator: k3, versions: ">=2.0"}
          - {value: k3+, estimator: k3, versions: ">=2.0"}
          - {value: full, estimator: full, raises: NotImplementedError}
    settings:
      use_kl: {name: actor.use_kl, default: false}
      coef:
        name: actor.coef
        type: float
        defaults: [{value: 0.5, config: other}, {value: 0.1}]
      in_reward:
        name: actor.in_reward
        defaults:
          - {versions: "<2.0", if: {use_kl: falsy}, value: true, fixed: true}
          - {versions: ">=2.0", value: false}
    terms:
      - id: loss
        if: {use_kl: truthy}
        estimator: {fixed: k3}
        coefficient: {setting: coef}
        checked-in: [{kind: text, path: tiny/core.py, symbol: penalty, contains: "kind ==", versions: "<2.0"}]
"""

BASE = """
defaults: [actor: default, _self_]
actor:
  coef: 1.0e-1
"""
CORE = {
    "1.0": "def penalty(kind):\n    if kind == 'kl':\n        return 1\n    if other == 'noise':\n        return 2\n",
    "2.0": dedent("""
        def penalty(kind):
            if kind.endswith("+"):
                return 0
            match kind:
                case "kl" | "k3":
                    return 1
    """),
}
ACTOR = {"1.0": "use_kl: false\ncoef: 7\n", "2.0": "use_kl: false\ncoef: 7\nin_reward: false\n"}
CONFIG = """
from dataclasses import dataclass, field
@dataclass
class Base:
    coef: float = 0.1
@dataclass
class Actor(Base):
    use_kl: bool = False
    in_reward: bool = field(default=False)
@dataclass
class Config:
    actor: Actor = field(default_factory=Actor)
"""
FLAGS = """
def build(parser):
    parser.add_argument("--actor.use_kl", default=False)
    parser.add_argument("--actor.coef", type=float, default=0.1)
    parser.add_argument("--actor.in_reward", default=False)
"""


def write(folder: Path, release: str, **changes: str) -> Path:
    """An unpacked release; `changes` replace whole files by their stem."""
    files = {
        "tiny/main.py": "raise SystemExit('imported')",
        "tiny/core.py": CORE[release],
        "tiny/config.py": CONFIG,
        "tiny/flags.py": FLAGS,
        "tiny/config/base.yaml": BASE,
        "tiny/config/other.yaml": BASE.replace("1.0e-1", "0.5"),
        "tiny/config/actor/default.yaml": ACTOR[release],
    }
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(changes.get(file.stem, text))
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the tool on the two releases, with text of rules replaced and with files of both releases changed."""

    def runner(*arguments: str, replace: tuple[str, str] = ("", ""), **changes: str) -> tuple[int, str]:
        rules = tmp_path / "rules"
        (rules / "frameworks").mkdir(parents=True, exist_ok=True)
        (rules / "frameworks" / "tiny.yaml").write_text(RULES.replace(*replace) if replace[0] else RULES)
        for release in ("1.0", "2.0"):
            write(tmp_path / "cache" / "tiny-rl" / release / "files", release, **changes)
        monkeypatch.setattr(releases, "known_releases", lambda distribution: ["1.0", "2.0", "3.0rc1", "3.1"])
        status = main(["tiny", "--rules", str(rules), "--cache", str(tmp_path / "cache"), *arguments])
        return status, capsys.readouterr().out

    return runner


def test_right_rules_agree_everywhere(run: Run) -> None:
    status, out = run("--verbose")
    assert status == 0, out
    assert "DISAGREE" not in out
    assert "ok        ppo: vocabulary kl: k3+" in out
    assert "not listed in tiny.yaml: 3.1" in out


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("{value: 0.1}", "{value: 0.2}", "ppo: coef  tiny/config/base  the release says 0.1, the rules 0.2  [1.0 .. 2.0: 2]"),
        ("{value: 0.5, config: other}", "{value: 0.6, config: other}", "ppo: coef  tiny/config/other  the release says 0.5"),
        ('k3, estimator: k3, versions: ">=2.0"', "k3, estimator: k3", "vocabulary kl: k3  tiny/core.py  the release compares with no"),
        ("- {value: k3, ", "- {value: k33, ", "vocabulary kl: k3  tiny/core.py  the release compares with it, the rules do not"),
        ("default: false", "default: true", "ppo: use_kl  tiny/flags.py  the release says False, the rules True  [2.0]"),
        ("name: actor.use_kl", "name: actor.use_kll", "ppo: use_kl  tiny/config.py  not in the file under actor.use_kll"),
        ("kind ==", "sort ==", "ppo: loss  tiny/core.py penalty  does not contain 'sort =='"),
        ("symbol: penalty", "symbol: fine", "ppo: vocabulary kl  tiny/core.py  tiny/core.py: no fine"),
        ("symbol: Config", "symbol: Settings", "tiny/config.py: no class Settings"),
        ('value: true, fixed: true', 'value: true', "ppo: in_reward  tiny/config/base  not in the file under actor.in_reward  [1.0]"),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_named(run: Run, old: str, new: str, complaint: str) -> None:
    status, out = run(replace=(old, new))
    assert status == 1
    assert complaint in out


def test_a_value_that_the_source_computes_is_left_unchecked(run: Run) -> None:
    status, out = run(flags=FLAGS.replace("default=0.1", "default=len(parser.all) / 2"))
    assert "?         ppo: coef  tiny/flags.py  computed: len(parser.all) / 2  [2.0]" in out
    assert status == 0


def test_a_config_that_builds_on_what_is_not_there_is_left_unchecked(run: Run) -> None:
    status, out = run(base=BASE.replace("actor: default", "actor: gone"), replace=("{value: 0.5, config: other}, ", ""))
    assert "not in this release: actor/gone, which tiny/config/base builds on" in out
    assert "ppo: use_kl, coef, in_reward  nothing says where to look  [1.0]" in out
    assert status == 0


def test_a_field_that_cannot_be_set_is_none(run: Run) -> None:
    config = CONFIG.replace("use_kl: bool = False", "use_kl: bool = field(default=False, init=False)")
    assert "ppo: use_kl  tiny/config.py  not in the file under actor.use_kl  [2.0]" in run(config=config)[1]


def test_a_setting_may_say_where_it_is_checked(run: Run) -> None:
    own = "use_kl: {name: actor.use_kl, default: false, checked-in: {kind: yaml, path: tiny/config/actor/default.yaml, prefix: actor}}"
    status, out = run("--verbose", replace=("use_kl: {name: actor.use_kl, default: false}", own))
    assert status == 0
    assert "ok        ppo: use_kl  tiny/config/actor/default.yaml  [1.0 .. 2.0: 2]" in out
    assert "ppo: use_kl  tiny/config/base" not in out


def test_switches_are_compared(run: Run) -> None:
    flags = FLAGS.replace('"--actor.use_kl", default=False', '"--actor.use_kl", action="store_true"')
    assert "a switch in the release, any in the rules" in run(flags=flags)[1]


def test_choices_are_compared(run: Run) -> None:
    rules = ("type: float", "choices: [0.1, 0.2]")
    flags = FLAGS.replace("type=float, default=0.1", "choices=[0.1, 0.3], default=0.1")
    assert "choices differ in 0.2, 0.3" in run(replace=rules, flags=flags)[1]


def test_a_tree_can_stand_for_a_release(run: Run, tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", "2.0")
    _, out = run("--tree", f"2.0={tree}", "--verbose")
    assert "[2.0]" in out and "[1.0" not in out


def test_newer_releases_are_appended(run: Run, tmp_path: Path) -> None:
    assert "added to tiny.yaml: 3.1" in run("--extend")[1]
    assert 'releases: ["1.0", "2.0", "3.1"]' in (tmp_path / "rules/frameworks/tiny.yaml").read_text()


def test_unknown_framework_is_wrong_usage(run: Run) -> None:
    assert main(["nosuch"]) == 2


def test_a_wheel_is_unpacked_without_running_it(tmp_path: Path) -> None:
    wheel = tmp_path / "tiny_rl-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/__init__.py", "raise SystemExit('imported')")
        archive.writestr("tiny_rl-1.0.data/purelib/tiny_extra/core.py", "")
    releases.unpack_wheel(wheel, tmp_path / "files")
    assert (tmp_path / "files/tiny/__init__.py").is_file()
    assert (tmp_path / "files/tiny_extra/core.py").is_file()
