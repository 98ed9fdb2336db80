"""The model that chooses one of several texts.

Source: `race_utils.py` in google-research/albert.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.tasks.heads import LinearHead
from albert_keras.tasks.model import AlbertTaskModel, of_classes, sequences_of_rows


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForMultipleChoice(AlbertTaskModel):
    """Chooses one of several texts.

    Args:
        config: AlbertConfig.
        **kwargs: As in `AlbertTaskModel`.

    Call arguments:
        inputs: dict. "input_ids" int [B, options, S], one sequence for each option; "input_mask"
            and "segment_ids" of the same shape, as in `AlbertForClassification`.
        dropout_seed: DropoutSeed or None. See `layers/dropout.py`.

    Returns:
        dict. "logits" float32 [B, options].

    Example:
        model = AlbertForMultipleChoice.from_preset("albert-mini-en", sequence_length=64)
        passages, questions = ["The ferry left at noon."], ["When did it leave?"]
        model.fit((passages, questions, [["at noon", "at night"]]), [0])
        model.predict((passages, questions, [["at noon", "at night"]]))[0]
    """

    _reads_pooler = True

    def __init__(
        self, config: AlbertConfig, name: str = "albert_for_multiple_choice", **kwargs: Any
    ):
        super().__init__(config, name=name, **kwargs)
        self.head = LinearHead(config, 1, self.head_dropout, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        texts, dropout_seed, options = sequences_of_rows(inputs, dropout_seed)
        pooled = self._pooled(texts, training, dropout_seed)  # [B * options, H]
        logits = self.head(pooled, dropout_seed, training=training)
        return {"logits": tf.reshape(logits, (-1, options))}

    @classmethod
    def usual_task(cls, labels: tuple[str, ...] | None, **kwargs: Any) -> dict[str, Any]:
        return {"name": "race"}

    def losses(
        self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the cross-entropy of the right option, and 1 where it is chosen."""
        return of_classes(outputs["logits"], features["labels"])
