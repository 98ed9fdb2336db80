"""How fast a training step is and how much memory it takes: ours against peers, in one contest."""

from collections.abc import Sequence

from albert_keras.shape import training_flops
from albert_keras.training.loop_config import COMPILED
from tests.benchmarks import trainers
from tests.benchmarks.contest import (
    OURS,
    Contestant,
    Work,
    check_names,
    contest_lines as train_lines,  # noqa: F401
    hold_contest,
    measure_peaks,
)
from tests.benchmarks.measure import machine
from tests.benchmarks.shapes import Shape, make_shape

#: Precision of a run -> what it multiplies in.
DTYPES = {"float32": "float32", "mixed_bfloat16": "bfloat16"}
PEERS = ("keras-nlp", "transformers")
#: Variants of a PyTorch step, and whether only masked positions are scored.
_FORMS = {"transformers": False, "transformers, masked positions": True}


def benchmark_train(
    model: str = "albert-base",
    batch_size: int = 8,
    max_seq_length: int = 128,
    precision: list[str] = tuple(DTYPES),
    peers: list[str] = PEERS,
    compile: list[str] = ("auto",),
    repeats: int = 5,
    seconds: float = 2.0,
) -> dict:
    """Measures one update of the masked language model, ours and each peer's.

    All train on the same synthetic batch without padding or dropout; see README.md.

    Args:
        model: See `make_shape`.
        precision: "float32", "mixed_bfloat16" or both.
        peers: Some of `PEERS`.
        compile: What XLA compiles of our step, see `training.compile`; the first is compared.
        repeats: Rounds.
        seconds: How long each runs in a round.

    Returns:
        dict for JSON: `machine`; `settings`; `peaks`, see `measure_peaks`; `contest`, see
        `hold_contest`.
    """
    check_names("precision", precision, DTYPES)
    check_names("peer", peers, PEERS)
    facts = machine()
    shape = make_shape(model, batch_size, max_seq_length)
    check_names("compile", compile, COMPILED)
    contestants = contestants_for(shape, precision, peers, compile)
    peaks = measure_peaks(contestant.dtype for contestant in contestants)
    lengths = batch_size, max_seq_length, shape.predictions
    about = (
        f"a training step of {model}: B = {batch_size}, S = {max_seq_length}, "
        f"P = {shape.predictions}, V = {shape.config.vocab_size}"
    )
    flops = training_flops(shape.config, *lengths, sentence_head=False)
    work = Work(about, shape.tokens, flops)
    return {
        "machine": facts,
        "settings": {"model": model, "repeats": repeats, "seconds": seconds},
        "peaks": peaks,
        "contest": hold_contest(contestants, work, peaks, repeats, seconds),
    }


def contestants_for(
    shape: Shape,
    precisions: Sequence[str] = tuple(DTYPES),
    peers: Sequence[str] = PEERS,
    compiled: Sequence[str] = ("auto",),
) -> list[Contestant]:
    """Returns who takes part, ours first."""
    first, *others = compiled
    found = [(OURS, trainers.prepare_ours, ({"compile": first},), ())]
    found += [(f"{OURS}, {one}", trainers.prepare_ours, ({"compile": one},), ()) for one in others]
    if "keras-nlp" in peers:
        found.append(("keras-nlp", trainers.prepare_keras_nlp, (), ()))
    if "transformers" in peers:
        needs = ("torch", "transformers")
        found += [
            (name, trainers.prepare_transformers, (form,), needs) for name, form in _FORMS.items()
        ]
    return [
        Contestant(name, DTYPES[precision], prepare, (shape, precision, *form), needs)
        for name, prepare, form, needs in found
        for precision in dict.fromkeys(precisions)
    ]
