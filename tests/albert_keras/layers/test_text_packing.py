"""Rows made in the graph are those made in Python, and bytes are cut between characters."""

import copy
import random

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.text_packing import (
    TextPacker,
    readable,
    truncated_lengths,
)
from albert_keras.tasks import pair_features
from albert_keras.tasks.examples import TextExample


def test_texts_are_cut_at_the_edge_of_a_character():
    draw = random.Random(0)
    texts = ["".join(draw.choices("aé中😀 ", k=draw.randrange(30))) for _ in range(200)]
    for count in (16, 17, 18, 19):
        first = readable(tf.constant(texts), count).numpy()
        last = readable(tf.constant(texts), count, from_end=True).numpy()
        for text, head, tail in zip(texts, first, last, strict=True):
            whole = text.encode()
            assert head.decode() == whole[:count].decode(errors="ignore")
            assert tail.decode() == whole[-count:].decode(errors="ignore")


def test_bytes_that_are_no_characters_are_replaced_and_bounded():
    texts = tf.constant([b"\x80" * 50, b"", b"a\xffb", b"\xe4\xb8" * 20])
    for from_end in (False, True):
        found = readable(texts, 16, from_end).numpy()
        assert [len(text.decode()) <= 16 for text in found] == [True] * 4
        assert found[2].decode() == "a\ufffdb"


def test_pairs_lose_pieces_as_in_python():
    lengths = np.stack(np.meshgrid(range(12), range(12)), axis=-1).reshape(-1, 2)
    for room in (7, 8):
        found = truncated_lengths(tf.constant(lengths), tf.fill([len(lengths)], np.int64(room)))
        np.testing.assert_array_equal(found, pair_features.truncated_lengths(lengths, room))


@pytest.mark.parametrize("separators", [1, 2])
@pytest.mark.parametrize("length", [12, 20])
def test_rows_of_pairs_are_those_of_fine_tuning(tiny_tokenizer, tiny_corpus, length, separators):
    tiny_tokenizer = copy.copy(tiny_tokenizer)
    tiny_tokenizer.pair_separators = separators
    firsts = ["", "a", tiny_corpus[0], tiny_corpus[1], tiny_corpus[2], "short"]
    seconds = ["", "", "", tiny_corpus[3], "a", tiny_corpus[4]]
    examples = [TextExample("0", *pair) for pair in zip(firsts, seconds, strict=True)]
    expected = pair_features.lay_out(
        pair_features.encode_pairs(examples, tiny_tokenizer, length), tiny_tokenizer, length
    )
    first, second = (
        tf.ragged.constant([tiny_tokenizer.encode(text) for text in texts], tf.int32)
        for texts in (firsts, seconds)
    )
    found = TextPacker(tiny_tokenizer, length).pack(first, second, drops_empty=True)
    for name, values in expected.items():
        width = found[name].shape[1]
        np.testing.assert_array_equal(found[name], values[:, :width], err_msg=name)
        assert not values[:, width:].any()
