import numpy as np
import tensorflow as tf

from albert_keras.layers.embeddings import look_up


def test_the_gradient_of_look_up_is_a_table_that_counts_repeated_rows():
    table = tf.zeros((4, 2))
    with tf.GradientTape() as tape:
        tape.watch(table)
        rows = look_up(table, tf.constant([[2, 0], [2, 2]]))
        loss = tf.reduce_sum(rows * [1.0, 10.0])
    gradient = tape.gradient(loss, table)
    np.testing.assert_array_equal(gradient, [[1, 10], [0, 0], [3, 30], [0, 0]])
