"""The base class of models for tasks, with their losses in float32; cross-entropies are in nats.

The losses are sums, as in `training/losses.py`, so that a caller can add them up over replicas and
accumulated parts before dividing by the count of the whole batch.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.rows import shape_of
from albert_keras.models.task_model import AlbertForTask
from albert_keras.training.losses import Sums


class AlbertTaskModel(AlbertForTask):
    """An encoder, a head and a loss; arguments as in `AlbertForTask`."""

    #: Whether an answer is simply right or wrong.
    has_accuracy = True

    @classmethod
    def with_outputs(
        cls, config: AlbertConfig, num_outputs: int, **kwargs: Any
    ) -> "AlbertTaskModel":
        """Builds the model of a kind; `num_outputs` is ignored unless the head depends on it."""
        return cls(config, **kwargs)

    def losses(
        self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the loss of each row and 1 where the answer is right, float32 [B].

        Args:
            outputs: The outputs of the model in training.
            features: The targets of `Features.batch`.
        """
        raise NotImplementedError

    def weights_of(self, features: Mapping[str, Any]) -> tf.Tensor:
        """Returns the weight of each loss: 1 for a real row, 0 for one that fills up the batch."""
        return float32(features["example_weights"])

    def sums(self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]) -> Sums:
        """Sums `losses` and right answers of a batch, times their weights, and the weights.

        Args:
            outputs: The outputs of the model in training.
            features: The targets of `Features.batch`, and "example_weights" float [B].

        Raises:
            ValueError: If labels and outputs differ in their shapes.
        """
        losses, is_right = self.losses(outputs, features)
        weights = self.weights_of(features)
        if not weights.shape.is_compatible_with(losses.shape):
            raise ValueError(
                "There must be one loss for each weight, with labels shaped like the outputs. "
                f"Received: losses {losses.shape}, weights {weights.shape}."
            )
        return Sums(
            loss=tf.reduce_sum(weights * losses),
            weight=tf.reduce_sum(weights),
            correct=tf.reduce_sum(weights * is_right),
        )


def of_classes(logits, labels) -> tuple[tf.Tensor, tf.Tensor]:
    """Compares [..., C] with int [...]; returns cross-entropies and 1 where right, float32."""
    labels, logits = tf.convert_to_tensor(labels), float32(logits)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    is_right = tf.equal(tf.argmax(logits, -1, labels.dtype), labels)
    return losses, float32(is_right)


def float32(tensor) -> tf.Tensor:
    """Returns a tensor as float32."""
    return tf.cast(tensor, tf.float32)


def sequences_of_rows(inputs, dropout_seed):
    """Makes the sequences of rows, [B, C, S], the rows of a batch, [B C, S].

    Returns:
        dict of int [B C, S]; DropoutSeed or None for them; C.
    """
    _, count, length = shape_of(tf.convert_to_tensor(inputs["input_ids"]))
    names = [name for name in ("input_ids", "input_mask", "segment_ids") if name in inputs]
    texts = {name: tf.reshape(inputs[name], (-1, length)) for name in names}
    return texts, dropout_seed and dropout_seed.of_sequences(count), count
