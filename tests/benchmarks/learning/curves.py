"""The curves of `benchmark learn`: a table of points and a picture."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from albert_keras.report import BLUE, GREEN, ORANGE, RED, new_figure, save_figure, tidy
from data_pipeline.files import whole_file
from tests.benchmarks.learning.comparison import OURS

_COLUMNS = ("seconds", "updates", "positions", "loss", "accuracy")
_PEER_COLOURS = (ORANGE, GREEN, RED)
_TICKS = (1, 2, 3, 5)  # in each power of ten


def write_curves_csv(results: Sequence[dict], path: Path):
    """Writes a row for each point: contestant, round, and what a point has."""
    with whole_file(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["contestant", "rate", "round", *_COLUMNS])
        for result in results:
            for number, measured in result["rounds"].items():
                for point in measured["points"]:
                    values = [point[name] for name in _COLUMNS]
                    writer.writerow([result["label"], result["rate"], number, *values])


def draw_learning(results: Sequence[dict], comparison: dict, title: str, path: Path):
    """Draws held-out loss over minutes of training, and the final loss of the best peer.

    The best rate of a peer is a solid line, its other rates are thin and dashed. Rounds after the
    first have the same colour and no label.
    """
    figure, panels = new_figure(9.5, 6)
    axes = panels[0, 0]
    peers = list(dict.fromkeys(each["peer"] for each in results if each["peer"] != OURS))
    colours = {OURS: BLUE} | {
        peer: _PEER_COLOURS[index % len(_PEER_COLOURS)] for index, peer in enumerate(peers)
    }
    for result in results:
        is_ours = result["peer"] == OURS
        is_best = is_ours or comparison["best_rates"].get(result["peer"]) == result["label"]
        for index, measured in enumerate(result["rounds"].values()):
            axes.plot(
                [point["seconds"] / 60 for point in measured["points"]],
                [point["loss"] for point in measured["points"]],
                "-" if is_best else "--",
                marker="o" if is_best else ".",
                markersize=4,
                color=colours[result["peer"]],
                linewidth=2.4 if is_ours else 1.6 if is_best else 0.9,
                alpha=1.0 if is_best else 0.6,
                label=result["label"] if index == 0 else None,
                zorder=3 if is_ours else 2,
            )
    for index, found in enumerate(comparison["rounds"]):
        label = f"final loss of {found['best_peer']}: {found['loss']:.3f}"
        axes.axhline(
            found["loss"], color="black", linestyle=":", label=label if index == 0 else None
        )
    _label(axes, results, comparison, title)
    save_figure(figure, path, dpi=110)


def _label(axes, results, comparison, title):
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    if comparison["ratio"]:
        title += f": {comparison['ratio']['median']:.2f} times as fast as the best peer"
    axes.set_title(title, fontsize=12)
    axes.set(xlabel="minutes of training (log scale)", ylabel="held-out masked-LM loss, nats")
    axes.set_xscale("log")
    minutes = [
        point["seconds"] / 60
        for result in results
        for measured in result["rounds"].values()
        for point in measured["points"]
    ]
    if minutes:
        low, high = min(minutes), max(minutes)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [tick * 10.0**power for power in powers for tick in _TICKS]
        ticks = [tick for tick in ticks if low * 0.95 <= tick <= high * 1.05]
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    tidy(axes)
    if results:
        axes.legend(fontsize=9, framealpha=0.8)
