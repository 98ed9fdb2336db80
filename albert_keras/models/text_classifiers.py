"""Models that assign classes, labels or numbers to texts or to pairs of texts.

Source: `classifier_utils.py` in google-research/albert.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.models.answers import (
    THRESHOLD,
    class_answers,
    labels_answers,
    scores_answers,
    with_dropped,
)
from albert_keras.models.labels import (
    class_targets,
    label_ids,
    label_names,
    numbers_of,
    zeros_and_ones,
)
from albert_keras.models.pooling import (
    COMPARISON_WIDTHS,
    PAIR_ENCODINGS,
    comparison,
    mean_over_tokens,
    separate_texts,
)
from albert_keras.models.preprocessor import AlbertPreprocessor
from albert_keras.models.task_heads import LinearHead
from albert_keras.models.text_model import AlbertForTexts, Tensors, with_logits
from data_pipeline.errors import InputError


@keras.saving.register_keras_serializable("albert_keras")
def class_crossentropy(labels: tf.Tensor, probabilities: tf.Tensor) -> tf.Tensor:
    """Returns the cross-entropy of each row; labels are numbers, [B], or shares, [B, C]."""
    if labels.shape.rank == probabilities.shape.rank and labels.shape[-1] != 1:
        return keras.losses.categorical_crossentropy(labels, probabilities)
    return keras.losses.sparse_categorical_crossentropy(labels, probabilities)


@keras.saving.register_keras_serializable("albert_keras")
def accuracy(labels: tf.Tensor, probabilities: tf.Tensor) -> tf.Tensor:
    """Returns 1 where the class is right; labels as of `class_crossentropy`."""
    if labels.ndim == probabilities.ndim and labels.shape[-1] != 1:  # of tensors or arrays
        return keras.metrics.categorical_accuracy(labels, probabilities)
    return keras.metrics.sparse_categorical_accuracy(labels, probabilities)


def in_each_row(values: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Repeats values of the labels, [C], for each of the rows [B, ...]."""
    return tf.repeat(values[None], tf.shape(rows)[0], axis=0)


class LabelsModel(AlbertForTexts):
    """A model whose head has an output for each label: a class, a number or a tag.

    Args:
        config: AlbertConfig.
        num_labels: int or None. Their number; None takes that of `labels`.
        **kwargs: As in `AlbertForTexts`.
    """

    has_labels = True

    def __init__(
        self,
        config: AlbertConfig,
        num_labels: int | None = None,
        labels: Sequence[str] | int | None = None,
        **kwargs: Any,
    ):
        labels = label_names(labels)
        if num_labels is None and not labels:
            raise InputError(
                '`labels` must be the names of the labels, such as ["neg", "pos"], or their '
                "number. Received: none."
            )
        super().__init__(config, labels=labels, **kwargs)
        self.num_labels = num_labels or len(labels)
        if labels and len(labels) != self.num_labels:
            raise InputError(
                f"`labels` must be {self.num_labels} names, as `num_labels` says. "
                f"Received: {', '.join(labels)}."
            )
        if unknown := sorted(self.thresholds.keys() - {*self.label_names}):
            raise InputError(f"`thresholds` must be by names of labels. Received: {unknown[0]}.")
        self.head = LinearHead(config, self.num_labels, self.head_dropout, **self._of_head)

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels; without `labels` they are numbers from 0."""
        return self.labels or tuple(map(str, range(self.num_labels)))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"num_labels": self.num_labels}


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForClassification(LabelsModel):
    """Sorts texts or pairs of texts into classes.

    Args:
        config: AlbertConfig.
        num_labels: int or None. C, number of classes; None takes that of `labels`.
        pair_encoding: str. "joint" classifies the pooled output of `[CLS] a [SEP] b [SEP]`;
            "separate" takes the same inputs, but encodes each text as a sequence of its own, and
            classifies the comparison of their means over the real tokens, see `comparison`.
        pooling: str. "pooler" classifies the pooled output of a sequence, as in the papers; "mean"
            the mean over its tokens, which learns more from few examples in small ALBERTs.
        threshold: float or None. Probability from which `answer` chooses the second of two
            classes; None chooses the more likely one.
        **kwargs: As in `AlbertForTexts`.

    Call arguments:
        inputs: Texts, string [B], a tuple of two such tensors for pairs, or a dict of "text" and
            "pair"; or the features of `AlbertPreprocessor`, int [B, S]: "input_ids", "input_mask",
            1 for a real token (all by default), "segment_ids", 1 for the second text (0 by
            default).

    Returns:
        float32 [B, C]. Probabilities of the classes. `outputs_of` returns their "logits".

    Example:
        model = AlbertForClassification.from_preset("albert-mini-en", labels=["neg", "pos"])
        model.fit(["a gripping film", "a dull film"], ["pos", "neg"])
        model.predict(["a film"])  # NumPy array [1, 2]
        model.answer(["a film"])[0].label
    """

    preprocessor_class = AlbertPreprocessor
    signature = "text_pair", {"first": "text", "second": "pair"}
    usual_loss: Any = staticmethod(class_crossentropy)
    usual_metrics: Any = [accuracy]
    #: Whether each label has a threshold, and not only the second of two classes.
    each_has_threshold = False

    def __init__(
        self,
        config: AlbertConfig,
        num_labels: int | None = None,
        pair_encoding: str = "joint",
        pooling: str = "pooler",
        threshold: float | None = None,
        **kwargs: Any,
    ):
        if pair_encoding not in PAIR_ENCODINGS:
            raise ValueError(
                f"`pair_encoding` must be one of {PAIR_ENCODINGS}. Received: {pair_encoding!r}."
            )
        if pooling not in ("pooler", "mean"):
            raise ValueError(f"`pooling` must be pooler or mean. Received: {pooling!r}.")
        # Before the encoder is built.
        self._reads_pooler = pair_encoding == "joint" and pooling == "pooler"
        self.pair_encoding, self.pooling = pair_encoding, pooling
        super().__init__(config, num_labels, **kwargs)
        has_one = self.num_labels == 2 or self.each_has_threshold
        if threshold is not None and not (has_one and 0 <= threshold <= 1):
            raise InputError(
                "`threshold` must be a probability from 0 to 1, of the second of two classes. "
                f"Received: {threshold} of {self.num_labels}."
            )
        self.threshold = threshold

    @property
    def _of_head(self):
        of_head = super()._of_head
        if self.pair_encoding == "separate":
            # A name of its own: the classifier of other formats reads the pooled output.
            size = COMPARISON_WIDTHS * (of_head["size"] or self.config.hidden_size)
            of_head |= {"size": size, "scope": "comparison"}
        return of_head

    def _outputs(self, inputs, training, dropout_seed):
        if self.pair_encoding == "separate":
            texts = separate_texts(inputs)
            of_texts = dropout_seed and dropout_seed.of_sequences(2)
            hidden = self._sequence(texts, training, of_texts)
            text = comparison(mean_over_tokens(hidden, texts["input_mask"]))
        else:
            text = self._pooled(inputs, training, dropout_seed)
        return {"logits": self.head(text, dropout_seed, training=training)}

    def task_settings(self) -> dict[str, Any] | None:
        return {
            "name": "classification",
            "text": "text",
            "pair": "pair" if self.pairs else None,
            "label": "label",
            "labels": self.label_names,
            "pair_encoding": self.pair_encoding if self.pairs else "joint",
            "pooling": self.pooling,
            "threshold": self.threshold,
        }

    def read_out(self, outputs: Tensors, origin: Any) -> dict[str, tf.Tensor]:
        """Returns the answers, and all labels in each row.

        They are `label` string and `probability` float32 [B] of the most likely class, or of two
        classes of the second one if it reaches the `threshold`; `labels` string and
        `probabilities` float32 [B, C] of all; and `dropped_tokens` int32 [B].
        """
        probabilities = self.predictions(outputs)
        if self.threshold is None:
            best = tf.argmax(probabilities, axis=-1)
        else:
            best = tf.cast(probabilities[:, 1] >= self.threshold, tf.int64)
        labels = tf.constant(self.label_names)
        return {
            "label": tf.gather(labels, best),
            "probability": tf.gather(probabilities, best, batch_dims=1),
            "labels": in_each_row(labels, probabilities),
            "probabilities": probabilities,
            **origin,
        }

    @classmethod
    def answers_of(cls, arrays: Mapping[str, np.ndarray], columns: Mapping[str, list]) -> list[Any]:
        if not columns["id"]:
            return []
        labels = [label.decode() for label in arrays["labels"][0]]
        numbers = [labels.index(label.decode()) for label in arrays["label"]]
        answers = class_answers(columns["id"], labels, arrays["probabilities"], numbers)
        return with_dropped(answers, arrays)

    @classmethod
    def targets_of(
        cls, labels: Any, columns: Mapping[str, Any], names: Any = (), are_shares: bool = True
    ) -> np.ndarray:
        return class_targets(labels, names, are_shares=are_shares)

    def class_weights(self, class_weight: Mapping[Any, float]) -> dict[int, float]:
        if not isinstance(class_weight, Mapping) or not all(
            math.isfinite(value) and value >= 0 for value in class_weight.values()
        ):
            raise InputError(
                "`class_weight` must be a dict with a number of at least 0 for each class. "
                f"Received: {class_weight!r}."
            )
        numbers = label_ids([*class_weight], self.label_names).tolist()
        weights = dict.fromkeys(range(self.num_labels), 1.0)  # Keras needs all
        return weights | dict(zip(numbers, map(float, class_weight.values()), strict=True))

    def get_config(self) -> dict[str, Any]:
        of_pairs = {"pair_encoding": self.pair_encoding} if self.pair_encoding != "joint" else {}
        pooling = {} if self.pooling == "pooler" else {"pooling": self.pooling}
        threshold = {} if self.threshold is None else {"threshold": self.threshold}
        return super().get_config() | of_pairs | pooling | threshold


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForRegression(AlbertForClassification):
    """Predicts one or several numbers for texts or pairs of texts; see `AlbertForClassification`.

    Returns:
        float32 [B, C]. The numbers, one by default.

    Example:
        model = AlbertForRegression.from_preset("albert-mini-en")
        model.fit(["a gripping film", "a dull film"], [4.5, 1.0])
        model.predict(["a film"])  # NumPy array [1, 1]
    """

    has_accuracy = False
    usual_loss = staticmethod(keras.losses.mean_squared_error)
    usual_metrics = None

    def __init__(self, config: AlbertConfig, num_labels: int | None = None, **kwargs: Any):
        if not kwargs.get("labels"):
            num_labels = num_labels or 1
        super().__init__(config, num_labels, **kwargs)

    def predictions(self, outputs: Tensors) -> Any:
        return tf.cast(outputs["logits"], tf.float32)

    def targets_in(self, features: Tensors) -> tf.Tensor:
        labels = super().targets_in(features)
        return labels if labels.shape.rank == 2 else labels[:, None]

    def is_right(self, labels: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
        """Returns zeros: no number is counted as right."""
        predictions.shape.assert_is_compatible_with(labels.shape)
        return tf.zeros_like(predictions[:, 0])

    def task_settings(self) -> dict[str, Any] | None:
        label = self.label_names if self.num_labels > 1 else "label"
        settings = super().task_settings() or {}
        return settings | {"name": "regression", "label": label, "labels": None}

    def read_out(self, outputs: Tensors, origin: Any) -> dict[str, tf.Tensor]:
        """Returns `score` float32 [B]; of several numbers `labels` and `scores` [B, C]."""
        scores = self.predictions(outputs)
        if self.num_labels == 1:
            return {"score": scores[:, 0], **origin}
        labels = in_each_row(tf.constant(self.label_names), scores)
        return {"labels": labels, "scores": scores, **origin}

    @classmethod
    def answers_of(cls, arrays: Mapping[str, np.ndarray], columns: Mapping[str, list]) -> list[Any]:
        if not columns["id"]:
            return []
        if "score" in arrays:
            answers = scores_answers(columns["id"], (), arrays["score"][:, None])
        else:
            labels = [label.decode() for label in arrays["labels"][0]]
            answers = scores_answers(columns["id"], labels, arrays["scores"])
        return with_dropped(answers, arrays)

    @classmethod
    def targets_of(
        cls, labels: Any, columns: Mapping[str, Any], names: Any = (), are_shares: bool = True
    ) -> np.ndarray:
        return numbers_of(labels, max(len(names), 1))

    class_weights = AlbertForTexts.class_weights  # which refuses them


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForMultiLabel(AlbertForClassification):
    """Finds which of several labels apply to texts or pairs; see `AlbertForClassification`.

    Args:
        **kwargs: As in `AlbertForClassification`. The `thresholds` are by the names of labels the
            probability from which `answer` says that a label applies; 0.5 for those that are not
            given. `finetune` fits them to development examples.

    Returns:
        float32 [B, C]. The probability of each label.

    Example:
        model = AlbertForMultiLabel.from_preset("albert-mini-en", labels=["funny", "sad"])
        model.fit(["a film to laugh and cry", "a dull film"], [["funny", "sad"], []])
        model.answer(["a film"])[0].labels
    """

    usual_loss = staticmethod(keras.losses.binary_crossentropy)
    usual_metrics = ["binary_accuracy"]
    each_has_threshold = True

    def predictions(self, outputs: Tensors) -> Any:
        logits = tf.cast(outputs["logits"], tf.float32)
        return with_logits(tf.sigmoid(logits), logits)

    def is_right(self, labels: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
        """Returns 1 where all labels are right."""
        are_right = tf.equal(predictions >= 0.5, labels > 0)
        return tf.cast(tf.reduce_all(are_right, axis=-1), tf.float32)

    def task_settings(self) -> dict[str, Any] | None:
        return (super().task_settings() or {}) | {"label_separator": "|"}

    def read_out(self, outputs: Tensors, origin: Any) -> dict[str, tf.Tensor]:
        """Returns `labels` string, `probabilities` and `thresholds` float32 [B, C] of all labels.

        Those whose probability is at least their threshold apply.
        """
        probabilities = self.predictions(outputs)
        usual = THRESHOLD if self.threshold is None else self.threshold
        thresholds = [self.thresholds.get(name, usual) for name in self.label_names]
        return {
            "labels": in_each_row(tf.constant(self.label_names), probabilities),
            "probabilities": probabilities,
            "thresholds": in_each_row(tf.constant(thresholds, tf.float32), probabilities),
            **origin,
        }

    @classmethod
    def answers_of(cls, arrays: Mapping[str, np.ndarray], columns: Mapping[str, list]) -> list[Any]:
        if not columns["id"]:
            return []
        labels = [label.decode() for label in arrays["labels"][0]]
        values, thresholds = arrays["probabilities"], arrays["thresholds"]
        return with_dropped(labels_answers(columns["id"], labels, values, thresholds), arrays)

    @classmethod
    def targets_of(
        cls, labels: Any, columns: Mapping[str, Any], names: Any = (), are_shares: bool = True
    ) -> np.ndarray:
        return zeros_and_ones(labels, names)

    class_weights = AlbertForTexts.class_weights  # which refuses them

    def initial_output_bias(self, targets: np.ndarray) -> np.ndarray:
        applies = targets.reshape(-1, self.num_labels)
        shares = (applies.sum(axis=0) + 1) / (len(applies) + 2)
        return np.log(shares / (1 - shares))
