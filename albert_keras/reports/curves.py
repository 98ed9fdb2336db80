"""The log of a run as a picture."""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.report import BLUE, GREEN, ORANGE, RED, log_ticks, new_figure, tidy
from albert_keras.runs.log_file import read_evaluations, read_log

#: Logs with fewer lines get a marker for each line, so that a single one is seen.
_FEW_LINES = 40
_COLUMNS = 3
#: Colour and dashes of the curves of a panel, in their order.
_STYLES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, ":"), (RED, "-."))


class Panel(NamedTuple):
    """A part of the picture, with the values whose names have one of some endings."""

    title: str
    unit: str
    endings: tuple[str, ...]
    is_logarithmic: bool = False


PANELS = (
    Panel("Loss", "mean", ("loss",)),
    Panel("Accuracy", "fraction correct", ("accuracy",)),
    Panel("Scores of the task", "score", ("f1", "exact", "matthews", "pearson", "spearman")),
    Panel("Speed", "per second", ("tokens_per_second", "positions_per_second")),
    Panel("Learning rate", "learning rate", ("learning_rate",)),
    Panel("Gradient norm before clipping", "global norm, log scale", ("gradient_norm",), True),
    Panel("Waiting for data", "fraction of the time", ("input_wait",)),
)


def curves_of(folder: str | Path) -> Any:
    """Draws the log of a run over its steps, and returns the matplotlib Figure.

    There is a panel of `PANELS` for each kind of values that the log has. Evaluations are points
    at their steps. Vertical lines are the edges of stages.
    """
    folder = Path(folder)
    log, evaluations = read_log(folder), read_evaluations(folder)
    names = dict.fromkeys(
        name
        for values in (*log, *(scores for _, scores in evaluations))
        for name, value in values.items()
        if value is not None
    )
    panels = [panel for panel in PANELS if any(name.endswith(panel.endings) for name in names)]
    reached = f"step {log[-1]['step']:,}" if log else "no report yet"
    rows = max(-(-len(panels) // _COLUMNS), 1)
    title = f"{folder.absolute().name}, {reached}"
    figure, found = new_figure(15, 4 * rows, title, rows, _COLUMNS)
    # The last step of each stage has a report.
    edges = [
        line["step"]
        for line, later in itertools.pairwise(log)
        if line.get("stage") != later.get("stage")
    ]
    for axes, panel in itertools.zip_longest(found.ravel(), panels):
        if panel is None:
            axes.remove()
            continue
        own = [name for name in names if name.endswith(panel.endings)]
        _draw(axes, panel, own, log, evaluations)
        for step in edges:
            axes.axvline(step, color="0.4", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    return figure


def _draw(axes, panel, names, log, evaluations):
    """Draws the curves of a panel, from the log and the evaluations of a run."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_title(panel.title, fontsize=11)
    axes.set(xlabel="step", ylabel=panel.unit)
    if panel.is_logarithmic:
        axes.set_yscale("log")
    marker = "." if len(log) < _FEW_LINES else None
    for name, (colour, dashes) in zip(names, itertools.cycle(_STYLES), strict=False):
        label = name.replace("_", " ")
        values = [(line["step"], line[name]) for line in log if name in line]
        scores = [(step, found.get(name)) for step, found in evaluations]
        points = [(step, score) for step, score in scores if score is not None]
        if values:
            style = {"color": colour, "linestyle": dashes, "marker": marker, "label": label}
            axes.plot(*zip(*values, strict=True), **style)
        if points:
            style = {"color": colour, "markeredgecolor": "black", "clip_on": False, "zorder": 3}
            axes.plot(*zip(*points, strict=True), "o", label=f"{label}, evaluated", **style)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    tidy(axes)
    if panel.is_logarithmic:
        log_ticks(axes.yaxis)
    else:
        axes.set_ylim(bottom=min(axes.get_ylim()[0], 0))
    if len(axes.get_legend_handles_labels()[1]) > 1:  # below the panel, where it hides no curve
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 2}
        axes.legend(fontsize=9, frameon=False, **place)
