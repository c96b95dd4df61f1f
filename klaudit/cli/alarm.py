"""The end of a command whose time is up, wherever it is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from klaudit.errors import KlauditError

_GRACE = 2.0  # seconds; the scan itself ends in time, and says what it left out


class OutOfTimeError(KlauditError):
    """The time budget ran out where nothing else ends the work: between listing the files and the last step of the gate."""


@contextmanager
def ends_after(seconds: float | None) -> Iterator[None]:
    """Raises OutOfTimeError in the body some time after its budget is spent.  Without effect where alarms cannot be set."""
    if seconds is None or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError(f"the time budget of {seconds:g} s ran out before the scan came to its end")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds * 1.25 + _GRACE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
