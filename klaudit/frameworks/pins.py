"""Version pins of a framework's distributions in the texts that install them: lock files, requirements, scripts.

The texts are whatever the tree holds: no pattern here may take more than linear time, so each repetition that can be tried anew from
every position is bounded.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct
from packaging.version import Version

from klaudit.frameworks.rules import Framework
from klaudit.frameworks.versions import parse_version
from klaudit.model import FrameworkVersion
from klaudit.patterns import rare

LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "requirements.lock", "conda-lock.yml")
_REQUIREMENTS = rare(
    r"(requirements?[^/]*\.(txt|in)|pyproject\.toml|setup\.(py|cfg)|Pipfile|environment[^/]*\.ya?ml|[^/]*Dockerfile[^/]*|[^/]*\.dockerfile)$",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_AT_COMMIT, _SHOWN_OF_COMMIT = "git@", 12
_COMMENT = re.compile(r"#[^\n]*")
_EXTRAS = r"(?:\[[^\]\n]{0,200}\])?"
_COMPARISONS = r"(?:(?:===?|~=|>=|<=|!=|<|>)\s{0,9}[\w.*+!]+\s{0,9},?\s{0,9})+"


class Pin(Struct, frozen=True):
    """`specifier` is one of PEP 440, or `git@` and a commit."""

    specifier: str
    path: str
    line: int
    locked: bool


def is_requirements(name: str) -> bool:
    """Whether a file of this name says what is to be installed."""
    return _REQUIREMENTS.match(name) is not None


def find_pin(text: str, path: str, distributions: tuple[str, ...]) -> Pin | None:
    """The first pin of one of the distributions in a lock file or a file of requirements."""
    base = posixpath.basename(path)
    is_lock = base in LOCKS
    text = text if is_lock else _COMMENT.sub("", text)
    for name in distributions:
        locked = next(_locked(text, name), None) if is_lock else None
        if found := locked or next(_required(text, base, name), None):
            specifier, at = found
            return Pin(specifier, path, text.count("\n", 0, at) + 1, locked is not None)
    return None


def pins_in_text(framework: Framework, text: str, path: str) -> FrameworkVersion | None:
    """A version that a script or notebook installs itself: `pip install name==1.2`.  The last one counts."""
    last, installs = None, False
    for match in _installs(framework.distributions).finditer(text.replace("\\\n", "  ")):
        if match["version"] is None:
            installs = match[0] != "\n"
        elif installs:
            last = match
    if last is None or (version := version_or_none(last["version"])) is None:
        return None
    return FrameworkVersion(str(version), "requirement", f"=={version}", path, text.count("\n", 0, last.start()) + 1)


def version_or_none(text: str) -> Version | None:
    try:
        return parse_version(text)
    except ValueError:
        return None


def is_commit(specifier: str) -> bool:
    """Whether a pin names a commit: near which release that is, the tree does not say."""
    return specifier.startswith(_AT_COMMIT)


def fitting_releases(framework: Framework, specifier: str) -> tuple[str, ...] | None:
    """The known releases that a specifier admits, oldest first; None for what is no specifier."""
    from packaging.specifiers import SpecifierSet

    if is_commit(specifier):
        return framework.release_names
    try:
        allowed = SpecifierSet(specifier)
        return tuple(
            name
            for name, release in zip(framework.release_names, framework.releases, strict=True)
            if release in allowed
        )
    except ValueError:  # InvalidSpecifier, or a number of too many digits
        return None


def _locked(text: str, name: str) -> Iterator[tuple[str, int]]:
    spelled = _spelled(name)
    for pattern in (
        rf'(?m)^name = "{spelled}"[ \t\r]*\nversion = "([^"\n]+)"',
        rf'"{spelled}": \{{[^}}]{{0,4000}}"version": "==([^"\n]+)"',
    ):
        if match := re.search(pattern, text):
            yield "==" + match[1], match.start(1)


def _required(text: str, base: str, name: str) -> Iterator[tuple[str, int]]:
    spelled = _spelled(name)
    url = rf"(?im)(?:^|[\s\"'])(?:{spelled}\s{{0,9}}@\s{{0,9}})?git\+[^\s\"']{{1,300}}/{spelled}(?:\.git)?@v?([0-9a-f][\w.]*)"
    source = rf"(?im)^[ \t]*\"?{spelled}\"?[ \t]*=[ \t]*\{{[^}}\n]{{0,300}}?\b(?:rev|tag|ref)[ \t]*=[ \t]*[\"']v?([0-9a-f][\w.]*)"
    for pattern in (url, source) if base in ("pyproject.toml", "Pipfile") else (url,):
        for match in re.finditer(pattern, text):
            if version_or_none(match[1]) is not None:
                yield "==" + match[1], match.start(1)
            elif _COMMIT.fullmatch(match[1]):
                yield _AT_COMMIT + match[1][:_SHOWN_OF_COMMIT], match.start(1)
    for match in re.finditer(rf"(?i)(?<![\w./-]){spelled}{_EXTRAS}\s{{0,9}}({_COMPARISONS})", text):
        yield match[1].strip().rstrip(","), match.start()
    if base.lower().startswith("environment"):  # conda: one `=` is a prefix, and a build may follow
        for match in re.finditer(rf"(?im)^[ \t]*-[ \t]*[\"']?{spelled}[ \t]?=[ \t]?([\w.]+)", text):
            yield f"=={match[1]}.*", match.start()
    elif base in ("pyproject.toml", "Pipfile"):
        table = rf"(?im)^[ \t]*\"?{spelled}\"?[ \t]*=[ \t]*(?:\{{[^}}\n]{{0,200}}?\bversion[ \t]*=[ \t]*)?[\"']([^\"'\n]{{1,100}})[\"']"
        for match in re.finditer(table, text):
            if specifier := _of_poetry(match[1]):
                yield specifier, match.start()


def _of_poetry(text: str) -> str | None:
    """`^1.2`, `~1.2` and a bare version as Poetry and Pipenv understand them, in PEP 440; None for no bound at all."""
    parts = [_of_poetry_part(part.strip()) for part in text.split(",")]
    return ",".join(part for part in parts if part) or None


def _of_poetry_part(part: str) -> str | None:
    sign = part[:1]
    if sign not in ("^", "~") or part.startswith("~="):
        return None if part == "*" else f"=={part}" if sign.isdigit() else part
    low = version_or_none(part[1:].strip())
    if low is None:
        return None
    numbers = [*low.release]
    if sign == "^":  # the leftmost number that is not zero stays
        kept = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
    else:  # the minor number stays, where there is one
        kept = min(1, len(numbers) - 1)
    high = [*numbers[:kept], numbers[kept] + 1]
    return f">={low},<{'.'.join(map(str, high))}"


def _spelled(name: str) -> str:
    return re.escape(name).replace(r"\-", "[-_.]")


@lru_cache(maxsize=64)
def _installs(distributions: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(map(_spelled, distributions))
    return re.compile(rf"\n|pip3? install\b|(?<=[\s\"'])(?:{names}){_EXTRAS}==(?P<version>[\w.]+)")
