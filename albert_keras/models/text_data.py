"""Examples of texts → data sets of the features that a model learns from.

There are two kinds of examples. Those in memory are `Examples`, see `text_inputs.py`. The others
arrive one after the other: data sets and generators.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.models.text_inputs import Examples
from data_pipeline.errors import InputError
from data_pipeline.randomness import key_of, permute

#: Examples of a batch, if nothing else is given, as in Keras.
BATCH_SIZE = 32
#: Batches that are made ahead of their use.
_PREFETCHED = 4
#: Examples whose windows are laid out at a time.
_AT_ONCE = 256
#: Features with a value for each token.
_OF_TOKENS = ("input_ids", "input_mask", "segment_ids", "p_mask", "tag_ids")

# === Examples in memory


class Reader:
    """Features of Examples for a model, by the numbers of rows.

    Args:
        model: AlbertForTexts.
        examples: With labels if they are to be learned from or scored.
        is_fixed: Whether all rows have the length of the preprocessor.
    """

    def __init__(self, model: Any, examples: Examples, is_fixed: bool):
        self._preprocessor, self._is_fixed = model.preprocessor, is_fixed
        targets = {}
        if examples.labels is not None:
            targets = model.targets(examples.labels, examples.columns)
        if examples.weights is not None:
            targets["sample_weight"] = examples.weights
        self._names = () if self._preprocessor.uses_windows else tuple(examples.columns)
        if self._names:
            texts = {name: _strings(values) for name, values in examples.columns.items()}
            self._columns = texts | targets
        else:
            self._columns = self._windows(examples.columns, targets)

    def __len__(self):
        return len(next(iter(self._columns.values())))

    def read(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Returns rows: strings for the preprocessor, or features of windows."""
        return {name: values[rows] for name, values in self._columns.items()}

    def features(self, columns: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the features of rows; windows are features already."""
        if not self._names:
            return columns
        texts = {name: columns[name] for name in self._names}
        rest = {name: values for name, values in columns.items() if name not in self._names}
        return self._preprocessor.rows(texts, self._is_fixed) | rest

    def _windows(self, columns, targets):
        """Returns the features of all windows, in the order of the examples."""
        parts, count = [], len(next(iter(columns.values())))
        for begin in range(0, count, _AT_ONCE):
            here = slice(begin, begin + _AT_ONCE)
            texts = self._preprocessor.columns({key: one[here] for key, one in columns.items()})
            wanted = {name: _tensor(values[here]) for name, values in targets.items()}
            rows = self._preprocessor.rows(texts, True, wanted)
            parts.append({name: value.numpy() for name, value in rows.items()})
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def features_of(model: Any, examples: Examples, is_fixed: bool) -> dict[str, tf.Tensor]:
    """Returns the features of all examples as one batch; arguments as of `Reader`."""
    reader = Reader(model, examples, is_fixed)
    columns = reader.read(np.arange(len(reader)))
    return reader.features({name: tf.constant(values) for name, values in columns.items()})


def in_order(reader: Reader, batch_size: int) -> tf.data.Dataset:
    """Returns the features of all rows once, in their order; the last batch may be smaller."""
    first_rows = tf.data.Dataset.range(0, len(reader), batch_size)

    def rows_at(first):
        return np.arange(first, min(first + batch_size, len(reader)))

    return _batches(first_rows, rows_at, reader, None)


def in_epochs(
    reader: Reader, batch_size: int, seed: int | None, first_step: Callable[[], int]
) -> tf.data.Dataset:
    """Returns batches of training, endlessly.

    Each epoch visits the rows in a new order, a function of seed and epoch; a batch may span two
    epochs. So a batch is a function of the seed and the number of its step.

    Args:
        seed: None is the order of the examples in each epoch.
        first_step: Called when the data set is read from its beginning.
    """
    count = len(reader)

    def rows_at(step):
        epochs, rows = np.divmod(np.arange(step * batch_size, (step + 1) * batch_size), count)
        for epoch in np.unique(epochs) if seed is not None else ():
            is_here = epochs == epoch
            rows[is_here] = permute(rows[is_here], count, key_of("epoch", seed, int(epoch)))
        return rows

    last = np.iinfo(np.int64).max
    begin = tf.data.Dataset.from_tensors(0).map(
        lambda _: tf.numpy_function(lambda: np.int64(first_step()), [], tf.int64)
    )
    steps = begin.flat_map(lambda first: tf.data.Dataset.range(first, last))
    batches = _batches(steps, rows_at, reader, batch_size)
    return batches.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))


def _batches(steps, rows_at, reader, batch_size):
    sample = reader.read(np.zeros(1, np.int64))
    types = [tf.as_dtype(values.dtype) for values in sample.values()]

    def read(step):
        return list(reader.read(rows_at(int(step))).values())

    def features_of(step):
        found = tf.numpy_function(read, [step], types)
        for value, values in zip(found, sample.values(), strict=True):
            value.set_shape([batch_size, *values.shape[1:]])
        return reader.features(dict(zip(sample, found, strict=True)))

    dataset = steps.map(features_of, num_parallel_calls=2, deterministic=True)
    options = tf.data.Options()
    # Autotuning may miss the end of an iterator, and then keeps the interpreter alive.
    options.autotune.enabled = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options).prefetch(_PREFETCHED)


def _strings(values):
    """Returns texts as an array of objects, [N] or padded with "" [N, C]."""
    if isinstance(values[0], list):
        counts = {len(value) for value in values}
        if len(counts) > 1:
            raise InputError(
                f"All questions must have the same number of options. Received: {sorted(counts)}."
            )
        return np.array([[text.encode() for text in row] for row in values], object)
    return np.array([text.encode() for text in values], object)


def _tensor(values):
    """Returns targets of some examples as a tensor; ragged if they are lists of lists."""
    return tf.ragged.constant(values, tf.int32) if isinstance(values, list) else tf.constant(values)


# === Data sets and generators


def is_stream(x: Any) -> bool:
    """Returns whether examples arrive one after the other."""
    return isinstance(
        x, tf.data.Dataset | tf.distribute.DistributedDataset | keras.utils.Sequence
    ) or hasattr(x, "__next__")


def is_features(x: Any) -> bool:
    """Returns whether inputs, or the inputs of a data set, are features of a preprocessor."""
    spec = getattr(x, "element_spec", x)
    while isinstance(spec, tuple) and spec and isinstance(spec[0], Mapping):
        spec = spec[0]
    return isinstance(spec, Mapping) and "input_ids" in spec


def in_batches(data: Any, convert: Callable[..., Any]) -> Any:
    """Returns a data set, a Sequence or a generator whose batches are converted."""
    if isinstance(data, tf.data.Dataset):
        return data.map(convert)
    return (
        _Converted(data, convert) if isinstance(data, keras.utils.Sequence) else map(convert, data)
    )


class Converter:
    """Examples of a stream → features for a model.

    Args:
        model: AlbertForTexts.
        is_fixed: Whether all rows have the length of the preprocessor.
        has_targets: Whether labels and weights are used.
    """

    def __init__(self, model: Any, is_fixed: bool, has_targets: bool):
        self._model, self._is_fixed, self._has_targets = model, is_fixed, has_targets
        self._preprocessor = model.preprocessor
        self._names = model.text_names

    def converted(self, data: Any, batch_size: int | None = None) -> Any:
        """Returns a data set, a generator or a Sequence of features.

        The call of a model with windows takes the texts of a data set in batches, and puts the
        windows together again: these are returned, if they are to be predicted.

        Args:
            data: Of inputs, (inputs, labels) or (inputs, labels, weights), in batches or not.
            batch_size: Examples of a batch, for a data set that has none.

        Raises:
            ValueError: If data in batches comes with a batch size.
            InputError: If its elements are no examples.
        """
        if isinstance(data, tf.data.Dataset):
            data, size = self._in_batches(data, batch_size)
            if self._has_targets or not self._preprocessor.uses_windows:
                return self._features(data, size)
            return data.map(lambda *batch: self._preprocessor.columns(batch[0]))
        if isinstance(data, tf.distribute.DistributedDataset):
            raise InputError(
                "A data set of texts must not be distributed to devices before `fit`, which "
                "distributes the features. Received: a distributed one. Give the data set itself."
            )
        if batch_size is not None:
            raise ValueError(
                "`batch_size` must not be given with a generator, which yields batches. "
                f"Received: {batch_size}."
            )
        return in_batches(data, self._batch_features)

    def _features(self, data, size):
        """Returns a data set of features of one in batches, of a size."""
        specs, sample = data.element_spec, next(iter(data.take(1)), None)
        rows = tf.nest.flatten(specs, expand_composites=True)[0].shape[0]
        rows = None if self._preprocessor.uses_windows else rows
        if sample is None:
            raise InputError("A data set must have at least one example. Received: none.")
        sample = self._batch_features(sample)

        def convert(*arrays):
            tensors = list(map(tf.convert_to_tensor, arrays))
            batch = tf.nest.pack_sequence_as(specs, tensors, expand_composites=True)
            found = self._batch_features(batch)
            return [np.asarray(found[name]) for name in sample]

        def converted(*batch):
            flat = tf.nest.flatten(batch, expand_composites=True)
            found = tf.numpy_function(convert, flat, [one.dtype for one in sample.values()])
            for value, (name, one) in zip(found, sample.items(), strict=True):
                # Without a fixed length, each batch is padded to a length of its own.
                shape = [rows, *one.shape[1:]]
                if name in _OF_TOKENS and not self._is_fixed:
                    shape[-1] = None
                value.set_shape(shape)
            return dict(zip(sample, found, strict=True))

        data = data.map(converted, num_parallel_calls=2)
        if self._preprocessor.uses_windows:
            data = data.unbatch().batch(size)
        return data.prefetch(_PREFETCHED)

    def _in_batches(self, data, batch_size):
        """Returns a data set in batches, and the number of examples in one."""
        spec = data.element_spec
        x, y, _ = keras.utils.unpack_x_y_sample_weight(spec)
        if self._is_batched(x, y):
            if batch_size is not None:
                raise ValueError(
                    "`batch_size` must not be given with a data set in batches. "
                    f"Received: {batch_size}."
                )
            size = tf.nest.flatten(x)[0].shape[0]
            if size is None and self._preprocessor.uses_windows:
                size = next((tf.nest.flatten(batch)[0].shape[0] for batch in data.take(1)), None)
            return data, size
        size = batch_size or BATCH_SIZE
        is_even = all(
            isinstance(each, tf.TensorSpec) and each.shape.is_fully_defined()
            for each in tf.nest.flatten(spec)
        )
        return (data.batch(size) if is_even else data.ragged_batch(size)), size

    def _batch_features(self, batch):
        """Returns the features of a batch in memory, (x, y, weights), as a generator yields it."""
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
        if is_features(x):
            return batch
        if isinstance(x, str | bytes):
            raise InputError(
                "A generator must yield batches: lists of texts, and their labels. Received: a "
                "single text. For single examples use `tf.data.Dataset.from_generator`."
            )
        targets = (y, weights) if self._has_targets else ()
        examples = self._model.examples(x, *targets, has_targets=self._has_targets)
        return features_of(self._model, examples, self._is_fixed)

    def _is_batched(self, x, y):
        """Returns whether the elements of a data set are batches, by their specifications."""
        parts = tf.nest.flatten(x)
        first = parts[0]
        if any(part.dtype != tf.string for part in parts) or first.shape.rank is None:
            raise InputError(
                "A data set must yield texts, with labels and weights, or features. Received: "
                f"elements of {x}."
            )
        rank = first.shape.rank
        of_words = self._preprocessor.uses_windows and "words" in self._names
        if of_words and isinstance(x, Mapping) and "words" in x:
            return rank == 2
        if of_words and rank == 1 and isinstance(y, tf.TensorSpec | tf.RaggedTensorSpec):
            return y.shape.rank == 2  # else a sentence with a tag for each word
        return rank > 0


class _Converted(keras.utils.Sequence):
    """A Sequence whose batches are converted."""

    def __init__(self, batches, convert):
        self._batches, self._convert = batches, convert

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, number):
        return self._convert(self._batches[number])

    def on_epoch_end(self):
        self._batches.on_epoch_end()


@contextlib.contextmanager
def error_of_input() -> Iterator[None]:
    """Raises the InputError that Python code of a data set raised, instead of TensorFlow's own."""
    try:
        yield
    except (tf.errors.UnknownError, tf.errors.InvalidArgumentError) as error:
        marker = "InputError: "
        text = str(error)
        if marker not in text:
            raise
        message = text.partition(marker)[2].partition("\nTraceback")[0].partition("\n\n")[0]
        raise InputError(message.strip()) from error
