"""Charts as SVG: well-formed, within their frame, and honest about what cannot be shown."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch

from klaudit.tensor.charts import Chart, Line, write
from klaudit.tensor.curves import DISTANCES, bias_and_variance
from klaudit.tensor.errors import TensorError
from klaudit.tensor.rollout_chart import weights_on
from klaudit.tensor.svg import rendered

SVG = "{http://www.w3.org/2000/svg}"


def coordinates(document: str) -> list[tuple[float, float]]:
    lines = re.findall(r'<path d="(M[^"]*)" fill="none" stroke="#[0-9a-f]{6}" stroke-width="2"', document)
    return [(float(x), float(y)) for path in lines for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]


def test_bias_and_variance_against_distance() -> None:
    charts = bias_and_variance(torch.device("cpu"), 0)
    document = rendered(charts)
    root = ElementTree.fromstring(document)
    assert len(root.findall(f"{SVG}g")) == 2
    assert all(line.x == DISTANCES for chart in charts for line in chart.lines)
    points = coordinates(document)
    assert len(points) == len(DISTANCES) * sum(len(chart.lines) for chart in charts)
    assert all(64 <= x <= 504 and 34 <= y <= 292 for x, y in points)


def test_points_that_cannot_be_shown_break_the_line() -> None:
    line = Line("a < b & c", (1.0, 2.0, 3.0, 4.0), (1.0, 0.0, float("nan"), 10.0))
    document = rendered([Chart("t", "x", "y", (line,), "linear", "log")])
    ElementTree.fromstring(document)
    assert len(coordinates(document)) == 2
    assert "a &lt; b &amp; c" in document


@pytest.mark.parametrize("values", [(1.0, 1.0), (0.0, 0.0), (float("nan"), float("nan"))])
def test_flat_and_empty_charts_are_drawn(values: tuple[float, float]) -> None:
    for scale in ("linear", "log"):
        ElementTree.fromstring(rendered([Chart("t", "x", "y", (Line("l", (1.0, 2.0), values),), "linear", scale)]))


def test_weights_over_a_histogram() -> None:
    (chart,) = weights_on(torch.randn(5000, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    document = rendered([chart])
    ElementTree.fromstring(document)
    assert document.count('fill="#ddd"') >= 38
    (constant,) = weights_on(torch.zeros(10, dtype=torch.float64))
    ElementTree.fromstring(rendered([constant]))


def test_files(tmp_path: Path) -> None:
    chart = Chart("t", "x", "y", (Line("l", (1.0, 2.0), (3.0, 4.0)),))
    write(tmp_path / "a.svg", [chart])
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    with pytest.raises(TensorError, match=r"\.svg or \.png, not \.gif"):
        write(tmp_path / "a.gif", [chart])
    with pytest.raises(TensorError, match="no such directory"):
        write(tmp_path / "absent" / "a.svg", [chart])


def test_png_is_written_by_matplotlib_or_refused(tmp_path: Path) -> None:
    chart = Chart("t", "x", "y", (Line("l", (1.0, 2.0), (3.0, 4.0)),), bars=((1.0, 1.5, 0.5),), y_range=(0, 5))
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(TensorError, match="needs matplotlib"):
            write(tmp_path / "a.png", [chart])
    else:
        write(tmp_path / "a.png", [chart])
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
