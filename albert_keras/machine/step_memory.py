"""Memory of a training step by formula, from the shape of the model, without TensorFlow.

The table `KEPT_PER_BLOCK` lists what a step keeps between its forward and its backward pass; if a
layer changes, its row must change, too.
"""

import math
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
#: On a GPU CUDA, cuBLAS and their buffers take about as much; a TPU's compiler reserves 0.5 GiB.
PROCESS_BYTES = 480_000_000
TRACE_BYTES = 240_000_000


class Kept(NamedTuple):
    """Tensors of one shape that are kept, or needed at the same time."""

    name: str
    count: int
    #: A letter for each axis: B sequences, S tokens, H hidden size, I intermediate size, N heads,
    #: P predictions, V vocabulary size, A keys of a query, which are S or, if attention is
    #: block-sparse, a mean; G gathered blocks of keys per block of queries, 0 unless it is.
    shape: str
    dtype: str = "compute"  # "compute", the type of the products; "float32"; or "bool"
    dropout: str = ""  # the dropout rate that must be positive for the tensor to exist; "" if none


#: What one block (attention and feed-forward) keeps for its gradient: 8 B·S·H + B·S·I + B·N·S·A.
KEPT_PER_BLOCK = (
    Kept("input", 1, "BSH"),
    Kept("query, key, value", 3, "BSH"),
    Kept("attention weights", 1, "BNSA"),
    Kept("weighted sum of the values", 1, "BSH"),
    Kept("normalised sum after attention", 1, "BSH"),
    Kept("input of the feed-forward block", 1, "BSH"),
    Kept("inner vectors before activation", 1, "BSI"),
    Kept("normalised sum after feed-forward", 1, "BSH"),
    Kept("scales of the two normalisations", 2, "BS", "float32"),
    Kept("attention weights after dropout", 1, "BNSA", "compute", "attention_probs_dropout_prob"),
    Kept("mask of the attention weights", 1, "BNSA", "bool", "attention_probs_dropout_prob"),
    Kept("masks of the values", 2, "BSH", "bool", "hidden_dropout_prob"),
)

#: What a recomputed block keeps until then.
KEPT_BY_RECOMPUTED_BLOCK = (Kept("input", 1, "BSH"),)

#: What the gradient of one block needs in addition.
WORKING_OF_BLOCK = (
    Kept("gradients of the attention weights and scores", 2, "BNSA"),
    Kept("inner vectors after activation, gradients of both", 3, "BSI"),
    Kept("gradients of the vectors", 4, "BSH"),
    Kept("gathered keys or values, and their gradient", 2, "BSGH"),
)

#: What the masked-LM loss and its gradient need in addition.
WORKING_OF_HEAD = (Kept("scores and their gradient", 2, "BPV"),)

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
    process_bytes: int = PROCESS_BYTES + TRACE_BYTES,  # memory of the process before a step
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
    axes = {
        "B": batch_size // accumulation_steps,
        "S": max_seq_length,
        "H": config.hidden_size,
        "I": config.intermediate_size,
        "N": config.num_attention_heads,
        "P": max_predictions_per_seq,
        "V": config.vocab_size,
        "A": config.attended_keys(max_seq_length),
        "G": config.key_blocks if config.is_sparse_at(max_seq_length) else 0,
    }

    widths = {"compute": COMPUTE_BYTES[precision], "float32": _FLOAT32, "bool": 1}

    def size(tensors):
        return sum(
            tensor.count * math.prod(axes[axis] for axis in tensor.shape) * widths[tensor.dtype]
            for tensor in tensors
            if not tensor.dropout or getattr(config, tensor.dropout) > 0
        )

    blocks = config.num_hidden_layers * config.inner_group_num
    kept, working_of_block = blocks * size(KEPT_PER_BLOCK), size(WORKING_OF_BLOCK)
    if recompute:
        kept = blocks * size(KEPT_BY_RECOMPUTED_BLOCK)
        working_of_block += size(KEPT_PER_BLOCK)
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
        working=max(working_of_block, size(WORKING_OF_HEAD)),
        gradients=_gradients_in_flight(config, precision) + sums_of_parts + cast_weights,
        update=COPIES_OF_UPDATE * weights,
        process=process_bytes,
    )


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
