"""How fast an answer is, from plain text: our export against peers, in one contest."""

import logging
import tempfile
from importlib.util import find_spec
from pathlib import Path

from albert_keras.benchmarks.contest import Contestant, hold_contest
from albert_keras.benchmarks.inferrers import (
    keras_nlp,
    onnx_runtime,
    openvino,
    ours,
    transformers,
)
from albert_keras.benchmarks.inferrers.material import write_material
from albert_keras.benchmarks.measure import in_new_process, machine, num_cores, ratios, summary
from albert_keras.benchmarks.products import higher, measure_products
from albert_keras.benchmarks.shapes import make_shape
from albert_keras.benchmarks.trainers import chosen_peers
from albert_keras.training.cost.flops import forward_flops
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

OURS = "ours, from text"
#: Precision of our export -> what it multiplies in.
PRECISIONS = {"float32": "float32", "bfloat16": "bfloat16", "int8": "float32"}
PEERS = ("keras-nlp", "transformers", "onnxruntime", "openvino")

#: Name in the table, compiled or not, form; for each dtype.
_TRANSFORMERS = {
    "float32": (
        ("transformers, eager", "float32", False),
        ("transformers, compiled", "float32", True),
    ),
    "bfloat16": (
        ("transformers, eager, autocast", "autocast", False),
        ("transformers, eager, converted", "converted", False),
        ("transformers, compiled, autocast", "autocast", True),
        ("transformers, compiled, converted", "converted", True),
    ),
}
#: Those that read the ONNX file: peer and package are called the same.
_ONNX_PEERS = ("onnxruntime", "openvino")
_PYTORCH = ("torch", "transformers")
_ONNX_MAKERS = (*_PYTORCH, "onnx")
#: [CLS], a few words and [SEP].
_SHORTEST = 8


def benchmark_infer(
    model="albert-base",
    batch_sizes=(1, 32),
    max_seq_lengths=(128,),
    precisions=tuple(PRECISIONS),
    peers=("all",),
    tokenizer=None,
    repeats=5,
    seconds=2.0,
):
    """Measures the vector of a text, ours from plain strings and the peers' from ids.

    All have the same weights and are asked the same; README.md tells the rest.

    Args:
        model: str. See `make_shape`.
        batch_sizes: sequence of int. Each B is measured.
        max_seq_lengths: sequence of int. Each S is measured, with texts of exactly S pieces.
        precisions: sequence of str. "float32", "bfloat16", "int8" (weights only; it multiplies in
            float32). Peers are measured in those of the first two that are asked for.
        peers: sequence of str. "keras-nlp", "transformers", "onnxruntime", "openvino"; or "all" or
            "none" alone.
        tokenizer: str, Path or None. None trains one.
        repeats: int. Rounds.
        seconds: float. How long each runs in a round.

    Returns:
        dict for JSON: `machine`; `settings`; `products`, see `measure_products`; `cases`, one for
        each S and B: `max_seq_length`, `batch_size`, `useful_flops`, `contestants` (see
        `hold_contest`, with the numbers of `describe` for those that were measured), `overhead`
        (for each precision what `ours.measure_overhead` finds).

    Raises:
        InputError: If a setting cannot be used.
    """
    facts = machine()
    batch_sizes, lengths = list(dict.fromkeys(batch_sizes)), list(dict.fromkeys(max_seq_lengths))
    precisions, peers = _checked(precisions), chosen_peers(peers, PEERS)
    shapes = [make_shape(model, size, length) for length in lengths for size in batch_sizes]
    if not shapes or min(lengths) < _SHORTEST:
        raise InputError(
            f"There should be a batch size and sequence lengths of at least {_SHORTEST}. "
            f"Received: {batch_sizes} and {lengths}."
        )
    dtypes = list(dict.fromkeys(PRECISIONS[precision] for precision in precisions))
    products = measure_products(shapes, dtypes)
    with tempfile.TemporaryDirectory() as folder:
        logger.info("making exports and questions")
        settings = shapes[0].config, tokenizer, precisions, lengths, max(batch_sizes)
        material, _ = in_new_process(write_material, folder, *settings)
        onnx = Path(folder, "model.onnx")
        onnx_failure = _write_onnx(onnx, material, peers)
        cases = []
        for shape in shapes:
            length, size = shape.max_seq_length, shape.batch_size
            logger.info("S = %d, B = %d", length, size)
            question = material.questions[length].first(size)
            contestants = _contestants(material, onnx, question, precisions, dtypes, peers)
            if onnx_failure:
                contestants = [_refused(one, onnx, onnx_failure) for one in contestants]
            results = hold_contest(contestants, repeats, seconds)
            overhead = {
                precision: in_new_process(
                    ours.measure_overhead,
                    export,
                    question,
                    list(material.short_texts[:size]),
                    seconds * repeats,
                )[0]
                for precision, export in material.exports.items()
            }
            cases.append((shape, results, overhead))
    products = higher(products, measure_products(shapes, dtypes))
    return {
        "machine": facts,
        "settings": {
            "model": model,
            "vocab_size": material.config.vocab_size,
            "repeats": repeats,
            "seconds": seconds,
        },
        "products": products,
        "cases": [
            _case(material.config, shape, results, overhead, products)
            for shape, results, overhead in cases
        ],
    }


def describe(results, tokens, batch_size, flops, products):
    """Adds to what a contest measured what follows from it.

    Args:
        results: dict. Of `hold_contest`.
        tokens: int. Of one answer, B·S.
        batch_size: int. B.
        flops: int. Useful operations of one answer.
        products: dict. Of `measure_products`.

    Returns:
        dict. As `results`; each that was measured also has `latency`, quantiles of the seconds of
        single answers (`median`, `p5`, `p95`); summaries `tokens_per_second`,
        `sequences_per_second`, `flops` (useful operations a second) and `share_of_peak`; and
        `ratio`, the summary over the rounds of a peer's time by that of ours of the same dtype
        (above 1: we are faster), None for ours.
    """

    def described(result):
        if "failed" in result:
            return result
        rounds, dtype = result["rounds"], result["dtype"]
        peak = products[PRECISIONS[dtype]]["flops"]
        equal = results.get(f"{OURS}, {dtype}", {}) if result["name"] != OURS else {}
        return {
            **result,
            "latency": _percentiles(result["times"]),
            "tokens_per_second": summary(tokens / seconds for seconds in rounds),
            "sequences_per_second": summary(batch_size / seconds for seconds in rounds),
            "flops": summary(flops / seconds for seconds in rounds),
            "share_of_peak": summary(flops / seconds / peak for seconds in rounds),
            "ratio": ratios(rounds, equal["rounds"]) if "rounds" in equal else None,
        }

    return {label: described(result) for label, result in results.items()}


def _case(config, shape, results, overhead, products):
    length, size = shape.max_seq_length, shape.batch_size
    flops = forward_flops(config, size, length)
    return {
        "max_seq_length": length,
        "batch_size": size,
        "useful_flops": flops,
        "contestants": describe(results, shape.tokens, size, flops, products),
        "overhead": overhead,
    }


def _percentiles(times):
    low, median, high = ours.percentiles(times, (5, 50, 95))
    return {"p5": low, "median": median, "p95": high}


def _checked(precisions):
    for precision in precisions:
        if precision not in PRECISIONS:
            raise InputError(
                f"The precision should be {', '.join(PRECISIONS)}. Received: {precision!r}."
            )
    return list(dict.fromkeys(precisions))


def _write_onnx(path, material, peers):
    """Writes the file that two of the peers read, where they and what makes it are installed.

    Returns:
        str or None. Why it could not be written.
    """
    readers = [peer for peer in _ONNX_PEERS if peer in peers]
    if not any(map(find_spec, readers)) or not all(map(find_spec, _ONNX_MAKERS)):
        return None
    question = next(iter(material.questions.values())).first(2)
    arguments = path, material.config, material.weights, question
    try:
        in_new_process(transformers.write_onnx, *arguments)
    except Exception as error:  # whatever the exporter raises: the others can be measured
        return f"no ONNX file could be made: {error}"


def _refused(contestant, onnx, reason):
    """Returns the contestant, or if it reads the ONNX file one that fails for this reason."""
    if onnx not in contestant.arguments:
        return contestant
    return contestant._replace(prepare=_fail, arguments=(reason,))


def _fail(reason):
    raise InputError(reason)


def _contestants(material, onnx, question, precisions, dtypes, peers):
    config, weights, threads = material.config, material.weights, num_cores()
    found = [
        Contestant(
            OURS, precision, ours.prepare, (material.exports[precision], question, precision)
        )
        for precision in precisions
    ]
    for dtype in dtypes:
        if "keras-nlp" in peers:
            arguments = config, question, dtype
            found.append(Contestant("keras-nlp", dtype, keras_nlp.prepare, arguments))
        if "transformers" in peers:
            found += [
                Contestant(
                    name,
                    dtype,
                    transformers.prepare,
                    (config, weights, question, form, compiled, threads),
                    _PYTORCH,
                )
                for name, form, compiled in _TRANSFORMERS[dtype]
            ]
        if "onnxruntime" in peers and dtype == "float32":  # its CPU kernels know no bfloat16
            arguments, needs = (onnx, question, threads), ("onnxruntime", *_ONNX_MAKERS)
            found.append(Contestant("ONNX Runtime", dtype, onnx_runtime.prepare, arguments, needs))
        if "openvino" in peers:
            arguments, needs = (onnx, question, dtype, threads), ("openvino", *_ONNX_MAKERS)
            found.append(Contestant("OpenVINO", dtype, openvino.prepare, arguments, needs))
    return found
