"""What goes wrong for a reason that the user can mend."""

from __future__ import annotations


class TensorError(Exception):
    """A check that cannot be done as asked; the message says why and what to do (exit status 2)."""
