"""A file that is named alone, as pre-commit and editors do, is judged as in a scan of its whole repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.discover import list_context, list_files, locate
from klaudit.engine import scan
from klaudit.fixes.migration import Request
from klaudit.fixes.planning import plan
from klaudit.model import Finding, Report, Setup

LAUNCH = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True"
    " actor_rollout_ref.actor.kl_loss_type=low_var_kl\n"
)
PROGRAM = """\
from trl import GRPOConfig, GRPOTrainer, TrlParser
(config,) = TrlParser((GRPOConfig,)).parse_args_and_config()
GRPOTrainer(args=config)
"""
FILES = {
    "jobs/own_program.sh": "python deep/grpo_main.py --beta 0.04 --config shared/base.yaml\n",
    "src/deep/grpo_main.py": PROGRAM,
    "requirements.txt": "trl==0.17.0\n",
    "jobs/with_config.sh": "trl grpo --config shared/base.yaml\n",
    "shared/base.yaml": "beta: 0.02\nmodel_name_or_path: x\n",
    "jobs/vendored.sh": LAUNCH,
    "third/verl/trainer/main_ppo.py": "import ray\n",
    "third/verl/version/version": "0.4.1\n",
    "third/verl/__init__.py": "",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / ".git").mkdir()
    return tmp_path


def of(report: Report, path: str) -> tuple[list[Setup], list[Finding]]:
    return (
        [setup for setup in report.setups if setup.path == path],
        [finding for finding in report.findings if finding.span.path == path],
    )


def test_named_files_are_judged_as_in_the_whole(repository: Path) -> None:
    whole = scan([str(repository)], Options(jobs=1))
    versions = {setup.path: (setup.version.value, setup.version.source) for setup in whole.setups}
    assert versions["jobs/own_program.sh"] == versions["jobs/with_config.sh"] == ("0.17.0", "requirement")
    assert versions["jobs/vendored.sh"][1] == "vendored"
    for path in FILES:
        alone = scan([str(repository / path)], Options(jobs=1))
        assert of(alone, path) == of(whole, path), path
        assert {setup.path for setup in alone.setups} <= {path}
        assert alone.files_seen == 1


def test_several_named_files_are_judged_as_in_the_whole(repository: Path) -> None:
    whole = scan([str(repository)], Options(jobs=1))
    some = scan([str(repository / "jobs/vendored.sh"), str(repository / "jobs/own_program.sh")], Options(jobs=1))
    assert some.setups == tuple(
        setup for setup in whole.setups if setup.path in ("jobs/vendored.sh", "jobs/own_program.sh")
    )


def test_a_fix_of_a_named_file_is_that_of_the_whole(repository: Path) -> None:
    whole = plan([str(repository)], Options(jobs=1), Request())
    alone = plan([str(repository / "jobs/vendored.sh")], Options(jobs=1), Request())
    assert alone.contents == {path: data for path, data in whole.contents.items() if path == "jobs/vendored.sh"}
    assert alone.contents


def test_what_is_excluded_is_no_context(repository: Path) -> None:
    from klaudit.globs import Globs

    options = Options(exclude=(Globs(str(repository.resolve()), ("third/",)),))
    targets = locate([str(repository / "jobs/vendored.sh")], options)
    context = list_context(targets, list_files(targets, options), options)
    assert "src/deep/grpo_main.py" in context
    assert not any(path.startswith("third/") for path in context)


def test_outside_a_repository_only_what_is_named_is_listed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / ".git").rmdir()
    monkeypatch.chdir(repository)
    options = Options()
    targets = locate(["jobs/vendored.sh"], options)
    assert list_context(targets, list_files(targets, options), options) == ("jobs/vendored.sh",)
