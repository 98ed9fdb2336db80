"""What a model learns from a batch: objectives, and their sums over the parts of the batch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class Sums(NamedTuple):
    """The contribution of a batch to loss and accuracy of one objective."""

    loss: tf.Tensor  # sum of weight times loss, in nats
    weight: tf.Tensor  # sum of weights: the number of predictions that count
    correct: tf.Tensor  # sum of the weights of correct predictions


class Objective(NamedTuple):
    """What a model learns from a batch: which predictions count, and their losses.

    Attributes:
        weights: float [B, ...]. Weight of each prediction; 0 for one that does not count, such as
            padding. They depend on the features alone: the loss of a batch is divided by their sum
            over all replicas and parts before any of them has run.
        loss: callable. Takes the outputs of the model, and returns the loss of each prediction in
            nats, and 1 for each correct one, else 0: float32, each as large as `weights`.
    """

    weights: tf.Tensor
    loss: Callable[[dict[str, tf.Tensor]], tuple[tf.Tensor, tf.Tensor]]

    def sums(self, outputs: dict[str, tf.Tensor]) -> Sums:
        """Returns the Sums of a batch or a part of it."""
        found = with_autograph(self.loss)(outputs)
        losses, is_right = (tf.reshape(each, [-1]) for each in found)
        weights = tf.reshape(tf.cast(self.weights, tf.float32), [-1])
        counts = [each.shape[0] for each in (weights, losses, is_right)]
        if len({*counts} - {None}) > 1:
            raise ValueError(
                "An objective must return one loss, and whether it is right, for each of its "
                f"weights. Received: {counts[0]} weights, and {counts[1]} and {counts[2]} values."
            )
        return Sums(*map(tf.reduce_sum, (weights * losses, weights, weights * is_right)))


def with_autograph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that users may replace, with AutoGraph wherever Keras has it for `call`.

    Functions of this project are called as they are, see `data_pipeline/tensorflow_line.py`.
    """
    autograph = tf.__internal__.autograph
    context = autograph.control_status_ctx()
    return autograph.tf_convert(function, context, convert_by_default=False)


def sum_over_parts(function, features, num_parts, like):
    """Splits a batch into parts of equal size, calls a function on each and sums the results.

    The parts run in a loop of the graph, so that the memory of one is free before the next starts.
    The function takes the features of a part and its number (int64 scalar). It returns a list of
    float tensors with the static shapes and the dtypes of `like`.
    """
    if num_parts == 1:
        return function(features, tf.zeros([], tf.int64))
    parts = _split(features, num_parts)

    def add_part(number, sums):
        results = function({name: values[number] for name, values in parts.items()}, number)
        return number + 1, [total + value for total, value in zip(sums, results, strict=True)]

    zeros = [tf.zeros(result.shape, result.dtype) for result in like]
    _, sums = tf.while_loop(
        lambda number, _: number < num_parts,
        add_part,
        (tf.zeros([], tf.int64), zeros),
        maximum_iterations=num_parts,
        parallel_iterations=1,
    )
    return sums


def _split(features, num_parts):
    """Splits [B, ...] into equal parts, [parts, B / parts, ...]."""
    sizes = {name: values.shape[0] for name, values in features.items()}
    if any(size is None or size % num_parts for size in sizes.values()):
        raise ValueError(
            f"The batch of a replica must be a multiple of {num_parts} accumulated parts. "
            f"Received: {sizes}."
        )
    return {
        name: tf.reshape(values, [num_parts, -1, *values.shape[1:]])
        for name, values in features.items()
    }


def num_rows(features):
    """Returns the rows of a batch: int if that is static, else an int64 scalar Tensor."""
    values = next(iter(features.values()))
    return values.shape[0] or tf.shape(values, tf.int64)[0]
