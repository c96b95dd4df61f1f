"""Line charts as data, and where they are written: SVG by our own writer, PNG by matplotlib where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from klaudit.tensor.errors import TensorError

Scale: TypeAlias = Literal["linear", "log"]
PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
    "#7f7f7f",
)  # Okabe & Ito, for all eyes
DASHES = ("", "7 4", "2 3")


@dataclass(frozen=True, slots=True)
class Line:
    """A labelled series; points that its axes cannot show (not finite, or not positive on a log axis) are left out."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One panel.  `bars` are `(left, right, height)` behind the lines, with heights as a share of the panel's."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    y_range: tuple[float, float] | None = None
    bars: tuple[tuple[float, float, float], ...] = ()
    footnote: str = ""


def style(index: int) -> tuple[str, str]:
    """Colour and dash of a chart's n-th line: all colours solid, then dashed."""
    return PALETTE[index % len(PALETTE)], DASHES[index // len(PALETTE) % len(DASHES)]


def check_target(path: Path) -> None:
    """Raise TensorError, before anything is computed, where a plot could not be written to `path`."""
    if path.suffix not in (".svg", ".png"):
        raise TensorError(f"--plot writes .svg or .png, not {path.suffix or path.name}")
    if path.suffix == ".png":
        _pyplot()
    if not path.absolute().parent.is_dir():
        raise TensorError(f"no such directory: {path.parent}")


def write(path: Path, charts: Sequence[Chart]) -> None:
    """Write the charts, side by side.  Raises TensorError where that fails."""
    check_target(path)
    if path.suffix == ".png":
        _write_png(path, charts)
        return
    from klaudit.tensor.svg import rendered

    try:
        path.write_text(rendered(charts), encoding="utf-8")
    except OSError as error:
        raise TensorError(f"cannot write {path}: {error.strerror}") from None


def _pyplot() -> Any:
    try:
        importlib.import_module("matplotlib").use("Agg")
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise TensorError("a PNG plot needs matplotlib (pip install matplotlib); .svg needs nothing") from None


def _write_png(path: Path, charts: Sequence[Chart]) -> None:
    figure, axes = _pyplot().subplots(1, len(charts), figsize=(7 * len(charts), 4.5), squeeze=False)
    for chart, axis in zip(charts, axes[0], strict=True):
        for index, line in enumerate(chart.lines):
            colour, dash = style(index)
            axis.plot(line.x, line.y, color=colour, linestyle="--" if dash else "-", label=line.label)
        axis.set(
            title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label, xscale=chart.x_scale, yscale=chart.y_scale
        )
        if chart.y_range:
            axis.set_ylim(*chart.y_range)
        low, high = axis.get_ylim()
        for left, right, height in chart.bars:
            axis.bar(left, height * (high - low), right - left, bottom=low, align="edge", color="#dddddd", zorder=0)
        axis.legend(fontsize="small")
        axis.text(0, -0.2, chart.footnote, transform=axis.transAxes, fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path, dpi=150)
