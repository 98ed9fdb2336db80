"""Memory of a training step by formula, from the shape of the model, without TensorFlow.

`_BlockMemory` counts what a step keeps between its forward and its backward pass; if a layer
changes, its counts must change, too.
"""

from typing import NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.models.weight_count import (
    attention_weights,
    block_uses,
    count_weights,
    feed_forward_weights,
)
from data_pipeline.errors import InputError

_FLOAT32 = 4
#: Bytes of one element of a product, by precision.
COMPUTE_BYTES = {"float32": 4, "mixed_bfloat16": 2, "mixed_float16": 2}

#: Bytes of the process before the first step: TensorFlow, and the traced step, measured on a CPU.
PROCESS_BYTES = 480_000_000
TRACE_BYTES = 240_000_000

#: Largest number of gradients of a shared kernel before they are summed, see `layers/uses.py`.
GRADIENTS_AT_ONCE = 4

#: Float32 copies of all weights at the peak of an update: gradients, clipped gradients, new values.
#: Measured: 2.8 (BERT-base, whose update is larger than its activations at 2 x 128).
COPIES_OF_UPDATE = 3


class StepMemory(NamedTuple):
    """Memory of a step in bytes, per replica."""

    weights: int  # float32
    moments: int  # float32, two per weight
    kept: int  # activations kept for the backward pass, of one part of the batch
    working: int  # additional memory of a block or the head, whichever is larger
    gradients: int  # gradients during the backward pass, sums of parts included
    update: int  # memory of the update, after the activations are freed
    process: int  # the process itself

    @property
    def step(self):
        """int. Memory of the backward pass or of the update, whichever is larger."""
        return max(self.kept + self.working + self.gradients, self.update)

    @property
    def total(self):
        """int. The peak."""
        return self.process + self.weights + self.moments + self.step


def step_memory(
    config: AlbertConfig,
    batch_size: int,  # sequences of one replica and step, B
    max_seq_length: int,  # S
    max_predictions_per_seq: int,  # P; 0 for fine-tuning, without a masked-LM head
    precision: str = "float32",  # or "mixed_bfloat16", "mixed_float16"
    recompute: bool = False,  # whether blocks are recomputed for their gradient
    accumulation_steps: int = 1,  # parts of the batch
) -> StepMemory:
    """Computes the memory of a training step.

    Raises:
        InputError: If the batch cannot be split, or the precision is not one of the three.
    """
    if precision not in COMPUTE_BYTES:
        raise InputError(
            f"`precision` must be one of {', '.join(COMPUTE_BYTES)}. Received: {precision!r}."
        )
    if batch_size < 1 or accumulation_steps < 1 or batch_size % accumulation_steps:
        raise InputError(
            "`batch_size` must be a positive multiple of the accumulated parts. Received: "
            f"{batch_size} and {accumulation_steps}."
        )
    part = batch_size // accumulation_steps
    one = _block_memory(config, part, max_seq_length, COMPUTE_BYTES[precision])
    blocks = config.num_hidden_layers * config.inner_group_num
    kept, working_of_block = blocks * one.kept, one.working
    if recompute:
        kept, working_of_block = blocks * one.input, one.working + one.kept
    # Scores of the masked-LM head, and their gradient.
    head = 2 * part * max_predictions_per_seq * config.vocab_size * COMPUTE_BYTES[precision]
    weights = _FLOAT32 * count_weights(config, masked_lm_head=max_predictions_per_seq > 0).total
    sums_of_parts = 0 if accumulation_steps == 1 else weights
    # A copy of the weights in the type of the products.
    cast_weights = 0
    if precision != "float32":
        cast_weights = count_weights(config).blocks * COMPUTE_BYTES[precision]
    return StepMemory(
        weights=weights,
        moments=2 * weights,
        kept=kept,
        working=max(working_of_block, head),
        gradients=_gradients_in_flight(config, precision) + sums_of_parts + cast_weights,
        update=COPIES_OF_UPDATE * weights,
        process=PROCESS_BYTES + TRACE_BYTES,
    )


class _BlockMemory(NamedTuple):
    """Bytes of one block, attention and feed-forward."""

    input: int
    kept: int  # for its gradient
    working: int  # in addition, while its gradient is computed


def _block_memory(config, batch_size, max_seq_length, width):
    """Counts the bytes of a block, with `width` bytes for each number of a product."""
    rows = batch_size * max_seq_length
    vectors, inner = rows * config.hidden_size, rows * config.intermediate_size
    keys = config.attended_keys(max_seq_length)  # of a query; a mean if attention is block-sparse
    attention = rows * config.num_attention_heads * keys
    # Input, query, key, value, weighted sum, normalised sum, input of the feed-forward block and
    # its normalised sum; inner vectors; attention weights; scales of the two normalisations.
    kept = width * (8 * vectors + inner + attention) + 2 * _FLOAT32 * rows
    if config.attention_probs_dropout_prob > 0:  # weights after dropout, and its mask
        kept += (width + 1) * attention
    if config.hidden_dropout_prob > 0:  # two masks
        kept += 2 * vectors
    # Gradients of weights and scores; inner vectors after activation, and gradients of both;
    # gradients of vectors; gathered keys or values of block-sparse attention, and their gradient.
    working = 2 * attention + 3 * inner + 4 * vectors
    if config.is_sparse_at(max_seq_length):
        working += 2 * vectors * config.key_blocks
    return _BlockMemory(width * vectors, kept, width * working)


def _gradients_in_flight(config, precision):
    """Returns the bytes of the blocks' gradients that are not summed yet."""
    weights = 0
    sizes = attention_weights(config), feed_forward_weights(config)
    for size, blocks in zip(sizes, block_uses(config), strict=True):
        uses = max(blocks.values())
        # The blocks of a group alternate, so all of them have gradients that are not summed.
        alternating = config.inner_group_num if uses > 1 else 1
        weights += alternating * min(uses, GRADIENTS_AT_ONCE) * size
    return weights * COMPUTE_BYTES[precision]
