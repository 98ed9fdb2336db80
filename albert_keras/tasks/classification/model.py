"""Models for classes, labels or numbers of texts and pairs of texts.

Source: `classifier_utils.py` in google-research/albert.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.models.encoder_inputs import encoder_inputs
from albert_keras.models.pooling import mean_over_tokens
from albert_keras.tasks.classification.early_exit import classify_until_confident
from albert_keras.tasks.classification.pair_encoding import (
    COMPARISON_WIDTHS,
    PAIR_ENCODINGS,
    comparison,
    separate_texts,
)
from albert_keras.tasks.heads import LinearHead
from albert_keras.tasks.task_model import AlbertTaskModel, float32, of_classes, required


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForClassification(AlbertTaskModel):
    """Sorts texts or pairs of texts into classes.

    Args:
        config: AlbertConfig.
        num_labels: int. C, number of classes.
        exit_heads: bool. Whether there is a classifier after every layer, each with the one pooler.
        exit_at_confidence: float or None. With `exit_heads`, the probability of the most likely
            class at which a row needs no further layer; outside of training only. It may be
            changed later.
        pair_encoding: str. "joint" classifies the pooled output of `[CLS] a [SEP] b [SEP]`;
            "separate" takes the same inputs, but encodes each text as a sequence of its own, and
            classifies the comparison of their means over the real tokens, see `comparison`.
        **kwargs: As in `AlbertTaskModel`.

    Call arguments:
        inputs: dict. "input_ids" int [B, S]; "input_mask" int [B, S], 1 for a real token (all by
            default); "segment_ids" int [B, S], 1 for the second text (0 by default).
        dropout_seed: DropoutSeed or None. See `layers/dropout.py`.

    Returns:
        dict. "logits" float32 [B, C], of a softmax over classes. With `exit_heads`, in training
        also "exit_logits" float32 [B, L - 1, C] of the layers before the last one; with
        `exit_at_confidence`, otherwise also "layers" int32 [B], the layers that a row took.

    Example:
        model = AlbertForClassification.from_preset("albert-mini-en", labels=["neg", "pos"])
        model.fit(["a gripping film", "a dull film"], ["pos", "neg"])
        model.predict(["a film"])[0].label

    Source:
        `exit_heads`: Zhou et al. (2020): BERT loses patience (https://arxiv.org/abs/2006.04152).
    """

    def __init__(
        self,
        config: AlbertConfig,
        num_labels: int,
        exit_heads: bool = False,
        exit_at_confidence: float | None = None,
        pair_encoding: str = "joint",
        name: str = "albert_for_classification",
        **kwargs: Any,
    ):
        if pair_encoding not in PAIR_ENCODINGS or (pair_encoding != "joint" and exit_heads):
            raise ValueError(
                f"`pair_encoding` must be one of {PAIR_ENCODINGS}, and joint with `exit_heads`. "
                f"Received: {pair_encoding!r}."
            )
        self._reads_pooler = pair_encoding == "joint"  # before the encoder is built
        super().__init__(config, name=name, **kwargs)
        self.num_labels = num_labels
        self.exit_at_confidence = exit_at_confidence
        self.pair_encoding = pair_encoding
        of_head = self._of_head
        if pair_encoding == "separate":
            # A name of its own: the classifier of other formats reads the pooled output.
            size = COMPARISON_WIDTHS * (of_head["size"] or config.hidden_size)
            of_head |= {"size": size, "scope": "comparison"}
        self.head = LinearHead(config, num_labels, self.head_dropout, **of_head)
        self.exit_heads = [
            LinearHead(
                config,
                num_labels,
                self.head_dropout,
                scope=f"exits/layer_{number}",
                name=f"exit_{number}",
                **self._shared,
            )
            for number in range(1, config.num_hidden_layers if exit_heads else 1)
        ]

    def _call(self, inputs, training, dropout_seed):
        if training and self.exit_heads:
            logits = self.logits_of_layers(inputs, training, dropout_seed)
            return {"logits": logits[:, -1], "exit_logits": logits[:, :-1]}
        if self.exit_heads and self.exit_at_confidence is not None:
            heads = [*self.exit_heads, self.head]
            return classify_until_confident(self.encoder, heads, inputs, self.exit_at_confidence)
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

    def logits_of_layers(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        dropout_seed: DropoutSeed | None = None,
    ) -> tf.Tensor:
        """Returns what the classifier after each layer answers, float32 [B, L, C].

        Args:
            inputs: The inputs of the encoder, int [B, S]; a model with `exit_heads` reads them.
            training: Whether dropout is applied.
            dropout_seed: As in the call of the model.
        """
        layers = self.encoder(
            encoder_inputs(inputs),
            training=training,
            dropout_seed=dropout_seed,
            return_all_layers=True,
        )["layer_outputs"][self.config.inner_group_num - 1 :: self.config.inner_group_num]
        heads = [*self.exit_heads, self.head]
        logits = [
            head(self.encoder.pooled(layer[:, 0]), dropout_seed, training=training)
            for head, layer in zip(heads, layers, strict=True)
        ]
        return tf.stack(logits, axis=1)

    @classmethod
    def usual_task(cls, labels: tuple[str, ...] | None, **kwargs: Any) -> dict[str, Any]:
        settings = {"name": "classification", "text": "text", "label": "label"}
        return settings | {"labels": required(labels)}

    def losses(
        self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the cross-entropy of the class, and 1 where it is right.

        With a classifier after every layer it is the mean over the layers, weighted by the number
        of the layer.
        """
        losses, is_right = of_classes(outputs["logits"], features["labels"])
        if "exit_logits" not in outputs:
            return losses, is_right
        earlier = outputs["exit_logits"]  # [B, L - 1, C]
        last = earlier.shape[1] + 1
        labels = tf.repeat(tf.convert_to_tensor(features["labels"])[:, None], last - 1, axis=1)
        numbers = tf.range(1.0, last)
        weighted = tf.reduce_sum(numbers * of_classes(earlier, labels)[0], axis=1) + last * losses
        return weighted * 2 / (last * (last + 1)), is_right

    @classmethod
    def with_outputs(cls, config: AlbertConfig, num_outputs: int, **kwargs: Any) -> Any:
        return cls(config, num_outputs, **kwargs)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"num_labels": self.num_labels}
        if self.exit_heads:
            config |= {"exit_heads": True, "exit_at_confidence": self.exit_at_confidence}
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
