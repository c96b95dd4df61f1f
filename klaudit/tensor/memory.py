"""Memory of a device: what a computation took at most, and how fast a plain copy is."""

from __future__ import annotations

import sys
import time

import torch

_COPY_BYTES = 64 << 20
_COPIES = 8


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was given, so that a clock can be read."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def bandwidth(device: torch.device) -> float:
    """Bytes read and written a second by the best of a few large copies: the yardstick for memory-bound work."""
    source = torch.ones(_COPY_BYTES // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(_COPIES):
        synchronise(device)
        started = time.perf_counter()
        target.copy_(source)
        synchronise(device)
        best = min(best, time.perf_counter() - started)
    return 2 * _COPY_BYTES / best


def reset_peak(device: torch.device) -> None:
    """Count the peak from here, where the device can."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: torch.device) -> int:
    """Bytes at the worst moment: allocated on CUDA, resident in the whole process elsewhere (0 where the system does not say)."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
