"""Whatever Keras takes as examples of texts → data sets of the features that a model learns from.

There are two kinds of examples. Those in memory are `Examples`: lists, arrays, columns and tables.
The others arrive one after the other: data sets and generators.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.models.targets import plain, without_width
from data_pipeline.errors import InputError
from data_pipeline.randomness import key_of, permute
from data_pipeline.settings import did_you_mean

#: Names of a column of labels in a table.
_LABEL = "label"
#: Examples of a batch, if nothing else is given, as in Keras.
BATCH_SIZE = 32
#: Batches that are made ahead of their use.
_PREFETCHED = 4
#: Examples whose windows are laid out at a time.
_AT_ONCE = 256
#: Features with a value for each token.
_OF_TOKENS = ("input_ids", "input_mask", "segment_ids", "p_mask", "tag_ids")


class Examples:
    """N examples in memory.

    Attributes:
        columns: dict of list. The texts by their names, see `TextPreprocessor.fields`.
        labels: What a user gave as labels, a list; None if there are none.
        weights: float32 [N] or None.
    """

    def __init__(self, columns: dict[str, list], labels: Any = None, weights: Any = None):
        self.columns, self.labels, self.weights = columns, labels, weights
        lengths = {name: len(values) for name, values in columns.items()}
        if labels is not None:
            lengths["labels"] = len(labels)
        if weights is not None:
            lengths["weights"] = len(weights)
        if len(set(lengths.values())) != 1 or not min(lengths.values()):
            listing = ", ".join(f"{count} of {name}" for name, count in lengths.items())
            raise InputError(
                f"There must be at least one input, and as many labels. Received: {listing}."
            )
        for name, values in columns.items():
            _check_texts(name, values)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def rows(self, numbers: Any) -> "Examples":
        """Returns the examples with some numbers, in their order."""

        def chosen(values):
            return None if values is None else [values[number] for number in numbers]

        weights = None if self.weights is None else self.weights[numbers]
        columns = {name: chosen(values) for name, values in self.columns.items()}
        return Examples(columns, chosen(self.labels), weights)

    def split(self, share: float) -> tuple["Examples", "Examples | None"]:
        """Returns the first examples, and the rest, of which there is that share; None for 0."""
        if not share:
            return self, None
        begin = math.floor(len(self) * (1 - share))
        if not 0 < begin < len(self):
            raise InputError(
                "`validation_split` must leave examples on both sides. "
                f"Received: {share} of {len(self)} examples."
            )
        return self.rows(np.arange(begin)), self.rows(np.arange(begin, len(self)))


def examples_of(x: Any, y: Any, weights: Any, names: tuple[str, ...]) -> Examples:
    """Returns examples that are in memory.

    Args:
        x: Texts: a list, an array, a column of a table, or one of width 1; a tuple of such columns
            in the order of `names`; a dict of them; or a DataFrame with columns of these names, and
            perhaps `label`.
        y: Labels; None if `x` has them, or there are none.
        weights: float [N] or None.
        names: Of the texts of an example.

    Raises:
        InputError: If there are no such texts, or other numbers of labels or weights.
    """
    if isinstance(x, str | bytes):
        raise InputError("Inputs must be a list of texts. Received: a single text.")
    if hasattr(x, "columns"):
        x, y = _of_frame(x, y, names)
    if is_parts(x):
        if len(x) > len(names):
            raise InputError(
                f"An example has the parts {', '.join(names)}. Received: {len(x)} parts."
            )
        x = dict(zip(names, x, strict=False))
    if not isinstance(x, Mapping):
        x = {names[0]: x}
    if unknown := [name for name in x if name not in names]:
        raise InputError(f"`{unknown[0]}` is not an input{did_you_mean(str(unknown[0]), names)}")
    columns = {name: _column(name, values) for name, values in x.items()}
    if "words" not in names:  # whose sentences may have a single word
        columns |= {name: without_width(columns[name]) for name in columns.keys() - {"options"}}
    if {*columns} == {"text"} and "words" in names and any(map(_is_list, columns["text"])):
        columns = {"words": columns["text"]}
    if weights is not None:
        weights = np.array(without_width(plain(weights)), np.float32)
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
            raise InputError(
                "`sample_weight` must be a number of at least 0 for each example. "
                f"Received: an array of the shape {weights.shape}."
            )
    return Examples(columns, None if y is None else _labels(y), weights)


def _labels(labels):
    """Returns labels as a list; a table of several columns has a row for each example."""
    if hasattr(labels, "columns"):
        labels = labels.to_numpy()
    if isinstance(labels, Mapping):
        columns = {name: plain(values) for name, values in labels.items()}
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]
    if isinstance(labels, str | bytes):
        raise InputError(f"Labels must be a list. Received: {labels!r}.")
    return plain(labels)


def is_parts(x: Any) -> bool:
    """Returns whether inputs are a tuple with a column of each part, and not a tuple of texts."""
    return isinstance(x, tuple) and bool(x) and not isinstance(x[0], str | bytes)


def _of_frame(frame, labels, names):
    """Returns the columns of a table that are texts, by name, and its labels."""
    known = ", ".join(map(str, frame.columns))
    columns = {name: frame[name] for name in names if name in frame.columns}
    if not columns and len(frame.columns) == 1:
        columns = {names[0]: frame[frame.columns[0]]}
    if not columns:
        raise InputError(
            f"The table has no column `{names[0]}`. Received the columns {known}. Rename one, or "
            "give the columns themselves."
        )
    if labels is None and _LABEL in frame.columns:
        labels = frame[_LABEL]
    return columns, labels


def _is_list(value):
    return isinstance(value, list)


def _column(name, values):
    """Returns the texts of a column as a list."""
    values = plain(values)
    if not isinstance(values, list):
        raise InputError(f"`{name}` must be a list. Received: {values!r}.")
    return values


def _check_texts(name, values):
    """Raises InputError for values of a column that are no texts, or no lists of them."""
    is_list = [isinstance(value, list) for value in values]
    if name not in ("words", "options") and any(is_list):
        raise InputError(
            f"`{name}` must be texts. Received lists of texts. Examples of several texts are a "
            "tuple of columns, such as `tuple(zip(*rows))`, not a list of rows."
        )
    for at, value in enumerate(values):
        if name in ("words", "options") and (not isinstance(value, list) or not value):
            raise InputError(
                f"Input {at + 1} of {len(values)}: `{name}` must be a list of texts. "
                f"Received: {value!r}."
            )
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                raise InputError(
                    f"Input {at + 1} of {len(values)}: `{name}` must be a text. Received: {text!r}."
                )
            if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
                raise InputError(
                    f"Input {at + 1} of {len(values)}: `{name}` must be Unicode. It has half a "
                    "surrogate pair."
                )


# === Features of examples in memory


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
        weights = {} if examples.weights is None else {"sample_weight": examples.weights}
        #: dict of array [rows, ...]: strings for the preprocessor, or features.
        self.columns, self._takes_strings = {}, not self._preprocessor.uses_windows
        if self._takes_strings:
            self._names = tuple(examples.columns)
            texts = {name: _strings(values) for name, values in examples.columns.items()}
            self.columns = texts | targets | weights
        else:
            self.columns = self._windows(examples.columns, targets | weights)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def read(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Returns rows; those of a data set of windows as they are laid out."""
        return {name: values[rows] for name, values in self.columns.items()}

    def features(self, columns: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the features of rows; windows are features already."""
        if not self._takes_strings:
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
    types = [tf.as_dtype(_plain_strings(values).dtype) for values in sample.values()]

    def read(step):
        return [_plain_strings(values) for values in reader.read(rows_at(int(step))).values()]

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


def _plain_strings(values):
    return values.astype(object) if values.dtype.kind in "USO" else values


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
        """Returns a data set, a generator or a Sequence of features; arguments as `dataset`."""
        if isinstance(data, tf.data.Dataset):
            return self.dataset(data, batch_size)
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
            return _Converted(data, self.batch)
        return map(self.batch, data)

    def texts(self, data: Any, batch_size: int | None = None) -> Any:
        """Returns what `predict` of Keras takes: texts of a data set in batches, or features."""
        if not (isinstance(data, tf.data.Dataset) and self._preprocessor.uses_windows):
            return self.converted(data, batch_size)
        data, _ = self._in_batches(data, batch_size)
        return data.map(lambda *batch: self._preprocessor.columns(_without_width(batch[0])))

    def dataset(self, data: tf.data.Dataset, batch_size: int | None) -> tf.data.Dataset:
        """Returns a data set of features in batches.

        Args:
            data: Of inputs, (inputs, labels) or (inputs, labels, weights), in batches or not.
            batch_size: Examples of a batch, for a data set that has none.

        Raises:
            ValueError: If a data set in batches comes with a batch size.
            InputError: If its elements are no examples.
        """
        data, size = self._in_batches(data, batch_size)
        specs, sample = data.element_spec, next(iter(data.take(1)), None)
        rows = tf.nest.flatten(specs, expand_composites=True)[0].shape[0]
        rows = None if self._preprocessor.uses_windows else rows
        if sample is None:
            raise InputError("A data set must have at least one example. Received: none.")
        sample = self.batch(sample)

        def convert(*arrays):
            tensors = list(map(tf.convert_to_tensor, arrays))
            found = self.batch(tf.nest.pack_sequence_as(specs, tensors, expand_composites=True))
            return [np.asarray(found[name]) for name in sample]

        def features_of(*batch):
            flat = tf.nest.flatten(batch, expand_composites=True)
            found = tf.numpy_function(convert, flat, [one.dtype for one in sample.values()])
            for value, (name, one) in zip(found, sample.items(), strict=True):
                # Without a fixed length, each batch is padded to a length of its own.
                shape = [rows, *one.shape[1:]]
                if name in _OF_TOKENS and not self._is_fixed:
                    shape[-1] = None
                value.set_shape(shape)
            return dict(zip(sample, found, strict=True))

        data = data.map(features_of, num_parallel_calls=2)
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

    def batch(self, batch: Any) -> dict[str, np.ndarray]:
        """Returns the features of a batch in memory, (x, y, weights), as a generator yields it."""
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
        if is_features(x):
            return batch
        if isinstance(x, str | bytes):
            raise InputError(
                "A generator must yield batches: lists of texts, and their labels. Received: a "
                "single text. For single examples use `tf.data.Dataset.from_generator`."
            )
        if not self._has_targets:
            y = weights = None
        examples = examples_of(x, y, weights, self._names)
        self._model.note_inputs(examples.columns)
        reader = Reader(self._model, examples, self._is_fixed)
        columns = reader.read(np.arange(len(reader)))
        tensors = {name: tf.constant(_as_list(values)) for name, values in columns.items()}
        return reader.features(tensors)

    def _is_batched(self, x, y):
        """Returns whether the elements of a data set are batches, by their specifications."""
        parts = list(x) if isinstance(x, tuple) else [x]
        parts = list(x.values()) if isinstance(x, Mapping) else parts
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


def _as_list(values):
    return values.tolist() if values.dtype.kind in "USO" else values


def _without_width(x):
    """Returns columns of width 1, string [B, 1], as [B]."""

    def narrow(column):
        is_column = isinstance(column, tf.Tensor) and column.shape.rank == 2
        return column[:, 0] if is_column and column.shape[1] == 1 else column

    return tf.nest.map_structure(narrow, x)


def sizes_of(columns: Mapping[str, list]) -> np.ndarray:
    """Returns the number of characters of each example, int64 [N]."""
    counts = [
        [sum(map(len, value)) if isinstance(value, list) else len(value) for value in values]
        for values in columns.values()
    ]
    return np.sum(counts, axis=0)


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
