"""Which batches fit into the memory of a replica, and in how many parts."""

from typing import NamedTuple

from albert_keras.machine.devices import rounded_up
from albert_keras.machine.step_memory import StepMemory, largest_batch, step_memory

#: Fraction of the memory that stays free: the formula is not exact, and allocators leave gaps.
FREE_FRACTION = 0.1

#: Positions of a part from which products are large enough. Blocks are recomputed rather than
#: making parts smaller.
_ENOUGH_POSITIONS = 4096


class Fit(NamedTuple):
    """A way to compute a replica's part of the batch."""

    recompute: bool  # whether blocks are recomputed
    largest: int  # largest number of sequences that fit at once
    accumulation_steps: int | None  # parts, computed one after the other; None if none fits
    part: int | None  # sequences of a part
    memory: StepMemory | None


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


def choose_fit(fits: tuple[Fit, Fit], batch_size: int, max_seq_length: int) -> Fit | None:
    """Chooses one of the two results of `fit_batch`; None if neither fits.

    Blocks are kept, which is a quarter less work, if a part is the whole batch or has at least 4096
    positions.
    """
    kept, recomputed = fits
    if kept.accumulation_steps is None:
        return recomputed if recomputed.memory else None
    is_enough = kept.part == batch_size or kept.part * max_seq_length >= _ENOUGH_POSITIONS
    if is_enough or recomputed.accumulation_steps is None or recomputed.part <= kept.part:
        return kept
    return recomputed


def least_memory(config, batches: list[tuple[int, int, int]], **settings) -> float:
    """Returns the least memory in bytes that `fit_batch` accepts, rounded up.

    Args:
        config: AlbertConfig.
        batches: B, S and P of a replica in each stage. Each B is a multiple of the smallest one.
        **settings: Further arguments of `step_memory`.
    """
    smallest = min(batch_size for batch_size, _, _ in batches)
    least = min(
        max(
            step_memory(
                config, *one, recompute=recompute, accumulation_steps=parts, **settings
            ).total
            for one in batches
        )
        for recompute in (False, True)
        # A batch in parts also keeps the sums of their gradients, so that one part may take less.
        for parts in (1, smallest)
    )
    return rounded_up(least / (1 - FREE_FRACTION))
