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


def lengths_by_hand(first, second, room):
    """Removes the last token of the longer text, of the second one on a tie, until both fit."""
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def test_pairs_lose_their_last_tokens_one_by_one():
    lengths = np.stack(np.meshgrid(range(12), range(12)), axis=-1).reshape(-1, 2)
    for room in (7, 8):
        found = truncated_lengths(tf.constant(lengths), tf.fill([len(lengths)], np.int64(room)))
        expected = [lengths_by_hand(*pair, room) for pair in lengths.tolist()]
        assert [tuple(pair) for pair in found.numpy()] == expected


@pytest.mark.parametrize("separators", [1, 2])
@pytest.mark.parametrize("length", [12, 20])
def test_rows_of_pairs_are_those_of_fine_tuning(tiny_tokenizer, tiny_corpus, length, separators):
    tiny_tokenizer = copy.copy(tiny_tokenizer)
    tiny_tokenizer.pair_separators = separators
    firsts = ["", "a", tiny_corpus[0], tiny_corpus[1], tiny_corpus[2], "short"]
    seconds = ["", "", "", tiny_corpus[3], "a", tiny_corpus[4]]
    ids = [[tiny_tokenizer.encode(text) for text in texts] for texts in (firsts, seconds)]
    packer = TextPacker(tiny_tokenizer, length)
    rows = packer.pack(*(tf.ragged.constant(one, tf.int32) for one in ids), drops_empty=True)
    cls, sep = tiny_tokenizer.cls_id, tiny_tokenizer.sep_id
    for at, (first, second) in enumerate(zip(*ids, strict=True)):
        room = length - (2 + separators if second else 2)
        left, right = lengths_by_hand(len(first), len(second), room)
        head = [cls, *first[:left], sep, *[sep] * ((separators - 1) if second else 0)]
        tail = [*second[:right], sep] if second else []
        size = len(head) + len(tail)
        assert rows["input_ids"][at, :size].numpy().tolist() == head + tail
        assert rows["segment_ids"][at, :size].numpy().tolist() == [0] * len(head) + [1] * len(tail)
        assert int(tf.reduce_sum(rows["input_mask"][at])) == size
        assert not tf.reduce_any(rows["segment_ids"][at, size:] != 0)
