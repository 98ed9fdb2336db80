"""How fast a training step is and how much memory it takes: ours against peers, in one contest."""

import importlib.util

from albert_keras.training.loop_config import COMPILED
from data_pipeline.errors import InputError
from tests.benchmarks import trainers
from tests.benchmarks.contest import OURS, Contestant, check_names, contest_lines, hold_contest
from tests.benchmarks.measure import machine_line
from tests.benchmarks.shapes import make_shape

#: Precision of a run -> what it multiplies in.
DTYPES = {"float32": "float32", "mixed_bfloat16": "bfloat16"}
PEERS = ("transformers",)


def train(
    model: str = "albert-base",
    batch_size: int = 8,
    max_seq_length: int = 128,
    precision: list[str] = tuple(DTYPES),
    peers: list[str] = (),
    compile: list[str] = ("auto",),
    repeats: int = 5,
    seconds: float = 2.0,
) -> None:
    """Measures one update of the masked language model, ours and that of a peer.

    All train on the same synthetic batch without padding or dropout; see README.md.

    Args:
        model: See `make_shape`.
        precision: "float32", "mixed_bfloat16" or both.
        peers: "transformers", to be compared with.
        compile: What XLA compiles of our step, see `training.compile`; the first is compared.
        repeats: Rounds.
        seconds: How long each runs in a round.
    """
    check_names("precision", precision, DTYPES)
    check_names("peer", peers, PEERS)
    check_names("compile", compile, COMPILED)
    if peers and importlib.util.find_spec("transformers") is None:
        raise InputError("transformers is not installed. pip install 'albert-keras[bench]'")
    print(machine_line())
    shape = make_shape(model, batch_size, max_seq_length)
    print(
        f"a training step of {model}: B = {batch_size}, S = {max_seq_length}, "
        f"P = {shape.predictions}, V = {shape.config.vocab_size}"
    )
    first, *others = compile
    found = [(OURS, trainers.prepare_ours, ({"compile": first},))]
    found += [(f"{OURS}, {one}", trainers.prepare_ours, ({"compile": one},)) for one in others]
    found += [(peer, trainers.prepare_transformers, ()) for peer in peers]
    contestants = [
        Contestant(name, DTYPES[each], prepare, (shape, each, *settings))
        for name, prepare, settings in found
        for each in dict.fromkeys(precision)
    ]
    results = hold_contest(contestants, repeats, seconds)
    print("\n".join(contest_lines(results, shape.tokens)))
