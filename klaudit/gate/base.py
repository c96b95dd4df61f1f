"""The commit that a scan is compared with, and its tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

from msgspec import Struct

from klaudit.configuration import Options
from klaudit.discover import Targets, has_shell_shebang, is_candidate, path_in_repository
from klaudit.discover.history import FETCH, Entry, History, RevisionError
from klaudit.discover.suffixes import EXCLUDED_FOLDERS
from klaudit.discover.targets import repository_of
from klaudit.gate.commit_tree import CommitTree
from klaudit.globs import any_of
from klaudit.tree import Tree

_MOST_REPOSITORIES = 50  # nested ones that are looked into
_MOST_OPENED = 1_000  # files without a suffix whose first line is looked at


class Base(Struct, frozen=True):
    """`name` is for people; `entries` has the paths below the root of the scan, `all_entries` those below that of the repository;
    `remarks` say what could not be seen."""

    name: str
    entries: dict[str, Entry]
    all_entries: dict[str, Entry]
    read: Callable[[str], bytes]
    remarks: list[str]

    def tree(self, root: str) -> CommitTree:
        return CommitTree(root, self.entries, self.read)

    def repository(self, root: str) -> CommitTree:
        """The tree of the whole repository, which has this root."""
        return CommitTree(root, self.all_entries, self.read)


def find_base(ref: str, root: str, until: ExitStack) -> Base:
    """The commit where HEAD branched off `ref`, as a pull request is compared; `ref` itself where the two share no history.

    Raises RevisionError where there is no such commit, or no repository.
    """
    repository = repository_of(root)
    if repository is None:
        raise RevisionError(f"--diff-base {ref}: {root} is in no git repository")
    history = until.enter_context(History(repository))
    commit = history.commit(ref)
    if commit is None:
        raise RevisionError(f"--diff-base: no commit `{ref}` in {repository}{_hint(ref, history)}")
    head = history.commit("HEAD")
    base = history.merge_base(commit, head) if head is not None else None
    if base is None and history.is_shallow:
        raise RevisionError(f"--diff-base {ref}: no commit that HEAD shares with it: this clone is shallow, {FETCH}")
    base = base or commit
    prefix = path_in_repository(root)
    entries = history.entries(base)
    name = f"{ref} ({base[:12]})"
    if not any(entry.kind == "repository" for entry in entries.values()):
        return Base(name, _below(prefix, entries), entries, history.read, [])
    remarks: list[str] = []
    readers: dict[str, Callable[[str], bytes]] = {}
    _enter_repositories(entries, repository, until, readers, remarks)

    def read(id: str) -> bytes:
        return readers.get(id, history.read)(id)

    return Base(name, _below(prefix, entries), entries, read, remarks)


def candidates(base: Base, tree: Tree, targets: Targets, options: Options, now: Iterable[str]) -> list[str]:
    """The files that a scan of the targets would have had in its context at the base; `now` are those it has today."""
    folders = tuple("" if folder == "." else folder + "/" for folder in targets.folders)
    below = [path for path in base.entries if targets.files or path.startswith(folders)]
    named = [path for path in targets.files if path in base.entries]
    return sorted({*named, *looked_at(below, base, tree, options, now)})


def looked_at(paths: Iterable[str], base: Base, tree: Tree, options: Options, now: Iterable[str] = ()) -> Iterator[str]:
    """Those files of the base that a scan of the whole tree would not have passed over."""
    known = frozenset(now)
    opened = 0
    is_excluded = any_of(options.exclude, tree.root)
    for path in paths:
        if base.entries[path].kind != "file" or is_excluded(path):
            continue
        wanted = is_candidate(path, include_markdown=options.include_markdown)
        if wanted is False or not EXCLUDED_FOLDERS.isdisjoint(path.split("/")[:-1]):
            continue
        if not wanted and path not in known:
            opened += 1
            if opened > _MOST_OPENED or not _is_shell(tree, path):
                continue
        yield path


def _is_shell(tree: Tree, path: str) -> bool:
    data = tree.data(path)
    tree.forget(path)
    return data is not None and has_shell_shebang(data)


def _hint(ref: str, history: History) -> str:
    if ref.strip("0") == "" and ref:
        return ": that is what CI systems give where a branch has no commit before; leave the option out then"
    return f": this clone is shallow, {FETCH}" if history.is_shallow else ""


def _below(prefix: str, entries: dict[str, Entry]) -> dict[str, Entry]:
    return {path[len(prefix) :]: entry for path, entry in entries.items() if path.startswith(prefix)}


def _enter_repositories(
    entries: dict[str, Entry],
    repository: str,
    until: ExitStack,
    readers: dict[str, Callable[[str], bytes]],
    remarks: list[str],
) -> None:
    """Puts the files of nested repositories, each as of the commit that the base names, in place of their entries."""
    pending: Sequence[str] = [path for path, entry in entries.items() if entry.kind == "repository"]
    looked_into = 0
    while pending:
        nested: list[str] = []
        for path in pending:
            commit = entries.pop(path).id
            folder = os.path.join(repository, path)
            if not os.path.lexists(os.path.join(folder, ".git")):
                continue  # not there now either: nothing of it is scanned
            looked_into += 1
            try:
                if looked_into > _MOST_REPOSITORIES:
                    raise RevisionError("too many nested repositories")
                history = until.enter_context(History(folder))
                inside = history.entries(commit)
            except RevisionError:
                remarks.append(
                    f"{path}: commit {commit[:12]} of this nested repository is not here, so all in it counts as new"
                )
                continue
            for name, entry in inside.items():
                entries[f"{path}/{name}"] = entry
                readers[entry.id] = history.read
                if entry.kind == "repository":
                    nested.append(f"{path}/{name}")
        pending = nested
