"""Version pins in lock files, requirements and scripts, and that no text makes looking for them slow."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import klaudit
from klaudit.frameworks.load import load_frameworks
from klaudit.frameworks.pins import find_pin, fitting_releases, pins_in_text
from klaudit.reports.view import View
from klaudit.reports.wording import version_source

FRAMEWORKS = {framework.id: framework for framework in load_frameworks(())}
SLOWEST = 3.0  # seconds; each text below took minutes, or far more, with a pattern of quadratic time


@pytest.mark.parametrize(
    ("path", "text", "specifier"),
    [
        ("requirements.txt", "torch\nverl==0.4.1\n", "==0.4.1"),
        ("requirements.txt", "verl[vllm]>=0.4, <0.5 ; python_version > '3.9'\n", ">=0.4, <0.5"),
        ("requirements.txt", "VERL ~= 0.4.1 --hash=sha256:00\n", "~= 0.4.1"),
        ("requirements.txt", "verl @ git+https://github.com/volcengine/verl.git@v0.4.1#egg=verl\n", "==0.4.1"),
        (
            "requirements.txt",
            "verl@git+https://github.com/x/verl@0123abcdef0123456789#egg=verl[all]\n",
            "git@0123abcdef01",
        ),
        ("setup.py", '    "verl @ git+https://github.com/volcengine/verl.git@9f4a1c2",\n', "git@9f4a1c2"),
        ("requirements.txt", "verl @ git+https://github.com/volcengine/verl.git@main\n", None),
        ("requirements.txt", "# verl==0.3.0\nverl==0.4.1 # not verl==0.5.0\n", "==0.4.1"),
        ("requirements.txt", "# verl @ git+https://github.com/volcengine/verl.git@v0.3.0\n", None),
        ("requirements.txt", "my-verl==9.0\nverl-plus==8.0\nverl.extra==7.0\nverl\n", None),
        ("Dockerfile", "RUN pip install --no-cache verl==0.4.1 vllm==0.8\n", "==0.4.1"),
        ("setup.py", "setup(install_requires=['torch','verl>=0.4'])\n", ">=0.4"),
        ("pyproject.toml", '[project]\ndependencies = ["verl>=0.4,<0.6"]\n', ">=0.4,<0.6"),
        ("pyproject.toml", '[tool.poetry.dependencies]\nverl = "^0.4.1"\n', ">=0.4.1,<0.5"),
        ("pyproject.toml", '[tool.poetry.dependencies]\nverl = "^1.2"\n', ">=1.2,<2"),
        ("pyproject.toml", '[tool.poetry.dependencies]\nverl = "~0.4.1"\n', ">=0.4.1,<0.5"),
        ("pyproject.toml", '[tool.poetry.dependencies]\nverl = {extras = ["vllm"], version = "0.4.1"}\n', "==0.4.1"),
        ("pyproject.toml", '[tool.poetry.dependencies]\nverl = "*"\n', None),
        (
            "pyproject.toml",
            '[tool.uv.sources]\nverl = { git = "https://github.com/x/verl", rev = "9f4a1c2" }\n',
            "git@9f4a1c2",
        ),
        (
            "pyproject.toml",
            '[tool.uv.sources]\nverl = { git = "https://github.com/x/verl", tag = "v0.4.1" }\n',
            "==0.4.1",
        ),
        ("pyproject.toml", '[tool.uv.sources]\nverl = { git = "https://github.com/x/verl", branch = "main" }\n', None),
        ("Pipfile", "[packages]\nverl = {git = 'https://github.com/x/verl.git', ref = '9f4a1c2'}\n", "git@9f4a1c2"),
        ("Pipfile", '[packages]\nverl = ">=0.4"\n', ">=0.4"),
        ("environment.yml", "dependencies:\n  - verl=0.4.1=py311_0\n", "==0.4.1.*"),
        ("environment.yml", "dependencies:\n  - pip:\n    - verl==0.4.1\n", "==0.4.1"),
        ("uv.lock", '[[package]]\nname = "verl"\nversion = "0.4.1"\n', "==0.4.1"),
        ("Pipfile.lock", '{"default": {"verl": {"hashes": [], "version": "==0.4.1"}}}', "==0.4.1"),
    ],
)
def test_a_pin_is_read(path: str, text: str, specifier: str | None) -> None:
    found = find_pin(text, path, ("verl",))
    assert (found and found.specifier) == specifier


def test_a_commit_may_be_near_any_release(tmp_path: Path) -> None:
    """Two releases turned the default of beta round: which of them the commit is near, nobody can tell."""
    (tmp_path / "requirements.txt").write_text(
        "trl @ git+https://github.com/huggingface/trl.git@0123abcdef0123456789\n"
    )
    (tmp_path / "train.py").write_text("from trl import GRPOConfig\nargs = GRPOConfig(output_dir='out')\n")
    report = klaudit.scan(tmp_path)
    assert [(finding.rule, finding.span.line) for finding in report.findings] == [("KLA211", 2)]
    assert "git@0123abcdef01 may be any of the releases" in report.findings[0].message
    assert report.setups[0].version.allowed == "git@0123abcdef01"


@pytest.mark.parametrize(
    ("text", "specifier"),
    [
        ("pip install verl==0.4.1\n", "==0.4.1"),
        ("!pip3 install -U 'verl[vllm]==0.4.1' torch\n", "==0.4.1"),
        ("%pip install -q verl==0.4.1\n", "==0.4.1"),
        ("uv pip install --system verl==0.4.1\n", "==0.4.1"),
        ("pip install torch \\\n  vllm==0.8 \\\n  verl==0.4.1\n", "==0.4.1"),
        ("pip install verl==0.3.0\npip install verl==0.4.1\n", "==0.4.1"),
        ('pip install "git+https://github.com/volcengine/verl.git@v0.4.1"\n', "==0.4.1"),
        ("RUN pip install git+https://github.com/someone/verl@0.4.1#egg=verl && echo\n", "==0.4.1"),
        ("pip install 'verl[vllm] @ git+ssh://git@github.com/volcengine/verl.git@v0.4.1'\n", "==0.4.1"),
        ("pip install git+https://me:secret@github.com/volcengine/verl@v0.4.1\n", "==0.4.1"),
        ("    - pip install -U git+https://github.com/volcengine/VeRL@0123456789abcdef\n", "git@0123456789ab"),
        ("pip install git+https://github.com/volcengine/verl@1234567\n", "git@1234567"),
        ("pip install git+https://github.com/volcengine/verl@main\n", None),
        ("pip install git+https://github.com/volcengine/verl@feature/v0.4.1\n", None),
        ("pip install git+https://github.com/volcengine/verl@deadbeef-fixes\n", None),
        ("pip install git+https://github.com/volcengine/verl@${REF}\n", None),
        ("pip install git+https://github.com/volcengine/verl-recipes@v0.4.1\n", None),
        ("git clone git+https://github.com/volcengine/verl@v0.4.1\n", None),
        ("# pip install verl==0.3.0\n", "==0.3.0"),
        ("pip install verl==0.4.1\n# pip install verl==0.3.0\n", "==0.4.1"),
        ("pip install verl==0.4.1  # not pip install verl==0.5.0\n", "==0.4.1"),
        ("echo verl==0.4.1\n", None),
        ("pip install torch\necho verl==0.4.1\n", None),
        ("pip install my-verl==0.4.1\n", None),
    ],
)
def test_a_script_installs_its_own_version(text: str, specifier: str | None) -> None:
    found = pins_in_text(FRAMEWORKS["verl"], text, "run.sh")
    assert (found and found.specifier) == specifier


@pytest.mark.parametrize(
    ("number", "specifier"), [("1!0.9", "==1!0.9"), ("0.9.6-post1", "==0.9.6-post1"), ("0.9.*", None), ("0.9-x", None)]
)
def test_the_whole_of_a_version_counts(number: str, specifier: str | None) -> None:
    pin = pins_in_text(FRAMEWORKS["verl"], f"pip install verl=={number}\n", "run.sh")
    assert (pin and pin.specifier) == specifier


def test_a_framework_is_known_by_its_repository_too() -> None:
    """Its distribution has another name."""
    ours = "pip install git+https://github.com/NVIDIA-NeMo/RL.git@v0.3.0\n"
    other = "pip install git+https://github.com/somebody/RL.git@v0.3.0\n"
    found = pins_in_text(FRAMEWORKS["nemo-rl"], ours, "run.sh")
    assert found is not None and (found.specifier, found.line) == ("==0.3.0", 1)
    assert pins_in_text(FRAMEWORKS["nemo-rl"], other, "run.sh") is None


INSTALL = "pip install git+https://github.com/huggingface/trl@{ref}"
CONFIG = "from trl import GRPOConfig\nargs = GRPOConfig(output_dir='out', beta=0.04)\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", "# an experiment\n{install} --upgrade\ntrl grpo --output_dir o --beta 0.04 --num_generations 4\n"),
        ("job.yaml", "setup: |\n  {install}\nrun: |\n  trl grpo --output_dir o --beta 0.04 --num_generations 4\n"),
        (
            "nb.ipynb",
            '{{"cells": [{{"cell_type": "code", "source": [\n"%{install}\\n",\n"from trl import GRPOConfig\\n",\n'
            '"args = GRPOConfig(output_dir=\'out\', beta=0.04)\\n"]}}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}',
        ),
    ],
)
def test_what_a_file_installs_is_what_it_runs_with(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text.format(install=INSTALL.format(ref="v0.20.0")))
    (setup,) = klaudit.scan(tmp_path).setups
    assert (setup.version.value, setup.version.source, setup.version.line) == ("0.20.0", "requirement", 2)
    (tmp_path / name).write_text(text.format(install=INSTALL.format(ref="0123abcdef0123456789")))
    (setup,) = klaudit.scan(tmp_path).setups
    assert (setup.version.value, setup.version.allowed) == (FRAMEWORKS["trl"].newest, "git@0123abcdef01")


def test_a_commit_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM python\nRUN {INSTALL.format(ref='0123abcdef0123456789')}\n")
    (tmp_path / "train.py").write_text(CONFIG)
    (setup,) = klaudit.scan(tmp_path).setups
    told = version_source(setup.version, View(width=200))
    assert told == "Dockerfile:2 pins a commit, git@0123abcdef01: the newest release is assumed"


METADATA = "Metadata-Version: 2.1\nName: trl\nVersion: 0.20.0\nSummary: Version: 9.9\n\nVersion: 8.8\n"


@pytest.mark.parametrize("path", ["trl-0.20.0.dist-info/METADATA", "trl.egg-info/PKG-INFO", "PKG-INFO"])
def test_an_unpacked_distribution_says_its_version(tmp_path: Path, path: str) -> None:
    for name in ("trl/trainer/grpo_trainer.py", "train.py", path):
        (tmp_path / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "lib/trl/trainer/grpo_trainer.py").write_text("")
    (tmp_path / "lib/train.py").write_text(CONFIG)
    (tmp_path / "lib" / path).write_text(METADATA)
    (setup,) = klaudit.scan(tmp_path).setups
    version = setup.version
    assert (version.value, version.source, version.path, version.line) == ("0.20.0", "vendored", f"lib/{path}", 3)


@pytest.mark.parametrize(
    "files",
    [
        {"PKG-INFO": METADATA.replace("Name: trl", "Name: other")},
        {"other-0.20.0.dist-info/METADATA": METADATA},
        {"trl-0.20.0.dist-info/METADATA": METADATA.replace("0.20.0", "newest")},
        {"trl-0.20.0.dist-info/METADATA": METADATA, "trl-0.19.0.dist-info/METADATA": METADATA.replace("0.20", "0.19")},
    ],
)
def test_metadata_of_something_else_says_nothing(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in {"trl/trainer/grpo_trainer.py": "", "train.py": CONFIG, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (setup,) = klaudit.scan(tmp_path).setups
    assert (setup.version.value, setup.version.path) == (FRAMEWORKS["trl"].newest, None)


@pytest.mark.parametrize("number", ["9" * 5_000, "1." * 20_000 + "1", "x", "", "=", "*", "0.4.*.1"])
def test_absurd_versions_fit_nothing(number: str) -> None:
    for sign in ("==", "===", ">=", "~=", "<"):
        fitting = fitting_releases(FRAMEWORKS["verl"], sign + number)
        assert fitting is None or isinstance(fitting, tuple)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("requirements.txt", "git+" * 300_000),
        ("requirements.txt", " verl[" * 50_000),
        ("requirements.txt", ("verl" + " " * 1_000) * 1_000),
        ("requirements.txt", "# " + "verl>=1 " * 200_000),
        ("requirements.txt", "verl>=1" + " " * 200_000 + "x"),
        ("requirements.txt", ("verl " + ">=1," * 20 + "x ") * 5_000),
        ("pyproject.toml", "verl = {" * 100_000),
        ("environment.yml", "- " * 200_000 + "verl ="),
        ("conda-lock.yml", '"verl": {' * 8_000),
        ("uv.lock", ('name = "verl"\n' + "\n" * 1_000) * 500),
    ],
)
def test_requirements_are_searched_in_linear_time(path: str, text: str) -> None:
    started = time.process_time()
    find_pin(text, path, ("verl",))
    assert time.process_time() - started < SLOWEST


@pytest.mark.parametrize(
    "text",
    [
        "pip install " * 50_000,
        "pip install " + "verl==1 \\\n" * 50_000,
        " verl[" * 50_000,
        "pip install " + "git+" * 100_000,
        "pip install " + "git+https://verl" * 30_000,
        "pip install " + "#" * 200_000,
    ],
)
def test_installs_are_searched_in_linear_time(text: str) -> None:
    started = time.process_time()
    pins_in_text(FRAMEWORKS["verl"], text, "run.sh")
    assert time.process_time() - started < SLOWEST
