"""What klaudit raises on purpose has one root."""

from __future__ import annotations


class KlauditError(Exception):
    """Something that the caller can mend; the message says what and where, in one line.

    Every other exception that leaves klaudit is a fault of klaudit.
    """
