"""The model that chooses one of several texts.

Source: `race_utils.py` in google-research/albert.
"""

import tensorflow as tf
from tensorflow import keras

from albert_keras.tasks.heads import LinearHead
from albert_keras.tasks.task_model import AlbertTaskModel, of_classes, sequences_of_rows


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForMultipleChoice(AlbertTaskModel):
    """Chooses one of several texts; inputs are [B, options, S].

    Args:
        config: AlbertConfig.
        **kwargs: As in `AlbertForTask`.

    Returns:
        dict. "logits" float32 [B, options].
    """

    _reads_pooler = True

    def __init__(self, config, name="albert_for_multiple_choice", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.head = LinearHead(config, 1, self.head_dropout, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        texts, dropout_seed, options = sequences_of_rows(inputs, dropout_seed)
        pooled = self._pooled(texts, training, dropout_seed)  # [B * options, H]
        logits = self.head(pooled, dropout_seed, training=training)
        return {"logits": tf.reshape(logits, (-1, options))}

    @classmethod
    def usual_task(cls, labels, **kwargs):
        return {"name": "race"}

    def losses(self, outputs, features):
        """Returns the cross-entropy of the right option, and 1 where it is chosen."""
        return of_classes(outputs["logits"], features["labels"])
