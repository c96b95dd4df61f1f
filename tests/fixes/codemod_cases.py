"""Hand-written losses of our own, and what the codemods make of them.  Only these texts are ever executed."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from klaudit.fixes.codemods.planning import Rewritten, rewrite
from klaudit.fixes.migration import Request
from klaudit.model import Finding
from klaudit.readers.source import Source


def is_wanted(finding: Finding) -> bool:
    return finding.severity != "note"


def rewritten(
    code: str,
    target: str = "k1-in-reward",
    files: Mapping[str, str] | None = None,
    wanted: Callable[[Finding], bool] = is_wanted,
    path: str = "trainer.py",
) -> Rewritten:
    tree = {name: Source(name, textwrap.dedent(text).encode()) for name, text in (files or {}).items()}
    return rewrite(Source(path, textwrap.dedent(code).encode()), tree.get, Request(target, unsafe=True), wanted)


def fixed(code: str, target: str = "k1-in-reward", wanted: Callable[[Finding], bool] = is_wanted) -> str:
    """The text after the rewrites; fails where there are none."""
    made = rewritten(code, target, wanted=wanted)
    assert made.content is not None, [each.why for each in made.unchanged]
    return made.content.decode()


def only(rule: str) -> Callable[[Finding], bool]:
    return lambda finding: finding.rule == rule


def refusal(code: str, target: str = "k1-in-reward", wanted: Callable[[Finding], bool] = is_wanted) -> str:
    """Why nothing is changed."""
    made = rewritten(code, target, wanted=wanted)
    assert made.content is None, made.content
    return "; ".join(each.why for each in made.unchanged)


def loaded(code: str, name: str = "compute_loss") -> Callable[..., Any]:
    """A function of one of our own texts."""
    space: dict[str, Any] = {}
    exec(compile(textwrap.dedent(code), "case.py", "exec"), space)
    function: Callable[..., Any] = space[name]
    return function
