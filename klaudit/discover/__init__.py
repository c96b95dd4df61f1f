"""Which files a scan looks at: the tree is walked (.gitignore honoured), then a byte funnel keeps what may matter."""

from klaudit.discover.context import list_context
from klaudit.discover.files import Found, discover, list_files
from klaudit.discover.prefilter import Prefilter
from klaudit.discover.suffixes import has_shell_shebang, is_candidate
from klaudit.discover.targets import Targets, locate, path_in_repository

__all__ = [
    "Found",
    "Prefilter",
    "Targets",
    "discover",
    "has_shell_shebang",
    "is_candidate",
    "list_context",
    "list_files",
    "locate",
    "path_in_repository",
]
