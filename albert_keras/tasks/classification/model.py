"""Models for classes, labels or numbers of texts and pairs of texts.

Source: `classifier_utils.py` in google-research/albert.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.models.pooling import mean_over_tokens
from albert_keras.tasks.classification.pair_encoding import (
    COMPARISON_WIDTHS,
    PAIR_ENCODINGS,
    comparison,
    separate_texts,
)
from albert_keras.tasks.heads import LinearHead
from albert_keras.tasks.model import AlbertTaskModel, float32, of_classes, required


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForClassification(AlbertTaskModel):
    """Sorts texts or pairs of texts into classes.

    Args:
        config: AlbertConfig.
        num_labels: int. C, number of classes.
        pair_encoding: str. "joint" classifies the pooled output of `[CLS] a [SEP] b [SEP]`;
            "separate" takes the same inputs, but encodes each text as a sequence of its own, and
            classifies the comparison of their means over the real tokens, see `comparison`.
        **kwargs: As in `AlbertTaskModel`.

    Call arguments:
        inputs: dict. "input_ids" int [B, S]; "input_mask" int [B, S], 1 for a real token (all by
            default); "segment_ids" int [B, S], 1 for the second text (0 by default).
        dropout_seed: DropoutSeed or None. See `layers/dropout.py`.

    Returns:
        dict. "logits" float32 [B, C], of a softmax over classes.

    Example:
        model = AlbertForClassification.from_preset("albert-mini-en", labels=["neg", "pos"])
        model.fit(["a gripping film", "a dull film"], ["pos", "neg"])
        model.predict(["a film"])[0].label
    """

    def __init__(
        self,
        config: AlbertConfig,
        num_labels: int,
        pair_encoding: str = "joint",
        name: str = "albert_for_classification",
        **kwargs: Any,
    ):
        if pair_encoding not in PAIR_ENCODINGS:
            raise ValueError(
                f"`pair_encoding` must be one of {PAIR_ENCODINGS}. Received: {pair_encoding!r}."
            )
        self._reads_pooler = pair_encoding == "joint"  # before the encoder is built
        super().__init__(config, name=name, **kwargs)
        self.num_labels = num_labels
        self.pair_encoding = pair_encoding
        of_head = self._of_head
        if pair_encoding == "separate":
            # A name of its own: the classifier of other formats reads the pooled output.
            size = COMPARISON_WIDTHS * (of_head["size"] or config.hidden_size)
            of_head |= {"size": size, "scope": "comparison"}
        self.head = LinearHead(config, num_labels, self.head_dropout, **of_head)

    def _call(self, inputs, training, dropout_seed):
        if self.pair_encoding == "separate":
            text = self._compared(inputs, training, dropout_seed)
        else:
            text = self._pooled(inputs, training, dropout_seed)
        return {"logits": self.head(text, dropout_seed, training=training)}

    def _compared(self, inputs, training, dropout_seed):
        """Encodes the two texts of each pair separately; returns their comparison."""
        texts = separate_texts(inputs)
        of_texts = dropout_seed and dropout_seed.of_sequences(2)
        hidden = self._sequence(texts, training, of_texts)
        return comparison(mean_over_tokens(hidden, texts["input_mask"]))

    @classmethod
    def usual_task(cls, labels: tuple[str, ...] | None, **kwargs: Any) -> dict[str, Any]:
        settings = {"name": "classification", "text": "text", "label": "label"}
        return settings | {"labels": required(labels)}

    def losses(
        self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the cross-entropy of the class, and 1 where it is right."""
        return of_classes(outputs["logits"], features["labels"])

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"num_labels": self.num_labels}
        if self.pair_encoding != "joint":
            config["pair_encoding"] = self.pair_encoding
        return config


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForRegression(AlbertForClassification):
    """Predicts one or several numbers for texts or pairs of texts; see `AlbertForClassification`.

    Returns:
        dict. "logits" float32 [B, C], the numbers.

    Example:
        model = AlbertForRegression.from_preset("albert-mini-en")
        model.fit(["a gripping film", "a dull film"], [4.5, 1.0])
        model.predict(["a film"])[0]
    """

    has_accuracy = False

    @classmethod
    def usual_task(cls, labels: tuple[str, ...] | None, **kwargs: Any) -> dict[str, Any]:
        return {"name": "regression", "text": "text", "label": labels or "label"}

    def losses(
        self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the mean of the squared errors of the numbers; none is counted as right."""
        logits, labels = float32(outputs["logits"]), float32(features["labels"])
        labels = labels if labels.shape.rank == 2 else labels[:, None]
        logits.shape.assert_is_compatible_with(labels.shape)
        losses = tf.reduce_mean(tf.square(logits - labels), axis=-1)
        return losses, tf.zeros_like(losses)


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForMultiLabel(AlbertForClassification):
    """Finds which of several labels apply to texts or pairs; see `AlbertForClassification`.

    Returns:
        dict. "logits" float32 [B, C], of a sigmoid for each label.

    Example:
        model = AlbertForMultiLabel.from_preset("albert-mini-en", labels=["funny", "sad"])
        model.fit(["a film to laugh and cry", "a dull film"], [["funny", "sad"], []])
        model.predict(["a film"])[0]
    """

    @classmethod
    def usual_task(cls, labels: tuple[str, ...] | None, **kwargs: Any) -> dict[str, Any]:
        return super().usual_task(labels) | {"label_separator": "|"}

    def losses(
        self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the mean of the binary cross-entropies, and 1 where all labels are right."""
        logits, labels = float32(outputs["logits"]), float32(features["labels"])
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
        is_right = tf.reduce_all(tf.equal(logits >= 0, labels > 0), axis=-1)
        return tf.reduce_mean(losses, axis=-1), float32(is_right)
