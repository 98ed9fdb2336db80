"""Scores of count-based models agree with their formulas."""

import math
from collections import Counter

import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.reports.count_baselines import count_baselines


@pytest.fixture(scope="module")
def folders(tiny_records, held_out_records):
    return RecordFiles(tiny_records), RecordFiles(held_out_records)


def rows_of(records):
    """Yields the ids that a model reads, the original ids, and the labels by position."""
    for batch in evaluation_dataset(records, 1).as_numpy_iterator():
        length = int(batch["input_mask"].sum())
        read = batch["input_ids"][0, :length].tolist()
        real = batch["masked_lm_weights"][0] > 0
        places = batch["masked_lm_positions"][0][real].tolist()
        labels = dict(zip(places, batch["masked_lm_ids"][0][real].tolist(), strict=True))
        yield read, [labels.get(place, token) for place, token in enumerate(read)], labels


def test_scores_are_those_of_plain_counting(folders):
    training, held_out = folders
    size = training.info.vocab_size
    words, after, before = Counter(), {}, {}
    for _, ids, _ in rows_of(training):
        words.update(ids)
        special = {ids[0], ids[-1]}
        for left, right in zip(ids, ids[1:], strict=False):
            after.setdefault(left, Counter())[right] += 1
            before.setdefault(right, Counter())[left] += 1
    for word in special:
        del words[word]
    prior = np.array([words[word] + 1 for word in range(size)]) / (words.total() + size)

    def given(counts):
        kinds = max(1, len(counts))
        seen = np.array([counts[word] for word in range(size)])
        return (seen + kinds * prior) / (counts.total() + kinds)

    losses, hits, unigram = [], [], []
    for read, _, labels in rows_of(held_out):
        for place, label in labels.items():
            left, right = after.get(read[place - 1]), before.get(read[place + 1])
            joint = given(left or Counter()) * given(right or Counter()) / prior
            joint[list(special)] = 0
            losses.append(-math.log(joint[label] / joint.sum()))
            hits.append(joint.argmax() == label)
            unigram.append((-math.log(prior[label]), prior.argmax() == label))
    found = count_baselines(training, held_out)
    assert found["bigram"] == pytest.approx((np.mean(losses), np.mean(hits)))
    assert found["unigram"] == pytest.approx(tuple(np.mean(unigram, axis=0)))
    assert found["bigram"].masked_lm_loss < 0.95 * found["unigram"].masked_lm_loss
    assert found["bigram"].masked_lm_accuracy > found["unigram"].masked_lm_accuracy > 0


def test_records_of_another_vocabulary_are_refused(folders, monkeypatch):
    training, held_out = folders
    monkeypatch.setattr(held_out, "info", held_out.info.replace(tokenizer_digest="0"))
    with pytest.raises(InputError, match="must be built with the tokenizer of"):
        count_baselines(training, held_out)
