"""Hard-example training: of each batch only the records with the highest loss are trained on.

A forward pass without gradient scores the records of a replica, its candidates; the step then runs
on the chosen ones alone. The choice depends on the batch and the weights, so that a resumed run
makes the same one, and on no other replica.

Source:
    Jiang et al.: Accelerating deep learning by focusing on the biggest losers (selective backprop,
    https://arxiv.org/abs/1910.00762); scoring by the loss: Katharopoulos and Fleuret, section 3.2
    (https://arxiv.org/abs/1803.00942).
"""

import tensorflow as tf

from data_pipeline.errors import InputError


def check_hard_examples(replicas: int, training):
    """Raises InputError if the chosen records of a batch cannot be split evenly.

    Args:
        training: TrainingConfig.
    """
    fraction, parts = training.hard_examples, training.accumulation_steps
    candidates = training.batch_size // replicas
    chosen = round(candidates * fraction)
    if chosen < 1 or chosen % parts or abs(chosen - candidates * fraction) > 1e-6 * candidates:
        raise InputError(
            "`training.hard_examples` must choose a positive multiple of "
            "`training.accumulation_steps` from the batch of a replica. Received: "
            f"{fraction:g} of {candidates} record(s), and {parts} part(s)."
        )


def chosen_records(training) -> int:
    """Returns how many records of a global batch a TrainingConfig trains on."""
    return round(training.batch_size * training.hard_examples)


def row_losses(sums, weights):
    """Returns the loss of each record, float32 [B].

    Args:
        sums: float32 [objectives, 2, B]. Loss and count of each objective and record.
        weights: list of float. Weight of each objective.
    """
    means = tf.math.divide_no_nan(sums[:, 0], sums[:, 1])  # [objectives, B]
    return tf.linalg.matvec(means, tf.constant(weights, tf.float32), transpose_a=True)


def hardest(features, losses, number):
    """Returns the features of the records with the highest losses, in the order of the batch.

    Args:
        features: dict of tensors [B, ...].
        losses: float32 [B]. Losses that are not finite count as the highest, so that they are
            noticed.
        number: int. Records to choose.

    Returns:
        dict of tensors [number, ...].
    """
    losses = tf.where(tf.math.is_finite(losses), losses, losses.dtype.max)
    chosen = tf.sort(tf.math.top_k(losses, number).indices)
    return {name: tf.gather(values, chosen) for name, values in features.items()}


def in_parts(function, features, parts):
    """Calls a function on parts of a batch, one after the other, and joins the results.

    Args:
        function: callable. Takes features of b records, returns float32 [N, 2, b].
        features: dict of tensors [B, ...].
        parts: int. Divides B.

    Returns:
        float32 [N, 2, B].
    """
    if parts == 1:
        return function(features)
    split = {
        name: tf.reshape(values, [parts, -1, *values.shape[1:]])
        for name, values in features.items()
    }
    found = tf.map_fn(function, split, fn_output_signature=tf.float32, parallel_iterations=1)
    found = tf.transpose(found, (1, 2, 0, 3))  # [N, 2, parts, b]
    return tf.reshape(found, [*found.shape[:2], found.shape[2] * found.shape[3]])
