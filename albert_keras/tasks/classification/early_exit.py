"""Early exit: a classifier after every layer, and rows that stop at the first confident one."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.layers.rows import Rows
from albert_keras.models.encoder import AlbertEncoder
from data_pipeline.errors import InputError


def classify_until_confident(
    encoder: AlbertEncoder,
    heads: Sequence[keras.layers.Layer],
    inputs: Mapping[str, Any],
    confidence: float | tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Runs an encoder layer by layer, each row only as far as it needs.

    A row leaves the batch after the first layer whose classifier gives its most likely class at
    least the probability `confidence`, and at the latest after the last layer. The next layer is
    computed for the remaining rows alone, and not at all if there are none. The answer for a row
    does not depend on the other rows.

    Args:
        encoder: AlbertEncoder with a pooler, which is used after every layer.
        heads: L layers [B, H] -> [B, C], a classifier for each layer of the encoder.
        inputs: dict. The inputs of the encoder, [B, S].
        confidence: Probability, above 0 and at most 1; a tensor may change from call to call.

    Returns:
        dict of "logits" float32 [B, C], and "layers" int32 [B], the number of layers each row took.

    Source:
        Schwartz et al. (2020): The right tool for the given task (https://arxiv.org/abs/2004.07453).
    """
    ids = tf.convert_to_tensor(inputs["input_ids"])
    mask, segment_ids = (inputs.get(name) for name in ("input_mask", "segment_ids"))
    mask = tf.ones_like(ids) if mask is None else tf.convert_to_tensor(mask)
    segment_ids = tf.zeros_like(ids) if segment_ids is None else segment_ids
    rows, size = Rows(mask), encoder.config.inner_group_num
    hidden = rows.to_batch(encoder.embeddings(ids, segment_ids, mask, rows))
    count, num_classes = tf.shape(ids)[0], heads[-1].output_weights.shape[0]
    state = (
        hidden,
        mask,
        tf.range(count),  # numbers of the rows that remain
        tf.zeros([count, num_classes]),
        tf.zeros([count], tf.int32),
    )
    blocks, weights = encoder.blocks, _shared_weights(encoder)
    for number, head in enumerate(heads):
        layer = blocks[number * size : (number + 1) * size]
        is_last = number == len(heads) - 1

        def advance(state=state, layer=layer, head=head, number=number, is_last=is_last):
            hidden, mask, left, logits, layers = state
            hidden = _run_layer(layer, weights, hidden, mask, only_cls=is_last)
            found = head(encoder.pooled(hidden[:, 0]))
            # What a row answers last remains.
            logits = tf.tensor_scatter_nd_update(logits, left[:, None], found)
            taken = tf.fill(tf.shape(left), number + 1)
            layers = tf.tensor_scatter_nd_update(layers, left[:, None], taken)
            if is_last:
                return hidden, mask, left, logits, layers
            best = tf.reduce_max(tf.nn.softmax(found), axis=-1)
            rest = tf.where(best < confidence)[:, 0]
            return *(tf.gather(each, rest) for each in (hidden, mask, left)), logits, layers

        state = tf.cond(tf.size(state[2]) > 0, advance, lambda state=state: state)
    return {"logits": state[3], "layers": state[4]}


def check_confidence(confidence: float) -> None:
    """Raises InputError unless a number is a probability at which a row may stop."""
    if not 0 < confidence <= 1:
        raise InputError(
            "The confidence of an early exit must be a probability above 0 and at most 1. "
            f"Received: {confidence}."
        )


def _shared_weights(encoder):
    """Returns the weights of the blocks that run several times, prepared once for all runs.

    The weights of a block that runs once are prepared where it runs, if it does.
    """
    uses = collections.Counter(block for pair in encoder.blocks for block in pair)
    return {block: block.for_each_use(1)[0] for block, count in uses.items() if count > 1}


def _run_layer(layer, weights, hidden, mask, only_cls):
    """Runs the blocks of a layer: [B, S, H] -> [B, S, H], or [B, 1, H] for [CLS] alone."""
    rows, positions = Rows(mask), None
    hidden = rows.from_batch(hidden)
    for number, (attention, feed_forward) in enumerate(layer):
        if only_cls and number == len(layer) - 1:
            positions = tf.zeros_like(mask[:, :1])
        hidden = attention(
            hidden, rows, training=False, weights=weights.get(attention), positions=positions
        )
        rows = rows if positions is None else Rows.of_positions(positions)
        hidden = feed_forward(hidden, rows, training=False, weights=weights.get(feed_forward))
    return rows.to_batch(hidden)
