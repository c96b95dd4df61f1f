"""Files over processes, within a time budget.

What one worker learns of the tree from a file, others are told before their next files: they would find out the same at the same cost.

A thread or a signal cannot stop a parser written in C that does not return; the end of its process can.  So with a budget per file even
a single worker is a process of its own, and a worker that is overdue, or that died, costs one file and not the scan.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import Struct, field

from klaudit.budget import Budget
from klaudit.model import FileResult, Problem

Scan = Callable[[str], FileResult]
Lessons = tuple[object, ...]


class Knowledge(Protocol):
    """What a worker has learnt beyond the results of its files; lessons must be picklable."""

    def lessons(self) -> Lessons:
        """Those of its own that were not asked for yet."""

    def learn(self, lessons: Lessons) -> None:
        """Takes in those of others."""


_HEADER = 8  # bytes before each message: its length
_MOST_AT_ONCE = 4  # files handed to a worker in one go: more would leave one with the long end
_LONGEST_WAIT = 1.0  # seconds
CAN_FORK = hasattr(os, "fork")  # a spawned worker would pay for all imports and rules again


def scan_files(
    scan: Scan, paths: Iterable[str], workers: int, budget: Budget, knowledge: Knowledge | None = None
) -> Iterator[FileResult]:
    """Results in any order, work being handed out in the order of `paths`, which are asked for while the workers are busy.

    A file over its budget, or one that ends its process, gives an error row; the files that the whole budget leaves no time for give
    one row together.  Where processes cannot be forked, time is looked at between files only.
    """
    if CAN_FORK and (workers > 1 or budget.file is not None or budget.deadline is not None):
        yield from _Pool(scan, iter(paths), max(workers, 1), budget, knowledge).run()
    else:
        yield from _in_this_process(scan, iter(paths), budget)


def _in_this_process(scan: Scan, paths: Iterator[str], budget: Budget) -> Iterator[FileResult]:
    enabled = gc.isenabled()
    gc.disable()  # parsers make many small objects that live until their file is done
    try:
        for done, path in enumerate(paths):
            if budget.is_spent:
                left = [path, *paths]
                yield budget.unscanned(left, done + len(left))
                return
            yield scan(path)
    finally:
        if enabled:
            gc.enable()


class _Worker(Struct):
    """`pending` are the files that it has been handed and not answered for; `since` is when it began with the first of them; `untold`
    are lessons of others that go with its next files."""

    pid: int
    requests: int
    answers: int
    pending: deque[str] = field(default_factory=deque)
    since: float = 0.0
    received: bytearray = field(default_factory=bytearray)
    untold: list[object] = field(default_factory=list)


class _Pool:
    def __init__(
        self, scan: Scan, paths: Iterator[str], count: int, budget: Budget, knowledge: Knowledge | None
    ) -> None:
        self._scan = scan
        self._knowledge = knowledge
        self._paths = paths
        self._is_filled = False  # all paths were asked for
        self._total = 0
        self._waiting: deque[str] = deque()
        self._count = count
        self._budget = budget
        self._workers: list[_Worker] = []

    def run(self) -> Iterator[FileResult]:
        try:
            while self._fill() or self._waiting or any(worker.pending for worker in self._workers):
                if self._budget.is_spent:
                    while self._fill():
                        pass
                    left = [*self._waiting, *(path for worker in self._workers for path in worker.pending)]
                    yield self._budget.unscanned(left, self._total)
                    return
                self._hand_out()
                for worker in self._ready():
                    yield from self._receive(worker)
                for worker in self._overdue():
                    yield self._budget.overdue(worker.pending.popleft())
                    self._end(worker)
        finally:
            for worker in [*self._workers]:
                self._end(worker)

    def _fill(self) -> bool:
        """Asks for one more path.  False when there is none left."""
        path = None if self._is_filled else next(self._paths, None)
        if path is None:
            self._is_filled = True
            return False
        self._waiting.append(path)
        self._total += 1
        return True

    def _hand_out(self) -> None:
        while len(self._workers) < min(self._count, len(self._waiting)):
            self._workers.append(self._start())
        for worker in self._workers:
            if not worker.pending and self._waiting:
                fair = len(self._waiting) // (2 * self._count)
                for _ in range(min(max(fair, 1), _MOST_AT_ONCE)):
                    worker.pending.append(self._waiting.popleft())
                worker.since = time.monotonic()
                with suppress(BrokenPipeError):  # it died while idle: reading from it will tell
                    _send(worker.requests, (tuple(worker.pending), tuple(worker.untold)))
                worker.untold.clear()

    def _start(self) -> _Worker:
        of_worker, requests = os.pipe()
        answers, to_parent = os.pipe()
        pid = os.fork()
        if pid == 0:
            _serve(self._scan, self._knowledge, of_worker, to_parent, [requests, answers, *self._descriptors()])
        os.close(of_worker)
        os.close(to_parent)
        return _Worker(pid, requests, answers)

    def _descriptors(self) -> list[int]:
        return [each for worker in self._workers for each in (worker.requests, worker.answers)]

    def _ready(self) -> list[_Worker]:
        """Workers that have answered, after waiting for one no longer than until the next limit, or not at all if there is more to do."""
        now = time.monotonic()
        limits = [now + _LONGEST_WAIT if self._is_filled else now]
        if self._budget.deadline is not None:
            limits.append(self._budget.deadline)
        if self._budget.file is not None:
            limits += [worker.since + self._budget.file for worker in self._workers if worker.pending]
        poll = select.poll()  # select would fail on descriptors above 1023
        for worker in self._workers:
            poll.register(worker.answers, select.POLLIN | select.POLLHUP)
        ready = {descriptor for descriptor, _ in poll.poll(max(min(limits) - now, 0.0) * 1000 + self._is_filled)}
        return [worker for worker in self._workers if worker.answers in ready]

    def _receive(self, worker: _Worker) -> Iterator[FileResult]:
        data = os.read(worker.answers, 1 << 20)
        if not data:
            yield from self._bury(worker)
            return
        worker.received += data
        while (message := _message(worker.received)) is not None:
            worker.pending.popleft()
            worker.since = time.monotonic()
            result, lessons = message
            for other in self._workers:
                if other is not worker:
                    other.untold += lessons
            yield result

    def _bury(self, worker: _Worker) -> Iterator[FileResult]:
        """A worker that died: of a fault in native code, or for want of memory."""
        if worker.pending:
            path = worker.pending.popleft()
            yield FileResult(path, problems=(Problem(path, None, "the process that scanned it ended: not scanned"),))
        self._end(worker)

    def _overdue(self) -> list[_Worker]:
        if self._budget.file is None:
            return []
        late = time.monotonic() - self._budget.file
        return [worker for worker in self._workers if worker.pending and worker.since <= late]

    def _end(self, worker: _Worker) -> None:
        """Ends a worker; what it had not begun is for others."""
        self._workers.remove(worker)
        self._waiting.extendleft(reversed(worker.pending))
        os.close(worker.requests)
        os.close(worker.answers)
        os.kill(worker.pid, signal.SIGKILL)
        os.waitpid(worker.pid, 0)


# --- in the worker -------------------------------------------------------------------------------------------------------------------


def _serve(scan: Scan, knowledge: Knowledge | None, requests: int, answers: int, others: Sequence[int]) -> None:
    """The life of a worker, which ends with it: nothing of the parent's (buffers, handlers, exits) may run here."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told as well, and ends its workers
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for descriptor in others:
            os.close(descriptor)  # or the end of the parent would go unnoticed
        gc.disable()
        while True:
            header = _read(requests, _HEADER)
            if header is None or (body := _read(requests, int.from_bytes(header, "big"))) is None:
                break
            paths, lessons = pickle.loads(body)
            if knowledge is not None:
                knowledge.learn(lessons)
            for path in paths:
                result = scan(path)
                _send(answers, (result, knowledge.lessons() if knowledge is not None else ()))
        status = 0
    finally:
        os._exit(status)


def _read(descriptor: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        piece = os.read(descriptor, size - len(data))
        if not piece:
            return None
        data += piece
    return data


# --- messages ------------------------------------------------------------------------------------------------------------------------


def _send(descriptor: int, message: object) -> None:
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    data = memoryview(len(body).to_bytes(_HEADER, "big") + body)
    while data:
        data = data[os.write(descriptor, data) :]


def _message(received: bytearray) -> tuple[FileResult, Lessons] | None:
    """The first whole message of a worker, taken out of what was received."""
    size = int.from_bytes(received[:_HEADER], "big")
    if len(received) < _HEADER or len(received) < _HEADER + size:
        return None
    result, lessons = pickle.loads(received[_HEADER : _HEADER + size])
    del received[: _HEADER + size]
    return result, lessons
