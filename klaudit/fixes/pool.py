"""Work on many files, spread over processes where that pays."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

_Result = TypeVar("_Result")

_COST = 1.5e-6  # seconds a byte of a script that is read and resolved
_PAYS = 0.4  # seconds of work above which processes are worth their start


def spread(
    work: Callable[[str], _Result], sizes: Sequence[tuple[str, int]], jobs: int | None
) -> Iterator[tuple[str, _Result]]:
    """`work` of each path, in any order.  `sizes` are the paths with their bytes; results must be picklable.

    `work` may be a closure: processes are forked, and inherit it.
    """
    workers = _workers(sizes, jobs)
    if workers < 2:
        for path, _ in sizes:
            yield path, work(path)
        return
    import multiprocessing

    ordered = [path for path, _ in sorted(sizes, key=lambda each: -each[1])]
    context = multiprocessing.get_context("fork")
    with context.Pool(workers, initializer=_start, initargs=(work,)) as pool:
        yield from pool.imap_unordered(_do, ordered, chunksize=2)


@contextmanager
def without_gc() -> Iterator[None]:
    """Parsers make many small objects that live until their file is done, over which the collector would go again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_of_worker: list[Callable[[str], Any]] = []


def _start(work: Callable[[str], Any]) -> None:
    gc.disable()
    _of_worker[:] = [work]


def _do(path: str) -> tuple[str, Any]:
    return path, _of_worker[0](path)


def _workers(sizes: Sequence[tuple[str, int]], jobs: int | None) -> int:
    import multiprocessing

    if "fork" not in multiprocessing.get_all_start_methods():
        return 1  # a spawned worker pays for all imports and rules again
    if sum(size for _, size in sizes) * _COST < _PAYS:
        return 1
    return min(jobs or os.cpu_count() or 1, len(sizes))
