"""Input made to hurt: each file gives an error row or is bounded and silent, and what lies beside it is scanned all the same."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.gate.baseline_file import read as read_baseline
from klaudit.gate.baseline_file import row_of
from klaudit.gate.baseline_file import write as write_baseline
from klaudit.model import Report
from klaudit.reports import FORMATS, load
from klaudit.reports import json as json_report
from klaudit.reports import text as text_report
from klaudit.reports.view import View
from klaudit.tree import Tree

LAUNCH = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True"
    " actor_rollout_ref.actor.kl_loss_type=low_var_kl"
)
KEYS = (
    "actor_rollout_ref:\n  actor: {use_kl_loss: true, kl_loss_type: low_var_kl}\nalgorithm: {use_kl_in_reward: false}\n"
)
CALL = "from trl import GRPOConfig\nc = GRPOConfig(beta=0.04)\n"
OVERRIDES = LAUNCH.partition("main_ppo ")[2]
SECONDS = 40.0  # of CPU, for a tree of bombs on a slow machine; each takes minutes, or for ever, where it goes off
ESCAPE = "\x1b[31m\x1b]0;t\x07\x9b1m\u202e\u2028"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069]")
DEEP = 10_000


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))


def scan_beside_a_launch(root: Path) -> Report:
    """The report on the tree with a sound launch in it, whose set-up must be there and nothing be klaudit's own fault."""
    write(root, {"sound.sh": LAUNCH + "\n"})
    started = time.process_time()
    report = scan([str(root)], Options(jobs=1))
    assert time.process_time() - started < SECONDS
    assert any(setup.path == "sound.sh" for setup in report.setups)
    assert not [error for error in report.errors if "internal" in error.message]
    return report


def errors(report: Report) -> dict[str, tuple[int | None, str]]:
    return {error.path: (error.line, error.message) for error in report.errors}


ROWS: list[tuple[str, str | bytes, int | None, str]] = [
    ("a.yaml", KEYS + "x: [1, 2", 4, "not YAML"),
    ("a.json", '{"use_kl_loss": {"a": tr', 1, "not JSON"),
    ("a.toml", "[use_kl_loss]\nx = tr", 2, "not TOML"),
    ("a.py", CALL + "GRPOConfig(beta=", 3, "not Python"),
    ("a.ipynb", '{"cells": [{"source": ["GRPOConfig(beta=0.1)"', 1, "not JSON"),
    ("b.ipynb", '{"cells": 3, "x": "GRPOConfig"}', None, "not a notebook"),
    ("a.sh", LAUNCH.encode() + b"\0", 1, "NUL"),
    ("b.py", CALL.encode() + b"\0", 1, "null"),
    ("h.py", b"\xff\xfe" + CALL.encode("utf-16-le"), 1, "UTF-16"),
    ("i.py", b"\xfe\xff" + CALL.encode("utf-16-be"), 1, "UTF-16"),
    ("b.yaml", KEYS.encode() + b"\0", 4, "control character"),
    ("c.py", CALL.encode() + b"# \xe9", 3, "not UTF-8"),
    ("c.yaml", KEYS.encode() + b"# \xe9", 4, "not UTF-8"),
    ("d.yaml", KEYS + "x: " + "[" * DEEP, 4, "nest"),
    ("d.json", '{"use_kl_loss": ' + "[" * DEEP, 1, "nest"),
    ("d.toml", "use_kl_loss = " + "[" * DEEP, None, "nest"),
    ("d.py", CALL + "x = " + "-" * DEEP + "1", None, "nest"),
    ("d.ipynb", '{"x": "GRPOConfig", "cells": ' + "[" * DEEP, None, "nest"),
    ("e.yaml", KEYS + "x: *nowhere", 4, "without an anchor"),
    ("f.yaml", "use_kl_loss: &a\n  x: *a", 2, "inside its own anchor"),
    ("g.yaml", KEYS + "k: 1\n" * 310_000, 149_998, "data, not a config"),
]


@pytest.fixture(scope="module")
def of_rows(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("rows")
    write(root, {name: content for name, content, _, _ in ROWS})
    return scan_beside_a_launch(root)


@pytest.mark.parametrize(("name", "line", "message"), [(name, line, message) for name, _, line, message in ROWS])
def test_what_cannot_be_read_is_a_row(of_rows: Report, name: str, line: int | None, message: str) -> None:
    found_line, found = errors(of_rows)[name]
    assert message in found
    assert found_line == line


def test_a_file_of_100_megabytes_is_a_row(tmp_path: Path) -> None:
    for suffix in ("sh", "py", "yaml", "json"):
        with (tmp_path / f"a.{suffix}").open("wb") as file:
            file.truncate(100_000_000)
    assert set(errors(scan_beside_a_launch(tmp_path)).values()) == {(None, "larger than 20 MB")}


BOMBS: dict[str, str] = {
    "a.sh": "A=ab\n" + "A=$A$A\n" * 60 + LAUNCH + " x=$A\n",
    "b.sh": "while true; do " + LAUNCH + "; done\n",
    "c.sh": LAUNCH + " " + "{a,b}" * 60 + " x={1..1000000000}\n",
    "d.sh": "f() { x=$(f)$(f); f; f; }\nf\n:(){ :|:& };:\n" + LAUNCH + "\n",
    "e.sh": "source ./e.sh\n. $0\nbash $0\n" + LAUNCH + "\n",
    "f.sh": "A=(1 2)\n" + 'A+=("${A[@]}")\n' * 60 + LAUNCH + ' "${A[@]}"\n',
    "g.sh": "A=$(printf '%1000000000s' x; yes; cat /dev/zero)\nread X < /dev/zero\n" + LAUNCH + " x=$A$X\n",
    "h.sh": "A='"
    + "a" * 5_000
    + "'\n[[ $A == *a*a*a*a*a*a*a*b ]]\n[[ $A =~ (a+)+(a+)+b ]]\nB=${A##*a*a*a*a*b}\n"
    + LAUNCH,
    "i.sh": "x=$((9**9**9**9)) y=$((2**9999999999)) z=$((z)) w=$((1/0))\n" + LAUNCH + " x=$x y=$y\n",
    "j.sh": LAUNCH + "\n" + "(" * DEEP + "true" + ")" * DEEP,
    "k.sh": LAUNCH + "\nx=" + "$(" * DEEP + "true" + ")" * DEEP,
    "l.sh": "".join(f'if [ "$x{i}" ]; then A{i}=1; fi\n' for i in range(200)) + LAUNCH + "\n",
    "m.sh": LAUNCH + " x=${{" + " " * 2_000 + "\n" + "a[" * 20_000 + "\n",
    "a.py": CALL + "x = [1]\n" + "x = [*x, *x]\n" * 60 + "GRPOConfig(beta=x)\n",
    "b.py": CALL + "x = {'a': 1}\n" + "x = {**x, **x}\n" * 60 + "GRPOConfig(**x)\n",
    "c.py": CALL + "x = 'ab'\n" + "x = f'{x}{x}'\n" * 60 + "GRPOConfig(run_name=x)\n",
    "d.py": CALL
    + "GRPOConfig(beta=10**10**10, a='a' * 10**10, b=1 << 10**10, c=f'{1:9999999999}', d='%999999999d' % 1)\n",
    "j.py": CALL + "GRPOConfig(beta='" + "%(" * 20_000 + "' % {'a': 1})\n",
    "e.py": CALL + "def f(x): return f(x)\nx = []\nx.append(x)\nx = x\nGRPOConfig(beta=f(1), a=x)\n",
    "f.py": CALL + "GRPOConfig(beta=0.1, " + ", ".join(f"k{i}=1" for i in range(20_000)) + ")\n",
    "g.py": CALL
    + "\n".join(f"class C{i}Config(C{i + 1}Config, C{i + 1}Config, C{i + 2}Config): pass" for i in range(40))
    + "\nC0Config(beta=1)\n",
    "hConfig.py": "from iConfig import XConfig\nfrom trl import GRPOConfig\nXConfig(beta=1)\n",
    "iConfig.py": "from hConfig import XConfig\n",
    "a.yaml": KEYS + "a0: &a0 {x: 1}\n" + "".join(f"a{i + 1}: &a{i + 1} {{x: *a{i}, y: *a{i}}}\n" for i in range(30)),
    "b.yaml": "x: &a\n  run: |\n    " + LAUNCH + "\ny:\n" + "  - *a\n" * 10_000,
    "c.yaml": KEYS + "# x.sh\nrun: " + "a=1 b " * 50_000 + "\n",
    "a.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": CALL}] * 2_000}),
}


# bash itself would not come to the launch (what gives up before it says so), or there is none
NEVER_TRAINS = {"d.sh", "f.sh", "m.sh", "hConfig.py", "iConfig.py"}


@pytest.mark.parametrize("suffix", [".sh", ".py", ".yaml", ".ipynb"])
def test_no_bomb_goes_off(tmp_path: Path, suffix: str) -> None:
    bombs = {name: content for name, content in BOMBS.items() if name.endswith(suffix)}
    write(tmp_path, dict(bombs))
    report = scan_beside_a_launch(tmp_path)
    lost = {error.path for error in report.errors if error.message.startswith("script not followed to its end")}
    assert lost == {error.path for error in report.errors} and lost <= NEVER_TRAINS
    assert set(bombs) - NEVER_TRAINS <= {setup.path for setup in report.setups}


def test_the_time_is_linear_in_the_launches(tmp_path: Path) -> None:
    def seconds(times: int) -> float:
        write(tmp_path, {"a.sh": "# pip install verl\n" + (LAUNCH + f" x={'y' * 500}\n") * times})
        started = time.process_time()
        assert len(scan([str(tmp_path / "a.sh")], Options(jobs=1)).setups) == times
        return time.process_time() - started

    seconds(10)  # what is loaded once
    assert seconds(1_000) < 10 * seconds(250)


def test_no_control_character_reaches_a_report(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a\x1b[31m.sh": LAUNCH.replace("low_var_kl", f"'{ESCAPE}'"),
        "b\nc.sh": LAUNCH + " 'actor_rollout_ref.actor.kl_\x1b[2J=1'",
        "d\r\u202e.yaml": KEYS.replace("low_var_kl", r'"\e[31mX\a"'),
        "e\x9b.py": CALL.replace("0.04", repr(ESCAPE)),
        "f\x1b.yaml": KEYS + "x: [",
        "g.py": CALL + f"GRPOConfig(**{{{ESCAPE!r}: 1, 'beta': 0.1}})\n",
        "h.json": json.dumps({"actor_rollout_ref": {"actor": {"use_kl_loss": ESCAPE, ESCAPE: ESCAPE}}}),
        "i.yaml": KEYS + "x: *a\u202eb\n",
        "requirements.txt": "verl==0.4.\x1b[31m1\n",
    }
    write(tmp_path, files)
    report = scan_beside_a_launch(tmp_path)
    view = View(source=Tree(tmp_path).source, width=80, wrap=True, verbose=True)
    shown = "".join(text_report.render(report, view))
    assert not CONTROL.search(shown)
    assert not CONTROL.search("".join(json_report.render(report, view)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_links_and_devices_are_left_alone(tmp_path: Path) -> None:
    for name in ("a.sh", "requirements.txt", ".gitignore", "c.yaml"):
        os.mkfifo(tmp_path / name)
    for name, target in {
        "loop": "loop",
        "self": ".",
        "root": "/",
        "b.sh": "/etc/passwd",
        "zero.py": "/dev/zero",
    }.items():
        (tmp_path / name).symlink_to(target)
    (tmp_path / "folder.sh").mkdir()
    write(
        tmp_path,
        {"d.sh": "source ./a.sh\n. ./b.sh\nsource ./loop\nsource /dev/zero\ntrl grpo --config c.yaml\n" + LAUNCH},
    )
    assert not scan_beside_a_launch(tmp_path).errors


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_a_row(tmp_path: Path) -> None:
    write(tmp_path, {"a.sh": LAUNCH})
    (tmp_path / "a.sh").chmod(0)
    assert "ermission" in errors(scan_beside_a_launch(tmp_path))["a.sh"][1]
    (tmp_path / "a.sh").chmod(stat.S_IRUSR)


@pytest.mark.parametrize(
    "version", ["9" * 5_000, "1!0.4", "99999999999999.0", "abc", "*", "0.4.*", "", "0.4.1+cu12", "1." * 9_999 + "1"]
)
def test_absurd_versions_are_survived(tmp_path: Path, version: str) -> None:
    for sign in ("==", "~=", ">=", "==="):
        write(tmp_path, {f"{len(sign)}{sign[0]}/requirements.txt": f"verl{sign}{version}\n", f"{sign[0]}/a.sh": LAUNCH})
    assert not scan_beside_a_launch(tmp_path).errors


NAMED: dict[str, Callable[[Path], None]] = {
    "binary": lambda path: write(path.parent, {path.name: b"\xff\0"}),
    "nested": lambda path: write(path.parent, {path.name: "beta: " + "[" * DEEP}),
    "huge": lambda path: os.truncate(path, 100_000_000) if not path.write_bytes(b"") else None,
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", NAMED)
def test_a_launch_survives_the_config_it_names(tmp_path: Path, kind: str) -> None:
    NAMED[kind](tmp_path / "c.yaml")
    write(tmp_path, {"a.sh": "trl grpo --config c.yaml\n" + LAUNCH, "main_x.py": b"\xff@hydra.main(" * 5})
    report = scan_beside_a_launch(tmp_path)
    first, second = sorted((s for s in report.setups if s.path == "a.sh"), key=lambda setup: setup.span.start)
    assert (first.framework, second.framework) == ("trl", "verl")
    assert not any(term.active for term in first.terms)
    assert "a.sh" not in errors(report)


def test_nothing_is_run_or_written(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.sh": "touch ran; echo x > ran; X=$(touch ran)\neval 'touch ran'\n" + LAUNCH,
        "a.py": "import os\nos.system('touch ran')\n" + CALL,
        "a.yaml": KEYS + '!!python/object/apply:os.system ["touch ran"]: 1\n',
        ".git/config": "[core]\n\tfsmonitor = touch ran\n\tpager = touch ran\n\thooksPath = .\n",
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/objects/x": "",
        ".git/refs/x": "",
        "post-index-change": "#!/bin/sh\ntouch ran\n",
    }
    write(tmp_path, files)
    before = set(tmp_path.rglob("*")) | {tmp_path / "sound.sh"}
    scan_beside_a_launch(tmp_path)
    assert set(tmp_path.rglob("*")) == before


def test_credentials_that_version_control_keeps_are_never_read(tmp_path: Path) -> None:
    """A pipeline's checkout has a token in `.git/config`; a script under scan may read it, and its values are shown."""
    secret = "AUTHORIZATION: basic c2VjcmV0"
    value = "actor_rollout_ref.actor.kl_loss_type"
    files: dict[str, str | bytes] = {
        ".git/config": f"[http]\n\textraheader = {secret}\nTYPE={secret.split()[-1]}\n",
        ".git/HEAD": "ref: refs/heads/main\n",
        "sub/.hg/hgrc": secret,
        "a.sh": f'{LAUNCH} {value}="$(tail -n 1 .git/config)"\n',
        "b.sh": f'while read -r line; do TYPE=$line; done < .git/config\n{LAUNCH} {value}="$TYPE"\n',
        "c.sh": f'. .git/config\n. ./link.sh\n{LAUNCH} {value}="$TYPE$(cat sub/.hg/hgrc inside/config .GIT/config)"\n',
        "d.sh": f"{LAUNCH} --config-path=.git --config-name=config\ntrl grpo --config link.yaml\n",
        "e.yaml": "defaults: [link, inside/config]\n" + KEYS,
    }
    write(tmp_path, files)
    for link, target in {"link.sh": ".git/config", "link.yaml": ".git/config", "inside": ".git"}.items():
        (tmp_path / link).symlink_to(target)
    report = scan_beside_a_launch(tmp_path)
    view = View(source=Tree(tmp_path).source, width=80, wrap=False, verbose=True)
    for render in (text_report.render, json_report.render):
        shown = "".join(render(report, view))
        assert "c2VjcmV0" not in shown and "AUTHORIZATION" not in shown
    assert {"a.sh", "b.sh", "c.sh", "d.sh"} <= {setup.path for setup in report.setups}


def test_names_that_are_no_text_and_halves_of_characters(tmp_path: Path) -> None:
    strange = os.fsdecode(b"\xff")
    formula = (
        "import torch\n\n\ndef loss(batch, logp, ref_logp, advantages, mask, cfg):\n"
        '    batch["\\ud800kl"] = (ref_logp - logp).exp() - (ref_logp - logp) - 1\n    ratio = torch.exp(logp - logp.detach())\n'
        '    loss = -ratio * advantages + cfg["\\ud800beta"] * batch["\\ud800kl"]\n    return (loss * mask).sum() / mask.sum()\n'
    )
    files: dict[str, str | bytes] = {
        f"{strange}_trainer.py": formula,
        "formula.py": formula,
        "words.py": "from trl import GRPOConfig\nimport subprocess\nx = '\\ud800'\n"
        "c = GRPOConfig(beta=0.04, loss_type=x, **{'be' + x: 2}, output_dir='%s\\ud800' % x)\n"
        f"subprocess.run('{LAUNCH} ' + x, shell=True)\n"
        f"subprocess.run([*'{LAUNCH}'.split(), '\\ud800', 'a\\ud800b.kl=1', f'{{x}}actor_rollout_ref.actor.use_kl_loss=True'])\n",
        f"{strange}.sh": LAUNCH.replace("low_var_kl", "${TYPE:-mse}"),
        "calls.sh": f"TYPE=low_var_kl bash {strange}.sh\n",
        "job.yaml": 'envs: {TYPE: "\\ud800"}\nrun: |\n  ' + LAUNCH.replace("low_var_kl", "$TYPE"),
        "job.json": json.dumps({"env": {"TYPE": "\ud800"}, "run": f"TYPE=low_var_kl bash {strange}.sh", "\ud800": 1}),
        "keys.json": json.dumps({"actor_rollout_ref": {"actor": {"use_kl_loss": True, "kl_loss_type": "\ud800"}}}),
    }
    write(tmp_path, files)
    report = scan_beside_a_launch(tmp_path)
    assert not [error for error in report.errors if "internal" in error.message]
    assert f"{strange}_trainer.py" in {setup.path for setup in report.setups}
    view = View(source=Tree(tmp_path).source, width=80, wrap=False, verbose=True)
    for name in FORMATS:
        "".join(load(name).render(report, view)).encode()
    write_baseline(str(tmp_path / "known.json"), [row_of(finding, "") for finding in report.findings])
    assert read_baseline(str(tmp_path / "known.json"))


def test_a_launch_that_is_never_come_to_is_no_clean_file(tmp_path: Path) -> None:
    """A gate that passes has read everything: work without end before a launch must not hide it."""
    loops = "".join(f"for {name} in {{1..100}}; do " for name in "ijk") + "x=$((i*j*k)); done; done; done\n"
    write(tmp_path, {"hidden.sh": loops * 2 + LAUNCH + "\n", "harmless.sh": loops * 2 + "echo\n"})
    assert errors(scan_beside_a_launch(tmp_path)) == {
        "hidden.sh": (1, "script not followed to its end: too many steps")
    }
