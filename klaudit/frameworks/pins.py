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
from klaudit.patterns import rare

LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "requirements.lock", "conda-lock.yml")
_REQUIREMENTS = rare(
    r"(requirements?[^/]*\.(txt|in)|pyproject\.toml|setup\.(py|cfg)|Pipfile|environment[^/]*\.ya?ml|[^/]*Dockerfile[^/]*|[^/]*\.dockerfile)$",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_AT_COMMIT, _SHOWN_OF_COMMIT = "git@", 12
_COMMENT = re.compile(r"#[^\n]*")
_SET_OFF_COMMENT = rare(r"(?m)(?:^|(?<=[\s\"']))#[^\n]*")  # not the fragment of an address
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


def find_pin(text: str, path: str, distributions: tuple[str, ...], repository: str = "") -> Pin | None:
    """The first pin of one of the distributions in a lock file or a file of requirements.

    `repository` is where their source is kept, for what is installed from there under another name.
    """
    base = posixpath.basename(path)
    is_lock = base in LOCKS
    text = text if is_lock else _COMMENT.sub("", text)
    for name in distributions:
        locked = next(_locked(text, name), None) if is_lock else None
        if found := locked or next(_required(text, base, name, repository), None):
            specifier, at = found
            return Pin(specifier, path, text.count("\n", 0, at) + 1, locked is not None)
    return None


def pins_in_text(framework: Framework, text: str, path: str) -> Pin | None:
    """What a script, notebook or job file installs itself: `pip install name==1.2`, `pip install git+https://.../name@v1.2`.

    The last one counts.  What comments say to install counts where nothing else does: an exported notebook has its installs there.
    """
    told = text.replace("\\\n", "  ")
    without_comments = _SET_OFF_COMMENT.sub(lambda comment: " " * len(comment[0]), told)
    found = _installed(framework, without_comments) or _installed(framework, told)
    return found and Pin(found[0], path, text.count("\n", 0, found[1]) + 1, locked=False)


def _installed(framework: Framework, text: str) -> tuple[str, int] | None:
    """The last specifier that an install gives, and where."""
    last, installs = None, False
    for match in _installs(framework.distributions, framework.repository).finditer(text):
        if match["version"] is None and match["ref"] is None:
            installs = match[0] != "\n"
        elif installs and (specifier := _exactly(match["version"]) or _of_ref(match["ref"])):
            last = specifier, match.start()
    return last


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


def _required(text: str, base: str, name: str, repository: str) -> Iterator[tuple[str, int]]:
    spelled = _spelled(name)
    url = rf"(?im)(?:^|[\s\"'])(?:{spelled}\s{{0,9}}@\s{{0,9}})?{_at_ref((name,), repository)}"
    source = rf"(?im)^[ \t]*\"?{spelled}\"?[ \t]*=[ \t]*\{{[^}}\n]{{0,300}}?\b(?:rev|tag|ref)[ \t]*=[ \t]*[\"'](?P<ref>[\w.+-]+)[\"']"
    for pattern in (url, source) if base in ("pyproject.toml", "Pipfile") else (url,):
        for match in re.finditer(pattern, text):
            if specifier := _of_ref(match["ref"]):
                yield specifier, match.start("ref")
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


def _at_ref(names: tuple[str, ...], repository: str) -> str:
    """A pattern for what pip takes from a repository, by its own name or, whatever its name, from that of the framework."""
    ends = [*map(_spelled, names)]
    if owned := "/".join(repository.rstrip("/").split("/")[-2:]):
        ends.append(re.escape(owned))
    address = r"git\+(?:\w{1,9}://)?(?:[^\s\"'@/]{1,99}@)?[^\s\"'@]{1,300}?"
    return rf"{address}[/:](?:{'|'.join(ends)})(?:\.git)?/?@(?P<ref>[\w.+/-]+)"


def _of_ref(ref: str | None) -> str | None:
    """The specifier that a tag or commit amounts to; None for a branch, which moves."""
    if ref is None:
        return None
    number = ref[1:] if ref[:1] in "vV" else ref
    if "." in number or number != ref:  # a commit can be all digits
        return _exactly(number)
    return _AT_COMMIT + ref[:_SHOWN_OF_COMMIT] if _COMMIT.fullmatch(ref) else None


def _exactly(version: str | None) -> str | None:
    return f"=={version}" if version is not None and version_or_none(version) is not None else None


@lru_cache(maxsize=64)
def _installs(distributions: tuple[str, ...], repository: str) -> re.Pattern[str]:
    names = "|".join(map(_spelled, distributions))
    return re.compile(
        rf"(?i)\n|pip3? install\b|(?<=[\s\"'])(?:{names}){_EXTRAS}==(?P<version>[\w.!-]+)|{_at_ref(distributions, repository)}"
    )
