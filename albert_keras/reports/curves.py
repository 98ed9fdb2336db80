"""The log of a run as a picture."""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.report import BLUE, GREEN, ORANGE, RED, log_ticks, new_figure, tidy
from albert_keras.runs.log_file import read_evaluations, read_log

#: Logs with fewer lines get a marker for each line, so that a single one is seen.
_FEW_LINES = 40
#: Endings of scores that would spoil the scale of the others.
_OTHER_SCALES = ("mean_squared_error", "total")


class Curve(NamedTuple):
    """A curve: `name` of its values in the log, `label`, `colour`, `style`, `scale` (a factor)."""

    name: str
    label: str
    colour: str
    style: str = "-"
    scale: float = 1.0


class Panel(NamedTuple):
    """A part of the picture: `title`, `unit` and `range` of its y axis, and `curves`."""

    title: str
    unit: str
    curves: tuple[Curve, ...]
    range: tuple[float | None, float | None] = (0, None)
    is_logarithmic: bool = False


PANELS = (
    Panel(
        "Loss",
        "nats",
        (
            Curve("loss", "total", BLUE),
            Curve("masked_lm_loss", "masked LM", ORANGE, "--"),
            Curve("sentence_order_loss", "sentence order", GREEN, ":"),
        ),
    ),
    Panel(
        "Accuracy",
        "fraction correct",
        (
            Curve("masked_lm_accuracy", "masked LM", ORANGE, "--"),
            Curve("sentence_order_accuracy", "sentence order", GREEN, ":"),
        ),
        range=(0, 1),
    ),
    Panel(
        "Speed",
        "thousand tokens per second",
        (
            Curve("positions_per_second", "with padding", ORANGE, "--", 1e-3),
            Curve("tokens_per_second", "without padding", BLUE, "-", 1e-3),
        ),
    ),
    Panel("Learning rate", "learning rate", (Curve("learning_rate", "learning rate", BLUE),)),
    Panel(
        "Gradient norm before clipping",
        "global norm, log scale",
        (Curve("gradient_norm", "gradient norm", BLUE),),
        range=(None, None),
        is_logarithmic=True,
    ),
    Panel(
        "Hardware use",
        "percent",
        (
            Curve("mfu", "of the peak FLOP/s (MFU)", BLUE, "-", 100),
            Curve("input_wait", "of the time waiting for data", RED, "--", 100),
        ),
    ),
)


def dev_panels(evaluations: list[tuple[int, dict]]) -> tuple[Panel, ...]:
    """Returns the panels of a fine-tuning: loss and accuracy in training, development scores."""
    found = dict.fromkeys(name for _, scores in evaluations for name in scores)
    names = [name for name in found if not name.endswith(_OTHER_SCALES)]
    curves = tuple(
        Curve(name, name.replace("_", " "), colour)
        for name, colour in zip(names, (BLUE, ORANGE, GREEN, RED), strict=False)
    )
    accuracy = (Curve("answer_accuracy", "answers", BLUE),)
    speed, rate, gradients = PANELS[2:5]
    return (
        Panel("Loss in training", "mean over examples", (Curve("loss", "loss", BLUE),)),
        Panel("Accuracy in training", "fraction", accuracy, range=(0, 1)),
        Panel("Development examples", "score", curves, range=(None, None)),
        rate,
        gradients,
        speed,
    )


def curves_of(folder: str | Path, panels: tuple[Panel, ...] = PANELS) -> Any:
    """Draws the log of a run over its steps in six panels, and returns the matplotlib Figure.

    Evaluations in the log are points at their steps. Vertical lines are the edges of stages.
    """
    folder = Path(folder)
    log, evaluations = read_log(folder), read_evaluations(folder)
    reached = f"step {log[-1]['step']:,}" if log else "no report yet"
    figure, found = new_figure(15, 8, f"{folder.absolute().name}, {reached}", rows=2, columns=3)
    # The last step of each stage has a report.
    edges = [
        line["step"]
        for line, later in itertools.pairwise(log)
        if line.get("stage") != later.get("stage")
    ]
    for axes, panel in zip(found.ravel(), panels, strict=True):
        _draw(axes, panel, log, evaluations)
        for step in edges:
            axes.axvline(step, color="0.4", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    return figure


def _draw(axes, panel, log, evaluations):
    """Draws the curves of a panel, from the log and the evaluations of a run."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_title(panel.title, fontsize=11)
    axes.set(xlabel="step", ylabel=panel.unit)
    if panel.is_logarithmic:
        axes.set_yscale("log")
    for curve in panel.curves:
        _draw_curve(axes, curve, log, evaluations)
    if not axes.lines:
        axes.annotate("nothing logged", (0.5, 0.5), xycoords="axes fraction", ha="center")
        axes.set(xticks=[], yticks=[])
        return
    axes.set_ylim(*panel.range)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    tidy(axes)
    if panel.is_logarithmic:
        log_ticks(axes.yaxis)
    if len(axes.get_legend_handles_labels()[1]) > 1:  # below the panel, where it hides no curve
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 2}
        axes.legend(fontsize=9, frameon=False, **place)


def _draw_curve(axes, curve, log, evaluations):
    """Draws a curve and the points of its evaluations."""
    values = [(line["step"], curve.scale * line[curve.name]) for line in log if curve.name in line]
    scores = [(step, found.get(curve.name)) for step, found in evaluations]
    points = [(step, score) for step, score in scores if score is not None]
    if values:
        marker = "." if len(values) < _FEW_LINES else None
        style = {"color": curve.colour, "marker": marker, "label": curve.label}
        axes.plot(*zip(*values, strict=True), curve.style, **style)
    if points:
        style = {"color": curve.colour, "markeredgecolor": "black", "clip_on": False, "zorder": 3}
        axes.plot(*zip(*points, strict=True), "o", label=f"{curve.label}, evaluated", **style)
