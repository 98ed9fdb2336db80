"""What an analysis writes: a folder of tables as CSV, all numbers as JSON, and figures."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.report import COLOURS, save_figure, shortened, tidy
from albert_keras.research.analyze.models import AnalyzedModel
from data_pipeline.files import check_output_folder, naming, whole_folder

_LONGEST_LABEL = 48


def check_out(out: str | Path | None) -> None:
    """Raises InputError unless a new folder can be written at `out`, before any work is done."""
    if out is not None:
        check_output_folder(out)


def write_analysis(
    out: str | Path | None,
    record: Mapping[str, Any],
    tables: Mapping[str, Iterable[Mapping[str, Any]]],
    figures: Mapping[str, Callable[[], Any]],
) -> list[str]:
    """Writes the files of an analysis into a new folder, which appears whole or not at all.

    Args:
        out: The folder. None writes nothing.
        record: All numbers, plain JSON; the file has the name of the first table.
        tables: Name -> rows with the same keys; NAME.csv.
        figures: Name -> function that returns a matplotlib Figure; NAME.png.

    Returns:
        Paths of the files.
    """
    if out is None:
        return []
    out = Path(out)
    with naming(out), whole_folder(out) as folder:
        for name, rows in tables.items():
            _write_csv(folder / f"{name}.csv", list(rows))
        first = next(iter(tables))
        text = json.dumps(record, indent=1, ensure_ascii=False)
        (folder / f"{first}.json").write_text(text + "\n", encoding="utf-8")
        for name, draw in figures.items():
            save_figure(draw(), folder / f"{name}.png")
        names = sorted(path.name for path in folder.iterdir())
    return [str(out / name) for name in names]


def _write_csv(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0] if rows else [])
        writer.writeheader()
        writer.writerows(rows)


class LineStyle(NamedTuple):
    """How the lines of a model are drawn."""

    label: str
    color: str
    linestyle: str


def line_styles(models: Sequence[AnalyzedModel]) -> dict[str, LineStyle]:
    """Returns a style for each model by its label.

    A model with random weights has the colour of the trained model before it, and dashes.
    """
    styles, number = {}, -1
    for model in models:
        number += not model.is_random
        colour = COLOURS[max(number, 0) % len(COLOURS)]
        label = shortened(model.label, _LONGEST_LABEL, middle=True)
        styles[model.label] = LineStyle(label, colour, "--" if model.is_random else "-")
    return styles


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
            marker="o" if len(steps) <= 30 else None,
            markersize=4,
            markerfacecolor="white" if style.linestyle == "--" else style.color,
        )
    axes.set(**texts)
    axes.title.set_fontsize(11)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    tidy(axes)
