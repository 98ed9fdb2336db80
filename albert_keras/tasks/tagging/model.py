"""The model that tags tokens."""

import tensorflow as tf
from tensorflow import keras

from albert_keras.tasks.heads import LinearHead
from albert_keras.tasks.task_model import AlbertTaskModel, float32, of_classes, required


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForTagging(AlbertTaskModel):
    """Predicts a tag for each token.

    Args:
        config: AlbertConfig.
        num_labels: int. T, number of tags.
        **kwargs: As in `AlbertForTask`.

    Returns:
        dict. "logits" float32 [B, S, T].
    """

    def __init__(self, config, num_labels, name="albert_for_tagging", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.num_labels = num_labels
        self.head = LinearHead(config, num_labels, self.head_dropout, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        return {"logits": self.head(hidden, dropout_seed, training=training)}

    @classmethod
    def usual_task(cls, labels, **kwargs):
        return {"name": "tagging", "labels": required(labels)}

    def losses(self, outputs, features):
        """Returns the cross-entropies of the tags of all positions, and 1 where they are right."""
        # Positions that are not scored have weight 0 and receive any valid tag.
        return of_classes(outputs["logits"], tf.maximum(features["tag_ids"], 0))

    def weights_of(self, features):
        """Returns 1 at the first token of each word that is scored, float32 [B, S]."""
        is_scored = tf.convert_to_tensor(features["tag_ids"]) >= 0
        return super().weights_of(features)[:, None] * float32(is_scored)

    @classmethod
    def with_outputs(cls, config, num_outputs, **kwargs):
        return cls(config, num_outputs, **kwargs)

    def get_config(self):
        return super().get_config() | {"num_labels": self.num_labels}
