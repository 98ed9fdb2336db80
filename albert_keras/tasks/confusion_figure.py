"""Figures of answers: a confusion matrix, or scores over the truth."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from albert_keras.report import BLUE, ORANGE, new_figure, save_figure, shortened, tidy
from data_pipeline.files import naming

#: Up to this many classes a cell shows its proportion too; up to this many its count.
_PROPORTIONS_UP_TO, _COUNTS_UP_TO = 10, 30
#: Up to this many classes each has its name at the sides and grid lines; of more only some have.
_NAMES_UP_TO = 60
_LONGEST_NAME = 24


def draw_confusion(path: str | Path, matrix, names: Sequence[str], title: str) -> Path:
    """Draws a confusion matrix as PNG: rows are the truth, columns the answers.

    Colours show the proportions of a row; for many classes they distinguish small proportions
    better than large ones. Cells contain count and proportion; with many classes only the count,
    with very many nothing.

    Args:
        matrix: int [C, C].
        names: C of them. Long names are shortened in the middle.
    """
    from matplotlib.colors import PowerNorm

    matrix = np.asarray(matrix)
    count = len(names)
    side = np.clip(2.5 + 0.42 * count, 4.5, 15)
    figure, panels = new_figure(side + 2.2, side + 0.8, title)
    axes = panels[0, 0]
    totals = matrix.sum(axis=1, keepdims=True)
    proportions = matrix / np.maximum(totals, 1)
    scale = PowerNorm(1 if count <= _PROPORTIONS_UP_TO else 0.5, vmin=0, vmax=1)
    image = axes.imshow(proportions, cmap="Blues", norm=scale)
    _name_classes(axes, names)
    if count <= _COUNTS_UP_TO:
        _write_cells(axes, matrix, proportions, scale)
    bar = figure.colorbar(
        image, ax=axes, shrink=0.8, aspect=2.5 * side, format=lambda value, _: f"{value:.0%}"
    )
    bar.set_ticks([0, 0.2, 0.4, 0.6, 0.8, 1] if scale.gamma == 1 else [0, 0.01, 0.05, 0.2, 0.5, 1])
    bar.set_label("proportion of the row")
    bar.outline.set_visible(False)
    return _save(figure, path)


def draw_scores(path: str | Path, truth, scores, title: str) -> Path:
    """Draws the answers of a regression over the truth as PNG, with the line of equality.

    Args:
        truth, scores: float [count], at least one.
    """
    truth, scores = np.asarray(truth, np.float64), np.asarray(scores, np.float64)
    both = np.concatenate([truth, scores])
    figure, panels = new_figure(6, 6, title)
    axes = panels[0, 0]
    margin = 0.05 * (both.max() - both.min()) or 0.5
    limits = (both.min() - margin, both.max() + margin)
    opacity = float(np.clip(12 / np.sqrt(truth.size), 0.05, 0.7))
    axes.plot(limits, limits, "--", color=ORANGE, linewidth=1.5, label="answer = truth", zorder=3)
    axes.scatter(truth, scores, s=14, color=BLUE, alpha=opacity, linewidths=0)
    axes.set(xlim=limits, ylim=limits, xlabel="truth", ylabel="answer", aspect="equal")
    tidy(axes)
    axes.legend(loc="upper left", fontsize=9, framealpha=0.7)
    return _save(figure, path)


def _save(figure, path):
    with naming(path):
        return save_figure(figure, path)


def _name_classes(axes, names):
    from matplotlib.font_manager import findfont, get_font

    count = len(names)
    drawable = get_font(findfont("DejaVu Sans")).get_charmap()
    shown = [_short(name, number, drawable) for number, name in enumerate(names)]
    every = -(-count // _NAMES_UP_TO)
    size = float(np.clip(11 - 0.1 * count, 6.5, 10))
    is_narrow = count > 4 or max(map(len, shown)) > 10
    ticks = np.arange(0, count, every)
    axes.set_xticks(ticks, shown[::every], rotation=90 if is_narrow else 0, fontsize=size)
    axes.set_yticks(ticks, shown[::every], fontsize=size)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_parse_math(False)
    axes.set(xlabel="answer", ylabel="truth")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if count <= _NAMES_UP_TO:
        axes.set_xticks(np.arange(0.5, count - 1), minor=True)
        axes.set_yticks(np.arange(0.5, count - 1), minor=True)
        axes.grid(which="minor", color="white", linewidth=1.5 if count <= _COUNTS_UP_TO else 0.5)
        axes.tick_params(which="minor", length=0)


def _write_cells(axes, matrix, proportions, scale):
    count = len(matrix)
    has_proportions = count <= _PROPORTIONS_UP_TO
    size = 10 if count <= 6 else 8 if count <= 20 else 6.5
    for (row, column), number in np.ndenumerate(matrix):
        if not number and not has_proportions:
            continue
        proportion = proportions[row, column]
        text = f"{number:,}" if has_proportions else f"{number}"
        if has_proportions and proportions[row].any():
            text += f"\n{proportion:.0%}"
        colour = "white" if scale(proportion) > 0.55 else "black"
        axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=size)


def _short(name, number, drawable):
    """Shortens a long name in the middle; a name the font cannot draw becomes its number."""
    name = " ".join(str(name).split())
    if not name or any(ord(letter) not in drawable for letter in name):
        return f"#{number}"
    return shortened(name, _LONGEST_NAME, middle=True)
