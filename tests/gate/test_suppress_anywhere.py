"""Launches in all kinds of places: one comment each, nothing else changed, nothing left to find."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from klaudit.engine import scan
from klaudit.fixes.suppress import suppress
from klaudit.tree import Tree
from tests.gate.test_suppressions import CALL, LAUNCH, OPTIONS

COMMAND = LAUNCH.rstrip("\n")
SHELL = (
    "{launch}\n",
    "f{n}() {{\n\t{launch}\n}}\nf{n}\n",
    "if [[ -z $X{n} ]]; then\n  {launch}\nelse\n  echo a\nfi\n",
    "for i in 1 2; do\n  {launch} || exit 1\ndone\n",
    "( cd x{n}; {launch} )\n",
    "cd y{n} &&\n  {launch} 2>&1 | tee log{n}.txt\n",
    "A={n} B='# klaudit: ignore[no]' {launch} &\nwait\n",
    "case z in\n  # a comment\n  z) {launch} ;;\nesac\n",
    "cat <<E{n}\n# klaudit: ignore[no]\nE{n}\n{launch} <<E{n}\ninput\nE{n}\n",
    "OUT=$(\n  {launch}\n)\n",
    "W{n}=(\n  # words\n  actor_rollout_ref.actor.use_kl_loss=True\n  actor_rollout_ref.actor.kl_loss_type=low_var_kl\n)\n"
    'python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\\n  "${{W{n}[@]}}"  # behind\n',
    "{{ echo b; {launch}; }} >out{n}.txt\n",
    "! {launch}\n",
    "echo 'a\n# klaudit: ignore[no]\n' ; {launch}\n",
)
PYTHON = (
    "{call}",
    "def f{n}():\n    return GRPOConfig(\n        output_dir='# klaudit: ignore[no]', beta=0.04\n    )\n",
    "class C{n}:\n    config = GRPOConfig(output_dir='x', beta=0.04)  # behind\n",
    "if True: a{n} = GRPOConfig(output_dir='x', beta=0.04)\n",
    "b{n} = [\n    # one\n    GRPOConfig(output_dir='x', beta=0.04),\n    GRPOConfig(output_dir='y', beta=0.05),\n]\n",
    "c{n} = 1; d{n} = \\\n    GRPOConfig(output_dir='x', beta=0.04)\n",
    "@(lambda f: f)\ndef g{n}(a=GRPOConfig(output_dir='x', beta=0.04)):\n    '''\n# klaudit: ignore[no]\n'''\n",
)


def suppressed(name: str, text: str) -> str:
    """The file with a comment for everything that is found in it."""
    with TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_bytes(text.encode())
        before = scan([folder], OPTIONS)
        assert "KLA101" in {finding.rule for finding in before.findings}
        annotation = suppress(before.findings, Tree(folder), "known")
        assert annotation.refused == [] and annotation.count == len(before.findings)
        file.write_bytes(annotation.contents[name])
        after = scan([folder], OPTIONS)
        assert [(finding.rule, finding.span.line) for finding in after.findings] == []
        assert len(after.withheld) == len(before.findings)
        unheeded = scan([folder], replace(OPTIONS, suppressions=False))
        assert sorted(each.fingerprint for each in unheeded.findings) == sorted(
            each.fingerprint for each in before.findings
        )
        return annotation.contents[name].decode()


def without_comments(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip(" \t").startswith("# klaudit: ignore[KLA"))


@given(st.lists(st.sampled_from(SHELL), min_size=1, max_size=5))
@settings(max_examples=12)
def test_shell(blocks: list[str]) -> None:
    text = "#!/bin/bash\n" + "".join(block.format(n=n, launch=COMMAND) for n, block in enumerate(blocks))
    after = suppressed("run.sh", text)
    assert without_comments(after) == text
    assert subprocess.run(["bash", "-n"], input=after.encode(), check=False, timeout=20).returncode == 0


@given(st.lists(st.sampled_from(PYTHON), min_size=1, max_size=5))
@settings(max_examples=12)
def test_python(blocks: list[str]) -> None:
    call = CALL.partition("\n\n")[2]
    text = "from trl import GRPOConfig\n" + "".join(block.format(n=n, call=call) for n, block in enumerate(blocks))
    after = suppressed("a.py", text)
    assert without_comments(after) == text
    compile(after, "a.py", "exec")
