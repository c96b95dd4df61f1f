"""Devices, dtypes, seeds and tolerances."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

import torch

from klaudit.tensor.errors import TensorError

DeviceName: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]

_TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}


def choose_device(name: DeviceName) -> torch.device:
    """The device of that name; `auto` is CUDA where there is one, else the CPU.  Raises TensorError where the named one is missing."""
    cuda = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if cuda else "cpu")
    if name == "cuda" and not cuda:
        raise TensorError("no CUDA device: PyTorch sees none (or was built without CUDA); use --device cpu")
    if name == "mps" and not torch.backends.mps.is_available():
        raise TensorError("no MPS device: PyTorch sees none; use --device cpu")
    return torch.device(name)


def device_name(device: torch.device) -> str:
    """The device in words, e.g. `cuda (NVIDIA H200)` or `cpu (2 threads)`."""
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    if device.type == "cpu":
        return f"cpu ({torch.get_num_threads()} thread{'s' if torch.get_num_threads() > 1 else ''})"
    return device.type


def exact_dtype(device: torch.device) -> torch.dtype:
    """The widest dtype the device computes in: float64, but float32 on MPS."""
    return torch.float32 if device.type == "mps" else torch.float64


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def tolerance(dtype: torch.dtype) -> float:
    """The difference below which two computations of the same quantity of order 1 agree."""
    return _TOLERANCES[dtype]


def seeded(seed: int, device: torch.device | None = None) -> torch.Generator:
    """A generator of its own, so that no global random state is read or changed."""
    return torch.Generator(device or torch.device("cpu")).manual_seed(seed)


def limit_threads(most: int = 4) -> None:
    """Small tensors gain nothing from many threads, and a shared machine loses."""
    torch.set_num_threads(max(1, min(most, os.cpu_count() or 1)))
