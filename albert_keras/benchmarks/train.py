"""How fast a training step is and what it holds: ours against peers, in one contest."""

from albert_keras.benchmarks.contest import hold_contest
from albert_keras.benchmarks.measure import machine, ratios, summary
from albert_keras.benchmarks.products import higher, measure_products
from albert_keras.benchmarks.shapes import make_shape
from albert_keras.benchmarks.trainers import DTYPES, trainers
from albert_keras.training.cost.flops import training_flops


def benchmark_train(
    model="albert-base",
    batch_size=8,
    max_seq_length=128,
    precisions=tuple(DTYPES),
    peers=("all",),
    repeats=5,
    seconds=2.0,
):
    """Measures one update of the masked language model, ours and that of each peer.

    All train on the same made-up batch without padding or dropout; README.md tells the rest.

    Args:
        model: str. See `make_shape`.
        batch_size: int. B.
        max_seq_length: int. S; 15 % of it are predicted.
        precisions: sequence of str. "float32", "mixed_bfloat16" or both.
        peers: sequence of str. "keras-nlp", "transformers"; or "all" or "none" alone.
        repeats: int. Rounds.
        seconds: float. How long each runs in a round.

    Returns:
        dict for JSON: `machine`; `settings`; `products`, see `measure_products`; `contestants`, see
        `hold_contest`, with the numbers of `describe` for those that were measured; `comparisons`,
        a list of what `compare` finds for each dtype of ours.

    Raises:
        InputError: If a setting cannot be used.
    """
    facts = machine()
    shape = make_shape(model, batch_size, max_seq_length)
    contestants = trainers(shape, precisions, peers)
    dtypes = list(dict.fromkeys(contestant.dtype for contestant in contestants))
    before = measure_products([shape], dtypes)
    results = hold_contest(contestants, repeats, seconds)
    products = higher(before, measure_products([shape], dtypes))
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
        "products": products,
        "contestants": describe(results, shape.tokens, flops, products),
        "comparisons": [compare(results, dtype) for dtype in dtypes],
    }


def describe(results, tokens, flops, products):
    """Adds to what a contest measured what follows from it.

    Args:
        results: dict. Of `hold_contest`.
        tokens: int. Of one run.
        flops: int. Useful operations of one run.
        products: dict. Of `measure_products`.

    Returns:
        dict. As `results`; each that was measured also has summaries `tokens_per_second`, `flops`
        (useful operations a second), `share_of_peak`; and `ratio`, the summary over the rounds of
        its time by that of our fastest (above 1: we are faster), None without ours.
    """
    fastest = _fastest(result for result in results.values() if result["name"] == "ours")

    def described(result):
        if "failed" in result:
            return result
        rounds, peak = result["rounds"], products[result["dtype"]]["flops"]
        return {
            **result,
            "tokens_per_second": summary(tokens / seconds for seconds in rounds),
            "flops": summary(flops / seconds for seconds in rounds),
            "share_of_peak": summary(flops / seconds / peak for seconds in rounds),
            "ratio": fastest and ratios(rounds, fastest["rounds"]),
        }

    return {label: described(result) for label, result in results.items()}


def compare(results, dtype):
    """Compares ours of one dtype with the fastest peer of any and the leanest of the same dtype.

    Args:
        results: dict. Of `hold_contest`.
        dtype: str.

    Returns:
        dict. `dtype`; `failed`, why ours was not measured, or None; `fastest_peer`, its label, and
        `faster`, the summary over the rounds of its time by ours; `leanest_peer`, its label, and
        `memory`, our peak by its. None where there is no such peer.
    """
    ours = next(
        result
        for result in results.values()
        if (result["name"], result["dtype"]) == ("ours", dtype)
    )
    found = {
        "dtype": dtype,
        "failed": ours.get("failed"),
        "fastest_peer": None,
        "faster": None,
        "leanest_peer": None,
        "memory": None,
    }
    peers = [
        result for result in results.values() if result["name"] != "ours" and "failed" not in result
    ]
    if found["failed"] or not peers:
        return found
    fastest = _fastest(peers)
    found |= {
        "fastest_peer": f"{fastest['name']}, {fastest['dtype']}",
        "faster": ratios(fastest["rounds"], ours["rounds"]),
    }
    if alike := [peer for peer in peers if peer["dtype"] == dtype]:
        leanest = min(alike, key=lambda peer: peer["peak_mb"])
        found |= {
            "leanest_peer": f"{leanest['name']}, {leanest['dtype']}",
            "memory": ours["peak_mb"] / leanest["peak_mb"],
        }
    return found


def _fastest(results):
    measured = [result for result in results if "failed" not in result]
    return min(measured, key=lambda result: result["seconds"]["median"], default=None)
