"""The model that tags tokens."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.tasks.heads import LinearHead
from albert_keras.tasks.model import AlbertTaskModel, float32, of_classes, required


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForTagging(AlbertTaskModel):
    """Predicts a tag for each token.

    Args:
        config: AlbertConfig.
        num_labels: int. T, number of tags.
        **kwargs: As in `AlbertTaskModel`.

    Call arguments:
        inputs: dict. "input_ids", "input_mask" and "segment_ids", int [B, S], as in
            `AlbertForClassification`.
        dropout_seed: DropoutSeed or None. See `layers/dropout.py`.

    Returns:
        dict. "logits" float32 [B, S, T].

    Example:
        model = AlbertForTagging.from_preset("albert-mini-en", labels=["O", "PLACE"])
        model.fit([["from", "Lisbon"], ["by", "ferry"]], [["O", "PLACE"], ["O", "O"]])
        model.predict([["to", "Porto"]])[0]
    """

    def __init__(
        self,
        config: AlbertConfig,
        num_labels: int,
        name: str = "albert_for_tagging",
        **kwargs: Any,
    ):
        super().__init__(config, name=name, **kwargs)
        self.num_labels = num_labels
        self.head = LinearHead(config, num_labels, self.head_dropout, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        return {"logits": self.head(hidden, dropout_seed, training=training)}

    @classmethod
    def usual_task(cls, labels: tuple[str, ...] | None, **kwargs: Any) -> dict[str, Any]:
        return {"name": "tagging", "labels": required(labels)}

    def losses(
        self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the cross-entropies of the tags of all positions, and 1 where they are right."""
        # Positions that are not scored have weight 0 and receive any valid tag.
        return of_classes(outputs["logits"], tf.maximum(features["tag_ids"], 0))

    def weights_of(self, features: Mapping[str, Any]) -> tf.Tensor:
        """Returns 1 at the first token of each word that is scored, float32 [B, S]."""
        is_scored = tf.convert_to_tensor(features["tag_ids"]) >= 0
        return super().weights_of(features)[:, None] * float32(is_scored)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"num_labels": self.num_labels}
