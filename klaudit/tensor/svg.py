"""A small SVG writer for line charts: panels side by side, axes with round ticks, the legend below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from klaudit.tensor.charts import Chart, Line, Scale, style

_PANEL_WIDTH, _PANEL_HEIGHT = 520, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 34, 48
_LEGEND_LINE = 18
_TICKS = 5


@dataclass(frozen=True, slots=True)
class _Axis:
    """A range of values and the pixels that it is drawn on."""

    low: float
    high: float
    start: float
    end: float
    scale: Scale

    def at(self, value: float) -> float:
        low, high, value = (math.log10(x) if self.scale == "log" else x for x in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def shows(self, value: float) -> bool:
        return math.isfinite(value) and self.low <= value <= self.high

    def ticks(self) -> list[float]:
        if self.scale == "log":
            decades = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**decade for decade in decades]
        step = _round_step((self.high - self.low) / _TICKS)
        return [
            index * step for index in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)
        ]


def rendered(charts: Sequence[Chart]) -> str:
    """The SVG document."""
    entries = max(len(chart.lines) for chart in charts)
    legend_rows = -(-entries // 2) + 1
    height = _PANEL_HEIGHT + legend_rows * _LEGEND_LINE + 12
    width = _PANEL_WIDTH * len(charts)
    body = "\n".join(
        f'<g transform="translate({_PANEL_WIDTH * index} 0)">\n{_panel(chart)}\n</g>'
        for index, chart in enumerate(charts)
    )
    title = escape("; ".join(chart.title for chart in charts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'font-family="sans-serif" font-size="12">\n<title>{title}</title>\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )


def _panel(chart: Chart) -> str:
    x, y = _axes(chart)
    bottom, right = _PANEL_HEIGHT - _BOTTOM, _PANEL_WIDTH - _RIGHT
    parts = [_text(_PANEL_WIDTH / 2, 20, chart.title, anchor="middle", size=14)]
    for left, end, share in chart.bars:
        if x.shows(left) and x.shows(end):
            tall = share * (bottom - _TOP)
            parts.append(
                f'<rect x="{x.at(left):.1f}" y="{bottom - tall:.1f}" width="{x.at(end) - x.at(left):.1f}" height="{tall:.1f}" fill="#ddd"/>'
            )
    for tick in x.ticks():
        parts.append(f'<path d="M{x.at(tick):.1f} {_TOP}V{bottom}" stroke="#eee"/>')
        parts.append(_text(x.at(tick), bottom + 16, f"{tick:.6g}", anchor="middle"))
    for tick in y.ticks():
        parts.append(f'<path d="M{_LEFT} {y.at(tick):.1f}H{right}" stroke="#eee"/>')
        parts.append(_text(_LEFT - 6, y.at(tick) + 4, f"{tick:.6g}", anchor="end"))
    parts.append(f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#333"/>')
    parts.append(_text((_LEFT + right) / 2, bottom + 36, chart.x_label, anchor="middle"))
    middle = (_TOP + bottom) / 2
    parts.append(f'<g transform="rotate(-90 14 {middle})">{_text(14, middle, chart.y_label, anchor="middle")}</g>')
    for index, line in enumerate(chart.lines):
        parts += [_path(line, x, y, index), _legend(line, index)]
    if chart.footnote:
        rows = -(-len(chart.lines) // 2)
        parts.append(_text(_LEFT, _PANEL_HEIGHT + rows * _LEGEND_LINE + 8, chart.footnote, size=11))
    return "\n".join(parts)


def _axes(chart: Chart) -> tuple[_Axis, _Axis]:
    xs = [value for line in chart.lines for value in line.x]
    ys = [value for line in chart.lines for value in line.y]
    x_low, x_high = _range(xs, chart.x_scale)
    y_low, y_high = chart.y_range or _range(ys, chart.y_scale)
    x = _Axis(x_low, x_high, _LEFT, _PANEL_WIDTH - _RIGHT, chart.x_scale)
    return x, _Axis(y_low, y_high, _PANEL_HEIGHT - _BOTTOM, _TOP, chart.y_scale)


def _range(values: Sequence[float], scale: Scale) -> tuple[float, float]:
    shown = [value for value in values if math.isfinite(value) and (scale == "linear" or value > 0)]
    low, high = (min(shown), max(shown)) if shown else (1.0, 10.0)
    if scale == "log":
        return (low / 1.2, high * 1.2)
    room = (high - low) * 0.04 or 1.0
    return low - room, high + room


def _path(line: Line, x: _Axis, y: _Axis, index: int) -> str:
    """The line, broken where a point cannot be shown."""
    commands, pen = [], "M"
    for a, b in zip(line.x, line.y, strict=True):
        if x.shows(a) and y.shows(b):
            commands.append(f"{pen}{x.at(a):.1f} {y.at(b):.1f}")
            pen = "L"
        else:
            pen = "M"
    return f'<path d="{"".join(commands)}" fill="none" {_stroke(index)}/>' if commands else ""


def _legend(line: Line, index: int) -> str:
    left = _LEFT + index % 2 * 230
    top = _PANEL_HEIGHT + index // 2 * _LEGEND_LINE
    return f'<path d="M{left} {top}h26" {_stroke(index)}/>' + _text(left + 32, top + 4, line.label)


def _stroke(index: int) -> str:
    colour, dash = style(index)
    return f'stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _round_step(rough: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
