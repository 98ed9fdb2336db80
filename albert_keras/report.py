"""How results are shown: tables, numbers, sizes, percentages, shortened text and figures.

Everything here makes text or pictures of values that are computed elsewhere. Durations are in
`data_pipeline.progress`, because the data side shows them, too. Matplotlib is imported when a
figure is drawn.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from data_pipeline.files import whole_file

#: Okabe and Ito's colours, which stay apart for colour-blind readers; dashes help in print.
BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"

#: Control characters, those that change the order in which others are shown, and bytes that are not
#: UTF-8.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


# Tables


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: Iterable[int] = (0,),
    indent: int = 2,
) -> list[str]:
    """Returns the lines of a table for the screen, with two spaces between columns.

    Args:
        header: Names of the columns; () for a table without them.
        rows: Cells, each row as many as the header.
        left: Numbers of the columns that are aligned to the left; the others are numbers, to the
            right. Negative numbers count from the end.
        indent: Spaces before each line.

    Example:
        >>> table(["", "loss"], [["ours", "3.54"], ["theirs", "4.221"]], indent=0)
        ['         loss', 'ours     3.54', 'theirs  4.221']
    """
    rows = [list(row) for row in ((header, *rows) if header else rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    to_the_left = {number % len(widths) for number in left} if widths else set()
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if number in to_the_left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * indent + "  ".join(cells)).rstrip())
    return lines


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns the lines of a Markdown table whose columns are aligned in the source as well."""
    rows = [
        [cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (header, *rows)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(map(str.ljust, row, widths)) for row in rows]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return [f"| {line} |" for line in lines]


# Numbers


def number_text(value: float, digits: int = 3) -> str:
    """Returns a number with significant digits, never as "1.2e+03": "0.0284", "36.5", "1,206".

    An integer part with more digits is shown in full.
    """
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{Decimal(f'{value:.{digits}g}'):f}"


def bytes_text(num_bytes: float, digits: int = 3) -> str:
    """Returns a number of bytes in the largest unit of at least 1, such as "1.5 GB" (10^9)."""
    for exponent, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if num_bytes >= 1000**exponent:
            return f"{number_text(num_bytes / 1000**exponent, digits)} {unit}"
    return f"{num_bytes:.0f} bytes"


def percent(fraction: float, digits: int = 1) -> str:
    """Returns a fraction as percent, such as "61.5 %"."""
    return f"{100 * fraction:.{digits}f} %"


def count_of(count: int, noun: str) -> str:
    """Returns a count with its noun, such as "1 row" or "1,206 rows"; irregular plurals as well."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith(("ch", "sh", "s", "x")):
        return f"{count:,} {noun}es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}s"


# Text


class Finding(NamedTuple):
    """One property of some data, as a check reports it."""

    is_good: bool | None  # False is a reason for a warning; None neither good nor bad
    name: str
    text: str
    details: tuple[str, ...] = ()  # examples of it

    @property
    def warning(self) -> str:
        """The text of a warning; "" if this is no reason for one."""
        return f"{self.name}: {self.text}" if self.is_good is False else ""

    def lines(self) -> list[str]:
        """Returns it with a mark, and its examples, for the screen."""
        mark = {True: "✔", False: "⚠", None: " "}[self.is_good]
        first = f"{mark} {self.name:<17}  {self.text}"
        return [first, *(f"{'':19}  {detail}" for detail in self.details)]


def printable(text: str) -> str:
    """Returns text in which characters that control a terminal are escapes, as in JSON: `\\u001b`.

    Everything that a command prints goes through here, because labels, names and texts come from
    anywhere, and these characters could hide or change other lines. Tabs and line breaks remain.
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shortened(text: str, longest: int, middle: bool = False) -> str:
    """Returns text of at most `longest` characters, an ellipsis included.

    The ellipsis is at the end, or with `middle` in the middle.
    """
    if len(text) <= longest:
        return text
    if not middle:
        return f"{text[: longest - 1]}…"
    half = (longest - 1) // 2
    return f"{text[:half].rstrip()}…{text[-half:].lstrip()}"


def shortened_value(value: Any, longest: int = 80) -> str:
    """Returns any value of a JSON or YAML file as JSON on one line, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return shortened(text, longest)


# Figures


def new_figure(width: float, height: float, title: str = "", rows: int = 1, columns: int = 1):
    """Returns a matplotlib Figure of a size in inches and an array [rows, columns] of its axes.

    The title is wrapped to the width, and `$` has no meaning in it.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    if title:  # ten letters of this size to an inch
        figure.suptitle(textwrap.fill(title, int(10 * width)), fontsize=12, parse_math=False)
    return figure, figure.subplots(rows, columns, squeeze=False)


def tidy(axes: Any, grid: str = "both") -> None:
    """Gives axes a light grid and no frame at the top and at the right."""
    axes.grid(axis=grid, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def log_ticks(axis: Any) -> None:
    """Labels a logarithmic axis as plain numbers, at several places even if its range is short.

    Call it after the curves are drawn.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if high > 10 * low else MaxNLocator(5))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())


def save_figure(figure: Any, path: str | Path, dpi: int = 100) -> Path:
    """Writes a figure as a PNG file, which appears complete or not at all; returns the path."""
    path = Path(path)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=dpi)
    return path
