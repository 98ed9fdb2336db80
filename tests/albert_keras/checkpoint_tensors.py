"""What runs contain, to compare them bit for bit."""

import numpy as np
import tensorflow as tf

from albert_keras.runs.log_file import TIMING, read_log
from albert_keras.runs.run import Run


def tensors_of(run, step):
    """Returns everything that the checkpoint of a step contains, by name (dict of arrays)."""
    reader = tf.train.load_checkpoint(Run.open(run).checkpoints.prefix(step))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_same(found, expected):
    """Compares tensors by name."""
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def assert_equal_runs(found, expected, step):
    """Compares the checkpoints of a step, and all of the logs that the clock does not change."""
    assert_same(tensors_of(found, step), tensors_of(expected, step))
    logs = (
        [{name: line[name] for name in line.keys() - set(TIMING)} for line in read_log(run)]
        for run in (found, expected)
    )
    assert next(logs) == next(logs)
