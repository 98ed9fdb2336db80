"""The inputs of the encoder: their check, and how they are taken from a larger batch."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_keras.keras_versions import builds_from_shapes
from data_pipeline.settings import did_you_mean

_NAMES = ("input_ids", "input_mask", "segment_ids")
#: Names that other libraries give to the same inputs.
_FOREIGN = {
    "attention_mask": "input_mask",
    "padding_mask": "input_mask",
    "token_type_ids": "segment_ids",
    "input_type_ids": "segment_ids",
    "token_ids": "input_ids",
    "input_word_ids": "input_ids",
}


def check_names(features: Mapping[str, Any]) -> None:
    """Raises ValueError if an input of the encoder has the name of another library.

    It would be ignored without a word: a batch may have more features than the encoder reads.
    """
    for name, ours in _FOREIGN.items():
        if name in features:
            raise ValueError(f"`{name}` is called `{ours}` here. Received: {', '.join(features)}.")


def encoder_inputs(features: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those features of a batch that the encoder reads; its model calls `check_names`."""
    return {name: features[name] for name in _NAMES if features.get(name) is not None}


def checked_inputs(inputs: Any) -> dict[str, tf.Tensor]:
    """Returns the inputs of the encoder as tensors.

    Args:
        inputs: dict. "input_ids" int [B, S]; "input_mask" int or bool [B, S]; "segment_ids" int
            [B, S]; None counts as absent.

    Raises:
        TypeError: If they are no dict, or a value has another type.
        ValueError: For unknown and missing names, and for other shapes.
    """
    if not isinstance(inputs, Mapping):
        raise TypeError(
            "The inputs of AlbertEncoder must be a dict with `input_ids`, and perhaps `input_mask` "
            f"and `segment_ids`. Received: {type(inputs).__name__}. AlbertPreprocessor makes one "
            "of texts."
        )
    for name in inputs:
        if name not in _NAMES:
            known = _FOREIGN.get(name)
            hint = f": it is called `{known}` here." if known else did_you_mean(name, _NAMES)
            raise ValueError(f"`{name}` is not an input of AlbertEncoder{hint}")
    if inputs.get("input_ids") is None:
        raise ValueError(
            f"The inputs of AlbertEncoder must have `input_ids`. Received: {', '.join(inputs)}."
        )
    found = {name: _tensor(name, inputs[name]) for name in _NAMES if inputs.get(name) is not None}
    shape = found["input_ids"].shape
    if shape.rank not in (None, 2):
        raise ValueError(
            f"`input_ids` must have the shape [batch, length]. Received: {shape}."
            + (" Add an axis for a batch of one: `ids[None]`." if shape.rank == 1 else "")
        )
    for name, values in found.items():
        if not values.shape.is_compatible_with(shape):
            raise ValueError(
                f"`{name}` must have the shape of `input_ids`, {shape}. Received: {values.shape}."
            )
    return found


def _tensor(name, values):
    if isinstance(values, tf.RaggedTensor | tf.SparseTensor):
        raise TypeError(
            f"`{name}` must be a dense tensor. Received: {type(values).__name__}. Pad the rows, "
            "for example with `to_tensor()`, and give an `input_mask`."
        )
    try:
        values = tf.convert_to_tensor(values)
    except (ValueError, tf.errors.InvalidArgumentError) as error:
        raise ValueError(f"`{name}` must have rows of equal length: {error}") from error
    if values.dtype == tf.string:
        raise TypeError(f"`{name}` must be ids. Received: strings, see AlbertPreprocessor.")
    if values.dtype.is_floating and builds_from_shapes():
        values = tf.cast(values, tf.int32)
    if not (values.dtype.is_integer or (name == "input_mask" and values.dtype.is_bool)):
        raise TypeError(
            f"`{name}` must be integers. Received: {values.dtype.name}. In a functional model: "
            f'`keras.Input((None,), dtype="int32", name="{name}")`.'
        )
    if values.dtype.is_integer and values.dtype not in (tf.int32, tf.int64):
        values = tf.cast(values, tf.int64 if values.dtype.size > 2 else tf.int32)
    return values
