"""Examples of texts → features, labels and weights, as Keras takes them.

There are two kinds of examples. Those in memory are `Examples`, see `text_inputs.py`. The others
arrive one after the other: data sets and generators.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.models.text_inputs import Examples
from albert_keras.models.text_rows import TextRows
from data_pipeline.errors import InputError

#: Examples of a batch, if nothing else is given, as in Keras.
BATCH_SIZE = 32
#: Batches that are made ahead of their use.
_PREFETCHED = 4

# === Examples in memory


class Reader:
    """Features, labels and weights of Examples for a model.

    Args:
        model: AlbertForTexts.
        examples: With labels if they are to be learned from or scored.
    """

    def __init__(self, model: Any, examples: Examples):
        self._model, self._preprocessor, self._examples = model, model.preprocessor, examples
        #: What the model is to return for each example, see `AlbertForTexts.targets`.
        self.targets = model.no_targets(len(examples))
        if examples.labels is not None:
            self.targets = model.targets(examples.labels, examples.columns)

    def arrays(self, is_fixed: bool) -> tuple[Any, Any, Any]:
        """Returns the features of all rows, labels and weights; weights may be None.

        Args:
            is_fixed: Whether all rows have the length of the preprocessor; otherwise as many tokens
                as the longest.
        """
        examples = self._examples
        rows = TextRows(self._preprocessor, examples.columns, self.targets, examples.weights)
        length = None if is_fixed else rows.shortest_length(np.arange(len(rows)))
        features = rows.batch(np.arange(len(rows)), length)
        if self._preprocessor.uses_windows:
            return *self._model.features_and_targets(features), rows.weights
        features.pop("labels", None)
        return features, self.targets, rows.weights

    def in_order(self, batch_size: int, is_fixed: bool) -> tf.data.Dataset:
        """Returns all rows once, in their order and in batches; the last one may be smaller."""
        if self._preprocessor.uses_windows:
            arrays = keras.utils.pack_x_y_sample_weight(*self.arrays(True))
            return _in_memory(tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size))
        columns = {name: _strings(one) for name, one in self._examples.columns.items()}
        parts = (columns, self.targets, self._examples.weights)
        data = tf.data.Dataset.from_tensor_slices(tuple(one for one in parts if one is not None))

        def featured(columns, *rest):
            rows = self._preprocessor.rows(columns, is_fixed)
            return keras.utils.pack_x_y_sample_weight(rows, *rest)

        data = data.batch(batch_size).map(featured, num_parallel_calls=2, deterministic=True)
        return _in_memory(data)


def _in_memory(dataset):
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


class Converter:
    """Examples of a stream → features, labels and weights for a model.

    Args:
        model: AlbertForTexts.
        is_fixed: Whether all rows have the length of the preprocessor.
        has_targets: Whether labels and weights are used.
        learns: Whether the examples say what a new model takes, see `AlbertForTexts.note_inputs`.
    """

    def __init__(self, model: Any, is_fixed: bool, has_targets: bool, learns: bool = False):
        self._model, self._is_fixed, self._has_targets = model, is_fixed, has_targets
        self._learns = learns
        self._preprocessor = model.preprocessor
        self._names = model.text_names

    def converted(self, data: Any, batch_size: int | None = None) -> Any:
        """Returns a data set, a generator or a Sequence for Keras.

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
        if isinstance(data, keras.utils.Sequence):
            if self._learns:
                self._batch(data[0], is_first=True)
            return _Converted(data, self._batch)
        return (self._batch(batch, number == 0) for number, batch in enumerate(data))

    def _features(self, data, size):
        """Returns a data set of features of one in batches, of a size."""
        specs, sample = data.element_spec, tf.nest.map_structure(np.asarray, self._sample(data))
        rows = tf.nest.flatten(specs, expand_composites=True)[0].shape[0]
        rows = None if self._preprocessor.uses_windows else rows
        flat_sample = tf.nest.flatten(sample)
        length = flat_sample[0].shape[-1]  # of the tokens of a row

        def convert(number, *arrays):
            tensors = list(map(tf.convert_to_tensor, arrays))
            batch = tf.nest.pack_sequence_as(specs, tensors, expand_composites=True)
            return [*map(np.asarray, tf.nest.flatten(self._batch(batch, number == 0)))]

        def converted(number, batch):
            flat = [number, *tf.nest.flatten(batch, expand_composites=True)]
            found = tf.numpy_function(convert, flat, [one.dtype for one in flat_sample])
            for value, one in zip(found, flat_sample, strict=True):
                # Without a fixed length, each batch is padded to a length of its own.
                has_tokens = not self._is_fixed and one.ndim > 1 and one.shape[-1] == length
                value.set_shape(
                    [rows, *one.shape[1:-1], None] if has_tokens else [rows, *one.shape[1:]]
                )
            return tf.nest.pack_sequence_as(sample, found)

        data = data.enumerate().map(converted, num_parallel_calls=2)
        if self._preprocessor.uses_windows:
            data = data.unbatch().batch(size)
        return data.prefetch(_PREFETCHED)

    def _sample(self, data):
        """Returns a converted batch, to read types and shapes from.

        It is made up where that is possible: reading one would change the order of shuffled data.
        """
        name = (*self._model.labels, "text")[0]

        def made_up(spec):
            shape, is_text = [1, *spec.shape[1:]], spec.dtype == tf.string
            value = name if is_text else 1 / shape[-1]  # a share of one-hot labels
            return np.full(shape, value, object if is_text else spec.dtype.as_numpy_dtype)

        if int(data.cardinality()) not in (0, tf.data.UNKNOWN_CARDINALITY):
            with contextlib.suppress(TypeError, ValueError, tf.errors.InvalidArgumentError):
                return self._batch(tf.nest.map_structure(made_up, data.element_spec))
        for batch in data.take(1):
            return self._batch(batch)
        raise InputError("A data set must have at least one example. Received: none.")

    def _in_batches(self, data, batch_size):
        """Returns a data set in batches, and the number of examples in one."""
        spec = data.element_spec
        x, y, _ = keras.utils.unpack_x_y_sample_weight(spec)
        if is_features(x) or self._is_batched(x, y):
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

    def _batch(self, batch, is_first=False):
        """Returns a batch in memory, (x, y, weights), as Keras takes it."""
        parts = (batch,) if isinstance(batch, list) and self._is_column(batch) else batch
        x, y, weights = keras.utils.unpack_x_y_sample_weight(parts)
        if is_features(x):
            return keras.utils.pack_x_y_sample_weight(x, self._model.named_targets(y), weights)
        if isinstance(x, str | bytes):
            raise InputError(
                "A generator must yield batches: lists of texts, and their labels. Received: a "
                "single text. For single examples use `tf.data.Dataset.from_generator`."
            )
        targets = (y, weights) if self._has_targets else ()
        examples = self._model.examples(
            x, *targets, has_targets=self._has_targets, learns=self._learns
        )
        if self._learns and is_first:
            self._model.learn_labels(examples)
        if self._preprocessor.uses_windows and not self._has_targets:
            return (self._preprocessor.columns(examples.columns),)
        found = Reader(self._model, examples).arrays(self._is_fixed)
        return keras.utils.pack_x_y_sample_weight(*found) if self._has_targets else (found[0],)

    def _is_column(self, values):
        """Returns whether a list is a column of texts, or of words, and not inputs and labels."""
        has_words = "words" in self._names
        parts = [one if has_words and isinstance(one, list) else [one] for one in values]
        return all(isinstance(text, str | bytes) for part in parts for text in part)

    def _is_batched(self, x, y):
        """Returns whether the elements of a data set are batches, by their specifications."""
        parts = tf.nest.flatten(x)
        rank = parts[0].shape.rank
        if any(part.dtype != tf.string for part in parts) or rank is None:
            raise InputError(
                "A data set must yield texts, with labels and weights, or features. Received: "
                f"elements of {x}."
            )
        of_words = self._preprocessor.uses_windows and "words" in self._names
        if of_words and isinstance(x, Mapping) and "words" in x:
            return rank == 2
        if of_words and rank == 1 and isinstance(y, tf.TensorSpec | tf.RaggedTensorSpec):
            return y.shape.rank == 2  # else a sentence with a tag for each word
        return rank > 0


class _Converted(keras.utils.Sequence):
    """A Sequence, or PyDataset, whose batches threads convert: TensorFlow cannot be forked."""

    def __init__(self, batches, convert):
        super().__init__()
        self._batches, self._convert = batches, convert
        self.on_epoch_end = batches.on_epoch_end
        self.on_epoch_begin = getattr(batches, "on_epoch_begin", None)  # this and below: Keras 3
        self.workers = getattr(batches, "workers", 1)
        self.max_queue_size = getattr(batches, "max_queue_size", 10)

    num_batches = property(lambda self: self._batches.num_batches)

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, number):
        return self._convert(self._batches[number])


@contextlib.contextmanager
def error_of_input() -> Iterator[None]:
    """Raises the InputError that Python code of a data set raised, instead of TensorFlow's own."""
    try:
        yield
    except (tf.errors.UnknownError, tf.errors.InvalidArgumentError) as error:
        if found := re.search(r"InputError: (.*?)(?:\nTraceback|\n\n|\Z)", str(error), re.DOTALL):
            raise InputError(found[1].strip()) from error
        raise
