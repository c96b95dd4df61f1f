"""Which files can hold launches, configurations or code at all, by name and, where a name says nothing, by first line."""

from __future__ import annotations

from klaudit.patterns import rare

SHELL = frozenset((".sh", ".bash", ".slurm", ".sbatch"))
PYTHON = frozenset((".py",))
NOTEBOOK = frozenset((".ipynb",))
CONFIG = frozenset((".yaml", ".yml", ".json", ".toml"))
MAKE = frozenset((".mk",))
MARKDOWN = frozenset((".md", ".markdown"))
SUFFIXES = SHELL | PYTHON | NOTEBOOK | CONFIG | MAKE
_MAKEFILES = frozenset(("makefile", "gnumakefile"))
SHEBANG_BYTES = 128

# Folders of tools and builds: what lies in them was copied or generated, and is not what anybody launches from.
EXCLUDED_FOLDERS = frozenset(
    (
        ".bzr", ".direnv", ".eggs", ".git", ".hg", ".hydra", ".ipynb_checkpoints", ".jj", ".klaudit_cache", ".mypy_cache",
        ".nox", ".pixi", ".pytest_cache", ".ruff_cache", ".svn", ".tox", ".venv", "__pycache__", "__pypackages__", "_build",
        "build", "dist", "node_modules", "site-packages", "venv", "wandb",
    )
)  # fmt: skip

_SHELL_SHEBANG = rare(rb"#![ \t]*(?:\S*/env[ \t]+(?:-\S+[ \t]+)*)?(?:\S*/)?(?:ba|da|k|z)?sh(?:[ \t\r\n]|$)")


def suffix_of(path: str) -> str:
    """The last suffix with its dot, in lower case; empty where there is none or the name only starts with a dot."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if dot and stem else ""


def is_makefile(path: str) -> bool:
    """Whether make reads a file of this name."""
    return suffix_of(path) in MAKE or path.rpartition("/")[2].lower() in _MAKEFILES


def is_candidate(path: str, *, include_markdown: bool = False) -> bool | None:
    """Whether a file is worth opening; None where its first line must say (see `has_shell_shebang`)."""
    suffix = suffix_of(path)
    if suffix in SUFFIXES or (include_markdown and suffix in MARKDOWN):
        return True
    return True if is_makefile(path) else None if not suffix else False


def has_shell_shebang(data: bytes) -> bool:
    """Whether the first line asks for a shell."""
    return _SHELL_SHEBANG.match(data, 0, SHEBANG_BYTES) is not None
