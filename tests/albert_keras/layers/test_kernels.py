"""XLA compiles kernels where it is asked to; inference has plain operations."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.kernels import (
    column_sums,
    compiled_kernels,
    differentiable,
    inference,
    kernel,
)


@kernel
def double(inputs):
    return inputs * 2.0


def is_compiled():
    """Tells whether a step traced at this place holds a compiled kernel."""
    graph = tf.function(lambda inputs: double(inputs)).get_concrete_function(tf.ones([3])).graph
    functions = graph.as_graph_def().library.function
    return any(function.attr["_XlaMustCompile"].b for function in functions)


def test_kernels_are_compiled_within_the_context_alone():
    assert not is_compiled()
    with compiled_kernels():
        assert is_compiled()
        with compiled_kernels(False):
            assert not is_compiled()
        assert is_compiled()
    assert not is_compiled()


@differentiable
def square(inputs):
    return inputs * inputs, lambda upstream: upstream * 100.0  # not TensorFlow's


def square_and_slope():
    inputs = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = square(inputs)
    return [float(outputs), float(tape.gradient(outputs, inputs))]


def test_the_written_gradient_counts_except_for_inference():
    assert square.__name__ == "square"
    assert square_and_slope() == [9.0, 100.0]
    with inference():
        assert square_and_slope() == [9.0, 6.0]
    assert square_and_slope() == [9.0, 100.0]


@pytest.mark.parametrize("is_wanted", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_columns_are_added_up_in_float32(dtype, is_wanted):
    # 300 ones: in bfloat16, 256 + 1 is 256 again.
    rows = tf.constant([[1.0, -2.0, 0.5]] * 300, dtype)
    with compiled_kernels(is_wanted):
        sums = column_sums(rows)
    assert sums.dtype == tf.float32
    np.testing.assert_array_equal(sums, [300.0, -600.0, 150.0])
