"""`klaudit suppress`: comments where they count, nothing else changed, and gone again when they are not needed."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from klaudit.cli import cli, main
from tests.gate.test_suppress_comments import notebook
from tests.gate.test_suppressions import CALL, CLEAN, LAUNCH

VERSIONS = ("--framework-version", ["verl=0.9.1", "trl=1.9.0"][0], "--framework-version", "trl=1.9.0")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(cli, [arguments[0], "--isolated", "--jobs", "1", *VERSIONS, *arguments[1:]])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def suppressed(name: str, text: str, *options: str) -> str:
    """The file with its comments, of which a scan finds nothing more to say."""
    Path(name).write_bytes(text.encode())
    done = run("suppress", name, "--reason", "a known ablation", "--write", *options)
    assert done.exit_code == 0, done.output
    scan = run("scan", name, "--quiet")
    assert (scan.exit_code, scan.output) == (0, "")
    again = run("suppress", name, "--reason", "a known ablation")
    assert again.exit_code == 0 and "Nothing to do." in again.output
    return Path(name).read_bytes().decode()


COMMENT = "# klaudit: ignore[KLA101] a known ablation"


@pytest.mark.parametrize(
    ("name", "before", "text"),
    [
        ("run.sh", "", LAUNCH),
        ("run.sh", "#!/bin/bash\nset -e\n", LAUNCH.rstrip("\n")),
        ("run.sh", "if true; then\n\t", LAUNCH + "fi\n"),
        ("run.sh", "cd x && \\\n  nohup ", LAUNCH),
        ("run.sh", "for i in 1 2; do ", LAUNCH + "done\n"),
        ("run.sh", "echo 核 é\n  ", LAUNCH),
        (
            "a.py",
            "from trl import GRPOConfig\n\n\ndef f():\n    ",
            "return GRPOConfig(\n        output_dir='é', beta=0.04)\n",
        ),
        ("a.py", "\ufefffrom trl import GRPOConfig\n", "GRPOConfig(output_dir='x', beta=0.04)"),
        ("job.yaml", "name: x\nsteps:\n- name: y\n  ", "run: |\n    " + LAUNCH.replace("\n", "\n    ")),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_one_line_above_the_statement_is_all_that_changes(name: str, before: str, text: str, newline: str) -> None:
    text = (before + text).replace("\n", newline)
    after = suppressed(name, text)
    lines = after.removeprefix("\ufeff").split(newline)
    (at,) = [at for at, line in enumerate(lines) if line.strip() == COMMENT]
    assert re.match(r"\s*", lines[at])[0] == re.match(r"\s*", lines[at + 1])[0]  # type: ignore[index]
    assert newline.join(lines[:at] + lines[at + 1 :]) == text.removeprefix("\ufeff")
    assert after.startswith("\ufeff") == text.startswith("\ufeff")
    if name.endswith(".py"):
        assert ast.dump(ast.parse(after.removeprefix("\ufeff"))) == ast.dump(ast.parse(text.removeprefix("\ufeff")))
    if name.endswith(".yaml"):
        assert yaml.safe_load(after) == yaml.safe_load(text)
    if name.endswith(".sh") and newline == "\n":
        subprocess.run(["bash", "-n", name], check=True)


def test_the_patch_is_shown_and_git_takes_it(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("run.sh").write_text("\n" + LAUNCH)
    monkeypatch.setattr(sys, "argv", ["klaudit", "suppress", "--isolated", *VERSIONS, "run.sh", "--reason", "known"])
    assert main() == 1
    assert Path("run.sh").read_text() == "\n" + LAUNCH
    patch, told = capfdbinary.readouterr()
    assert told == b"1 finding in 1 file suppressed, not written: --write does that.\n"
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    assert run("scan", "run.sh", "-q").exit_code == 0


def test_a_notebook_stays_one() -> None:
    text = notebook(
        "from trl import GRPOConfig\n", "a = 'é'\nif a:\n    config = GRPOConfig(\n        output_dir='x', beta=0.04)\n"
    )
    after = json.loads(suppressed("a.ipynb", text))
    before = json.loads(text)
    sources = ["".join(cell["source"]) for cell in after["cells"]]
    assert sources[1] == "".join(before["cells"][1]["source"]).replace("    config", f"    {COMMENT}\n    config")
    assert sources[0] == "".join(before["cells"][0]["source"])


def test_flow_style_gets_its_comment_behind() -> None:
    text = "{algorithm: {adv_estimator: grpo}, actor_rollout_ref: {actor: {use_kl_loss: true, kl_loss_type: low_var_kl}}}\n"
    Path("a.yaml").write_text(text)
    assert "KLA101" in run("scan", "a.yaml", "-q").output
    after = suppressed("a.yaml", text)
    assert yaml.safe_load(after) == yaml.safe_load(text)


def test_several_findings_of_a_command_share_a_comment() -> None:
    text = LAUNCH.rstrip("\n") + " \\\n    actor_rollout_ref.actor.kl_loss_type=low_var_kl\n"
    after = suppressed("run.sh", text)
    assert after.splitlines()[0] == "# klaudit: ignore[KLA101, KLA208] a known ablation"


def test_only_selected_rules(tmp_path: Path) -> None:
    Path("run.sh").write_text(LAUNCH)
    done = run("suppress", "--reason", "x", "--select", "KLA2")
    assert (done.exit_code, done.output) == (0, "Nothing to do.\n")


def test_json_has_no_comments() -> None:
    settings = {
        "algorithm": {"adv_estimator": "grpo"},
        "actor_rollout_ref": {"actor": {"use_kl_loss": True, "kl_loss_type": "low_var_kl"}},
    }
    Path("sub[1]").mkdir()
    Path("sub[1]/job.json").write_text(json.dumps({"run": LAUNCH, **settings}))
    assert "KLA101" in run("scan", "-q").output
    done = run("suppress", "--reason", "x", "--write")
    assert done.exit_code == 1
    assert "JSON has no comments" in done.output
    entry = done.output.partition("[tool.klaudit.per-file-ignores]\n")[2]
    Path("klaudit.toml").write_text("[per-file-ignores]\n" + entry)
    scan = CliRunner().invoke(cli, ["scan", "-q", *VERSIONS])
    assert (scan.exit_code, scan.output) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "one of the two"),
        (("--reason", "x", "--remove-unused"), "one of the two"),
        (("--reason", " "), "the reason is empty"),
        (("--reason", "a\nb"), "one line"),
        (("--reason", "a\x1b[31m"), "one line"),
        (("--reason", "a # klaudit: ignore[KLA102] b"), "no other"),
        (("--reason", "a # noqa"), "no other"),
        (("--reason", "..."), "must be words"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(cli, ["suppress", *arguments], standalone_mode=False)
    assert done.exception is not None and message in str(getattr(done.exception, "message", done.exception))


# --- taking them out --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"# klaudit: ignore[KLA101] x\n{CLEAN}", CLEAN),
        (f"#!/bin/sh\n  # klaudit: ignore[KLA101] x\r\n{CLEAN}", f"#!/bin/sh\n{CLEAN}"),
        (CLEAN.rstrip("\n") + "  # klaudit: ignore[KLA101] x", CLEAN.rstrip("\n")),
        (f"# klaudit: ignore[KLA101, KLA102,KLA103] x\n{LAUNCH}", f"# klaudit: ignore[KLA101] x\n{LAUNCH}"),
        (f"# noqa # klaudit: ignore[KLA102] é\n{CLEAN}", f"# noqa\n{CLEAN}"),
        (f"# klaudit: ignore[KLA102] é # noqa: E501\n{CLEAN}", f"# noqa: E501\n{CLEAN}"),
        (
            f"# klaudit: ignore[KLA102] é # klaudit: ignore[KLA101] x\n{LAUNCH}",
            f"# klaudit: ignore[KLA101] x\n{LAUNCH}",
        ),
        (
            f"# klaudit: ignore-start[KLA101] x\n{CLEAN}# klaudit: ignore-end[KLA101]\necho\n",
            f"{CLEAN}echo\n",
        ),
        (
            f"# klaudit: ignore-start[KLA101,KLA102] x\n{LAUNCH}# klaudit: ignore-end\necho\n",
            f"# klaudit: ignore-start[KLA101] x\n{LAUNCH}# klaudit: ignore-end\necho\n",
        ),
        (
            f"# klaudit: ignore-file[KLA101] x\n# klaudit: ignore[KLA110] y\n{CLEAN}",
            f"# klaudit: ignore[KLA110] y\n{CLEAN}",
        ),
    ],
)
def test_what_is_not_needed_is_removed(before: str, after: str) -> None:
    Path("run.sh").write_bytes(before.encode())
    assert run("suppress", "--remove-unused").exit_code == 1
    assert Path("run.sh").read_bytes().decode() == before
    assert run("suppress", "--remove-unused", "--write").exit_code == 0
    assert Path("run.sh").read_bytes().decode() == after
    assert run("suppress", "--remove-unused", "--write").output == "Nothing to do.\n"


def test_removed_from_notebooks_and_python() -> None:
    right = CALL.replace("beta=0.04,", "beta=0.0,")
    Path("a.py").write_text(right.replace("config =", "# klaudit: ignore[KLA101] x\nconfig ="))
    Path("b.ipynb").write_text(notebook("# klaudit: ignore[KLA101] x\n" + right, "x = 1  # klaudit: ignore[KLA102] y"))
    assert run("suppress", "--remove-unused", "--write").exit_code == 0
    assert Path("a.py").read_text() == right
    sources = ["".join(cell["source"]) for cell in json.loads(Path("b.ipynb").read_text())["cells"]]
    assert sources == [right, "x = 1"]


def test_what_was_written_is_removed_without_a_trace() -> None:
    Path("run.sh").write_text(LAUNCH)
    Path("a.py").write_text(CALL)
    run("suppress", "--reason", "x", "--write")
    for file in (Path("run.sh"), Path("a.py")):
        file.write_text(file.read_text().replace("use_kl_loss=True", "use_kl_loss=False").replace("0.04", "0.0"))
    run("suppress", "--remove-unused", "--write")
    assert Path("run.sh").read_text() == CLEAN
    assert Path("a.py").read_text() == CALL.replace("0.04", "0.0")


def test_fix_leaves_alone_what_is_suppressed() -> None:
    Path("run.sh").write_text(f"# klaudit: ignore[KLA101] a known ablation\n{LAUNCH}echo\n{LAUNCH}")
    done = run("fix", "--write")
    assert "KLA101 is suppressed by the comment on line 1: a known ablation" in " ".join(done.output.split())
    text = Path("run.sh").read_text()
    assert (
        text.startswith(f"# klaudit: ignore[KLA101] a known ablation\n{LAUNCH}echo\n") and text.count("low_var_kl") == 1
    )
    assert run("scan", "-q").exit_code == 0


def test_fix_heeds_no_comments_where_they_are_ignored() -> None:
    Path("run.sh").write_text(f"# klaudit: ignore[KLA101] a known ablation\n{LAUNCH}")
    run("fix", "--write", "--no-suppressions")
    assert "low_var_kl" not in Path("run.sh").read_text()


def test_fenced_code_gets_a_comment_where_no_prompt_stands_before_it() -> None:
    command = " ".join(LAUNCH.replace("\\\n", " ").split())
    text = f"# Title\n\n> ```bash\n> {command}\n> ```\n\n- item\n  ```console\n  $ {command}\n  ```\n"
    Path("a.md").write_text(text)
    done = run("suppress", "a.md", "--include-markdown", "--reason", "a known ablation", "--write")
    assert done.exit_code == 1
    assert Path("a.md").read_text() == text.replace("> python3", f"> {COMMENT}\n> python3")
    assert "KLA101 here: a prompt stands before the command" in done.output
    assert '"a.md" = ["KLA101"]' in done.output


def test_fix_leaves_alone_formulas_that_are_suppressed() -> None:
    function = """def loss{n}(logp, ref_logp, adv, beta):
    d = logp - ref_logp
    kl = torch.exp(-d) - 1 + d{comment}
    return (-adv * logp + beta * kl).mean()


"""
    kept = function.format(n=1, comment="  # klaudit: ignore[KLA101] the paper's own form")
    Path("a.py").write_text("import torch\n\n\n" + function.format(n=0, comment="") + kept)
    done = run("fix", "--write", "--unsafe", "--target", "k2-in-loss")
    assert "KLA101 is suppressed by the comment on line 11: the paper's own form" in " ".join(done.output.split())
    text = Path("a.py").read_text()
    assert kept in text and text.count("torch.exp") == 1
