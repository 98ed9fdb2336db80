"""Pictures of a study: the scores of all runs, and their curves."""

from pathlib import Path
from typing import Any

from albert_keras.studies.results import Column
from albert_keras.training.loop.curves import COLOURS
from data_pipeline.files import whole_file

_HEIGHT_PER_RUN, _WIDTH_PER_COLUMN = 0.34, 4.2


def draw_scores(columns: list[Column], path: Path) -> Path:
    """Draws a panel for each column: a point for each seed, a line at the mean."""
    runs = list(columns[0].cells)
    figure = _figure(_WIDTH_PER_COLUMN * len(columns) + 1.5, _HEIGHT_PER_RUN * len(runs) + 1.3)
    panels = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    for axes, column in zip(panels, columns, strict=True):
        axes.set_title(column.title, fontsize=11)
        axes.set_xlabel("accuracy, %")
        for number, run in enumerate(runs):
            cell = column.cells[run]
            if cell is None:
                continue
            colour, height = COLOURS[number % len(COLOURS)], len(runs) - 1 - number
            values = [100 * value for value in cell.values]
            axes.plot(values, [height] * len(values), "o", color=colour, markersize=5, alpha=0.7)
            axes.plot([100 * cell.mean] * 2, [height - 0.3, height + 0.3], color=colour)
        if column.floor is not None:
            axes.axvline(100 * column.floor, color="0.5", linestyle=":", linewidth=1)
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(runs)), reversed(runs), parse_math=False)
    panels[0].set_ylim(-0.6, len(runs) - 0.4)
    return _save(figure, path)


def draw_study_curves(results: dict[str, list[dict[str, Any]]], path: Path) -> Path | None:
    """Draws the masked-LM accuracy of all runs over their updates; returns the path.

    Returns None, and draws nothing, if no run has a curve.
    """
    if not any(result["curve"] for seeds in results.values() for result in seeds):
        return None
    figure = _figure(8, 4.5)
    axes = figure.subplots()
    for number, (run, seeds) in enumerate(results.items()):
        style = ("-", "--", ":", "-.")[number // len(COLOURS) % 4]
        for seed, result in enumerate(result for result in seeds if result["curve"]):
            steps, values = zip(*result["curve"], strict=True)
            axes.plot(
                steps,
                [100 * value for value in values],
                style,
                marker=".",
                color=COLOURS[number % len(COLOURS)],
                linewidth=1.2,
                label=None if seed else run,
            )
    axes.set(xlabel="update", ylabel="masked-LM accuracy, %")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9, framealpha=0.7)
    for text in axes.get_legend().get_texts():
        text.set_parse_math(False)
    return _save(figure, path)


def _figure(width, height):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure, path):
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=100)
    return path
