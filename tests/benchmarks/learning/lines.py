"""Text of the result of `benchmark learn`."""

from albert_keras.report import table
from tests.benchmarks.contest import contest_lines
from tests.benchmarks.measure import machine_lines, shown, summary

#: A training alone on the machine uses at least this fraction of its threads.
_MIN_USED = 0.7


def learn_lines(result):
    """Yields the lines of the result of `benchmark_learn`."""
    settings, comparison = result["settings"], result["comparison"]
    measured = [found for found in result["learners"] if found["rounds"]]
    rounds = max((len(found["rounds"]) for found in measured), default=0)
    yield from machine_lines(result["machine"])
    yield (
        f"{settings['minutes']:.3g} minutes of training for each contestant, "
        f"{settings['threads']} threads, {rounds} round{'' if rounds == 1 else 's'}"
    )
    if rounds > 1:
        yield "median of the rounds [lowest..highest]"
    yield ""
    header = ["", "weights", "rate", "updates", "positions", "CPUs", "first update", "loss"]
    yield from table(
        [*header, "accuracy", "time to the peer's loss", "ratio"],
        [_cells(found, comparison, settings["minutes"]) for found in measured],
    )
    rows = [each for found in measured for each in found["rounds"].values()]
    yield from contest_lines({}, {each["label"]: each for each in result["learners"]})
    yield from contest_lines({}, dict(enumerate(rows)))
    if any(row["facts"]["cpus"] < _MIN_USED * settings["threads"] for row in rows):
        yield (
            "  warning: other programs used the processors, see CPUs: these times are not "
            "meaningful"
        )
    yield "  All models have the same width and depth; the models of the peers share one block."
    yield ""
    yield from _comparison_lines(comparison, settings["minutes"])
    yield f"curves: {result['folder']}/curves.png, {result['folder']}/curves.csv"
    yield f"all results: {result['folder']}/results.json"


def _cells(found, comparison, minutes):
    rounds = list(found["rounds"].values())
    ends = [each["points"][-1] for each in rounds]

    def of_ends(name, form, scale=1.0):
        return shown(summary(end[name] for end in ends), form, scale)

    compared = [each for each in comparison["rounds"] if found["label"] in each["times"]]
    times = [each["times"][found["label"]] for each in compared]
    if not times:
        reached, ratio = "", ""
    elif None in times:
        reached, ratio = "not reached", ""
    else:
        reached = shown(summary(times), ".2f", 1 / 60) + " min"
        ratio = shown(summary(60 * minutes / time for time in times), ".2f")
    first, cpus = (
        summary(each["facts"][name] for each in rounds) for name in ("first_update_seconds", "cpus")
    )
    return [
        found["label"],
        f"{rounds[0]['facts']['weights'] / 1e6:.2f} M",
        f"{found['rate']:g}",
        of_ends("updates", ",.0f"),
        of_ends("positions", ",.2f", 1e-6) + " M",
        shown(cpus, ".2f"),
        shown(first, ".1f") + " s",
        of_ends("loss", ".3f"),
        of_ends("accuracy", ".1f", 100) + " %",
        reached,
        ratio,
    ]


def _comparison_lines(comparison, minutes):
    if not comparison["rounds"]:
        yield "There is no ratio: ours and a peer must both be measured."
        return
    for found in comparison["rounds"]:
        peer = f"round {found['round']}: the best peer is {found['best_peer']}"
        yield f"{peer}, which ends at {found['loss']:.3f} after {minutes:.3g} min"
    if comparison["ratio"] is None:
        yield "Ours does not reach that loss in every round: there is no ratio."
        return
    ratio = shown(comparison["ratio"], ".2f")
    yield f"ours: {ratio} times as fast as the best peer in reaching the final loss of that peer"
