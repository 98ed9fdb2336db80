"""Texts and pairs become `[CLS] a [SEP] b [SEP]`."""

import copy
import random

import numpy as np

from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.pair_features import (
    PairFeatures,
    encode_pairs,
    pair_features,
    truncated_lengths,
)
from albert_keras.tasks.task_config import TaskConfig

FIRST, SECOND = "The old ferry left the harbour.", "Nobody wondered why."


def rows(features):
    return [
        ids[mask == 1].tolist()
        for ids, mask in zip(features["input_ids"], features["input_mask"], strict=True)
    ]


def test_a_pair_and_a_text_are_laid_out(tiny_tokenizer):
    a, b = map(tiny_tokenizer.encode, (FIRST, SECOND))
    cls, sep = tiny_tokenizer.cls_id, tiny_tokenizer.sep_id
    features = pair_features(
        [TextExample("1", FIRST, SECOND), TextExample("2", SECOND)], tiny_tokenizer, 64
    )
    assert rows(features) == [[cls, *a, sep, *b, sep], [cls, *b, sep]]
    assert features["segment_ids"].sum(axis=1).tolist() == [len(b) + 1, 0]
    assert features["segment_ids"][0, len(a) + 1 : len(a) + 3].tolist() == [0, 1]
    assert (features["input_ids"][features["input_mask"] == 0] == tiny_tokenizer.pad_id).all()
    assert {(values.shape, values.dtype) for values in features.values()} == {
        ((2, 64), np.dtype(np.int32))
    }


def test_a_second_text_of_nothing_is_absent(tiny_tokenizer):
    examples = [TextExample("1", FIRST, second) for second in ("", " \t", None)]
    kept = tiny_tokenizer.encode(FIRST)[:10]
    expected = [tiny_tokenizer.cls_id, *kept, tiny_tokenizer.sep_id]
    assert rows(pair_features(examples, tiny_tokenizer, 12)) == [expected] * 3


def test_pairs_of_roberta_have_two_separators(tiny_tokenizer):
    tokenizer = copy.copy(tiny_tokenizer)
    tokenizer.pair_separators = 2
    a, b = map(tokenizer.encode, (FIRST, SECOND))
    cls, sep = tokenizer.cls_id, tokenizer.sep_id
    examples = [TextExample("1", FIRST, SECOND), TextExample("2", SECOND)]
    features = PairFeatures(encode_pairs(examples, tokenizer, 64), tokenizer, 64)
    assert features.lengths.tolist() == [len(a) + len(b) + 4, len(b) + 2]
    batch = features.batch([0, 1])
    assert rows(batch) == [[cls, *a, sep, sep, *b, sep], [cls, *b, sep]]
    assert batch["segment_ids"].sum(axis=1).tolist() == [len(b) + 1, 0]
    cut = pair_features(examples[:1], tokenizer, 12)
    assert rows(cut) == [[cls, *a[:4], sep, sep, *b[:4], sep]]


def test_truncation_drops_one_piece_at_a_time():
    draw = random.Random(5)
    pairs = [(draw.randrange(30), draw.randrange(30), draw.randrange(2, 40)) for _ in range(2000)]
    expected = []
    for first, second, room in pairs:
        while first + second > room:
            if first > second:
                first -= 1
            else:
                second -= 1
        expected.append([first, second])
    pairs = np.array(pairs)
    assert truncated_lengths(pairs[:, :2], pairs[:, 2]).tolist() == expected


PAIRS = [
    TextExample("0", "Rain had washed the chalk marks from the wall", "so", "yes"),
    TextExample("1", "so", "but", "no"),
]


def pair_task(max_seq_length):
    columns = {"text": "a", "pair": "b", "labels": ("no", "yes")}
    return TextTask(TaskConfig(name="pair", max_seq_length=max_seq_length, **columns))


def test_tokens_that_do_not_fit_are_counted(tiny_tokenizer):
    counts = [len(tiny_tokenizer.encode(text)) for text in PAIRS[0][1:3]]
    task = pair_task(8)
    features = task.features(PAIRS, tiny_tokenizer)
    assert features.dropped_tokens.tolist() == [sum(counts) - 5, 0] and sum(counts) > 8
    answers = task.answers(PAIRS, features, {"logits": np.zeros((2, 2), np.float32)})
    assert [answer.dropped_tokens for answer in answers] == [sum(counts) - 5, 0]
