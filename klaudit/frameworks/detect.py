"""Which version of a framework a tree uses: an option, vendored source, lock files, requirements, or the newest known."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from klaudit.frameworks.metadata import installed_at
from klaudit.frameworks.pins import LOCKS, Pin, find_pin, fitting_releases, is_requirements, version_or_none
from klaudit.frameworks.rules import Framework, Vendored, VersionBound
from klaudit.model import FrameworkVersion
from klaudit.tree import Tree


class Detector:
    """Versions by place in the tree: what stands nearest above a launch counts.

    `files` are all paths of the tree; `options` maps framework ids to versions given by the user.
    """

    def __init__(self, tree: Tree, files: Iterable[str], options: Mapping[str, str]) -> None:
        self._tree = tree
        self._options = options
        self._files = sorted(files)
        self._by_name: dict[str, list[str]] = {}
        for path in self._files:
            self._by_name.setdefault(posixpath.basename(path), []).append(path)
        self._pins: dict[tuple[str, tuple[str, ...]], Pin | None] = {}
        self._versions: dict[tuple[str, str], FrameworkVersion] = {}
        self._roots: dict[str, tuple[str, ...]] = {}
        self._nearest: dict[tuple[str, str], str | None] = {}

    def version(self, framework: Framework, path: str) -> FrameworkVersion:
        """The version that a launch in `path` runs with."""
        if given := self._options.get(framework.id):
            return FrameworkVersion(given, "option")
        folder = posixpath.dirname(path)
        key = (framework.id, folder)
        if key not in self._versions:
            self._versions[key] = self._detect(framework, folder)
        return self._versions[key]

    def vendored_root(self, framework: Framework, path: str) -> str | None:
        """The folder that holds the framework's own source, the one nearest to `path`; None where the tree has none."""
        folder = posixpath.dirname(path)
        key = (framework.id, folder)
        if key not in self._nearest:
            roots = sorted({*self._vendored_roots(framework), *self._roots_above(framework, folder)})
            nearness = [(_shared(root, folder + "/x"), -len(root), root) for root in roots]
            self._nearest[key] = max(nearness)[2] if nearness else None
        return self._nearest[key]

    def vendored_folders(self, framework: Framework, root: str) -> tuple[str, ...]:
        """The packages of a framework's own source below the folder that holds it."""
        tops = dict.fromkeys(marker.partition("/")[0] for marker in framework.vendored.markers)
        return tuple(posixpath.join(root, top) for top in tops)

    def is_source(self, framework: Framework, path: str) -> bool:
        """Whether a file is part of the framework's own source in the tree."""
        root = self.vendored_root(framework, path)
        return root is not None and path.startswith(
            tuple(f"{each}/" for each in self.vendored_folders(framework, root))
        )

    def _detect(self, framework: Framework, folder: str) -> FrameworkVersion:
        root = self.vendored_root(framework, posixpath.join(folder, "x"))
        if root is not None:
            return self._vendored_version(framework, root)
        while True:
            pin = self._pin(framework, folder)
            if pin is not None:
                return of_pin(framework, pin)
            if not folder:
                return FrameworkVersion(framework.newest, "assumed")
            folder = posixpath.dirname(folder)

    def _vendored_roots(self, framework: Framework) -> tuple[str, ...]:
        if framework.id not in self._roots:
            rule = framework.vendored
            roots: dict[str, None] = {}
            for marker in rule.markers:
                for path in self._by_name.get(posixpath.basename(marker), ()):
                    if path == marker or path.endswith("/" + marker):
                        root = path[: -len(marker)].rstrip("/")
                        self._add_root(rule, root, roots)
            self._roots[framework.id] = tuple(roots)
        return self._roots[framework.id]

    def _roots_above(self, framework: Framework, folder: str) -> Iterator[str]:
        """Vendored source beside or above a folder: a scan of one file sees no others."""
        while True:
            found: dict[str, None] = {}
            if any(self._tree.is_file(posixpath.join(folder, marker)) for marker in framework.vendored.markers):
                self._add_root(framework.vendored, folder, found)
            yield from found
            if not folder:
                return
            folder = posixpath.dirname(folder)

    def _add_root(self, rule: Vendored, root: str, roots: dict[str, None]) -> None:
        if not any(self._tree.is_file(posixpath.join(root, other)) for other in rule.unless):
            roots[root] = None

    def _vendored_version(self, framework: Framework, root: str) -> FrameworkVersion:
        found, place, line = None, None, None
        for file in framework.vendored.version_files:
            text = self._tree.text(posixpath.join(root, file.path))
            if text is None:
                continue
            match = re.search(file.pattern or r"\A\s*(\S+)", text)
            if match and (version := version_or_none(match[1])) is not None:
                found, place, line = version, posixpath.join(root, file.path), text.count("\n", 0, match.start(1)) + 1
                break
        if (
            found is None
            and (told := installed_at(self._tree, root, framework.distributions, self._tree.text)) is not None
        ):
            found, place, line = told.version, told.path, told.line
        low, high = None, None
        for bound in framework.vendored.bounds:
            if self._bound_holds(bound, root):
                if bound.at_least is not None and (low is None or bound.at_least > low):
                    low = bound.at_least
                if bound.at_most is not None and (high is None or bound.at_most < high):
                    high = bound.at_most
        if found is None:
            found = high or framework.releases[-1]
        if low is not None and found < low:
            found = low
        if (
            high is not None and found > high and not (low is not None and low > high)
        ):  # what a newer release brought is the surer sign
            found = high
        return FrameworkVersion(str(found), "vendored", "", place, line)

    def _bound_holds(self, bound: VersionBound, root: str) -> bool:
        text = self._tree.text(posixpath.join(root, bound.file))
        if bound.absent:
            return text is None
        if text is None:
            return False
        if bound.contains and bound.contains not in text:
            return False
        if bound.has and not _has_key(text, bound.has):
            return False
        return not (bound.lacks and _has_key(text, bound.lacks))

    def _pin(self, framework: Framework, folder: str) -> Pin | None:
        key = (folder, framework.distributions)
        if key not in self._pins:
            names = sorted(self._tree.files(folder))
            locks = [name for name in names if name in LOCKS]
            others = [name for name in names if is_requirements(name)]
            found = None
            for name in (*locks, *others):
                text = self._tree.text(posixpath.join(folder, name))
                if text is not None and (
                    found := find_pin(text, posixpath.join(folder, name), framework.distributions, framework.repository)
                ):
                    break
            self._pins[key] = found
        return self._pins[key]


def beyond_releases(frameworks: Iterable[Framework], given: Mapping[str, str]) -> Iterator[str]:
    """A remark for each version given by the user that is newer or older than all releases that the rules know."""
    for framework in frameworks:
        version = version_or_none(given.get(framework.id, ""))
        if version is not None and not framework.releases[0] <= version <= framework.releases[-1]:
            is_newer = version > framework.releases[-1]
            age, end, nearest = ("newer", "newest", -1) if is_newer else ("older", "oldest", 0)
            yield (
                f"{framework.id} {version} is {age} than {framework.release_names[nearest]}, the {end} release that the rules know, "
                f"and is judged like that one"
            )


def of_pin(framework: Framework, pin: Pin) -> FrameworkVersion:
    """The version that a pin asks for: the newest release that it admits."""
    specifier = pin.specifier.replace(" ", "")
    if specifier.startswith("==") and "," not in specifier and "*" not in specifier:
        exact = version_or_none(specifier.lstrip("="))
        if exact is not None:
            return FrameworkVersion(
                str(exact), "lockfile" if pin.locked else "requirement", specifier, pin.path, pin.line
            )
    fitting = fitting_releases(framework, specifier)
    if fitting is None:
        return FrameworkVersion(framework.newest, "assumed")
    return FrameworkVersion(fitting[-1] if fitting else framework.newest, "requirement", specifier, pin.path, pin.line)


def allowed_releases(framework: Framework, version: FrameworkVersion) -> tuple[str, ...]:
    """The known releases that a loose pin admits; empty where the version is not a loose pin."""
    if version.source != "requirement" or (version.allowed.startswith("==") and "*" not in version.allowed):
        return ()
    return fitting_releases(framework, version.allowed) or ()


def _has_key(text: str, dotted: str) -> bool:
    """Whether a YAML text has a dotted key; read by indentation, since vendored configs may hold what PyYAML refuses."""
    wanted = dotted.split(".")
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.match(r"( *)([\w@/.-]+):", line)
        if not match:
            continue
        indent = len(match[1])
        while stack and stack[-1][0] >= indent:
            stack.pop()
        stack.append((indent, match[2]))
        if [key for _, key in stack] == wanted:
            return True
    return False


def _shared(root: str, path: str) -> int:
    """How many leading folders two paths share."""
    count = 0
    for left, right in zip(root.split("/") if root else (), path.split("/"), strict=False):
        if left != right:
            break
        count += 1
    return count
