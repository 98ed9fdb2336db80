"""The state of an encoder at every position, after the embeddings and after each block."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from albert_keras.layers.kernels import inference
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.execution import Execution


def block_states(
    encoder: AlbertEncoder,
    inputs: Mapping[str, Any],
    blocks: Sequence[tuple] | None = None,
) -> Iterator[tf.Tensor]:
    """Runs blocks one after the other and yields the state before the first and after each.

    Args:
        encoder: AlbertEncoder.
        inputs: dict. The inputs of the encoder, [B, S].
        blocks: list of (SelfAttentionBlock, FeedForwardBlock). None runs the blocks of the encoder.
            The list may be longer than that, if the same blocks are applied again.

    Yields:
        [B, S, H] in the compute dtype.
    """
    blocks = encoder.blocks if blocks is None else blocks
    execution = Execution(encoder, blocks, inputs, False, None, None, False)
    with inference():
        hidden = encoder.embeddings(
            execution.input_ids, execution.segment_ids, execution.input_mask, execution.rows
        )
    yield execution.to_batch(hidden)
    for attention, feed_forward in blocks:
        with inference():
            hidden = execution.run(attention, feed_forward, hidden)
        yield execution.to_batch(hidden)


def layer_states(
    encoder: AlbertEncoder, inputs: Mapping[str, Any], blocks: Sequence[tuple] | None = None
) -> Iterator[tf.Tensor]:
    """Yields the state before the first layer and after each layer, of one or several blocks."""
    size = encoder.config.inner_group_num
    for number, state in enumerate(block_states(encoder, inputs, blocks)):
        if number % size == 0:
            yield state
