"""Texts → the encoder's inputs, as a layer that is saved with a model."""

import operator
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from albert_keras.keras_versions import any_inputs, export_along, take_any_inputs
from albert_keras.layers.text_packing import TextPacker, num_tokens_of, readable
from data_pipeline.settings import did_you_mean
from data_pipeline.tokenizers.graph_tokenization import graph_tokenizer
from data_pipeline.tokenizers.tokenization import Tokenizer


class Packed(NamedTuple):
    """The rows of B examples.

    Attributes:
        rows: dict of tensors [W, ...]. The features of the rows; W is B, unless long texts take
            several rows.
        origin: Tensors that `read_out` of a model needs beside the outputs for the rows: what
            belongs to the examples, such as their "dropped_tokens", int32 [B].
    """

    rows: dict[str, Any]
    origin: Any


class TextPreprocessor(keras.layers.Layer):
    """Base of the layers that turn texts into the inputs of a model, and of nothing else.

    Arguments are those of `AlbertPreprocessor`. A subclass defines `packed`.
    """

    #: Names of the texts of an example, in the order in which they are given.
    fields: tuple[str, ...] = ("text",)
    #: Texts that an example may have besides.
    optional_fields: tuple[str, ...] = ()
    #: Whether a long text takes several rows.
    uses_windows = False
    #: What the layer is built from.
    _fixed = ("tokenizer", "sequence_length", "padding")
    _make_tokenizer = staticmethod(graph_tokenizer)

    def __init__(
        self,
        tokenizer: Any,
        sequence_length: int = 128,
        padding: str = "sequence_length",
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(name=name, **{"dtype": "float32", **kwargs})  # it has no weights
        take_any_inputs(self)
        if padding not in ("sequence_length", "bucket") or sequence_length < 4:
            raise ValueError(
                "`padding` must be sequence_length or bucket, and `sequence_length` at least 4. "
                f"Received: {padding!r} and {sequence_length}."
            )
        self.supports_jit = False  # XLA has no strings; Keras 3 compiles by it where it can
        is_stored = isinstance(tokenizer, Mapping)
        self.tokenizer = Tokenizer.from_config(tokenizer) if is_stored else _loaded(tokenizer)
        self.sequence_length, self.padding = operator.index(sequence_length), padding
        self.graph_tokenizer = self._make_tokenizer(self.tokenizer)
        export_along(self.graph_tokenizer)
        self._packers = {
            is_fixed: TextPacker(self.tokenizer, sequence_length, is_fixed)
            for is_fixed in (True, False)
        }
        self.built = True

    @classmethod
    def from_preset(
        cls, source: str | Path | Tokenizer, sequence_length: int = 128, **kwargs: Any
    ) -> Any:
        """Returns the preprocessor with the tokenizer of a model.

        Args:
            source: As `AlbertEncoder.from_preset`; or a tokenizer or its folder.
            sequence_length, **kwargs: As in the class.

        Raises:
            InputError: If the source has no tokenizer, or it is damaged.
        """
        return cls(source, sequence_length, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fixed and name in vars(self):
            raise AttributeError(
                f"`{name}` of a preprocessor cannot be changed. Make another one, as by "
                f"`{type(self).__name__}({name}=...)`, or give `{name}` to `from_preset`."
            )
        super().__setattr__(name, value)

    def __call__(self, texts: Any, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(any_inputs(texts), *args, **kwargs)

    def call(self, texts: Any) -> dict[str, tf.Tensor]:
        return self.rows(self.columns(texts), is_fixed=self.padding == "sequence_length")

    def columns(self, inputs: Any) -> dict[str, Any]:
        """Returns the texts of B examples as string tensors [B] by their names, see `fields`.

        Args:
            inputs: The only text; a tuple of the texts in the order of `fields`; or a dict.
        """
        names = (*self.fields, *self.optional_fields)
        is_named = isinstance(inputs, Mapping)
        parts = inputs if is_named else dict(zip(names, _parts_of(inputs, names), strict=False))
        self.check_names(parts)
        columns = {name: strings_of(part) for name, part in parts.items()}
        first = next(iter(columns.values()))
        for name, column in columns.items():
            rank = 2 if name == "options" else 1
            is_even = column.shape[:1].is_compatible_with(first.shape[:1])
            if column.shape.rank != rank or not is_even:
                shapes = ", ".join(f"{name} {each.shape}" for name, each in columns.items())
                raise ValueError(
                    "Texts must be strings [B] or a scalar, and all parts have the same number "
                    f"of texts{', options [B, C]' if 'options' in names else ''}. "
                    f"Received the shapes: {shapes}."
                )
        return columns

    def check_names(self, parts: Collection[str]) -> None:
        """Raises ValueError unless the texts of examples have the names of all that is read."""
        names = (*self.fields, *self.optional_fields)
        if unknown := [name for name in parts if name not in names]:
            raise ValueError(f"`{unknown[0]}` is not an input{did_you_mean(unknown[0], names)}")
        if missing := [name for name in self.fields if name not in parts]:
            raise ValueError(
                f"Inputs must have {', '.join(f'`{name}`' for name in self.fields)}. Received "
                f"no `{missing[0]}`."
            )

    def packed(
        self, columns: Mapping[str, Any], is_fixed: bool, targets: Mapping[str, Any] | None = None
    ) -> Packed:
        """Builds the rows of examples.

        Args:
            columns: As returned by `columns`.
            is_fixed: Whether all rows have S tokens; otherwise as many as the next bucket.
            targets: What is to be learned from each example and its "sample_weight", [B, ...] by
                name, which a layer that uses windows turns into those of its rows.
        """
        raise NotImplementedError

    def rows(
        self, columns: Mapping[str, Any], is_fixed: bool, targets: Mapping[str, Any] | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns the rows alone, a dict of [W, ...]; arguments as of `packed`."""
        return self.packed(columns, is_fixed, targets).rows

    def sequences(self, columns: Mapping[str, Any], is_fixed: bool) -> Packed:
        """Returns one sequence for each single text, "text", [B, S]."""
        ids = self.ids(columns["text"])
        packed = self._packers[is_fixed].pack(ids)
        num_tokens = num_tokens_of(columns["text"], ids, self.max_bytes)
        return Packed(packed, self._dropped(packed, num_tokens))

    @property
    def max_bytes(self) -> int:
        """Bytes of a text that are read."""
        return self._packers[True].max_bytes

    def _dropped(self, packed, num_tokens):
        """Returns the tokens that are in no sequence, as `origin` of Packed."""
        return {"dropped_tokens": self._packers[True].num_dropped(packed, num_tokens)}

    def packer(self, is_fixed: bool) -> TextPacker:
        """Returns what packs the ids of texts; `is_fixed` as in `rows`."""
        return self._packers[is_fixed]

    def ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of that part of texts, string [B], that is read: ragged [B, None]."""
        return self.graph_tokenizer(readable(texts, self.max_bytes))

    def detokenize(self, ids: Any) -> Any:
        """Returns the text of ids, without [CLS], [SEP] and padding.

        Args:
            ids: int [S] or [B, S], as tensor, array or list; rows may differ in length.

        Returns:
            str, or a list of B str.
        """
        rows = ids.to_list() if isinstance(ids, tf.RaggedTensor) else np.asarray(ids).tolist()
        if rows and isinstance(rows[0], list):
            return [self.tokenizer.decode(row) for row in rows]
        return self.tokenizer.decode(rows)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "dtype": self.dtype_policy.name,  # which either Keras reads
            "tokenizer": self.tokenizer.get_config(),
            "sequence_length": self.sequence_length,
            "padding": self.padding,
        }

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} sequence_length={self.sequence_length}, "
            f"padding={self.padding!r}, {self.tokenizer!r}>"
        )


@keras.saving.register_keras_serializable("albert_keras")
class AlbertPreprocessor(TextPreprocessor):
    """Tokenizes texts, or pairs of texts, and packs them into the inputs of `AlbertEncoder`.

    It works eagerly, in `tf.data.Dataset.map`, and in a functional model over strings, with which
    it is saved: the vocabulary is a part of its configuration. It has no weights.

    Args:
        tokenizer: Tokenizer; the folder of a tokenizer or a model, see `load_tokenizer`; or what
            `get_config` returned for one.
        sequence_length: int. S, the length to which longer texts are truncated. Of a pair the
            longer text is truncated at its end.
        padding: str. "sequence_length" pads all sequences to S, so that the shape is static, as
            TPUs and `Dataset.batch` require. "bucket" pads a batch to the next of 16, 32, 64, ...
            tokens, which saves most of the work for short texts.

    Call arguments:
        texts: string [B] or a scalar; as tensor, array, column of a table, str or list of str. A
            tuple of two of these, or a list of two tensors or arrays, is a pair of columns:
            `[CLS] a [SEP] b [SEP]`; so is a dict with "text" and "pair". A text may contain any
            bytes; those that are not UTF-8 are replaced.

    Returns:
        dict of int32 [B, S], or [S] for a scalar: "input_ids", "input_mask", 1 for a real token,
        and "segment_ids", 1 for the second text.

    Example:
        preprocessor = AlbertPreprocessor.from_preset("albert-mini-en", sequence_length=32)
        inputs = preprocessor(["The ship sailed.", "It was late."])
        inputs["input_ids"].shape  # [2, 32]
        preprocessor.detokenize(inputs["input_ids"])[0]  # the ship sailed.

    Source:
        `convert_single_example` in google-research/albert, `classifier_utils.py`.
    """

    optional_fields = ("pair",)

    def call(self, texts: Any) -> dict[str, tf.Tensor]:
        columns = self.columns(texts)
        is_fixed = self.padding == "sequence_length"
        packed = self.rows(columns, is_fixed)
        if is_fixed:
            rows = next(iter(columns.values())).shape[0]
            packed = {
                name: tf.ensure_shape(value, [rows, self.sequence_length])
                for name, value in packed.items()
            }
        return {name: value[0] for name, value in packed.items()} if _is_scalar(texts) else packed

    def packed(
        self, columns: Mapping[str, Any], is_fixed: bool, targets: Mapping[str, Any] | None = None
    ) -> Packed:
        texts = [columns[name] for name in ("text", "pair") if name in columns]
        ids = [self.ids(text) for text in texts]
        second = ids[1] if len(ids) > 1 else None
        packed = self._packers[is_fixed].pack(ids[0], second, drops_empty=True)
        counts = [num_tokens_of(*one, self.max_bytes) for one in zip(texts, ids, strict=True)]
        return Packed(packed, self._dropped(packed, tf.add_n(counts)))

    sequences = packed


def _loaded(source):
    # Here, as the class alone needs no readers of files.
    from albert_keras.formats.vocabulary import load_tokenizer

    return load_tokenizer(source)


def _parts_of(inputs, names):
    """Returns the parts of examples, columns in the order of `names`, see `TextPreprocessor`."""
    is_list = isinstance(inputs, list) and inputs and not isinstance(inputs[0], str | bytes)
    if is_list and isinstance(inputs[0], list | tuple) and len(names) > 1:
        raise ValueError(
            f"Examples of several texts must be columns, ({', '.join(names)}), each with one text "
            "of every example. A list of lists might as well be one row for each example: use "
            f"`tuple(zip(*rows))`. Received: a list of {len(inputs)} lists."
        )
    if not is_list and not isinstance(inputs, tuple):
        return (inputs,)
    if not 0 < len(inputs) <= len(names):
        raise ValueError(
            f"A tuple of texts must be at most {len(names)} columns, ({', '.join(names)}). "
            f"Received: {len(inputs)}."
        )
    return tuple(inputs)


def _is_scalar(texts):
    """Returns whether the texts of a call argument are those of one example."""
    first = next(iter(texts.values())) if isinstance(texts, Mapping) else texts
    first = first[0] if isinstance(first, tuple) else first
    return isinstance(first, str | bytes) or getattr(first, "shape", (0,)) == ()


def strings_of(texts: Any) -> Any:
    """Returns texts, [B] or of one example, as a string tensor [B]; ragged if rows are lists."""
    if isinstance(texts, tf.RaggedTensor):
        return texts
    if isinstance(texts, np.ndarray) or hasattr(texts, "to_numpy"):  # a column of pandas
        values = np.asarray(texts)
        others = [text for text in values.ravel().tolist() if not isinstance(text, str | bytes)]
        if others and not np.issubdtype(values.dtype, np.number):
            raise TypeError(f"Texts must be strings. Received: {others[0]!r}.")
        texts = values if np.issubdtype(values.dtype, np.number) else values.tolist()
    is_nested = isinstance(texts, list | tuple) and texts and isinstance(texts[0], list | tuple)
    try:
        strings = tf.ragged.constant(texts) if is_nested else tf.convert_to_tensor(texts)
    except (ValueError, TypeError) as error:
        raise TypeError(f"Texts must be strings. {error}") from error
    if strings.dtype != tf.string:
        raise TypeError(
            f"Texts must be strings. Received: {strings.dtype.name}. Ids need no preprocessor: "
            "they are the `input_ids` of the encoder. A `keras.Sequential` that begins with a "
            'preprocessor needs `keras.Input((), dtype="string")` before it.'
        )
    if strings.shape.rank == 0:
        return strings[None]
    if strings.shape.rank == 2 and strings.shape[1] == 1:  # a column of a table
        return strings[:, 0]
    return strings
