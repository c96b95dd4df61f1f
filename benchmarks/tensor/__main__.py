"""Prints every figure as Markdown; takes a few minutes on two cores."""

from __future__ import annotations

import sys
import time

import torch

from benchmarks.tensor import bias, endings, groups, guides, minimal_model, sampling
from klaudit.tensor.backend import device_name, limit_threads
from klaudit.tensor.numerics import check_numerics


def main() -> None:
    limit_threads(1)
    print("# Figures of the tensor checks\n")
    print(
        f"PyTorch {torch.__version__}, {device_name(torch.device('cpu'))}, float64, seed 0. `python -m benchmarks.tensor`\n"
    )
    for module in (bias, groups, endings, minimal_model, sampling, guides):
        started = time.perf_counter()
        for section in module.sections():
            print(section + "\n")
        print(f"{module.__name__}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
    print("## Floating-point arithmetic\n")
    print("\n".join(f"- {each.case} [{each.dtype}]: {each.text}" for each in check_numerics(torch.device("cpu"))))


if __name__ == "__main__":
    main()
