"""The gradients of all uses of a weight are added up in float32."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.uses import for_each_use


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("uses", [1, 4, 5, 9])
def test_each_use_has_a_tensor_and_its_part_in_the_gradient(uses, dtype, kernels):
    weight = tf.Variable([1.0, -2.5])
    with tf.GradientTape() as tape:
        tensors = for_each_use(weight, uses, dtype)
        loss = tf.add_n([2.0**use * tf.cast(t, tf.float32) for use, t in enumerate(tensors)])
    assert len(tensors) == uses
    for tensor in tensors:
        assert tensor.dtype == dtype
        np.testing.assert_array_equal(tf.cast(tensor, tf.float32), [1.0, -2.5])
    gradient = tape.gradient(loss, weight)
    assert gradient.dtype == tf.float32
    # Powers of two: each missing or repeated use would show.
    np.testing.assert_array_equal(gradient, [2.0**uses - 1] * 2)


def test_a_weight_is_cast_once_however_often_it_is_used():
    graph = tf.function(lambda weight: for_each_use(weight, 4, tf.bfloat16))
    operations = graph.get_concrete_function(tf.ones([3])).graph.get_operations()
    assert [operation.type for operation in operations].count("Cast") == 1
