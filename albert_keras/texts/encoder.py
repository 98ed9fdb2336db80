"""Texts → vectors, with the encoder of any trained model."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.formats.open_weights import open_weights
from albert_keras.models.answers import check_finite
from albert_keras.models.pooling import POOLINGS, Pooling
from albert_keras.models.preprocessor import AlbertPreprocessor
from albert_keras.models.row_predictor import RowPredictor
from albert_keras.models.similarity import AlbertForSimilarity
from albert_keras.models.text_rows import TextRows
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Longest sequence if the length of the training is not known.
_USUAL_LENGTH = 512
#: [CLS] and [SEP].
_NUM_SPECIAL = 2


class EmbeddingSettings(NamedTuple):
    """How vectors are computed from the outputs of an encoder."""

    pooling: str = "mean"  # see `Pooling`
    normalize: bool = False  # whether vectors are divided by their lengths
    max_seq_length: int | None = None  # tokens after which a text is truncated, S


class Vectors(NamedTuple):
    """Vectors of N texts."""

    vectors: np.ndarray  # float32 [N, H]
    num_truncated: int  # texts that have more tokens than the encoder reads


class TextEncoder:
    """Computes vectors of texts with the encoder of a trained model, in float32.

    Args:
        model: Run, fine-tuning (which means its best seed), export or version of it (whose `.keras`
            file must be beside it), name of a shipped model, checkpoint or `.keras` file.
        pooling: See `Pooling`. None takes the pooling that a model for similarity was trained with,
            and "mean" for any other model.
        normalize: Whether vectors have the length 1.
        sequence_length: Longer texts are truncated. None takes the length of the training, or what
            the model can read, at most 512, if that is not known.
        batch_size: Texts per call of the model.
        step: Checkpoint of a run, or "best". None takes the newest one, or the best one of a
            fine-tuned run.

    Attributes:
        settings: EmbeddingSettings, with a value for each default.
        size: int. H.
        tokenizer: Tokenizer.
        digest: str. SHA-256 of the weights of the encoder.

    Raises:
        InputError: If there is no such model, or an option does not fit it.
    """

    def __init__(
        self,
        model: str | Path,
        pooling: str | None = None,
        normalize: bool = False,
        sequence_length: int | None = None,
        batch_size: int = 64,
        step: int | str | None = None,
    ):
        weights = open_weights(model, step)
        config, task = weights.albert_config, weights.task or {}
        trained = task.get("pooling") if task.get("name") == "similarity" else weights.pooling
        if trained is None:
            logger.warning(
                "`%s` was not trained for similarity: counts of words may compare texts better "
                "than its vectors. hf://sentence-transformers/all-MiniLM-L6-v2 was, and so is a "
                "fine-tuning on the task `similarity`.",
                weights.path,
            )
        pooling = pooling or trained or "mean"
        if pooling not in POOLINGS:
            raise InputError(
                f"`pooling` must be one of {', '.join(POOLINGS)}. Received: {pooling}."
            )
        self.settings = EmbeddingSettings(
            pooling,
            normalize or weights.normalize,
            _checked_length(
                sequence_length, weights.longest_text or weights.sequence_length, config
            ),
        )
        self.origin, self.step, self.digest = weights.path, weights.step, weights.digest
        self.size, self.tokenizer = config.hidden_size, weights.tokenizer
        loaded = AlbertForSimilarity(config, dtype="float32", pooling=pooling)
        if weights.load(loaded).new:
            raise InputError(
                f"The pooling `pooler` must not be used with `{model}`, which was trained without "
                "a pooler. Use mean or cls."
            )
        self._preprocessor = AlbertPreprocessor(self.tokenizer, self.settings.max_seq_length)
        self._encoder, self._pooling = loaded.encoder, Pooling(pooling)
        self._predictor = RowPredictor(
            tf.distribute.get_strategy(), self._outputs, batch_size, noun="texts", config=config
        )

    def describe(self) -> dict[str, Any]:
        """Returns what determines the vectors, plain JSON."""
        return {
            "model": self.origin,
            "step": self.step,
            "encoder_digest": self.digest,
            "tokenizer_digest": self.tokenizer.digest,
            "size": self.size,
            **self.settings._asdict(),
        }

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Computes the vectors of texts, which are sorted by length for this.

        Raises InputError if a vector is not finite.
        """
        if not len(texts):
            return Vectors(np.zeros([0, self.size], np.float32), 0)
        rows = TextRows(self._preprocessor, {"text": list(texts)})
        found = self._predictor.predict(rows)
        check_finite(found)
        return Vectors(found["vectors"], int(np.count_nonzero(rows.dropped_tokens)))

    def _outputs(self, inputs, training):
        positions = None
        if self._pooling.reads_cls_only:
            positions = tf.zeros_like(inputs["input_ids"][:, :1])
        outputs = self._encoder(inputs, training=training, positions=positions)
        vectors = self._pooling(outputs, inputs["input_mask"])
        if self.settings.normalize:
            vectors = tf.math.l2_normalize(vectors, -1)
        return {"vectors": vectors}


def _checked_length(length, trained, config):
    longest = config.max_position_embeddings
    if length is None:
        length = min(trained or _USUAL_LENGTH, longest)
    if not _NUM_SPECIAL < length <= longest:
        raise InputError(
            f"`sequence_length` must be from {_NUM_SPECIAL + 1} to {longest}, the positions of "
            f"the model. Received: {length}."
        )
    return length
