"""How fast an encoder responds, from plain text: our export against peers, in one contest."""

import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from albert_keras.shape import forward_flops
from tests.benchmarks import inferrers
from tests.benchmarks.contest import (
    OURS,
    Contestant,
    Work,
    check_names,
    contest_lines as infer_lines,  # noqa: F401
    hold_contest,
    measure_peaks,
)
from tests.benchmarks.infer_inputs import InferenceInputs, Question, write_inputs
from tests.benchmarks.measure import in_new_process, machine
from tests.benchmarks.shapes import make_shape

logger = logging.getLogger(__name__)

PRECISIONS = ("float32", "bfloat16", "int8")
PEERS = ("keras-nlp", "transformers", "onnxruntime", "openvino")
#: dtype -> variants: name in the table, form.
_TRANSFORMERS = {
    "float32": {"transformers": "float32"},
    "bfloat16": {
        "transformers, autocast": "autocast",
        "transformers, converted": "converted",
    },
}
_PYTORCH = ("torch", "transformers")
_ONNX_WRITERS = (*_PYTORCH, "onnx")


def benchmark_infer(
    tokenizer: Annotated[Path, typer.Option()],
    model: str = "albert-base",
    batch_size: list[int] = (1, 32),
    max_seq_length: list[int] = (128,),
    precision: list[str] = PRECISIONS,
    peers: list[str] = PEERS,
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
        peers: Some of `PEERS`.
        repeats: Rounds.
        seconds: How long each runs in a round.

    Returns:
        dict for JSON: `machine`; `settings`; `peaks`, see `measure_peaks`; `contests`, one for
        each S and B, see `hold_contest`.
    """
    check_names("precision", precision, PRECISIONS)
    check_names("peer", peers, PEERS)
    facts = machine()
    peaks = measure_peaks(precision)
    lengths = list(max_seq_length)
    shapes = [make_shape(model, size, length) for length in lengths for size in batch_size]
    contests = []
    with tempfile.TemporaryDirectory() as folder:
        logger.info("writing exports and inputs")
        settings = shapes[0].config, tokenizer, precision, lengths, max(batch_size)
        inputs = in_new_process(write_inputs, folder, *settings)
        for shape in shapes:
            length, size = shape.max_seq_length, shape.batch_size
            question = inputs.questions[length].first(size)
            contestants = list(_contestants(inputs, question, precision, peers))
            about = f"the pooled output of texts by {model}: B = {size}, S = {length}"
            work = Work(about, shape.tokens, forward_flops(inputs.config, size, length))
            contests.append(hold_contest(contestants, work, peaks, repeats, seconds))
    return {
        "machine": facts,
        "settings": {
            "model": model,
            "vocab_size": inputs.config.vocab_size,
            "repeats": repeats,
            "seconds": seconds,
        },
        "peaks": peaks,
        "contests": contests,
    }


def _contestants(
    inputs: InferenceInputs, question: Question, precisions: Sequence[str], peers: Sequence[str]
) -> Iterator[Contestant]:
    for name in precisions:
        yield Contestant(OURS, name, inferrers.prepare_ours, (inputs.exports[name], question, name))
    for dtype in precisions:
        if dtype == "int8":
            continue
        if "keras-nlp" in peers:
            arguments = (inputs.config, question, dtype)
            yield Contestant("keras-nlp", dtype, inferrers.prepare_keras_nlp, arguments)
        if "transformers" in peers:
            for name, form in _TRANSFORMERS[dtype].items():
                arguments = (inputs.weights, question, form)
                yield Contestant(name, dtype, inferrers.prepare_transformers, arguments, _PYTORCH)
        if "onnxruntime" in peers and dtype == "float32":  # its CPU kernels lack bfloat16
            arguments, needs = (inputs.weights, question), ("onnxruntime", *_ONNX_WRITERS)
            yield Contestant(
                "ONNX Runtime", dtype, inferrers.prepare_onnx_runtime, arguments, needs
            )
        if "openvino" in peers:
            arguments, needs = (inputs.weights, question, dtype), ("openvino", *_ONNX_WRITERS)
            yield Contestant("OpenVINO", dtype, inferrers.prepare_openvino, arguments, needs)
