"""Record files → `tf.data`: checks the info file, reads in a reproducible order, static shapes.

Which records make up a batch is a pure function of (seed, step): the order of an epoch is a keyed
permutation, not a shuffle buffer. So a run that stops and goes on sees what it would have seen,
and the first batch of any step costs the same.
"""

import mmap
from pathlib import Path

import numpy as np
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.randomness import key_of, permute
from data_pipeline.records import DatasetInfo, parsing_schema

# A TFRecord: length (8 bytes), its checksum (4), the record, its checksum (4).
_HEADER, _FOOTER = 12, 4

#: Batches read ahead. A fixed number: left to itself tf.data reads on and on while a step runs,
#: holds thousands of batches, and takes the better part of a minute to let go of them at the end.
_PREFETCHED = 4


class RecordFiles:
    """All records of a folder by number, whichever shard they lie in.

    Args:
        folder: str or Path. A folder of records with its info file.

    Raises:
        InputError: As `DatasetInfo.load`; and if a shard does not hold as many records as it
            should, or is no TFRecord file.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.info = DatasetInfo.load(folder)
        self._shards, self._edges, count = [], [], [0]
        for shard in self.info.shards:
            path = self.folder / shard.file
            data = map_file(path)
            edges = record_edges(data, path)
            if len(edges) != shard.num_records:
                raise InputError(
                    f"`{path}` should hold {shard.num_records} records by dataset_info.json. "
                    f"Received: {len(edges)}."
                )
            self._shards.append(data)
            self._edges.append(edges)
            count.append(count[-1] + len(edges))
        self._first = np.array(count)

    def __len__(self):
        return int(self._first[-1])

    def read(self, numbers):
        """Returns the serialised records of these numbers (int [N]) as a list of bytes."""
        shards = np.searchsorted(self._first, numbers, side="right") - 1
        records = []
        for shard, number in zip(shards.tolist(), np.asarray(numbers).tolist(), strict=True):
            begin, end = self._edges[shard][number - self._first[shard]]
            records.append(self._shards[shard][begin:end])
        return records


def training_numbers(step, batch_size, num_records, seed):
    """Tells which records a training step sees.

    Records are visited in a new random order in each epoch; batches run on across its edge.

    Args:
        step: int. Steps done before.
        batch_size: int. Global batch size, B.
        num_records: int.
        seed: int.

    Returns:
        int64 [B].
    """
    places = np.arange(step * batch_size, (step + 1) * batch_size)
    epochs, places = places // num_records, places % num_records
    numbers = np.empty(batch_size, np.int64)
    for epoch in np.unique(epochs):
        here = epochs == epoch
        numbers[here] = permute(places[here], num_records, key_of("epoch", seed, int(epoch)))
    return numbers


def training_dataset(records, batch_size, seed, first_step=0):
    """Reads records for training, without end.

    Args:
        records: RecordFiles.
        batch_size: int. Global batch size, B.
        seed: int. Decides the order.
        first_step: int. Step to begin at; what lies before is not read.

    Returns:
        tf.data.Dataset of dicts: int32 `input_ids`, `input_mask`, `segment_ids` [B, S];
        `masked_lm_positions`, `masked_lm_ids` int32 and `masked_lm_weights` float32 [B, P];
        `sentence_order_labels` int32 [B]; `example_weights` float32 [B], all 1.
    """

    def read(step):
        numbers = training_numbers(int(step), batch_size, len(records), seed)
        return np.array(records.read(numbers), object), np.ones(batch_size, np.float32)

    steps = tf.data.Dataset.range(first_step, np.iinfo(np.int64).max)
    return _batches(steps, read, batch_size, records.info)


def evaluation_dataset(records, batch_size):
    """Reads each record once, in the order of the files.

    The last batch is filled up with the first record under `example_weights` 0, so that all
    shapes stay static (TPU) and yet every record counts exactly once.

    Args:
        records: RecordFiles.
        batch_size: int. B.

    Returns:
        tf.data.Dataset as of `training_dataset`, with an end.
    """

    def read(step):
        numbers = np.arange(int(step) * batch_size, (int(step) + 1) * batch_size)
        real = numbers < len(records)
        return np.array(records.read(np.where(real, numbers, 0)), object), real.astype(np.float32)

    return _batches(
        tf.data.Dataset.range(-(-len(records) // batch_size)), read, batch_size, records.info
    )


def _batches(steps, read, batch_size, info):
    schema = parsing_schema(info.max_seq_length, info.max_predictions_per_seq)

    def features_of(step):
        records, weights = tf.numpy_function(read, [step], (tf.string, tf.float32))
        records = tf.ensure_shape(records, [batch_size])
        features = tf.io.parse_example(records, schema)
        features = {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in features.items()
        }
        labels = features.pop("next_sentence_labels")[:, 0]
        weights = tf.ensure_shape(weights, [batch_size])
        return features | {"sentence_order_labels": labels, "example_weights": weights}

    dataset = steps.map(features_of, num_parallel_calls=2, deterministic=True)
    # Every worker computes the whole order, so it must be shared out by element, not by file.
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options).prefetch(_PREFETCHED)


def map_file(path):
    """Maps a file into memory, read-only; an empty one is empty bytes."""
    with open(path, "rb") as file:
        if not path.stat().st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def record_edges(data, path):
    """Finds where each record of a TFRecord file begins and ends.

    Args:
        data: bytes or mmap. The file.
        path: Path. Its name, for the error.

    Returns:
        int64 [N, 2]. Byte offsets.

    Raises:
        InputError: If the file is not a chain of whole records.
    """
    edges, place = [], 0
    while place < len(data):
        length = int.from_bytes(data[place : place + 8], "little")
        end = place + _HEADER + length
        if end + _FOOTER > len(data):
            raise InputError(f"`{path}` is no TFRecord file, or is damaged at byte {place}.")
        edges.append((place + _HEADER, end))
        place = end + _FOOTER
    return np.array(edges, np.int64).reshape(-1, 2)
