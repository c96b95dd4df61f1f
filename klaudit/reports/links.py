"""Where readers of a report find more, in one place: the address that reports may name."""

from __future__ import annotations

# The address of the published pages, with a slash at the end; None while they are published nowhere.
DOCUMENTATION: str | None = None


def rule_page(rule: str) -> str | None:
    """The page of a finding of the catalogue, as mkdocs names it."""
    return f"{DOCUMENTATION}rules/{rule}.html" if DOCUMENTATION else None
