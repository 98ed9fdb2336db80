"""The model that compares texts by the cosine of their vectors."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.layers.rows import token_mask
from albert_keras.models.encoder_inputs import encoder_inputs
from albert_keras.models.pooling import Pooling
from albert_keras.tasks.model import AlbertTaskModel, float32, of_classes, sequences_of_rows

#: Divides cosines, as in SimCSE; CoSENT's scale of 20 is the same.
TEMPERATURE = 0.05
#: In place of a difference that does not count: its exponential is 0.
_NO_PAIR = -1e30


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForSimilarity(AlbertTaskModel):
    """Compares two texts by the cosine of their vectors.

    The two texts of a row are separate sequences, so that a vector depends on its text alone. The
    encoder's weights are the only weights of the model; `head_dropout` is not used.

    Args:
        config: AlbertConfig.
        pooling: str. See `Pooling`.
        **kwargs: As in `AlbertTaskModel`.

    Call arguments:
        inputs: dict. "input_ids" int [B, 2, S], one sequence for each text; "input_mask" and
            "segment_ids" of the same shape, as in `AlbertForClassification`.
        dropout_seed: DropoutSeed or None. See `layers/dropout.py`.

    Returns:
        dict. "cosine" float32 [B], from -1 to 1; in training "vectors" float32
        [B, 2, H] instead, of length 1.

    Example:
        model = AlbertForSimilarity.from_preset("albert-mini-en")
        pairs = ["a fine film", "a fine film"], ["a good movie", "the ferry left"]
        model.fit(pairs, [5.0, 0.0])
        model.predict(pairs)[0]
    """

    has_accuracy = has_loss_of_outputs = False

    def __init__(
        self,
        config: AlbertConfig,
        pooling: str = "mean",
        name: str = "albert_for_similarity",
        **kwargs: Any,
    ):
        self._reads_pooler = pooling == "pooler"  # before the encoder is built
        super().__init__(config, name=name, **kwargs)
        self.head = Pooling(pooling, dtype=self.dtype_policy)

    def _call(self, inputs, training, dropout_seed):
        texts, dropout_seed, _ = sequences_of_rows(inputs, dropout_seed)
        vectors = self.vectors(texts, training, dropout_seed)  # [2 B, H]
        vectors = tf.reshape(vectors, (-1, 2, self.config.hidden_size))
        if training:
            return {"vectors": vectors}
        return {"cosine": tf.reduce_sum(vectors[:, 0] * vectors[:, 1], axis=-1)}

    def vectors(
        self,
        texts: Mapping[str, Any],
        training: bool | None = None,
        dropout_seed: DropoutSeed | None = None,
    ) -> tf.Tensor:
        """Returns the vectors of texts, float32 [N, H], of length 1.

        Args:
            texts: The inputs of the encoder, int [N, S].
            training: Whether dropout is applied.
            dropout_seed: As in the call of the model.
        """
        ids = tf.convert_to_tensor(texts["input_ids"])
        outputs = self.encoder(
            encoder_inputs(texts),
            training=training,
            dropout_seed=dropout_seed,
            positions=tf.zeros_like(ids[:, :1]) if self.head.reads_cls_only else None,
        )
        return tf.math.l2_normalize(self.head(outputs, token_mask(texts)), axis=-1)

    @classmethod
    def usual_task(cls, labels: tuple[str, ...] | None, **kwargs: Any) -> dict[str, Any]:
        return {"name": "similarity", "text": "text", "pair": "pair", "label": "label"}

    def losses(
        self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Compares the pairs of a batch, or of a replica's part of it, with each other.

        With scores, the loss is CoSENT (Su, 2022, https://kexue.fm/archives/8847): the logarithm
        of 1 + the sum of exp((cos_j - cos_i) / temperature) over all i, j where i has the higher
        score. It needs only the order of the scores. Each row gets the loss of the whole batch.

        Without scores, the loss is the cross-entropy of finding the second text of a pair among the
        second texts of all pairs (Gao et al., 2021, "SimCSE", https://arxiv.org/abs/2104.08821,
        equation 1).
        """
        first, second = tf.unstack(float32(outputs["vectors"]), axis=1)  # [B, H] each, of length 1
        # The others fill up the batch.
        is_row = tf.convert_to_tensor(features["example_weights"]) > 0
        if "labels" not in features:
            logits = tf.matmul(first, second, transpose_b=True) / TEMPERATURE
            logits = tf.where(is_row[None, :], logits, _NO_PAIR)
            losses, _ = of_classes(logits, tf.range(tf.shape(logits)[0]))
            return losses, tf.zeros_like(losses)
        cosines = tf.reduce_sum(first * second, axis=-1) / TEMPERATURE  # [B]
        labels = float32(features["labels"])
        differences = cosines[None, :] - cosines[:, None]  # [i, j]
        is_pair = (labels[:, None] > labels[None, :]) & is_row[:, None] & is_row[None, :]
        differences = tf.where(is_pair, differences, _NO_PAIR)
        loss = tf.reduce_logsumexp(tf.pad(tf.reshape(differences, [-1]), [[1, 0]]))
        return tf.zeros_like(cosines) + loss, tf.zeros_like(cosines)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"pooling": self.head.pooling}
