"""What `benchmark learn` reports: the ratio of the times, a table, and the curves."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from albert_keras.report import BLUE, ORANGE, log_ticks, new_figure, save_figure, table, tidy
from tests.benchmarks.measure import machine_lines

OURS = "ours"


def time_to_loss(points: Sequence[dict], loss: float) -> float | None:
    """Returns the seconds after which a curve reaches a loss, linear between its points.

    None if it never does. The time of the first point if that is lower already, which is then an
    upper bound.
    """
    previous = None
    for point in points:
        if point["loss"] <= loss:
            if previous is None:
                return point["seconds"]
            share = (previous["loss"] - loss) / (previous["loss"] - point["loss"])
            return previous["seconds"] + share * (point["seconds"] - previous["seconds"])
        previous = point
    return None


def compare(learners: Sequence[dict], seconds: float) -> dict | None:
    """Compares ours with the rate of the peer that has the lowest final loss.

    Args:
        learners: dicts with `label` and, if it was measured, `points`. The first one is ours.
        seconds: Training time of each.

    Returns:
        dict: `best_peer` (label); `loss`, its final one; `times`, label -> seconds to that loss, or
        None; `ratio`, `seconds` divided by our time, or None if we do not reach it. None unless
        ours and the peer were measured. A training that diverged is never the best.
    """
    curves = {one["label"]: one["points"] for one in learners if "points" in one}
    finals = {label: points[-1]["loss"] for label, points in curves.items()}
    peers = [label for label in curves if label != OURS and math.isfinite(finals[label])]
    if OURS not in curves or not peers:
        return None
    best = min(peers, key=finals.get)
    times = {label: time_to_loss(points, finals[best]) for label, points in curves.items()}
    ratio = seconds / times[OURS] if times[OURS] else None
    return {"best_peer": best, "loss": finals[best], "times": times, "ratio": ratio}


def learn_lines(result: dict) -> Iterator[str]:
    """Yields the lines of the result of `benchmark_learn`."""
    settings, comparison = result["settings"], result["comparison"]
    yield from machine_lines(result["machine"])
    yield f"{settings['minutes']:.3g} minutes of training each, {settings['threads']} threads"
    yield ""
    times = comparison["times"] if comparison else {}
    yield from table(
        [
            *("", "weights", "rate", "updates", "positions", "first update", "loss", "accuracy"),
            "time to the peer's loss",
        ],
        [_cells(one, times) for one in result["learners"] if "points" in one],
    )
    for one in result["learners"]:
        if "failed" in one:
            yield f"  {one['label']}: {one['failed']}"
    yield ""
    if comparison is None:
        yield "There is no ratio: ours and the peer must both be measured."
    elif comparison["ratio"] is None:
        yield f"Ours does not reach {comparison['loss']:.3f}, the final loss of the peer."
    else:
        yield (
            f"ours: {comparison['ratio']:.2f} times as fast as {comparison['best_peer']} in "
            f"reaching its final loss of {comparison['loss']:.3f}"
        )


def _cells(learner, times):
    end, facts = learner["points"][-1], learner["facts"]
    reached = times.get(learner["label"])
    return [
        learner["label"],
        f"{facts['weights'] / 1e6:.2f} M",
        f"{learner['rate']:g}",
        f"{end['updates']:,}",
        f"{end['positions'] / 1e6:,.2f} M",
        f"{facts['first_update_seconds']:.1f} s",
        f"{end['loss']:.3f}",
        f"{100 * end['accuracy']:.1f} %",
        "not reached" if reached is None else f"{reached / 60:.2f} min",
    ]


def draw_curves(result: dict, path: Path) -> None:
    """Draws held-out loss over minutes of training; the best rate of the peer is a solid line."""
    settings, comparison = result["settings"], result["comparison"] or {}
    title = f"{settings['recipe']}, {settings['minutes']:.3g} minutes of training"
    if comparison.get("ratio"):
        title += f": {comparison['ratio']:.2f} times as fast as the best peer"
    figure, panels = new_figure(9.5, 6, title)
    axes = panels[0, 0]
    for one in result["learners"]:
        is_solid = one["label"] in (OURS, comparison.get("best_peer"))
        points = one.get("points", ())
        axes.plot(
            [point["seconds"] / 60 for point in points],
            [point["loss"] for point in points],
            "o-" if is_solid else ".--",
            markersize=4,
            color=BLUE if one["label"] == OURS else ORANGE,
            label=one["label"],
        )
    if comparison:
        axes.axhline(comparison["loss"], color="black", linestyle=":")
    axes.set(xlabel="minutes of training (log scale)", ylabel="held-out masked-LM loss, nats")
    axes.set_xscale("log")
    log_ticks(axes.xaxis)
    tidy(axes)
    axes.legend(fontsize=9)
    save_figure(figure, path, dpi=110)
