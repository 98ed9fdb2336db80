"""Curves of a run as inline SVG, whose colours the style sheet of the page decides."""

import html
import math
from typing import NamedTuple

from albert_keras.training.loop.curves import BLUE, COLOURS, PANELS, Curve, Panel

_WIDTH, _HEIGHT = 460, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 26, 10, 26
#: The most intervals of steps that a curve has; each shows its lowest and its highest value.
_INTERVALS = 250
_DASHES = {"-": "none", "--": "7 4", ":": "2 4", "-.": "8 4 2 4"}


class Series(NamedTuple):
    """The logs of one training, and what to call it if there are several."""

    log: list[dict]
    evaluations: list[tuple[int, dict]]
    label: str = ""


class Legend(NamedTuple):
    """An entry of the legend of a chart."""

    label: str
    colour: int  # number of a colour of the style sheet
    dashes: str  # as `stroke-dasharray`
    is_point: bool
    last: str  # the last value, formatted


class Chart(NamedTuple):
    """A chart of the page."""

    title: str
    unit: str
    svg: str | None  # escaped; None if nothing was logged
    legend: tuple[Legend, ...]


class _Line(NamedTuple):
    points: list[tuple[int, float]]  # (step, value)
    legend: Legend


def panels_of(metric: str | None) -> tuple[Panel, ...]:
    """Returns six panels with one curve each, for several trainings in one chart.

    Args:
        metric: The main score of fine-tunings; None for pre-trainings.
    """
    loss, accuracy, speed, rate, gradients, _ = PANELS
    speed = speed._replace(curves=speed.curves[1:])
    if metric is None:
        scores = [
            accuracy._replace(title=f"Accuracy, {curve.label}", curves=(curve,))
            for curve in accuracy.curves
        ]
        return (loss._replace(curves=loss.curves[:1]), *scores, rate, gradients, speed)
    curves = {name: Curve(name, name, BLUE) for name in ("loss", "answer_accuracy", metric)}
    return (
        Panel("Loss in training", "mean over examples", (curves["loss"],)),
        Panel("Accuracy in training", "fraction", (curves["answer_accuracy"],), range=(0, 1)),
        Panel(f"Development examples, {metric}", "score", (curves[metric],), range=(None, None)),
        rate,
        gradients,
        speed,
    )


def draw_chart(panel: Panel, series: list[Series], edges: list[tuple[int, str]]) -> Chart:
    """Draws a panel; with several series each of its curves has a colour of its own.

    Args:
        panel: What is drawn.
        series: The trainings.
        edges: First steps and labels of stages, see `stage_edges`.
    """
    lines = []
    for number, one in enumerate(series):
        for curve in panel.curves:
            if len(series) > 1:
                curve = curve._replace(colour=COLOURS[number % len(COLOURS)], label=one.label)
            lines += _lines(curve, one, panel.is_logarithmic)
    if not lines:
        return Chart(panel.title, panel.unit, None, ())
    values = [value for line in lines for _, value in line.points]
    last = max(step for line in lines for step, _ in line.points)
    vertical = _Axis.of(values, panel)
    steps = _Axis(0, max(last, 1), False)
    parts = [*_grid(vertical, steps), *_edges(edges, steps)]
    for line in lines:
        parts.append(_circles(line, vertical, steps) if line.legend.is_point else "")
        parts.append("" if line.legend.is_point else _path(line, vertical, steps))
    title = f"{panel.title}, {panel.unit}, over {last:,} steps"
    size = f"0 0 {_WIDTH} {_HEIGHT}"
    label = html.escape(title)
    svg = f'<svg viewBox="{size}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    return Chart(panel.title, panel.unit, svg, tuple(line.legend for line in lines))


def _lines(curve: Curve, series: Series, is_logarithmic: bool) -> list[_Line]:
    """Returns the curve of the reports and the points of the evaluations, if they exist."""
    colour = COLOURS.index(curve.colour)
    found = []
    for points, label, is_point in (
        (_thinned(_finite(curve.values(series.log), is_logarithmic)), curve.label, False),
        (
            _finite(curve.points(series.evaluations), is_logarithmic),
            curve.points_label(series.evaluations),
            True,
        ),
    ):
        if points:
            last = f"{points[-1][1]:.4g}"
            legend = Legend(label, colour, _DASHES[curve.style], is_point, last)
            found.append(_Line(points, legend))
    return found


def _finite(points, is_logarithmic):
    return [
        (step, value)
        for step, value in points
        if isinstance(value, int | float)
        and math.isfinite(value)
        and (value > 0 or not is_logarithmic)
    ]


def _thinned(points):
    """Keeps the lowest and the highest value of each interval, so that no spike is lost."""
    if len(points) <= 2 * _INTERVALS:
        return points
    kept = [points[0], points[-1]]
    for number in range(_INTERVALS):
        part = points[number * len(points) // _INTERVALS : (number + 1) * len(points) // _INTERVALS]
        kept += [min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])]
    return sorted(set(kept))


class _Axis(NamedTuple):
    low: float
    high: float
    is_logarithmic: bool

    @classmethod
    def of(cls, values, panel):
        low, high = min(values), max(values)
        if panel.is_logarithmic:
            return cls(low / 1.1, high * 1.1, True)
        low = low if panel.range[0] is None else panel.range[0]
        high = high if panel.range[1] is None else panel.range[1]
        space = 0.05 * ((high - low) or abs(high) or 1)
        return cls(
            low if panel.range[0] is not None else low - space,
            high if panel.range[1] is not None else high + space,
            False,
        )

    def fraction(self, value):
        if self.is_logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, count):
        """Returns round numbers in the range, at most about `count`."""
        if self.is_logarithmic:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
            steps = (1, 2, 5) if len(decades) <= 2 else (1,)
            found = [step * 10.0**decade for decade in decades for step in steps]
            return [tick for tick in found if self.low <= tick <= self.high]
        rough = (self.high - self.low) / count
        unit = 10.0 ** math.floor(math.log10(rough))
        size = next(unit * step for step in (1, 2, 5, 10) if unit * step >= rough)
        first, last = math.ceil(self.low / size), math.floor(self.high / size + 1e-9)
        return [number * size for number in range(first, last + 1)]


def _x(steps, step):
    return round(_LEFT + steps.fraction(step) * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(vertical, value):
    return round(_HEIGHT - _BOTTOM - vertical.fraction(value) * (_HEIGHT - _TOP - _BOTTOM), 1)


def _grid(vertical, steps):
    left, right = _LEFT, _WIDTH - _RIGHT
    for tick in vertical.ticks(5):
        y = _y(vertical, tick)
        yield f'<line class="grid" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{tick:.3g}</text>'
    for tick in steps.ticks(5):
        if tick == int(tick):
            place = f'x="{_x(steps, tick)}" y="{_HEIGHT - 8}"'
            yield f'<text {place} text-anchor="middle">{tick:,.0f}</text>'


def _edges(edges, steps):
    for step, label in edges[1:]:
        if step < steps.high:
            x, title = _x(steps, step), f"<title>{html.escape(label)}</title>"
            place = f'x1="{x}" x2="{x}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"'
            yield f'<line class="edge" {place}>{title}</line>'


def _path(line, vertical, steps):
    if len(line.points) == 1:
        return _circles(line, vertical, steps)
    points = " ".join(f"{_x(steps, step)},{_y(vertical, value)}" for step, value in line.points)
    style = f'class="curve c{line.legend.colour}" stroke-dasharray="{line.legend.dashes}"'
    return f'<polyline {style} points="{points}"/>'


def _circles(line, vertical, steps):
    return "".join(
        f'<circle class="c{line.legend.colour}" cx="{_x(steps, step)}" cy="{_y(vertical, value)}" '
        f'r="4"><title>step {step:,}: {value:.4g}</title></circle>'
        for step, value in line.points
    )
