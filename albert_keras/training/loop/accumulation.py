"""A batch in parts, one after the other: the sum of what each gives, for the memory of one."""

import tensorflow as tf


def sum_over_parts(function, features, num_parts, like):
    """Splits a batch into parts of equal size, calls a function on each and sums the results.

    The parts run in a loop of the graph, so that the memory of one is free before the next begins.

    Args:
        function: callable. Takes (features of a part, its number as int64 scalar) and returns a
            list of float tensors of static shape.
        features: dict of tensors [B, ...].
        num_parts: int. Has to divide B.
        like: list of variables or tensors with the shapes and dtypes of the results.

    Returns:
        list of tensors, as of `function`.

    Raises:
        ValueError: If the batch cannot be split so.
    """
    if num_parts == 1:
        return function(features, tf.zeros([], tf.int64))
    sizes = {name: values.shape[0] for name, values in features.items()}
    if any(size is None or size % num_parts for size in sizes.values()):
        raise ValueError(
            f"The batch of a replica should be a multiple of {num_parts} accumulated parts. "
            f"Received: {sizes}."
        )
    parts = {
        name: tf.reshape(values, [num_parts, -1, *values.shape[1:]])
        for name, values in features.items()
    }

    def add_part(number, sums):
        given = function({name: values[number] for name, values in parts.items()}, number)
        return number + 1, [total + value for total, value in zip(sums, given, strict=True)]

    zeros = [tf.zeros(result.shape, result.dtype) for result in like]
    _, sums = tf.while_loop(
        lambda number, _: number < num_parts,
        add_part,
        (tf.zeros([], tf.int64), zeros),
        maximum_iterations=num_parts,
        parallel_iterations=1,
    )
    return sums
