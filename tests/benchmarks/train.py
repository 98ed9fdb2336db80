"""How fast a training step is and how much memory it takes: ours against peers, in one contest."""

from collections.abc import Sequence

from albert_keras.report import table
from albert_keras.training.flops import training_flops
from data_pipeline.errors import InputError
from tests.benchmarks import trainers
from tests.benchmarks.contest import (
    Contestant,
    chosen_peers,
    contest_lines,
    hold_contest,
    measure_peaks,
    rates,
    ratio_to,
)
from tests.benchmarks.measure import machine, machine_lines, ratios, shown
from tests.benchmarks.shapes import Shape, make_shape

#: Precision of a run -> what it multiplies in.
DTYPES = {"float32": "float32", "mixed_bfloat16": "bfloat16"}
PEERS = ("keras-nlp", "transformers")
#: Variants of a PyTorch step: name, compiled or not, whether only masked positions are scored.
_FORMS = (
    ("transformers, eager", False, False),
    ("transformers, compiled", True, False),
    ("transformers, compiled, masked positions", True, True),
)


def benchmark_train(
    model: str = "albert-base",
    batch_size: int = 8,
    max_seq_length: int = 128,
    precision: list[str] = tuple(DTYPES),
    peers: list[str] = ("all",),
    repeats: int = 5,
    seconds: float = 2.0,
) -> dict:
    """Measures one update of the masked language model, ours and each peer's.

    All train on the same synthetic batch without padding or dropout; see README.md.

    Args:
        model: See `make_shape`.
        precision: "float32", "mixed_bfloat16" or both.
        peers: Some of `PEERS`; or "all" or "none" alone.
        repeats: Rounds.
        seconds: How long each runs in a round.

    Returns:
        dict for JSON: `machine`; `settings`; `peaks`, see `measure_peaks`; `contestants`, see
        `hold_contest`, with the numbers of `describe` for contestants that were measured;
        `comparisons`, a list of what `compare` returns for each dtype of ours.
    """
    facts = machine()
    shape = make_shape(model, batch_size, max_seq_length)
    contestants = contestants_for(shape, precision, peers)
    dtypes = list(dict.fromkeys(contestant.dtype for contestant in contestants))
    peaks = measure_peaks(dtypes)
    results = hold_contest(contestants, repeats, seconds)
    flops = training_flops(
        shape.config, batch_size, max_seq_length, shape.predictions, sentence_head=False
    )
    return {
        "machine": facts,
        "settings": {
            "model": model,
            "batch_size": batch_size,
            "max_seq_length": max_seq_length,
            "predictions": shape.predictions,
            "vocab_size": shape.config.vocab_size,
            "repeats": repeats,
            "seconds": seconds,
            "useful_flops": flops,
        },
        "peaks": peaks,
        "contestants": describe(results, shape.tokens, flops, peaks),
        "comparisons": [compare(results, dtype) for dtype in dtypes],
    }


def contestants_for(
    shape: Shape, precisions: Sequence[str] = tuple(DTYPES), peers: Sequence[str] = PEERS
) -> list[Contestant]:
    """Returns who takes part, ours first; InputError for unknown names."""
    for precision in precisions:
        if precision not in DTYPES:
            raise InputError(
                f"The precision must be float32 or mixed_bfloat16. Received: {precision!r}."
            )
    peers = chosen_peers(peers, PEERS)
    found = [("ours", trainers.prepare_ours, (), ())]
    if "keras-nlp" in peers:
        found.append(("keras-nlp", trainers.prepare_keras_nlp, (), ()))
    if "transformers" in peers:
        needs = ("torch", "transformers")
        found += [(name, trainers.prepare_transformers, form, needs) for name, *form in _FORMS]
    return [
        Contestant(name, DTYPES[precision], prepare, (shape, precision, *form), needs)
        for name, prepare, form, needs in found
        for precision in dict.fromkeys(precisions)
    ]


def describe(results: dict, tokens: int, flops: float, peaks: dict) -> dict:
    """Adds the numbers that follow from what a contest measured.

    Each contestant that was measured also has its `rates` and `ratio`, the summary over the rounds
    of its time divided by the time of our fastest (above 1: we are faster).
    """
    fastest = _fastest(result for result in results.values() if result["name"] == "ours")
    return {
        label: result
        if "failed" in result
        else {
            **result,
            **rates(result["rounds"], tokens, flops, peaks[result["dtype"]]),
            "ratio": ratio_to(result, fastest),
        }
        for label, result in results.items()
    }


def compare(results: dict, dtype: str) -> dict:
    """Compares ours of one dtype with the fastest peer of any and the leanest of the same dtype.

    Returns:
        dict. `dtype`; `failed`, why ours was not measured, or None; `fastest_peer`, its label, and
        `faster`, the summary over the rounds of its time divided by ours; `leanest_peer`, its
        label, and `memory`, our peak divided by its. None without such a peer.
    """
    ours = results[f"ours, {dtype}"]
    found = dict.fromkeys(("fastest_peer", "faster", "leanest_peer", "memory"))
    found = {"dtype": dtype, "failed": ours.get("failed"), **found}
    peers = [one for one in results.values() if one["name"] != "ours" and "failed" not in one]
    if found["failed"] or not peers:
        return found
    fastest = _fastest(peers)
    found |= {
        "fastest_peer": f"{fastest['name']}, {fastest['dtype']}",
        "faster": ratios(fastest["rounds"], ours["rounds"]),
    }
    if same := [peer for peer in peers if peer["dtype"] == dtype]:
        leanest = min(same, key=lambda peer: peer["peak_mb"])
        found |= {
            "leanest_peer": f"{leanest['name']}, {leanest['dtype']}",
            "memory": ours["peak_mb"] / leanest["peak_mb"],
        }
    return found


def _fastest(results):
    measured = [result for result in results if "failed" not in result]
    return min(measured, key=lambda result: result["seconds"]["median"], default=None)


def train_lines(result):
    """Yields the lines of the result of `benchmark_train`."""
    settings, contestants = result["settings"], result["contestants"]
    measured = [found for found in contestants.values() if "failed" not in found]
    yield from machine_lines(result["machine"])
    yield (
        f"a training step of {settings['model']}: B = {settings['batch_size']}, "
        f"S = {settings['max_seq_length']}, P = {settings['predictions']}, "
        f"V = {settings['vocab_size']}, {settings['useful_flops'] / 1e9:,.1f} useful GFLOP"
    )
    yield f"median of {settings['repeats']} rounds [lowest..highest]"
    yield ""
    yield from table(
        ["", "dtype", "step, s", "tokens/s", "GFLOP/s", "of peak", "peak MB", "ours: times faster"],
        [
            [
                found["name"],
                found["dtype"],
                shown(found["seconds"], ".3f"),
                f"{found['tokens_per_second']['median']:,.0f}",
                f"{found['flops']['median'] / 1e9:,.0f}",
                f"{found['share_of_peak']['median']:.0%}",
                f"{found['peak_mb']:,.0f}",
                shown(found["ratio"], ".2f") if found["ratio"] else "",
            ]
            for found in measured
        ],
    )
    yield ""
    yield from table(  # shows that all did the same work
        ["", "dtype", "weights", "optimizer", "loss", "updates", "ready after", "device"],
        [
            [
                found["name"],
                found["dtype"],
                f"{facts['weights']:,}",
                facts["optimizer"],
                f"{facts['first_loss']:.2f} → {facts['last_loss']:.2f}",
                str(facts["updates"]),
                f"{found['start_seconds']:.1f} s",
                facts["device"],
            ]
            for found in measured
            if (facts := found["facts"])
        ],
    )
    yield from contest_lines(result["peaks"], contestants)
    yield ""
    for found in result["comparisons"]:
        ours = f"ours, {found['dtype']}"
        if found["failed"] or found["fastest_peer"] is None:
            yield f"{ours}: {found['failed'] or 'no peer was measured'}"
            continue
        faster = shown(found["faster"], ".2f")
        yield f"{ours}: {faster} times as fast as the fastest peer ({found['fastest_peer']})"
        if found["leanest_peer"]:
            yield (
                f"{ours}: {found['memory']:.2f} times the memory of the leanest peer "
                f"({found['leanest_peer']})"
            )
