"""Record files → `tf.data`: checks the info file, reads in a reproducible order, static shapes.

The records of a batch are a pure function of (seed, step): the order of an epoch is a keyed
permutation of all records of all files, not a shuffle buffer. A resumed run therefore sees the same
batches as an uninterrupted one, and the first batch costs the same at any step. Masks can be
sampled again in each epoch, as a pure function of (seed, epoch, record).
"""

from pathlib import Path

import numpy as np
import tensorflow as tf

from data_pipeline.config import MASKS, MaskingConfig
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MASKED_FEATURES, MaskingVocabulary, mask_ngrams, unmask
from data_pipeline.randomness import key_of, permute, subkeys
from data_pipeline.records.decoding import read_features
from data_pipeline.records.examples import PRETRAINING_FEATURES, REQUIRED_FEATURES, feature_length
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER

#: Batches read ahead. A fixed number: autotuned, tf.data keeps reading while a step runs and
#: buffers thousands of batches.
_PREFETCHED = 4
#: Records read, parsed and masked at a time, so that small batches cost no more per record.
_RECORDS_AT_ONCE = 256


def training_numbers(
    step: int, batch_size: int, num_records: int, seed: int, skipped: int = 0
) -> np.ndarray:
    """Returns the numbers of the records of the step after `step` steps, int64 [B].

    Each epoch visits the records in a new random order; a batch may span two epochs. `skipped` is
    the number of records before step 0, as in `training_dataset`.
    """
    positions = skipped + np.arange(step * batch_size, (step + 1) * batch_size)
    return _numbers_at(positions, num_records, seed)[0]


def _numbers_at(positions, num_records, seed):
    """Returns the numbers of the records at positions of the whole training, and their epochs."""
    epochs, positions = np.divmod(positions, num_records)
    numbers = np.empty(len(positions), np.int64)
    for epoch in np.unique(epochs):
        rows = epochs == epoch
        numbers[rows] = permute(positions[rows], num_records, key_of("epoch", seed, int(epoch)))
    return numbers, epochs


def training_dataset(
    records: RecordFiles | str | Path,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    masks: str = "auto",
    worker: tuple[int, int] = (0, 1),
    replicas: int = 1,
    masking: MaskingConfig | None = None,
    skipped: int = 0,
) -> tf.data.Dataset:
    """Reads records for training, endlessly.

    Args:
        records: RecordFiles or their folder.
        batch_size: int. Global batch size, B.
        seed: int. Determines the order, and the masks if they are dynamic.
        first_step: int. Step to start at; the records before it are not read.
        masks: str. "static" takes the masks in the records; "dynamic" samples new masks in each
            epoch; "auto" is "static" if the records contain masks, else "dynamic".
        worker: tuple of int. Index of this worker, and number of workers: it gets its part of each
            batch, B / number of workers.
        replicas: int. Number of equal parts that the worker's part is split into, one element each.
        masking: MaskingConfig or None. Of dynamic masks; None takes the one of the records.
        skipped: int. Records, in the order of the epochs, that come before step 0: those that an
            earlier stage of the run has read, in batches of another size or with other masks.

    Returns:
        tf.data.Dataset of dicts, B being the size of such a part: int32 `input_ids`, `input_mask`,
        `segment_ids` [B, S]; `masked_lm_positions`, `masked_lm_ids` int32 and `masked_lm_weights`
        float32 [B, P]; `sentence_order_labels` int32 [B]; `example_weights` float32 [B], all 1.

    Raises:
        InputError: If the batch cannot be divided evenly, or the records have no such masks.
    """
    records = RecordFiles.of(records)
    index, num_workers = worker
    if batch_size % (num_workers * replicas) or not 0 <= index < num_workers:
        raise InputError(
            "`batch_size` must be a multiple of the number of workers times replicas, and the "
            "index in `worker` must be below the number of workers. Received: "
            f"batch_size={batch_size}, "
            f"worker={worker}, replicas={replicas}."
        )
    part = np.arange(index * batch_size // num_workers, (index + 1) * batch_size // num_workers)

    def choose(steps):
        positions = skipped + (steps[:, None] * batch_size + part).ravel()
        return *_numbers_at(positions, len(records), seed), np.ones(len(positions), np.float32)

    steps = tf.data.Dataset.range(first_step, np.iinfo(np.int64).max)
    dataset = _batches(steps, choose, len(part), replicas, records, masks, seed, masking)
    # With a known cardinality, workers need not agree on whether there is one more batch.
    return dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))


def evaluation_dataset(records: RecordFiles | str | Path, batch_size: int) -> tf.data.Dataset:
    """Reads each record once, in the order of the files.

    The last batch is filled with copies of the first record that have `example_weights` 0, so that
    all shapes are static (TPU) and every record counts exactly once. Records without masks get the
    same masks every time.

    Args:
        records: RecordFiles or their folder.
        batch_size: int. B.

    Returns:
        Finite tf.data.Dataset with the elements of `training_dataset`.
    """

    records = RecordFiles.of(records)

    def choose(steps):
        numbers = (steps[:, None] * batch_size + np.arange(batch_size)).ravel()
        exists = numbers < len(records)
        return np.where(exists, numbers, 0), np.zeros_like(numbers), exists.astype(np.float32)

    num_steps = -(-len(records) // batch_size)
    dataset = _batches(
        tf.data.Dataset.range(num_steps), choose, batch_size, 1, records, "auto", seed=0
    )
    return dataset.apply(tf.data.experimental.assert_cardinality(num_steps))


def _batches(steps, choose, batch_size, replicas, records, masks, seed, masking=None):
    """Creates the dataset of batches; several small ones are read together and split again."""
    info = records.info
    mask = _masking_function(records, masks, seed, masking)

    def read(steps):
        try:
            numbers, epochs, weights = choose(steps)
            features = read_features(records, numbers)
            if mask:
                mask(numbers, epochs, features)
        except Exception as error:
            records.failure = error
            raise
        features["sentence_order_labels"] = features.pop("next_sentence_labels")
        features["example_weights"] = weights
        return [features[name] for name in dtypes]

    dtypes = {"sentence_order_labels": tf.int32, "example_weights": tf.float32}
    shapes = {"sentence_order_labels": [], "example_weights": []}
    for name in REQUIRED_FEATURES:
        feature = PRETRAINING_FEATURES[name]
        if feature.length != "scalar":
            dtypes[name] = tf.float32 if feature.dtype == "float32" else tf.int32
            lengths = info.max_seq_length, info.max_predictions_per_seq
            shapes[name] = [feature_length(feature, *lengths)]

    # A single call from TensorFlow to NumPy, because each array that crosses over is copied.
    def features_of(steps):
        values = tf.numpy_function(read, [steps], list(dtypes.values()))
        return {
            name: tf.reshape(value, [-1, batch_size // replicas, *shapes[name]])
            for name, value in zip(dtypes, values, strict=True)
        }

    steps_at_once = max(1, _RECORDS_AT_ONCE // batch_size)
    dataset = read_ahead(steps.batch(steps_at_once), features_of, replicas)
    dataset.vocab_size = info.vocab_size  # `fit` compares it with that of the model
    return dataset


def read_ahead(steps, features_of, replicas):
    """Returns one by one the batches that `features_of` reads for each step, ahead of their use."""
    dataset = steps.map(features_of, num_parallel_calls=2, deterministic=True).unbatch()
    # Every worker computes the whole order, so the data must be sharded by element, not by file.
    options = tf.data.Options()
    # Autotuning may miss the end of an iterator, and then keeps it and the interpreter alive for up
    # to a minute; it has nothing to tune, as all numbers are given.
    options.autotune.enabled = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options).prefetch(_PREFETCHED * replicas)


def uses_dynamic_masks(records: RecordFiles, masks: str) -> bool:
    """Returns whether a reader samples masks; `masks` as in `training_dataset`.

    Raises InputError if the records have no such masks.
    """
    info = records.info
    if masks not in MASKS:
        raise InputError(f"`masks` must be one of {', '.join(MASKS)}. Received: {masks}.")
    if masks == "static" and not info.static_masks:
        raise InputError(
            f"The records of `{records.folder}` contain no masks. Use `masks=dynamic`, which "
            "samples them in each epoch, or build the records with `static_masks=True`."
        )
    return masks == "dynamic" or not info.static_masks


def _masking_function(records, masks, seed, masking):
    """Returns a function that masks decoded features in place, or None for static masks."""
    if not uses_dynamic_masks(records, masks):
        if masking is not None:
            raise InputError(
                "`masking` requires dynamic masks. Received: static masks in "
                f"`{records.folder}`. Use `masks=dynamic`, or omit `masking`."
            )
        return None
    info, folder = records.info, records.folder / TOKENIZER_FOLDER
    masking = masking or MaskingConfig(**info.config.get("masking", {}))
    vocabulary = MaskingVocabulary.of(Tokenizer.load(folder), masking.word_start)
    key = key_of("masks", seed)

    def mask(numbers, epochs, features):
        ids = features["input_ids"]
        if info.static_masks:
            unmask(*(features[name] for name in MASKED_FEATURES), out=ids)
        keys = subkeys(subkeys(key, epochs), numbers)
        length = info.max_predictions_per_seq
        mask_ngrams(ids, features["input_mask"], keys, vocabulary, masking, length, out=features)

    return mask
