"""Record files → `tf.data`: checks the info file, reads in a reproducible order, static shapes.

Which records make up a batch is a pure function of (seed, step): the order of an epoch is a keyed
permutation of all records of all files, not a shuffle buffer. So a run that stops and goes on sees
what it would have seen, and the first batch of any step costs the same. Masks may be drawn anew in
each epoch, as a pure function of (seed, epoch, record).
"""

import numpy as np
import tensorflow as tf

from data_pipeline.config import MASKS, MaskingConfig
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MASKED, MaskingVocabulary, mask_ngrams, unmask
from data_pipeline.randomness import key_of, permute, subkeys
from data_pipeline.reader.decoding import decode_batch
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.schema import PRETRAINING_FEATURES, feature_length
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Batches read ahead. A fixed number: left to itself tf.data reads on and on while a step runs and
#: holds thousands of batches.
_PREFETCHED = 4
#: Records read, parsed and masked at a time, so that small batches cost no more each than large.
_RECORDS_TOGETHER = 256


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
    return _numbers_at(*np.divmod(places, num_records), num_records, seed)


def _numbers_at(epochs, places, num_records, seed):
    numbers = np.empty(len(places), np.int64)
    for epoch in np.unique(epochs):
        here = epochs == epoch
        numbers[here] = permute(places[here], num_records, key_of("epoch", seed, int(epoch)))
    return numbers


def training_dataset(
    records, batch_size, seed, first_step=0, masks="auto", worker=(0, 1), replicas=1
):
    """Reads records for training, without end.

    Args:
        records: RecordFiles.
        batch_size: int. Global batch size, B.
        seed: int. Decides the order, and the masks if they are drawn here.
        first_step: int. Step to begin at; what lies before is not read.
        masks: str. "static" ones stand in the records; "dynamic" ones are drawn anew in each epoch;
            "auto" takes static ones if there are any.
        worker: tuple of int. Number of this worker, and of all: it gets its share of each batch,
            B / number of workers.
        replicas: int. Equal parts its share is dealt out in, one element after the other.

    Returns:
        tf.data.Dataset of dicts, B being the size of such a part: int32 `input_ids`, `input_mask`,
        `segment_ids` [B, S]; `masked_lm_positions`, `masked_lm_ids` int32 and `masked_lm_weights`
        float32 [B, P]; `sentence_order_labels` int32 [B]; `example_weights` float32 [B], all 1.

    Raises:
        InputError: If the batch cannot be shared out evenly, or the records have no such masks.
    """
    index, count = worker
    if batch_size % (count * replicas) or not 0 <= index < count:
        raise InputError(
            "`batch_size` should be a multiple of the number of workers times replicas, and "
            f"`worker` one of them. Received: batch_size={batch_size}, worker={worker}, "
            f"replicas={replicas}."
        )
    share = np.arange(index * batch_size // count, (index + 1) * batch_size // count)

    def choose(steps):
        places = (steps[:, None] * batch_size + share).ravel()
        epochs, places = np.divmod(places, len(records))
        numbers = _numbers_at(epochs, places, len(records), seed)
        return numbers, epochs, np.ones(len(numbers), np.float32)

    steps = tf.data.Dataset.range(first_step, np.iinfo(np.int64).max)
    dataset = _batches(steps, choose, len(share), replicas, records, masks, seed)
    # Nothing then has to ask all workers whether there is one more batch.
    return dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))


def evaluation_dataset(records, batch_size):
    """Reads each record once, in the order of the files.

    The last batch is filled up with the first record under `example_weights` 0, so that all
    shapes stay static (TPU) and yet every record counts exactly once. Records without masks get the
    same ones every time.

    Args:
        records: RecordFiles.
        batch_size: int. B.

    Returns:
        tf.data.Dataset as of `training_dataset`, with an end.
    """

    def choose(steps):
        numbers = (steps[:, None] * batch_size + np.arange(batch_size)).ravel()
        real = numbers < len(records)
        return np.where(real, numbers, 0), np.zeros_like(numbers), real.astype(np.float32)

    steps = tf.data.Dataset.range(-(-len(records) // batch_size))
    return _batches(steps, choose, batch_size, 1, records, "auto", seed=0)


def _batches(steps, choose, batch_size, replicas, records, masks, seed):
    """Makes the data set of batches; several small ones are read together and dealt out again."""
    info = records.info
    draw = _mask_drawer(records, masks, seed)
    # Unless they hold masks: then they have to tell what stood there.
    with_masks = info.static_masks or not draw

    def read(steps):
        try:
            return read_steps(steps)
        except Exception as error:
            records.failure = error
            raise

    def read_steps(steps):
        numbers, epochs, weights = choose(steps)
        features = decode_batch(
            records.read(numbers), info, with_masks, lambda row: records.name_of(numbers[row])
        )
        if draw:
            draw(numbers, epochs, features)
        features["sentence_order_labels"] = features.pop("next_sentence_labels")
        features["example_weights"] = weights
        return [features[name] for name in dtypes]

    dtypes, lengths = {}, {}
    for name, feature in PRETRAINING_FEATURES.items():
        if feature.required and feature.length != "scalar":
            dtypes[name] = tf.float32 if feature.dtype == "float32" else tf.int32
            lengths[name] = [
                feature_length(feature, info.max_seq_length, info.max_predictions_per_seq)
            ]
    dtypes |= {"sentence_order_labels": tf.int32, "example_weights": tf.float32}
    lengths |= {"sentence_order_labels": [], "example_weights": []}

    # All of it in one call: what crosses from NumPy to TensorFlow is copied.
    def features_of(steps):
        values = tf.numpy_function(read, [steps], list(dtypes.values()))
        return {
            name: tf.reshape(value, [-1, batch_size // replicas, *lengths[name]])
            for name, value in zip(dtypes, values, strict=True)
        }

    together = max(1, _RECORDS_TOGETHER // batch_size)
    dataset = steps.batch(together).map(features_of, num_parallel_calls=2, deterministic=True)
    dataset = dataset.unbatch()
    # Every worker computes the whole order, so it must be shared out by element, not by file.
    options = tf.data.Options()
    # It may miss the end of an iterator and then hold it, and the interpreter, for up to a minute;
    # there is nothing to tune, as all numbers are given.
    options.autotune.enabled = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options).prefetch(_PREFETCHED * replicas)


def draws_masks(records, masks):
    """Tells whether masks are drawn in the reader.

    Args:
        records: RecordFiles.
        masks: str. As in `training_dataset`.

    Returns:
        bool.

    Raises:
        InputError: If the records have no such masks, or no tokenizer to draw them with.
    """
    info = records.info
    if masks not in MASKS:
        raise InputError(f"`masks` should be one of {', '.join(MASKS)}. Received: {masks}.")
    if masks == "static" and not info.static_masks:
        raise InputError(
            f"The records of `{records.folder}` hold no masks. Take `dynamic` ones, drawn anew in "
            "each epoch, or build them with `static_masks=true`."
        )
    if masks == "static" or (masks == "auto" and info.static_masks):
        return False
    if not (records.folder / TOKENIZER_FOLDER).is_dir():
        raise InputError(
            "Masks cannot be drawn without a tokenizer, and there is no "
            f"`{records.folder / TOKENIZER_FOLDER}`. Adopt the records with `--tokenizer`, or take "
            "the masks in them."
        )
    return True


def _mask_drawer(records, masks, seed):
    """Makes the function that masks a batch anew, or None if the records' masks are taken."""
    if not draws_masks(records, masks):
        return None
    info, folder = records.info, records.folder / TOKENIZER_FOLDER
    masking = MaskingConfig(**info.config.get("masking", {}))
    vocabulary = MaskingVocabulary.of(Tokenizer.load(folder), masking.word_start)
    key = key_of("masks", seed)

    def draw(numbers, epochs, features):
        """Masks decoded features in place."""
        text = features["input_ids"]
        if info.static_masks:
            unmask(*(features[name] for name in MASKED), out=text)
        keys = subkeys(subkeys(key, epochs), numbers)
        length = info.max_predictions_per_seq
        mask_ngrams(text, features["input_mask"], keys, vocabulary, masking, length, out=features)

    return draw
