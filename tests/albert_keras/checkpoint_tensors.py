"""The tensors of a checkpoint, to compare runs bit for bit."""

import tensorflow as tf

from albert_keras.runs.run import Run


def tensors_of(run, step):
    """Returns everything that the checkpoint of a step contains, by name (dict of arrays)."""
    reader = tf.train.load_checkpoint(Run.open(run).checkpoints.prefix(step))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
