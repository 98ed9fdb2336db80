"""How fast an encoder responds, from plain text: our export against peers, in one contest."""

import logging
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from albert_keras.report import table
from albert_keras.training.flops import forward_flops
from data_pipeline.building.workers import num_processors
from data_pipeline.errors import InputError
from tests.benchmarks import inferrers
from tests.benchmarks.contest import (
    Contestant,
    chosen_peers,
    contest_lines,
    hold_contest,
    measure_peaks,
    rates,
    ratio_to,
)
from tests.benchmarks.infer_inputs import InferenceInputs, write_inputs
from tests.benchmarks.measure import in_new_process, machine, machine_lines, shown, summary
from tests.benchmarks.shapes import make_shape

logger = logging.getLogger(__name__)

OURS = "ours, from text"
#: Precision of our export -> what it multiplies in.
PRECISIONS = {"float32": "float32", "bfloat16": "bfloat16", "int8": "float32"}
PEERS = ("keras-nlp", "transformers", "onnxruntime", "openvino")
#: dtype -> variants: name in the table, form, compiled or not.
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
#: Peers that read the ONNX file; each has the same name as its package.
_ONNX_PEERS = ("onnxruntime", "openvino")
_PYTORCH = ("torch", "transformers")
_ONNX_WRITERS = (*_PYTORCH, "onnx")


def benchmark_infer(
    model: str = "albert-base",
    batch_size: list[int] = (1, 32),
    max_seq_length: list[int] = (128,),
    precision: list[str] = tuple(PRECISIONS),
    peers: list[str] = ("all",),
    tokenizer: Path | None = None,
    repeats: int = 5,
    seconds: float = 2.0,
) -> dict:
    """Measures the pooled output of texts, ours from plain strings and the peers' from ids.

    All have the same weights and the same inputs; see README.md.

    Args:
        model: See `make_shape`.
        batch_size: Each B is measured.
        max_seq_length: Each S is measured, with texts of exactly S tokens.
        precision: "float32", "bfloat16", "int8" (weights only; it multiplies in float32). Peers
            are measured in the requested ones of the first two.
        peers: Some of `PEERS`; or "all" or "none" alone.
        tokenizer: None trains one.
        repeats: Rounds.
        seconds: How long each runs in a round.

    Returns:
        dict for JSON: `machine`; `settings`; `peaks`, see `measure_peaks`; `cases`, one for
        each S and B: `max_seq_length`, `batch_size`, `useful_flops`, `contestants` (see
        `hold_contest`, with the numbers of `describe` for contestants that were measured).
    """
    facts = machine()
    batch_sizes, lengths = list(dict.fromkeys(batch_size)), list(dict.fromkeys(max_seq_length))
    precisions, peers = list(dict.fromkeys(precision)), chosen_peers(peers, PEERS)
    for one in precisions:
        if one not in PRECISIONS:
            raise InputError(
                f"The precision must be one of {', '.join(PRECISIONS)}. Received: {one!r}."
            )
    shapes = [make_shape(model, size, length) for length in lengths for size in batch_sizes]
    dtypes = list(dict.fromkeys(PRECISIONS[precision] for precision in precisions))
    peaks = measure_peaks(dtypes)
    with tempfile.TemporaryDirectory() as folder:
        logger.info("writing exports and inputs")
        settings = shapes[0].config, tokenizer, precisions, lengths, max(batch_sizes)
        inputs, _ = in_new_process(write_inputs, folder, *settings)
        onnx = Path(folder, "model.onnx")
        onnx_failure = _write_onnx(onnx, inputs, peers)
        cases = []
        for shape in shapes:
            length, size = shape.max_seq_length, shape.batch_size
            logger.info("S = %d, B = %d", length, size)
            question = inputs.questions[length].first(size)
            contestants = list(_contestants(inputs, onnx, question, precisions, dtypes, peers))
            if onnx_failure:
                contestants = [
                    one._replace(prepare=_fail, arguments=(onnx_failure,))
                    if onnx in one.arguments
                    else one
                    for one in contestants
                ]
            results = hold_contest(contestants, repeats, seconds)
            cases.append((shape, results))

    def case(shape, results):
        length, size = shape.max_seq_length, shape.batch_size
        flops = forward_flops(inputs.config, size, length)
        return {
            "max_seq_length": length,
            "batch_size": size,
            "useful_flops": flops,
            "contestants": describe(results, shape.tokens, size, flops, peaks),
        }

    return {
        "machine": facts,
        "settings": {
            "model": model,
            "vocab_size": inputs.config.vocab_size,
            "repeats": repeats,
            "seconds": seconds,
        },
        "peaks": peaks,
        "cases": [case(*measured) for measured in cases],
    }


def describe(results: dict, tokens: int, batch_size: int, flops: float, peaks: dict) -> dict:
    """Adds the numbers that follow from what a contest measured.

    Each contestant that was measured also has `latency`, quantiles of the seconds of single
    requests (`median`, `p5`, `p95`); its `rates`; the summary `sequences_per_second`; and `ratio`,
    the summary over the rounds of a peer's time divided by ours of the same dtype (above 1: we are
    faster), None for ours. `tokens` and `flops` are the numbers of tokens and operations of
    one request.
    """

    def described(result):
        if "failed" in result:
            return result
        rounds, dtype = result["rounds"], result["dtype"]
        low, median, high = np.percentile(result["times"], (5, 50, 95)).tolist()
        ours = None if result["name"] == OURS else results.get(f"{OURS}, {dtype}")
        return {
            **result,
            "latency": {"p5": low, "median": median, "p95": high},
            **rates(rounds, tokens, flops, peaks[PRECISIONS[dtype]]),
            "sequences_per_second": summary(batch_size / seconds for seconds in rounds),
            "ratio": ratio_to(result, ours),
        }

    return {label: described(result) for label, result in results.items()}


def _write_onnx(path: Path, inputs: InferenceInputs, peers: Sequence[str]) -> str | None:
    """Writes the file that two of the peers read, if they and what writes it are installed.

    Returns why it could not be written.
    """
    readers = [peer for peer in _ONNX_PEERS if peer in peers]
    if not any(map(find_spec, readers)) or not all(map(find_spec, _ONNX_WRITERS)):
        return None
    question = next(iter(inputs.questions.values())).first(2)
    try:
        in_new_process(inferrers.write_onnx, path, inputs.weights, question)
    except Exception as error:  # whatever the exporter raises: the others can be measured
        return f"the ONNX file could not be written: {error}"


def _fail(reason):
    raise InputError(reason)


def _contestants(inputs, onnx, question, precisions, dtypes, peers) -> Iterator[Contestant]:
    for name in precisions:
        arguments = (inputs.exports[name], question, name)
        yield Contestant(OURS, name, inferrers.prepare_ours, arguments)
    for dtype in dtypes:
        yield from _peers_in(dtype, inputs, onnx, question, peers)


def _peers_in(dtype, inputs, onnx, question, peers) -> Iterator[Contestant]:
    """Yields the peers that compute in one dtype."""
    threads = num_processors()
    if "keras-nlp" in peers:
        arguments = (inputs.config, question, dtype)
        yield Contestant("keras-nlp", dtype, inferrers.prepare_keras_nlp, arguments)
    if "transformers" in peers:
        for name, form, compiled in _TRANSFORMERS[dtype]:
            arguments = (inputs.weights, question, form, compiled, threads)
            yield Contestant(name, dtype, inferrers.prepare_transformers, arguments, _PYTORCH)
    if "onnxruntime" in peers and dtype == "float32":  # its CPU kernels lack bfloat16
        prepare, arguments = inferrers.prepare_onnx_runtime, (onnx, question, threads)
        needs = ("onnxruntime", *_ONNX_WRITERS)
        yield Contestant("ONNX Runtime", dtype, prepare, arguments, needs)
    if "openvino" in peers:
        arguments, needs = (onnx, question, dtype, threads), ("openvino", *_ONNX_WRITERS)
        yield Contestant("OpenVINO", dtype, inferrers.prepare_openvino, arguments, needs)


def infer_lines(result):
    """Yields the lines of the result of `benchmark_infer`."""
    settings = result["settings"]
    yield from machine_lines(result["machine"])
    yield (
        f"the pooled output of texts by {settings['model']}, V = {settings['vocab_size']}; "
        f"median of {settings['repeats']} rounds [lowest..highest]"
    )
    header = ["", "dtype", "ms", "p5..p95", "tokens/s", "sequences/s", "GFLOP/s", "of peak"]
    header += ["peak MB", "ours: times faster", "differs by"]
    for case in result["cases"]:
        yield ""
        yield (
            f"S = {case['max_seq_length']}, B = {case['batch_size']}, "
            f"{case['useful_flops'] / 1e9:,.1f} useful GFLOP"
        )
        found = [one for one in case["contestants"].values() if "failed" not in one]
        yield from table(header, map(_cells, found))
    yield ""
    for case in result["cases"]:
        yield from _closing_lines(case)
    everyone = {
        label: one for case in result["cases"] for label, one in case["contestants"].items()
    }
    yield from contest_lines(result["peaks"], everyone)


def _cells(found):
    latency = found["latency"]
    return [
        found["name"],
        found["dtype"],
        shown(found["seconds"], ".1f", 1e3),
        f"{latency['p5'] * 1e3:.1f}..{latency['p95'] * 1e3:.1f}",
        f"{found['tokens_per_second']['median']:,.0f}",
        f"{found['sequences_per_second']['median']:,.1f}",
        f"{found['flops']['median'] / 1e9:,.0f}",
        f"{found['share_of_peak']['median']:.0%}",
        f"{found['peak_mb']:,.0f}",
        shown(found["ratio"], ".2f") if found["ratio"] else "",
        f"{found['facts']['difference']:.1e}",
    ]


def _closing_lines(case):
    """Yields for each of our exports how many times faster than peers it is."""
    where = f"S {case['max_seq_length']}, batch {case['batch_size']}"
    measured = [found for found in case["contestants"].values() if "failed" not in found]
    for ours in (found for found in measured if found["name"] == OURS):
        faster = [
            f"{found['ratio']['median']:.2f} × {found['name']}"
            for found in measured
            if found["ratio"] and found["dtype"] == ours["dtype"]
        ]
        shown_ratios = ", ".join(faster) or "no peer at this precision"
        yield f"ours {ours['dtype']}, {where}: {shown_ratios}"
