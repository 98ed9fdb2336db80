"""Memory of a training step by formula, from the shape of the model, without TensorFlow.

`_block_memory` counts what a step keeps between its forward and its backward pass; if a layer
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

_FLOAT32 = 4
#: Bytes of the process before the first step: TensorFlow, and the traced step, measured on a CPU.
PROCESS_BYTES = 480_000_000
TRACE_BYTES = 240_000_000
#: The same on a GPU, by estimate: its context and the working memory of cuBLAS.
GPU_PROCESS_BYTES = 600_000_000

#: Largest number of gradients of a shared kernel before they are summed, see `layers/uses.py`.
GRADIENTS_AT_ONCE = 4

#: Float32 copies of all weights at the peak of an update: gradients, clipped gradients, new values.
#: Measured: 2.8 (BERT-base, whose update is larger than its activations at 2 x 128).
COPIES_OF_UPDATE = 3


class StepMemory(NamedTuple):
    """Memory of a step in bytes, per replica."""

    weights: int  # float32
    moments: int  # float32, two per weight
    kept: int  # activations kept for the backward pass
    working: int  # additional memory of a block or the head, whichever is larger
    gradients: int  # gradients during the backward pass
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
    value_bytes: int = _FLOAT32,  # of a value in a block: 4 in float32, 2 in bfloat16
    process_bytes: int = PROCESS_BYTES + TRACE_BYTES,
) -> StepMemory:
    """Computes the memory of a training step whose batch is not divided into parts."""
    kept, working = _block_memory(config, batch_size, max_seq_length, value_bytes)
    # Scores of the masked-LM head, and their gradient.
    head = 2 * batch_size * max_predictions_per_seq * config.vocab_size * value_bytes
    weights = _FLOAT32 * count_weights(config, masked_lm_head=max_predictions_per_seq > 0).total
    return StepMemory(
        weights=weights,
        moments=2 * weights,
        kept=config.num_hidden_layers * config.inner_group_num * kept,
        working=max(working, head),
        gradients=_gradients_in_flight(config),
        update=COPIES_OF_UPDATE * weights,
        process=process_bytes,
    )


def _block_memory(config, batch_size, max_seq_length, value_bytes):
    """Returns what a block keeps for its gradient, and needs while it is computed, in bytes."""
    rows = batch_size * max_seq_length
    vectors, inner = rows * config.hidden_size, rows * config.intermediate_size
    keys = config.attended_keys(max_seq_length)  # of a query; a mean if attention is block-sparse
    attention = rows * config.num_attention_heads * keys
    # Input, query, key, value, weighted sum, normalised sum, input of the feed-forward block and
    # its normalised sum; inner vectors; attention weights; scales of the two normalisations.
    kept = value_bytes * (8 * vectors + inner + attention) + _FLOAT32 * 2 * rows
    if config.attention_probs_dropout_prob > 0:  # weights after dropout, and its mask
        kept += (value_bytes + 1) * attention
    if config.hidden_dropout_prob > 0:  # two masks
        kept += 2 * vectors
    # Gradients of weights and scores; inner vectors after activation, and gradients of both;
    # gradients of vectors; gathered keys or values of block-sparse attention, and their gradient.
    working = 2 * attention + 3 * inner + 4 * vectors
    if config.is_sparse_at(max_seq_length):
        working += 2 * vectors * config.key_blocks
    return kept, value_bytes * working


def _gradients_in_flight(config):
    """Returns the bytes of the blocks' gradients that are not summed yet."""
    weights = 0
    sizes = attention_weights(config), feed_forward_weights(config)
    for size, blocks in zip(sizes, block_uses(config), strict=True):
        uses = max(blocks.values())
        # The blocks of a group alternate, so all of them have gradients that are not summed.
        alternating = config.inner_group_num if uses > 1 else 1
        weights += alternating * min(uses, GRADIENTS_AT_ONCE) * size
    return weights * _FLOAT32
