"""What a step sees follows from seed and step alone, and an epoch holds every example once."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.models.text_rows import Rows
from albert_keras.tasks.example_source import ExampleSource
from albert_keras.tasks.finetune_config import FinetuneTraining

COUNT, B = 500, 20


class Numbered(Rows):
    """Rows that hold nothing but their numbers."""

    max_seq_length = 8
    lengths = np.full(COUNT, 8)

    def batch(self, rows, length=None):
        return {"input_ids": np.repeat(np.asarray(rows, np.int32)[:, None], 8, axis=1)}


def cluster(workers, replicas):
    """Returns what asks for batches as strategies of several workers and replicas do."""
    contexts = [
        SimpleNamespace(input_pipeline_id=index, num_input_pipelines=workers)
        for index in range(workers)
    ]
    return SimpleNamespace(
        num_replicas_in_sync=workers * replicas,
        distribute_datasets_from_function=lambda read: list(map(read, contexts)),
    )


def source(features=None, **training):
    training = FinetuneTraining(**{"batch_size": B, "seed": 3} | training)
    return ExampleSource(features or Numbered(), None, training, {"fingerprint": "f"})


def first(dataset, count=1):
    return list(dataset.take(count).as_numpy_iterator())


def seen(it, first_step, count):
    dataset = it.batches(tf.distribute.get_strategy(), first_step)
    return [batch["input_ids"][:, 0].tolist() for batch in first(dataset, count)]


def test_a_batch_depends_on_seed_and_step_alone():
    straight = seen(source(), 0, 30)
    assert sorted(sum(straight[: COUNT // B], [])) == list(range(COUNT))  # an epoch
    for begin in (1, 24, 25, 29):
        assert seen(source(), begin, 2)[0] == straight[begin] == source().numbers(begin).tolist()
    assert seen(source(seed=4), 0, 1)[0] != straight[0]


@pytest.mark.parametrize("workers, replicas", [(2, 1), (2, 2)])
def test_shares_of_workers_and_replicas_join_to_the_whole_batch(workers, replicas):
    whole = seen(source(), 25, 3)
    shares = source().batches(cluster(workers, replicas), 25)
    parts = [first(share, 3 * replicas) for share in shares]
    rows = B // workers // replicas
    assert all(share.element_spec["input_ids"].shape == [rows, 8] for share in shares)
    for step in range(3):
        found = [
            part["input_ids"][:, 0]
            for worker in parts
            for part in worker[step * replicas :][:replicas]
        ]
        assert np.concatenate(found).tolist() == whole[step]
