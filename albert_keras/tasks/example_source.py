"""Examples of a task as the source of a run: any batch is a function of (seed, step)."""

import functools
import hashlib
import json

import numpy as np
import tensorflow as tf

from albert_keras.models.text_rows import Rows
from albert_keras.training.batches import batches_of
from data_pipeline.reader.reader import read_ahead, training_numbers
from data_pipeline.tokenizers.tokenization import Tokenizer


def digest_of(examples) -> str:
    """Returns a hash of examples, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update((json.dumps(example) + "\n").encode())
    return digest.hexdigest()


class ExampleSource:
    """What a run and `fit` need of their examples; see `RecordSource`.

    Every epoch goes through all examples in a new random order.

    Args:
        rows: With what is to be learned.
        training: FinetuneTraining, resolved.
        description: Further entries of `run.json`: fingerprints and the initial weights.
    """

    kind = "finetuning"

    def __init__(self, rows: Rows, tokenizer: Tokenizer, training, description: dict):
        self.rows, self.tokenizer = rows, tokenizer
        self.training, self.description = training, description
        self.failure = None
        # For options to choose from, the tokens of all of them.
        self.max_seq_length = rows.batch(np.zeros(1, np.int64))["input_ids"].size
        self.positions_per_step = training.batch_size * self.max_seq_length

    @property
    def tokenizer_digest(self) -> str:
        return self.tokenizer.digest

    def describe(self) -> dict:
        """Returns the entries of `run.json` about the examples."""
        return self.description | {
            "num_records": len(self.rows),
            "max_seq_length": self.rows.max_seq_length,
        }

    def check_tokenizer(self):
        """Does nothing: the texts were tokenized with it."""

    def save_tokenizer(self, folder):
        self.tokenizer.save(folder)

    def numbers(self, step):
        """Returns the numbers of the rows of the batch after `step` steps: int64 [B]."""
        training = self.training
        return training_numbers(step, training.batch_size, len(self.rows), training.seed)

    def batches(self, strategy, first_step):
        """Returns the batches of a strategy's replicas from a step on, see `batches_of`."""
        return batches_of(strategy, self.training, functools.partial(self._dataset, first_step))

    def _dataset(self, first_step, worker=(0, 1), replicas=1):
        index, count = worker
        size = self.training.batch_size
        share = slice(index * size // count, (index + 1) * size // count)
        rows = size // count // replicas
        sample = self._read(np.zeros(1, np.int64))

        def read(step):
            try:
                return list(self._read(self.numbers(int(step))[share]).values())
            except Exception as error:
                self.failure = error
                raise

        def features_of(step):
            values = tf.numpy_function(read, [step], [array.dtype for array in sample.values()])
            return {
                name: tf.reshape(value, [replicas, rows, *sample[name].shape[1:]])
                for name, value in zip(sample, values, strict=True)
            }

        steps = tf.data.Dataset.range(first_step, np.iinfo(np.int64).max)
        dataset = read_ahead(steps, features_of, replicas)
        return dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))

    def _read(self, numbers):
        weights = self.rows.weights
        weights = np.ones(len(numbers), np.float32) if weights is None else weights[numbers]
        return self.rows.batch(numbers) | {"example_weights": weights}
