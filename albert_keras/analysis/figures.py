"""What the figures of all analyses have in common."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from albert_keras.analysis.models import AnalyzedModel
from albert_keras.training.loop.curves import COLOURS

_LONGEST_LABEL = 48


class LineStyle(NamedTuple):
    """How the lines of a model are drawn."""

    label: str
    color: str
    linestyle: str
    marker: str


def line_styles(models: Sequence[AnalyzedModel]) -> dict[str, LineStyle]:
    """Returns a style for each model by its label.

    A model with random weights has the colour of the trained model before it, and dashes.
    """
    styles, number = {}, -1
    for model in models:
        number += not model.is_random
        colour = COLOURS[max(number, 0) % len(COLOURS)]
        style = ("--", "o") if model.is_random else ("-", "o")
        label = model.label
        if len(label) > _LONGEST_LABEL:
            label = f"…{label[1 - _LONGEST_LABEL :]}"
        styles[model.label] = LineStyle(label, colour, *style)
    return styles


def new_figure(width: float, height: float, title: str, columns: int = 1, rows: int = 1):
    """Returns a matplotlib Figure and an array [rows, columns] of its axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, parse_math=False)
    return figure, figure.subplots(rows, columns, squeeze=False)


def draw_lines(axes: Any, lines: dict[str, tuple], styles: dict[str, LineStyle], **texts: str):
    """Draws a line for each model.

    Args:
        axes: matplotlib Axes.
        lines: Label of a model -> x values, y values.
        styles: As `line_styles` returns them.
        **texts: `title`, `xlabel` and `ylabel`.
    """
    from matplotlib.ticker import MaxNLocator

    for label, (steps, values) in lines.items():
        style = styles[label]
        axes.plot(
            steps,
            values,
            linestyle=style.linestyle,
            color=style.color,
            label=style.label,
            linewidth=1.6,
            marker=style.marker if len(steps) <= 30 else None,
            markersize=4,
            markerfacecolor="white" if style.linestyle == "--" else style.color,
        )
    axes.set(**texts)
    axes.title.set_fontsize(11)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def add_legend(figure: Any, axes: Any) -> None:
    """Draws one legend below all axes."""
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside lower center", ncols=2, fontsize=9, frameon=False
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
