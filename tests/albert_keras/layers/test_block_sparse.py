"""Block-sparse attention is dense attention with a mask, forward and backward, at linear size."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import name_of
from albert_keras.layers.attention import SelfAttentionBlock
from albert_keras.layers.block_sparse import BlockSparseAttention
from albert_keras.layers.rows import Rows, additive_mask

#: Blocks of the window, global and random ones; of 4 positions each.
PATTERNS = {
    "Big Bird": (3, 1, 2),
    "Longformer": (5, 1, 0),
    "window": (3, 0, 0),
    "random": (1, 0, 3),
    "global": (1, 2, 0),
}


def config(pattern, **changes):
    window, few, random = PATTERNS[pattern]
    return AlbertConfig(
        hidden_size=12,
        num_attention_heads=2,
        initializer_range=0.5,
        max_position_embeddings=64,
        attention="block-sparse",
        attention_block_size=4,
        attention_window_blocks=window,
        attention_global_blocks=few,
        attention_random_blocks=random,
        **changes,
    )


def inputs(length, seed=0):
    rng = np.random.default_rng(seed)
    parts = [tf.constant(rng.normal(size=(2, 2, length, 6)), tf.float32) for _ in range(3)]
    return parts, tf.constant(rng.random((2, length)) < 0.8, tf.int32)


def attend(config, parts, mask):
    drop = (tf.identity, tf.identity)
    return BlockSparseAttention(config)(*parts, additive_mask(mask), 0.4, drop)[0]


def allowed_pairs(config, length):
    """Returns which positions attend to which, bool [S, S], one pair after the other."""
    size, number = config.attention_block_size, -(-length // config.attention_block_size)
    blocks = BlockSparseAttention(config).key_blocks(number).numpy()
    pairs = np.zeros((length, length), bool)
    for query in range(length):
        for key in range(length):
            is_global = query // size < config.attention_global_blocks
            pairs[query, key] = is_global or key // size in blocks[query // size]
    return pairs


def dense(config, parts, mask, length):
    """Returns dense attention in which all other pairs are masked."""
    query, key, value = parts
    scores = tf.matmul(query, key, transpose_b=True) * 0.4 + additive_mask(mask)
    scores = tf.where(allowed_pairs(config, length), scores, -np.inf)
    return tf.matmul(tf.nn.softmax(scores), value)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("number", [9, 16])
def test_a_block_attends_to_first_neighbouring_and_random_blocks(pattern, number):
    shape = config(pattern)
    window, few, random = PATTERNS[pattern]
    blocks = BlockSparseAttention(shape).key_blocks(number).numpy()
    assert blocks.shape == (number, window + few + random)
    for query, keys in enumerate(blocks.tolist()):
        near = range(max(0, query - window // 2), min(number, query + window // 2 + 1))
        assert len(set(keys)) == len(keys) and {*range(few), *near} <= set(keys)
        assert all(0 <= key < number for key in keys)


def test_the_random_blocks_depend_on_the_seed_alone():
    first, again = (BlockSparseAttention(config("random")).key_blocks(16) for _ in range(2))
    other = BlockSparseAttention(config("random", attention_seed=1)).key_blocks(16)
    np.testing.assert_array_equal(first, again)
    assert (np.asarray(first) != np.asarray(other)).any()
    # They are part of what a trained model computes, so they must never change.
    assert first[:3].numpy().tolist() == [[0, 2, 11, 9], [1, 14, 15, 5], [2, 6, 10, 13]]


@pytest.mark.parametrize(
    "pattern, is_static", [*((pattern, True) for pattern in PATTERNS), ("Big Bird", False)]
)
def test_outputs_and_gradients_are_those_of_masked_dense_attention(pattern, is_static):
    length = 64 if is_static else 61
    shape, (parts, mask) = config(pattern), inputs(length)
    upstream = tf.random.stateless_normal(parts[0].shape, seed=(0, 1))

    def trained(parts, attention):
        with tf.GradientTape() as tape:
            tape.watch(parts)
            outputs = attention(parts)
        return outputs, tape.gradient(outputs, parts, output_gradients=upstream)

    def ours(parts):
        return trained(parts, lambda parts: attend(shape, parts, mask))

    if not is_static:
        ours = tf.function(ours, input_signature=[[tf.TensorSpec([2, 2, None, 6])] * 3])
    expected, theirs = trained(parts, lambda parts: dense(shape, parts, mask, length))
    # A block without any token has other weights, but no token attends to it.
    real = np.asarray(mask)[:, None, :, None] * np.ones((1, 2, 1, 6))
    found, gradients = ours(parts)
    np.testing.assert_allclose(found * real, expected * real, atol=1e-6)
    for gradient, wanted in zip(gradients, theirs, strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=3e-6)


def block(shape, **changes):
    return SelfAttentionBlock(shape.replace(**changes), "group_0/inner_group_0")


@pytest.mark.parametrize("skips_padding", [False, True])
def test_some_positions_alone_are_as_among_all(skips_padding):
    hidden = tf.random.stateless_normal((2, 40, 12), seed=(0, 1))
    layer, positions = block(config("Big Bird")), tf.constant([[0, 30, 7], [2, 2, 20]])
    mask = tf.sequence_mask([40, 22], 40, tf.int32)
    rows = Rows(mask, skips_padding)
    flat = rows.from_batch(hidden)
    expected = tf.gather(rows.to_batch(layer(flat, rows)), positions, batch_dims=1)
    found, probs = layer(flat, rows, positions=positions, return_attention=True)
    np.testing.assert_allclose(tf.reshape(found, (2, 3, 12)), expected, atol=1e-6)
    assert probs.shape == (2, 2, 3, 40)
    np.testing.assert_allclose(tf.reduce_sum(probs, -1), np.ones((2, 2, 3)), atol=1e-6)


def test_gradients_of_an_encoder_are_those_of_a_plain_step():
    from albert_keras.models.encoder import AlbertEncoder

    shape = config("Big Bird", vocab_size=20, num_hidden_layers=1, embedding_size=6)
    features = {
        "input_ids": np.random.default_rng(0).integers(0, 20, (2, 61)),
        "input_mask": tf.sequence_mask([61, 30], 61, tf.int32),
    }
    positions = tf.constant([[0, 50, 7], [0, 2, 20]])

    def gradients(**settings):
        encoder = AlbertEncoder(shape, seed=0, **{"dtype": "float32"} | settings)
        with tf.GradientTape() as tape:
            outputs = encoder(features, training=True, positions=positions)["sequence_output"]
            loss = tf.reduce_sum(tf.cast(outputs, tf.float32)[..., 0])
        weights = [
            weight for weight in encoder.trainable_weights if "pooler" not in name_of(weight)
        ]
        return tape.gradient(loss, weights)

    expected, half = gradients(), gradients(dtype="mixed_bfloat16")
    saving = gradients(recompute=True, skips_padding=True)
    # Over all gradients: the gradients of the biases of keys are 0 except for rounding.
    largest = max(np.abs(gradient).max() for gradient in expected)
    for found, tolerance in ((saving, 1e-5), (half, 0.1)):
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=largest * tolerance)
