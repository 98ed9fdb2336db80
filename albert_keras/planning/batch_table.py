"""The out-of-memory table of BERT for every named model: the largest batch by sequence length."""

from albert_keras.config import AlbertConfig
from albert_keras.planning.sizes import bytes_text
from albert_keras.training.cost.memory import largest_batch

LENGTHS = (64, 128, 256, 320, 384, 512)
SIZES = (
    "albert-base",
    "albert-large",
    "albert-xlarge",
    "albert-xxlarge",
    "bert-base",
    "bert-large",
    "bert-xlarge",
)
#: Titan X with 12 GB, TensorFlow 1.11, fine-tuning with Adam in float32: google-research/bert,
#: README, "Out-of-memory issues".
PUBLISHED = {
    "bert-base": (64, 32, 16, 14, 12, 6),
    "bert-large": (12, 6, 2, 1, 0, 0),
}


def batch_table(memory_bytes, precision="float32", recompute=False):
    """Computes the largest batch of fine-tuning for each model and sequence length.

    Args:
        memory_bytes: float. Memory of the device; all of it is used.
        precision: str.
        recompute: bool.

    Returns:
        dict for JSON: `memory_bytes`, `precision`, `recompute`, `lengths` and `largest`, a list per
        model. ALBERT is that of version 2, without dropout; BERT has it.
    """
    return {
        "memory_bytes": memory_bytes,
        "precision": precision,
        "recompute": recompute,
        "lengths": list(LENGTHS),
        "largest": {
            size: [
                largest_batch(
                    AlbertConfig.from_name(size),
                    memory_bytes,
                    length,
                    0,
                    precision=precision,
                    recompute=recompute,
                )
                for length in LENGTHS
            ]
            for size in SIZES
        },
        "published": {size: list(largest) for size, largest in PUBLISHED.items()},
    }


def batch_table_lines(table):
    """Yields the lines that tell the result of `batch_table`."""
    kind = "blocks computed again" if table["recompute"] else "blocks kept"
    yield (
        f"Largest batch in {bytes_text(table['memory_bytes'])}: fine-tuning, two moments, "
        f"{table['precision']}, {kind}; by formula"
    )
    names = ("S", *table["largest"])
    yield _row("S", table["lengths"], max(map(len, names)))
    for size, largest in table["largest"].items():
        yield _row(size, largest, max(map(len, names)))
        if size in table["published"]:
            yield _row("  published", table["published"][size], max(map(len, names)))
    yield "published: google-research/bert on a Titan X of 12 GB with TensorFlow 1.11, float32"


def _row(name, values, width):
    return "  ".join([f"  {name:<{width}}", *(f"{value:>6,}" for value in values)])
