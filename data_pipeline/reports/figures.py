"""Draws histograms of a corpus or of records in one figure."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

_COLUMNS, _MOST_BARS = 3, 40
_BAR, _RANGE, _EXPECTED = "#4878a8", "#202020", "#d1495b"


class Histogram(NamedTuple):
    """One panel of a figure: K bars, each a fraction."""

    title: str
    heights: np.ndarray  # float [K], 1 = 100 %; empty if there is only the note to draw
    edges: np.ndarray | None = None  # float [K + 1], of the bars, if they stand for numbers
    labels: tuple[str, ...] = ()  # K labels of the bars otherwise
    x_label: str = ""
    y_label: str = ""
    expected: np.ndarray | None = None  # float [K], fractions to compare with, drawn as marks
    ranges: np.ndarray | None = None  # float [K, 2], interval of each fraction
    note: str = ""  # text below the title

    @classmethod
    def of_values(cls, title, values, counts=None, largest=None, **others):
        """Counts integers [N] in bars that cover equally many of them each; N may be 0.

        A value stands for `counts` (int [N]) of them, or one; none above `largest` is drawn.
        """
        if not values.size:
            return cls(title, np.zeros(0), **others | {"note": "nothing to count"})
        low, high = int(values.min()), int(values.max() if largest is None else largest)
        width = -(-(high - low + 1) // _MOST_BARS)
        edges = np.arange(low, high + width + 1, width) - 0.5
        heights, _ = np.histogram(values, edges, weights=counts)
        total = values.size if counts is None else counts.sum()
        return cls(title, heights / total, edges, **others)


def check_figure_path(path: str | Path):
    """Checks, before any work is done, that a figure can be written at `path`.

    Raises InputError if its name does not end in .png, or its folder does not exist.
    """
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise InputError(f"`--figure` must name a .png file. Received: {path}.")
    if not path.absolute().parent.is_dir():
        raise InputError(
            f"`{path}` cannot be written: the folder `{path.parent}` does not exist. "
            "Create it or choose another --figure."
        )


def draw_histograms(path: str | Path, title: str, histograms: list[Histogram]):
    """Draws one panel or more into a PNG file, which appears complete or not at all."""
    from matplotlib.figure import Figure

    check_figure_path(path)
    columns = min(_COLUMNS, len(histograms))
    rows = -(-len(histograms) // columns)
    figure = Figure(figsize=(4.8 * columns, 3.6 * rows + 0.5), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    figure.suptitle(title, fontsize=13)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, histogram in zip(panels, histograms, strict=False):
        _draw(axes, histogram)
    for axes in panels[len(histograms) :]:
        axes.set_axis_off()
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def _draw(axes, histogram):
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    heights = histogram.heights
    axes.set_title("\n".join(filter(None, (histogram.title, histogram.note))), fontsize=11)
    if not heights.size:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("lightgray")
        return
    if histogram.edges is not None:
        edges = histogram.edges
        centers, widths = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
        axes.set_xlim(edges[0], edges[-1])
    else:
        centers, widths = np.arange(len(heights)), np.full(len(heights), 0.7)
        names = [
            f"{label}\n{height:.1%}"
            for label, height in zip(histogram.labels, heights, strict=True)
        ]
        axes.set_xticks(centers, names)
        axes.set_xlim(-0.6, len(heights) - 0.4)
    axes.bar(centers, heights, widths, color=_BAR, edgecolor="white", linewidth=0.4)
    if histogram.ranges is not None:
        distances = np.abs(histogram.ranges - heights[:, None]).T
        axes.errorbar(centers, heights, distances, fmt="none", ecolor=_RANGE, capsize=5)
    if histogram.expected is not None:
        marks = [centers - widths / 2, centers + widths / 2]
        axes.hlines(histogram.expected, *marks, colors=_EXPECTED, linewidth=2, label="expected")
        axes.legend(fontsize=8, frameon=False)
    axes.set_ylim(bottom=0)
    axes.set(xlabel=histogram.x_label, ylabel=histogram.y_label)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
