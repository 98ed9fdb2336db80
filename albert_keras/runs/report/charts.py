"""Curves of a run as coordinates: the template draws them, and its style sheet colours them."""

import math
from typing import NamedTuple

from matplotlib.ticker import LogLocator, MaxNLocator

from albert_keras.report import BLUE, COLOURS
from albert_keras.runs.curves import PANELS, Curve, Panel

#: Size of a chart, and the place of its axes in it.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 230, 52, 434, 10, 204
#: The most intervals of steps that a curve has; each shows its lowest and its highest value.
_INTERVALS = 250
_DASHES = {"-": "none", "--": "7 4", ":": "2 4", "-.": "8 4 2 4"}


class Series(NamedTuple):
    """The logs of one training, and what to call it if there are several."""

    log: list[dict]
    evaluations: list[tuple[int, dict]]
    label: str = ""


class Line(NamedTuple):
    """A curve of reports, or the points of evaluations."""

    label: str
    colour: int  # number of a colour of the style sheet
    dashes: str  # as `stroke-dasharray`
    is_point: bool
    values: list[tuple[int, float]]  # (step, value)
    places: list[tuple[float, float]] = []  # their coordinates


class Chart(NamedTuple):
    """A chart of the page: lines, and the places of grid lines with their labels."""

    title: str
    unit: str
    last: int  # the last step
    lines: list[Line]
    rows: list[tuple[float, str]]  # (y, value)
    columns: list[tuple[float, str]]  # (x, step)
    edges: list[tuple[float, str]]  # (x, first step of a stage)


def panels_of(metric: str | None) -> tuple[Panel, ...]:
    """Returns the panels of a pre-training, or of a fine-tuning with this main score."""
    if metric is None:
        return PANELS
    _, _, speed, rate, gradients, _ = PANELS
    curves = {name: Curve(name, name, BLUE) for name in ("loss", "answer_accuracy", metric)}
    return (
        Panel("Loss in training", "mean over examples", (curves["loss"],)),
        Panel("Accuracy in training", "fraction", (curves["answer_accuracy"],), range=(0, 1)),
        Panel(f"Development examples, {metric}", "score", (curves[metric],), range=(None, None)),
        rate,
        gradients,
        speed._replace(curves=speed.curves[1:]),
    )


def chart_of(panel: Panel, series: list[Series], edges: list[tuple[int, str]]) -> Chart | None:
    """Returns the chart of a panel; with several series each curve has a colour of its own.

    Args:
        panel: What is drawn.
        series: The trainings.
        edges: First steps and labels of stages, see `stage_edges`.

    Returns:
        None if nothing was logged.
    """
    lines = []
    for number, one in enumerate(series):
        for curve in panel.curves:
            if len(series) > 1:
                curve = curve._replace(colour=COLOURS[number % len(COLOURS)], label=one.label)
            lines += _lines(curve, one, panel.is_logarithmic)
    if not lines:
        return None
    low, high = _range([value for line in lines for _, value in line.values], panel)
    last = max(step for line in lines for step, _ in line.values)

    def x(step):
        return round(LEFT + step / max(last, 1) * (RIGHT - LEFT), 1)

    def y(value):
        if panel.is_logarithmic:
            fraction = math.log(value / low) / math.log(high / low)
        else:
            fraction = (value - low) / (high - low)
        return round(BOTTOM - fraction * (BOTTOM - TOP), 1)

    steps = MaxNLocator(5, steps=(1, 2, 5, 10), integer=True).tick_values(0, max(last, 1))
    levels = MaxNLocator(5, steps=(1, 2, 5, 10)).tick_values(low, high)
    if panel.is_logarithmic:
        levels = LogLocator(subs=(1, 2, 5)).tick_values(low, high)
    return Chart(
        panel.title,
        panel.unit,
        last,
        [line._replace(places=[(x(s), y(value)) for s, value in line.values]) for line in lines],
        rows=[(y(level), f"{level:.3g}") for level in levels if low <= level <= high],
        columns=[(x(step), f"{step:,.0f}") for step in steps if 0 <= step <= max(last, 1)],
        edges=[(x(step), label) for step, label in edges[1:] if step < last],
    )


def _lines(curve: Curve, series: Series, is_logarithmic: bool) -> list[Line]:
    """Returns the curve of the reports and the points of the evaluations, if they exist."""
    look = COLOURS.index(curve.colour), _DASHES[curve.style]
    reports = _thinned(_finite(curve.values(series.log), is_logarithmic))
    points = _finite(curve.points(series.evaluations), is_logarithmic)
    lines = [Line(curve.label, *look, False, reports)]
    lines += [Line(curve.points_label(series.evaluations), *look, True, points)] if points else []
    return [line for line in lines if line.values]


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


def _range(values, panel):
    """Returns the ends of the vertical axis: those of the panel, or a little beyond the values."""
    low, high = min(values), max(values)
    if panel.is_logarithmic:
        return low / 1.1, high * 1.1
    lowest, highest = panel.range
    space = 0.05 * ((high - low) or abs(high) or 1)
    return (
        low - space if lowest is None else lowest,
        high + space if highest is None else highest,
    )
