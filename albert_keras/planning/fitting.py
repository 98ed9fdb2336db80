"""How a replica's share of a batch is split up so that it fits into memory."""

from typing import NamedTuple

from albert_keras.planning.sizes import bytes_text
from albert_keras.training.cost.memory import StepMemory, largest_batch, step_memory
from data_pipeline.errors import InputError

#: Share of the memory that is left free: the formula errs, and allocators leave gaps.
FREE_SHARE = 0.1

#: Positions of a part from which on products are large enough; below, blocks are computed again
#: rather than the parts made smaller.
ENOUGH_POSITIONS = 4096


class Fit(NamedTuple):
    """A way to compute a replica's share of the batch.

    Attributes:
        recompute: bool. Whether blocks are computed again.
        largest: int. Sequences that fit at most, in one part.
        accumulation_steps: int or None. Parts of the share; None where nothing fits.
        part: int or None. Sequences of a part.
        memory: StepMemory or None.
    """

    recompute: bool
    largest: int
    accumulation_steps: int | None
    part: int | None
    memory: StepMemory | None


def fit_share(config, share, memory_bytes, max_seq_length, max_predictions_per_seq, **settings):
    """Finds how a share of the batch fits, with blocks kept and with blocks computed again.

    Args:
        config: AlbertConfig.
        share: int. Sequences of a replica and step.
        memory_bytes: float. Memory of a replica; 10 % of it are left free.
        max_seq_length: int. S.
        max_predictions_per_seq: int. P.
        **settings: `precision`, `process_bytes`, as in `step_memory`.

    Returns:
        tuple of two Fit, blocks kept first.
    """
    usable = (1 - FREE_SHARE) * memory_bytes
    lengths = max_seq_length, max_predictions_per_seq
    fits = []
    for recompute in (False, True):
        words = settings | {"recompute": recompute}
        fit = Fit(recompute, largest_batch(config, usable, *lengths, **words), None, None, None)
        for parts in (number for number in range(1, share + 1) if share % number == 0):
            memory = step_memory(config, share, *lengths, accumulation_steps=parts, **words)
            if memory.total <= usable:
                fit = fit._replace(accumulation_steps=parts, part=share // parts, memory=memory)
                break
        fits.append(fit)
    return tuple(fits)


def choose_fit(fits, share, max_seq_length):
    """Chooses between blocks kept and blocks computed again.

    Kept, where a part is the whole share or has at least 4096 positions: the work is a quarter
    less.

    Args:
        fits: tuple of two Fit, as of `fit_share`.
        share: int. Sequences of a replica and step.
        max_seq_length: int. S.

    Returns:
        Fit.

    Raises:
        InputError: If neither fits.
    """
    kept, again = fits
    if again.accumulation_steps is None and kept.accumulation_steps is None:
        raise InputError("The model does not fit: not even one sequence does.")
    if kept.accumulation_steps is None:
        return again
    is_enough = kept.part == share or kept.part * max_seq_length >= ENOUGH_POSITIONS
    if is_enough or again.accumulation_steps is None or again.part <= kept.part:
        return kept
    return again


def least_memory_text(config, max_seq_length, max_predictions_per_seq, **settings):
    """Says what one sequence takes at least, blocks computed again, such as "1.5 GB" (str)."""
    memory = step_memory(
        config, 1, max_seq_length, max_predictions_per_seq, recompute=True, **settings
    )
    return bytes_text(memory.total / (1 - FREE_SHARE))
