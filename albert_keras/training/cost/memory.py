"""Memory of a training step by formula, from the shape of the model. Plain Python.

What a step keeps between its forward and its backward pass stands in one table, `KEPT_PER_BLOCK`;
whoever changes a layer changes a row. `albert-keras benchmark memory` measures the same.
"""

import math
from typing import NamedTuple

from albert_keras.training.cost.weight_count import (
    attention_weights,
    count_weights,
    feed_forward_weights,
)
from data_pipeline.errors import InputError

_FLOAT32 = 4
#: Bytes of one number that a product gives, by precision.
COMPUTE_BYTES = {"float32": 4, "mixed_bfloat16": 2, "mixed_float16": 2}

#: Memory of the process before the first step, TensorFlow loaded and the step traced, in bytes: a
#: CPU's, as measured here. On a GPU about as much goes to CUDA, cuBLAS and their buffers; a TPU's
#: compiler keeps 0.5 GiB for itself.
PROCESS_BYTES = 480_000_000
TRACE_BYTES = 240_000_000


class Kept(NamedTuple):
    """Tensors of one shape that are kept, or needed at the same time.

    Attributes:
        name: str.
        count: float.
        shape: str. A letter for each axis: B sequences, S pieces, H hidden size, I intermediate
            size, N heads, P predictions, V pieces of the vocabulary.
        dtype: str. "compute", what products are computed in; "float32"; or "bool".
        dropout: str. The rate that has to be positive for it to exist; "" always.
    """

    name: str
    count: float
    shape: str
    dtype: str = "compute"
    dropout: str = ""


#: What one block (attention and feed-forward) keeps for its gradient: 8 B·S·H + B·S·I + B·N·S·S.
KEPT_PER_BLOCK = (
    Kept("input", 1, "BSH"),
    Kept("query, key, value", 3, "BSH"),
    Kept("attention weights", 1, "BNSS"),
    Kept("weighted sum of the values", 1, "BSH"),
    Kept("normalised sum after attention", 1, "BSH"),
    Kept("input of the feed-forward block", 1, "BSH"),
    Kept("inner vectors before activation", 1, "BSI"),
    Kept("normalised sum after feed-forward", 1, "BSH"),
    Kept("scales of the two normalisations", 2, "BS", "float32"),
    Kept("attention weights after dropout", 1, "BNSS", "compute", "attention_probs_dropout_prob"),
    Kept("which weights stay", 1, "BNSS", "bool", "attention_probs_dropout_prob"),
    Kept("which values stay", 2, "BSH", "bool", "hidden_dropout_prob"),
)

#: What a block that is computed again keeps meanwhile.
KEPT_BY_RECOMPUTED_BLOCK = (Kept("input", 1, "BSH"),)

#: What is needed on top while the gradient of one block is computed.
WORKING_OF_BLOCK = (
    Kept("gradients of the attention weights and scores", 2, "BNSS"),
    Kept("inner vectors after activation, gradients of both", 3, "BSI"),
    Kept("gradients of the vectors", 4, "BSH"),
)

#: What is needed on top while the masked-LM loss and its gradient are computed.
WORKING_OF_HEAD = (Kept("scores and their gradient", 2, "BPV"),)

#: Gradients of a shared kernel that wait to be added up, see `layers/uses.py`.
GRADIENTS_AT_ONCE = 4

#: Float32 copies of all weights that an update holds at its peak: gradients, clipped ones, new
#: values. Measured: 2.8 (BERT-base, whose update is larger than its activations at 2 x 128).
COPIES_OF_UPDATE = 3


class StepMemory(NamedTuple):
    """Bytes that a step holds, per replica.

    Attributes:
        weights, moments: int. Float32; there are two moments.
        kept: int. Activations kept for the backward pass, of one part of the batch.
        working: int. What the largest of block and head needs on top.
        gradients: int. Those of the backward pass, sums of parts included.
        update: int. What the update needs, once activations are gone.
        process: int. The process itself.
    """

    weights: int
    moments: int
    kept: int
    working: int
    gradients: int
    update: int
    process: int

    @property
    def step(self):
        """int. What a step adds: the backward pass or the update, whichever is larger."""
        return max(self.kept + self.working + self.gradients, self.update)

    @property
    def total(self):
        """int. The peak."""
        return self.process + self.weights + self.moments + self.step


def step_memory(
    config,
    batch_size,
    max_seq_length,
    max_predictions_per_seq,
    precision="float32",
    recompute=False,
    accumulation_steps=1,
    process_bytes=PROCESS_BYTES + TRACE_BYTES,
):
    """Computes the memory of a training step.

    Args:
        config: AlbertConfig.
        batch_size: int. Sequences of one replica and step, B.
        max_seq_length: int. S.
        max_predictions_per_seq: int. P; 0 for fine-tuning, without a masked-LM head.
        precision: str. "float32", "mixed_bfloat16" or "mixed_float16".
        recompute: bool. Whether blocks are computed again.
        accumulation_steps: int. Parts of the batch.
        process_bytes: int. What the process holds before a step.

    Returns:
        StepMemory.

    Raises:
        InputError: If the batch cannot be split so, or the precision is none of the three.
    """
    if precision not in COMPUTE_BYTES:
        raise InputError(
            f"`precision` should be one of {', '.join(COMPUTE_BYTES)}. Received: {precision!r}."
        )
    if batch_size < 1 or accumulation_steps < 1 or batch_size % accumulation_steps:
        raise InputError(
            "`batch_size` should be a positive multiple of the accumulated parts. Received: "
            f"{batch_size} and {accumulation_steps}."
        )
    axes = {
        "B": batch_size // accumulation_steps,
        "S": max_seq_length,
        "H": config.hidden_size,
        "I": config.intermediate_size,
        "N": config.num_attention_heads,
        "P": max_predictions_per_seq,
        "V": config.vocab_size,
    }

    def size(tensors):
        return _bytes_of(tensors, axes, config, precision)

    blocks = config.num_hidden_layers * config.inner_group_num
    kept, working_of_block = blocks * size(KEPT_PER_BLOCK), size(WORKING_OF_BLOCK)
    if recompute:
        kept = blocks * size(KEPT_BY_RECOMPUTED_BLOCK)
        working_of_block += size(KEPT_PER_BLOCK)
    weights = _FLOAT32 * count_weights(config, masked_lm_head=max_predictions_per_seq > 0).total
    parts_of_gradients = 1 if accumulation_steps == 1 else 2
    return StepMemory(
        weights=weights,
        moments=2 * weights,
        kept=kept,
        working=max(working_of_block, size(WORKING_OF_HEAD)),
        gradients=_gradients_in_flight(config, precision)
        + (parts_of_gradients - 1) * weights
        + _cast_weights(config, precision),
        update=COPIES_OF_UPDATE * weights,
        process=process_bytes,
    )


def largest_batch(config, memory_bytes, max_seq_length, max_predictions_per_seq, **settings):
    """Finds the largest batch of a replica that fits, without accumulation.

    Args:
        config: AlbertConfig.
        memory_bytes: float. Memory of a replica.
        max_seq_length: int. S.
        max_predictions_per_seq: int. P; 0 for fine-tuning.
        **settings: `precision`, `recompute`, `process_bytes`, as in `step_memory`.

    Returns:
        int. 0 where not even one sequence fits.
    """

    def fits(batch_size):
        lengths = max_seq_length, max_predictions_per_seq
        return step_memory(config, batch_size, *lengths, **settings).total <= memory_bytes

    if not fits(1):
        return 0
    most = 2
    while fits(most):
        most *= 2
    low, high = most // 2, most  # the first fits, the second does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _bytes_of(tensors, axes, config, precision):
    widths = {"compute": COMPUTE_BYTES[precision], "float32": _FLOAT32, "bool": 1}
    return sum(
        round(tensor.count * math.prod(axes[axis] for axis in tensor.shape)) * widths[tensor.dtype]
        for tensor in tensors
        if not tensor.dropout or getattr(config, tensor.dropout) > 0
    )


def _gradients_in_flight(config, precision):
    """Returns bytes of the gradients of one block's kernels that are not added up yet."""
    block = attention_weights(config) + feed_forward_weights(config)
    uses = 1 if config.sharing == "none" else config.num_hidden_layers // config.num_hidden_groups
    return min(uses, GRADIENTS_AT_ONCE) * block * COMPUTE_BYTES[precision]


def _cast_weights(config, precision):
    """Returns bytes of the copy of the weights in the type of the products."""
    if precision == "float32":
        return 0
    return count_weights(config).blocks * COMPUTE_BYTES[precision]
