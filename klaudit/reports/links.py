"""Where readers of a report find more, in one place: the addresses that reports may name."""

from __future__ import annotations

HOME = "https://pypi.org/project/klaudit/"
DOCUMENTATION: str | None = (
    None  # of the published pages, with a slash at the end; None while they are published nowhere
)


def rule_page(rule: str, name: str) -> str | None:
    """The page of a finding of the catalogue."""
    return f"{DOCUMENTATION}rules/{rule}-{name}/" if DOCUMENTATION else None
