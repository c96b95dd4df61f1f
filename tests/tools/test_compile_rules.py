"""A wheel brings its rules compiled, and what is installed from it reads no YAML to know them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOAD = """
import sys
sys.modules["yaml"] = None
from klaudit.findings import catalogue
from klaudit.frameworks.load import load_frameworks, shipped_rules
print(shipped_rules())
print(*(framework.id for framework in load_frameworks()))
print(*(f"{entry.id}-{entry.name}" for entry in catalogue.load()))
"""


def test_a_built_wheel_holds_them_and_they_are_used(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    loaded = subprocess.run(
        [sys.executable, "-c", LOAD],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed)},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    folder, frameworks, findings = loaded.stdout.splitlines()
    assert Path(folder) == (installed / "klaudit" / "rules").resolve()
    for told, name in ((frameworks, "frameworks"), (findings, "findings")):
        assert sorted(told.split()) == sorted(path.stem for path in (ROOT / "rules" / name).glob("*.yaml"))
