"""Which batches fit into memory: of a replica, and the out-of-memory table of the named models."""

from collections.abc import Sequence
from typing import NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.planning.sizes import rounded_up
from albert_keras.report import bytes_text
from albert_keras.training.cost.memory import StepMemory, largest_batch, step_memory

#: Fraction of the memory that stays free: the formula is not exact, and allocators leave gaps.
FREE_FRACTION = 0.1

#: Positions of a part from which products are large enough. Blocks are recomputed rather than
#: making parts smaller.
ENOUGH_POSITIONS = 4096

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


class Fit(NamedTuple):
    """A way to compute a replica's part of the batch."""

    recompute: bool  # whether blocks are recomputed
    largest: int  # largest number of sequences that fit at once
    accumulation_steps: int | None  # parts, computed one after the other; None if none fits
    part: int | None  # sequences of a part
    memory: StepMemory | None

    def to_dict(self) -> dict:
        """Returns plain values for JSON."""
        memory = self.memory and self.memory._asdict() | {"total": self.memory.total}
        return self._asdict() | {"memory": memory}


def fit_batch(
    config, batch_size, memory_bytes, max_seq_length, max_predictions_per_seq, **settings
) -> tuple[Fit, Fit]:
    """Finds how the batch of a replica fits, with blocks kept and with blocks recomputed.

    10 % of the memory stays free. The arguments are the same as for `largest_batch`.
    """
    usable = (1 - FREE_FRACTION) * memory_bytes
    lengths = max_seq_length, max_predictions_per_seq
    fits = []
    for recompute in (False, True):
        options = settings | {"recompute": recompute}
        fit = Fit(recompute, largest_batch(config, usable, *lengths, **options), None, None, None)
        for parts in (number for number in range(1, batch_size + 1) if batch_size % number == 0):
            memory = step_memory(config, batch_size, *lengths, accumulation_steps=parts, **options)
            if memory.total <= usable:
                part = batch_size // parts
                fit = fit._replace(accumulation_steps=parts, part=part, memory=memory)
                break
        fits.append(fit)
    return tuple(fits)


def choose_fit(fits: tuple[Fit, Fit], batch_size: int, max_seq_length: int) -> Fit:
    """Chooses one of the two results of `fit_batch`; at least one of them fits.

    Blocks are kept, which is a quarter less work, if a part is the whole batch or has at least 4096
    positions.
    """
    kept, recomputed = fits
    if kept.accumulation_steps is None:
        return recomputed
    is_enough = kept.part == batch_size or kept.part * max_seq_length >= ENOUGH_POSITIONS
    if is_enough or recomputed.accumulation_steps is None or recomputed.part <= kept.part:
        return kept
    return recomputed


def least_memory_text(config, batches: Sequence[tuple[int, int, int]], **settings) -> str:
    """Returns the least memory that `fit_batch` accepts, rounded up, such as "1.5 GB".

    Args:
        config: AlbertConfig.
        batches: B, S and P of a replica in each stage. Each B is a multiple of the smallest one.
        **settings: Further arguments of `step_memory`.
    """
    smallest = min(batch_size for batch_size, _, _ in batches)
    least = min(
        max(
            step_memory(
                config, *batch, recompute=recompute, accumulation_steps=parts, **settings
            ).total
            for batch in batches
        )
        for recompute in (False, True)
        # A batch in parts also keeps the sums of their gradients, so that one part may take less.
        for parts in (1, smallest)
    )
    return bytes_text(rounded_up(least / (1 - FREE_FRACTION)))


def batch_table(memory_bytes: float, precision="float32", recompute=False) -> dict:
    """Computes the largest batch of fine-tuning for each named model and sequence length.

    All of the memory is used. ALBERT is version 2, without dropout; BERT has dropout. The
    published values are beside the computed ones.
    """
    settings = {"precision": precision, "recompute": recompute}
    largest = {
        size: [
            largest_batch(AlbertConfig.from_name(size), memory_bytes, length, 0, **settings)
            for length in LENGTHS
        ]
        for size in SIZES
    }
    return {
        "memory_bytes": memory_bytes,
        **settings,
        "lengths": list(LENGTHS),
        "largest": largest,
        "published": {size: list(batches) for size, batches in PUBLISHED.items()},
    }


def batch_table_lines(table):
    """Yields the lines of the result of `batch_table` as text."""
    kind = "blocks recomputed" if table["recompute"] else "blocks kept"
    yield (
        f"Largest batch in {bytes_text(table['memory_bytes'])}: fine-tuning, two moments, "
        f"{table['precision']}, {kind}; by formula"
    )
    width = max(map(len, table["largest"]))
    rows = [("S", table["lengths"])]
    for size, largest in table["largest"].items():
        rows.append((size, largest))
        if size in table["published"]:
            rows.append(("  published", table["published"][size]))
    for name, values in rows:
        yield "  ".join([f"  {name:<{width}}", *(f"{value:>6,}" for value in values)])
    yield "published: google-research/bert on a Titan X of 12 GB with TensorFlow 1.11, float32"
