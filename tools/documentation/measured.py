"""The plots of `klaudit verify`: bias and variance against the distance from the reference, exact, computed as the site is built."""

from __future__ import annotations

from importlib.util import find_spec

from klaudit.reports.html.markup import element, raw

_WITHOUT = (
    "These plots are drawn where the site is built with PyTorch; `klaudit verify --plot bias.svg` draws them, too.\n"
)


def bias() -> str:
    """Medians over random policies, the same on every machine up to rounding."""
    if find_spec("torch") is None:
        return _WITHOUT
    import torch

    from klaudit.tensor.curves import bias_and_variance
    from klaudit.tensor.svg import rendered

    charts = bias_and_variance(torch.device("cpu"), 0)
    drawn = (element("div", raw(_labelled(rendered([chart]), chart.title)), class_="chart") for chart in charts)
    return "\n" + element("div", drawn, class_="charts") + "\n"


def _labelled(svg: str, title: str) -> str:
    """Lines joined, since an empty one would end the block in Markdown; and a name for who cannot see it."""
    return svg.replace("\n", "").replace("<svg ", f'<svg aria-label="{title}, against KL(pi||ref)" ', 1)
