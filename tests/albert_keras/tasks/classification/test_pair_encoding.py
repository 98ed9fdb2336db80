"""Pairs whose texts are encoded separately: their sequences and their comparison."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.models.pooling import comparison, separate_texts
from data_pipeline.instances.segments import pack

CLS, SEP = 2, 3
TEXTS = [([11, 12, 13], [21, 22]), ([14], [23, 24, 25]), ([15, 15], [15]), ([16, 17], [])]


def packed(texts=TEXTS, length=12, pair_separators=1):
    """Lays out pairs of lists of ids as fine-tuning does."""
    ids = np.array([id for pair in texts for text in pair for id in text], np.int32)
    lengths = np.array([[len(text) for text in pair] for pair in texts])
    starts = (lengths.ravel().cumsum() - lengths.ravel()).reshape(-1, 2)
    return pack(
        ids, starts, lengths, length,
        cls_id=CLS, sep_id=SEP, pad_id=0, pair_separators=pair_separators,
    )  # fmt: skip


@pytest.mark.parametrize("pair_separators", [1, 2])
@pytest.mark.parametrize("length", [9, 12])
def test_each_text_becomes_the_sequence_that_it_has_alone(pair_separators, length):
    found = separate_texts(packed(length=length, pair_separators=pair_separators))
    expected = [text for pair in TEXTS for text in pair]
    assert found["input_ids"].shape == (2 * len(TEXTS), length)
    for row, text in enumerate(expected):
        tokens = [CLS, *text, SEP] if text else [CLS]
        padding = [0] * (length - len(tokens))
        assert found["input_ids"][row].numpy().tolist() == tokens + padding
        assert found["input_mask"][row].numpy().tolist() == [1] * len(tokens) + padding
    assert not found["segment_ids"].numpy().any()


def test_shapes_that_a_tpu_needs_stay_static():
    spec = {name: tf.TensorSpec([4, 12], tf.int32) for name in packed()}
    graph = tf.function(separate_texts).get_concrete_function(spec)
    for tensor in graph.structured_outputs.values():
        assert tensor.shape.as_list() == [8, 12]


def test_a_comparison_has_both_vectors_their_distance_and_product():
    vectors = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    found = comparison(tf.constant(vectors)).numpy()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for row in range(3):
        first, second = 2 * unit[2 * row], 2 * unit[2 * row + 1]  # of length √4
        expected = np.concatenate([first, second, np.abs(first - second), first * second])
        np.testing.assert_allclose(found[row], expected, atol=1e-6)
