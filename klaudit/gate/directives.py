"""`# klaudit: ignore[KLA101] why`: what a comment says, and what is wrong with one that says it badly."""

from __future__ import annotations

MARKER = b"klaudit:"
