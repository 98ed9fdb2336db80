"""Rows of texts and of tagged sentences, a batch at a time."""

import numpy as np

from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.examples import TaggedExample, TextExample
from albert_keras.tasks.pair_features import encode_pairs, lay_out
from albert_keras.tasks.task_config import TaskConfig

PAIRS = [
    TextExample("0", "Rain had washed the chalk marks from the wall", "so", "yes"),
    TextExample("1", "so", "but", "no"),
]
SENTENCES = [
    TaggedExample("1", ("The", "old", "harbour", "of", "Lisbon", "slept"), tuple("XYXYXY")),
    TaggedExample("2", ("so",), ("Y",)),
]


TASK = TextTask(TaskConfig(name="pair", text="a", pair="b", labels=("no", "yes")))


def text_features(examples, tokenizer, max_seq_length, labels=None):
    columns = {"text": "a", "pair": "b", "labels": ("no", "yes")}
    task = TextTask(TaskConfig(name="pair", max_seq_length=max_seq_length, **columns))
    if labels is None:
        examples = [example._replace(label=None) for example in examples]
    return task.features(examples, tokenizer)


def test_pairs_are_laid_out_as_all_at_once(tiny_tokenizer):
    labels = np.array([1, 0], np.int32)
    features = text_features(PAIRS, tiny_tokenizer, 16, labels)
    whole = lay_out(encode_pairs(PAIRS, tiny_tokenizer, 16), tiny_tokenizer, 16)
    assert len(features) == 2 and features.max_seq_length == 16
    assert features.lengths.tolist() == whole["input_mask"].sum(axis=1).tolist()
    batch = features.batch(np.array([1, 0, 1]))
    assert batch.pop("labels").tolist() == [0, 1, 0]
    assert set(batch) == set(whole)
    assert all((batch[name] == whole[name][[1, 0, 1]]).all() for name in whole)
    short = features.lengths[1]
    part = features.batch([1], short)
    assert all((part[name] == whole[name][1:, :short]).all() for name in whole)
    assert set(text_features(PAIRS, tiny_tokenizer, 16).batch([0])) == set(whole)


def test_tokens_that_do_not_fit_are_counted(tiny_tokenizer):
    counts = [len(tiny_tokenizer.encode(text)) for text in PAIRS[0][1:3]]
    features = text_features(PAIRS, tiny_tokenizer, 8)
    assert features.dropped_tokens.tolist() == [sum(counts) - 5, 0] and sum(counts) > 8
    answers = TASK.answers(PAIRS, features, [{"logits": np.zeros((2, 2), np.float32)}])
    assert [answer.dropped_tokens for answer in answers] == [sum(counts) - 5, 0]
