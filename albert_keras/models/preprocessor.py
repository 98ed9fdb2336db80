"""Texts → the encoder's inputs, as a layer that is saved with a model."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.layers.text_packing import TextPacker, readable
from albert_keras.models.presets import open_tokenizer
from data_pipeline.tokenizers.graph_tokenization import graph_tokenizer
from data_pipeline.tokenizers.tokenization import MODELS, Tokenizer


@keras.saving.register_keras_serializable("albert_keras")
class AlbertPreprocessor(keras.layers.Layer):
    """Tokenizes texts, or pairs of texts, and packs them into the inputs of `AlbertEncoder`.

    It works eagerly, in `tf.data.Dataset.map`, and in a functional model over strings, with which
    it is saved: the vocabulary is a part of its configuration. It has no weights.

    Args:
        tokenizer: Tokenizer; the folder of a tokenizer or a model, see `load_tokenizer`; or what
            `get_config` returned for one.
        sequence_length: int. S, the length to which longer texts are truncated. Of a pair the
            longer text is truncated at its end.
        pads_to: str. "sequence_length" pads all sequences to S, so that the shape is static, as
            TPUs and `Dataset.batch` require. "bucket" pads a batch to the next of 16, 32, 64, ...
            tokens, which saves most of the work for short texts.

    Call arguments:
        texts: string [B] or a scalar; as tensor, array, str or list of str. A tuple of two of
            these, or a list of two tensors, is a pair: `[CLS] a [SEP] b [SEP]`. A text may contain
            any bytes; those that are not UTF-8 are replaced.

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

    def __init__(
        self,
        tokenizer: Any,
        sequence_length: int = 128,
        pads_to: str = "sequence_length",
        name: str = "preprocessor",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        if pads_to not in ("sequence_length", "bucket") or sequence_length < 4:
            raise ValueError(
                "`pads_to` must be sequence_length or bucket, and `sequence_length` at least 4. "
                f"Received: {pads_to!r} and {sequence_length}."
            )
        self.tokenizer = restored_tokenizer(tokenizer)
        self.sequence_length, self.pads_to = sequence_length, pads_to
        self._graph_tokenizer = graph_tokenizer(self.tokenizer)
        self._packer = TextPacker(self.tokenizer, sequence_length, pads_to == "sequence_length")
        self.built = True

    @classmethod
    def from_preset(
        cls, source: str | Path | Tokenizer, sequence_length: int = 128, **kwargs: Any
    ) -> "AlbertPreprocessor":
        """Returns the preprocessor with the tokenizer of a model.

        Args:
            source: As `AlbertEncoder.from_preset`; or a tokenizer or its folder.
            sequence_length, **kwargs: As in `AlbertPreprocessor`.

        Raises:
            InputError: If the source has no tokenizer, or it is damaged.
        """
        return cls(open_tokenizer(source), sequence_length, **kwargs)

    def call(self, texts: Any) -> dict[str, tf.Tensor]:
        parts = [_strings(part) for part in _parts_of(texts)]
        is_scalar = parts[0].shape.rank == 0
        if any(part.shape.rank not in (0, 1) for part in parts) or (
            len(parts) == 2 and not parts[0].shape.is_compatible_with(parts[1].shape)
        ):
            shapes = ", ".join(str(part.shape) for part in parts)
            raise ValueError(
                "Texts must be strings [B] or a scalar, and both parts of a pair must have the "
                f"same number of texts. Received the shape(s) {shapes}."
            )
        tokens = [
            self._graph_tokenizer(readable(tf.reshape(part, [-1]), self._packer.max_bytes))
            for part in parts
        ]
        second = tokens[1] if len(tokens) == 2 else None
        packed = self._packer.pack(tokens[0], second, drops_empty=True)
        if self.pads_to == "sequence_length":
            rows = parts[0].shape[0] if not is_scalar else 1
            packed = {
                key: tf.ensure_shape(value, [rows, self.sequence_length])
                for key, value in packed.items()
            }
        return {key: value[0] for key, value in packed.items()} if is_scalar else packed

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
            "tokenizer": tokenizer_config(self.tokenizer),
            "sequence_length": self.sequence_length,
            "pads_to": self.pads_to,
        }


def tokenizer_config(tokenizer: Tokenizer) -> dict[str, Any]:
    """Returns a tokenizer as plain JSON, as it is saved with a model."""
    config = {"kind": tokenizer.config.kind} | tokenizer.config.model_dump(mode="json")
    return {"config": config, "model": base64.b64encode(tokenizer.model_bytes).decode()}


def restored_tokenizer(tokenizer: Any) -> Tokenizer:
    """Returns the Tokenizer of `tokenizer_config`; other values as `open_tokenizer`."""
    if not isinstance(tokenizer, dict):
        return open_tokenizer(tokenizer)
    config_class = MODELS[tokenizer["config"]["kind"]].config_class
    config = config_class(**tokenizer["config"])
    return Tokenizer(base64.b64decode(tokenizer["model"]), config)


def _parts_of(texts):
    """Returns the one or two texts of a call argument, see `AlbertPreprocessor`."""
    is_pair = isinstance(texts, tuple) or (
        isinstance(texts, list) and texts and not isinstance(texts[0], str | bytes)
    )
    if is_pair and len(texts) not in (1, 2):
        raise ValueError(f"A tuple of texts must be a pair of them. Received: {len(texts)} texts.")
    return tuple(texts) if is_pair else (texts,)


def _strings(texts):
    if isinstance(texts, np.ndarray) or hasattr(texts, "to_numpy"):  # a column of pandas
        texts = [str(text) for text in np.asarray(texts).tolist()] if np.ndim(texts) else str(texts)
    strings = tf.convert_to_tensor(texts)
    if strings.dtype != tf.string:
        raise TypeError(
            f"Texts must be strings. Received: {strings.dtype.name}. Ids need no preprocessor: "
            "they are the `input_ids` of the encoder."
        )
    return strings
