"""How long each contestant takes to the loss that the best peer ends at."""

import math
import statistics
from collections.abc import Sequence

from tests.benchmarks.measure import summary

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


def best_of(results: Sequence[dict], round_number: int) -> dict | None:
    """Returns the measured result with the lowest final loss of a round; None if there is none.

    A loss that is not finite means that the training diverged; it is never the best.
    """
    found = [each for each in results if round_number in each["rounds"]]
    found = [each for each in found if math.isfinite(_final_loss(each, round_number))]
    return min(found, key=lambda each: _final_loss(each, round_number), default=None)


def compare(results: Sequence[dict], seconds: float) -> dict:
    """Compares all contestants with the best peer of each round.

    Args:
        results: dicts with `label`, `peer` (name of the peer, or "ours") and `rounds`: number ->
            dict with `points`.
        seconds: Training time of each.

    Returns:
        dict. `rounds`, a list of dicts: `round`, `best_peer` (label), `loss` (its final one),
        `times`: label -> seconds to that loss, or None; `ratio`: `seconds` divided by our time, or
        None if we do not reach it. `ratio`, the summary over the rounds, None unless there is a
        ratio in each; `best_rates`: peer -> label of its rate with the lowest median of final
        losses.
    """
    peers = [each for each in results if each["peer"] != OURS]
    numbers = sorted({number for each in results for number in each["rounds"]})
    rounds = []
    for number in numbers:
        best = best_of(peers, number)
        ours = best_of([each for each in results if each["peer"] == OURS], number)
        if best is None or ours is None:
            continue
        loss = _final_loss(best, number)
        times = {
            each["label"]: time_to_loss(each["rounds"][number]["points"], loss)
            for each in results
            if number in each["rounds"]
        }
        ours_time = times[ours["label"]]
        rounds.append(
            {
                "round": number,
                "best_peer": best["label"],
                "loss": loss,
                "times": times,
                "ratio": seconds / ours_time if ours_time else None,
            }
        )
    all_ratios = [each["ratio"] for each in rounds]
    is_reached = bool(all_ratios) and None not in all_ratios
    return {
        "rounds": rounds,
        "ratio": summary(all_ratios) if is_reached else None,
        "best_rates": _best_rates(peers),
    }


def _best_rates(peers):
    """Returns the label of the best rate of each peer, by the median over the rounds."""
    best = {}
    for each in peers:
        losses = [_final_loss(each, number) for number in each["rounds"]]
        losses = [loss if math.isfinite(loss) else math.inf for loss in losses]
        if losses and statistics.median(losses) < best.get(each["peer"], (math.inf,))[0]:
            best[each["peer"]] = statistics.median(losses), each["label"]
    return {peer: label for peer, (_, label) in best.items()}


def _final_loss(result, number):
    return result["rounds"][number]["points"][-1]["loss"]
