"""Texts → vectors, with the encoder of any trained model."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.formats.open_weights import open_weights
from albert_keras.models.answers import check_finite
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


class Vectors(NamedTuple):
    """Vectors of N texts."""

    vectors: np.ndarray  # float32 [N, H]
    num_truncated: int  # texts that have more tokens than the encoder reads


class TextEncoder:
    """Computes vectors of texts with the encoder of a trained model, in float32.

    They have the length 1, and are what a model for similarity was trained to compare; of another
    model they are the mean over all tokens.

    Args:
        model: Run, fine-tuning (which means its best seed), export or version of it (whose `.keras`
            file must be beside it), name of a shipped model, checkpoint or `.keras` file.
        sequence_length: Longer texts are truncated. None takes the length of the training, or what
            the model can read, at most 512, if that is not known.
        batch_size: Texts per call of the model.

    Attributes:
        sequence_length: int. S.
        size: int. H.
        tokenizer: Tokenizer.
        digest: str. SHA-256 of the weights of the encoder.

    Raises:
        InputError: If there is no such model, or an option does not fit it.
    """

    def __init__(
        self,
        model: str | Path,
        sequence_length: int | None = None,
        batch_size: int = 64,
    ):
        weights = open_weights(model)
        config, task = weights.albert_config, weights.task or {}
        trained = task.get("pooling") if task.get("name") == "similarity" else weights.pooling
        if trained is None:
            logger.warning(
                "`%s` was not trained for similarity: counts of words may compare texts better "
                "than its vectors. hf://sentence-transformers/all-MiniLM-L6-v2 was, and so is a "
                "fine-tuning on the task `similarity`.",
                weights.path,
            )
        self.sequence_length = _checked_length(
            sequence_length, weights.longest_text or weights.sequence_length, config
        )
        self.origin, self.digest = weights.path, weights.digest
        self.size, self.tokenizer = config.hidden_size, weights.tokenizer
        self._model = AlbertForSimilarity(config, dtype="float32", pooling=trained or "mean")
        weights.load(self._model)
        self._preprocessor = AlbertPreprocessor(self.tokenizer, self.sequence_length)
        self._predictor = RowPredictor(
            tf.distribute.get_strategy(), self._outputs, batch_size, noun="texts", config=config
        )

    def describe(self) -> dict[str, Any]:
        """Returns what determines the vectors, plain JSON."""
        return {
            "model": self.origin,
            "encoder_digest": self.digest,
            "tokenizer_digest": self.tokenizer.digest,
            "size": self.size,
            "pooling": self._model.head.pooling,
            "max_seq_length": self.sequence_length,
        }

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Computes the vectors of texts, which are sorted by length for this.

        Raises InputError if a vector is not finite.
        """
        rows = TextRows(self._preprocessor, {"text": list(texts)})
        found = self._predictor.predict(rows)
        check_finite(found)
        return Vectors(found["vectors"], int(np.count_nonzero(rows.dropped_tokens)))

    def _outputs(self, inputs, training):
        return {"vectors": self._model.vectors(inputs, training)}


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
