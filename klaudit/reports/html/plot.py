"""A score weight over d, against w(d) = d: the plot that every set-up is measured by, as SVG."""

from __future__ import annotations

from klaudit.reports.html.markup import Html, element, joined
from klaudit.theory import ScoreWeight

_WIDTH, _HEIGHT = 240, 160
_D = 2.5  # nats; k3 clipped to +-10 has its gradient up to -2.6
_W = 3.5
_STEPS = 100
_TICKS = (-2, -1, 1, 2)
VIEW = f"0 0 {_WIDTH} {_HEIGHT}"


def symbol(weight: ScoreWeight, id: str) -> Html:
    """The plot as a `<symbol>` that `use` shows anywhere: drawn once, however many set-ups have it."""
    return element("symbol", drawing(weight), id=id, viewBox=VIEW)


def drawing(weight: ScoreWeight) -> Html:
    """What is inside the plot; colours come from a style sheet."""
    frame = element("rect", x=0, y=0, width=_WIDTH, height=_HEIGHT, class_="frame")
    axes = element("path", d=f"M0 {_number(_y(0))}H{_WIDTH}M{_number(_x(0))} 0V{_HEIGHT}", class_="axis")
    ticks = element("path", d="".join(_tick(at) for at in _TICKS), class_="axis")
    right = element("path", d=_curve(ScoreWeight.of(linear=1)), class_="right")
    found = element("path", d=_curve(weight), class_="found")
    return joined((frame, axes, ticks, right, found, _labels()))


def shown(id: str, title: str, tone: str) -> Html:
    """The symbol where it is wanted, in the colour of a verdict and with a name for those who cannot see it."""
    use = element("use", href=f"#{id}")
    return element("svg", use, class_=f"plot {tone}", viewBox=VIEW, role="img", aria_label=title)


def _labels() -> list[Html]:
    return [
        element("text", "d", x=_WIDTH - 9, y=_number(_y(0) - 6), class_="axis-label"),
        element("text", "w", x=_number(_x(0) + 6), y=12, class_="axis-label"),
        element("text", "\u22122", x=_number(_x(-2)), y=_number(_y(0) + 14), class_="tick"),
        element("text", "+2", x=_number(_x(2)), y=_number(_y(0) + 14), class_="tick"),
    ]


def _curve(weight: ScoreWeight) -> str:
    """The path inside the frame; the pen is lifted where the weight leaves it."""
    pieces, pen = [], "M"
    for step in range(_STEPS + 1):
        d = -_D + 2 * _D * step / _STEPS
        w = weight(d)
        if abs(w) > _W:
            pen = "M"
            continue
        pieces.append(f"{pen}{_number(_x(d))} {_number(_y(w))}")
        pen = "L"
    return "".join(pieces)


def _tick(at: int) -> str:
    return f"M{_number(_x(at))} {_number(_y(0) - 3)}v6M{_number(_x(0) - 3)} {_number(_y(at))}h6"


def _x(d: float) -> float:
    return (d + _D) / (2 * _D) * _WIDTH


def _y(w: float) -> float:
    return (_W - w) / (2 * _W) * _HEIGHT


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
