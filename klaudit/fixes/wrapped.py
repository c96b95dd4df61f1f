"""Launches that only a wrapper makes: scripts called with variables or arguments under which they train otherwise than by themselves.

No edit is made for them: the words of the called script serve its other callers, and those of the call may serve other commands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from klaudit.findings.wording import change_text
from klaudit.fixes.choice import choose
from klaudit.fixes.given_here import given_here
from klaudit.fixes.migration import Request, Unchanged
from klaudit.frameworks.migrate import Change
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.resolve import resolve
from klaudit.scanner import Scanner


def left_alone(
    scanner: Scanner, paths: Iterable[str], rules_of: Callable[[Resolution], Collection[str]], request: Request
) -> Iterator[Unchanged]:
    """Those below `paths` with a finding that another set-up mends, each with where to change it; files that cannot be read have none.

    `rules_of` gives the selected rules of such findings.
    """
    for path in paths:
        try:
            launches = list(map(resolve, scanner.called(path)))
        except Exception:  # told when the file itself was read
            continue
        for resolution in launches:
            if rules := rules_of(resolution):
                why, mentions = _why(resolution, path, request)
                yield Unchanged(resolution.setup, tuple(rules), why, (), mentions)


def _why(resolution: Resolution, path: str, request: Request) -> tuple[str, tuple[str, ...]]:
    """And the files that it names."""
    words = resolution.launch.words
    script = words[0].span.path if words and words[0].span.path != path else ""
    why = f"only this call has {script or 'another script'} train so: change {given_here(resolution.setup)} by hand"
    match choose(resolution, request):
        case Change() as found if not found.is_empty:
            why += f"; {request.target}: {change_text(found, resolution)}"
    return why, tuple(filter(None, (path, script)))
