"""Version pins in lock files, requirements and scripts, and that no text makes looking for them slow."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import klaudit
from klaudit.frameworks.load import load_frameworks
from klaudit.frameworks.pins import find_pin, fitting_releases, pins_in_text

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
    ("text", "version"),
    [
        ("pip install verl==0.4.1\n", "0.4.1"),
        ("!pip3 install -U 'verl[vllm]==0.4.1' torch\n", "0.4.1"),
        ("pip install torch \\\n  vllm==0.8 \\\n  verl==0.4.1\n", "0.4.1"),
        ("pip install verl==0.3.0\npip install verl==0.4.1\n", "0.4.1"),
        ("echo verl==0.4.1\n", None),
        ("pip install torch\necho verl==0.4.1\n", None),
        ("pip install my-verl==0.4.1\n", None),
    ],
)
def test_a_script_installs_its_own_version(text: str, version: str | None) -> None:
    found = pins_in_text(FRAMEWORKS["verl"], text, "run.sh")
    assert (found and found.value) == version


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


@pytest.mark.parametrize("text", ["pip install " * 50_000, "pip install " + "verl==1 \\\n" * 50_000, " verl[" * 50_000])
def test_installs_are_searched_in_linear_time(text: str) -> None:
    started = time.process_time()
    pins_in_text(FRAMEWORKS["verl"], text, "run.sh")
    assert time.process_time() - started < SLOWEST
