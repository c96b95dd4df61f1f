"""Releases of a distribution: which exist, and their unpacked files.  Only wheels are taken: to unpack one runs none of its code."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

_PYTHONS = ("", "3.12", "3.10")  # wheels built for one interpreter are asked for by its version


def known_releases(distribution: str) -> list[str]:
    """Every final release on the package index, oldest first; empty where the index does not know the name."""
    answer = _pip("index", "versions", distribution, "--ignore-requires-python")
    listed = re.search(r"^Available versions:\s*(.+)$", answer.stdout, re.MULTILINE)
    return sorted(filter(None, re.split(r"[,\s]+", listed[1])), key=Version) if listed else []


def unpack(distributions: Sequence[str], version: str, cache: Path) -> Path | None:
    """The folder with the files of the first of the distributions that has a wheel of this release."""
    for distribution in distributions:
        folder = cache / distribution / version
        if not (folder / "files").is_dir() and not (folder / "no-wheel").exists():
            _fetch(distribution, version, folder)
        if (folder / "files").is_dir():
            return folder / "files"
    return None


def _fetch(distribution: str, version: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for python in _PYTHONS:
        wanted = ["--python-version", python] if python else []
        _pip(
            "download", "--no-deps", "--only-binary=:all:", *wanted, "--dest", str(folder), f"{distribution}=={version}"
        )
        for wheel in folder.glob("*.whl"):
            unpack_wheel(wheel, folder / "files")
            wheel.unlink()
            return
    (folder / "no-wheel").touch()


def unpack_wheel(wheel: Path, folder: Path) -> None:
    """Unpacks below `folder`, which appears only when complete, as an installer lays the modules out."""
    part = folder.with_suffix(".part")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(part)
    for library in part.glob("*.data/*lib"):  # purelib and platlib of wheels for one platform
        for item in library.iterdir():
            if not (part / item.name).exists():
                item.rename(part / item.name)
    part.rename(folder)


def extend_releases(rules: Path, known: Sequence[str]) -> list[str]:
    """Appends the releases newer than the last listed one to the `releases: [...]` list of a framework file; returns them."""
    text = rules.read_text(encoding="utf-8")
    found = re.search(r"^releases:\s*\[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    if found is None:
        return []
    listed = [part.strip().strip("\"'") for part in found[1].split(",") if part.strip()]
    newer = [release for release in known if _is_final(release) and Version(release) > max(map(Version, listed))]
    if newer:
        added = "".join(f', "{release}"' for release in newer)
        rules.write_text(text[: found.end(1)].rstrip(", ") + added + text[found.end(1) :], encoding="utf-8")
    return newer


def missing_releases(listed: Sequence[str], known: Sequence[str]) -> list[str]:
    """Final releases on the index, not older than the first listed one, that a framework file does not list."""
    have = set(map(Version, listed))
    return [
        release
        for release in known
        if _is_final(release) and Version(release) not in have and Version(release) > min(have)
    ]


def _is_final(release: str) -> bool:
    try:
        return not Version(release).is_prerelease
    except InvalidVersion:
        return False


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    if arguments[0] == "index":
        command.remove("--quiet")
    return subprocess.run(command, capture_output=True, text=True, check=False)
