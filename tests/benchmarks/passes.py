"""What a training step moves through memory outside of products, counted from its graph.

No GPU is needed: the graph is traced as for one, and not executed.
"""

import collections
import math
from unittest import mock

import tensorflow as tf

from albert_keras.models import objective_model
from albert_keras.training.build import build_pretraining
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.loop_config import COMPILED
from tests.benchmarks.contest import check_names
from tests.benchmarks.shapes import make_shape

#: Smaller tensors stay in caches.
_LEAST_BYTES = 1e6
_PRODUCTS = {"MatMul", "BatchMatMul", "BatchMatMulV2", "Einsum", "_FusedMatMul"}
#: Operations that read and write nothing.
_FREE = {
    *("Reshape", "Identity", "IdentityN", "Const", "NoOp", "ReadVariableOp", "Shape", "Rank"),
    *("ExpandDims", "Squeeze", "VarHandleOp", "AssignVariableOp", "AssignAddVariableOp", "Size"),
    *("StopGradient", "PreventGradient", "BroadcastGradientArgs", "Placeholder"),
}


def passes(
    model: str = "albert-base",
    batch_size: int = 64,
    max_seq_length: int = 128,
    precision: str = "mixed_bfloat16",
    compile: str = "auto",
    replicas: int = 1,
) -> float:
    """Counts the passes over large tensors of one update, as a GPU computes it.

    An operation that is no product reads its inputs and writes its outputs once; what XLA compiles
    reads its arguments and writes its results. TensorFlow removes some operations when it optimizes
    a graph, so this is an upper bound.

    Args:
        model: See `make_shape`.
        batch_size: Sequences of one replica.
        compile: As `training.compile`.
        replicas: GPUs.

    Returns:
        Gigabytes of one replica, which are also printed, by operation.
    """
    check_names("compile", [compile], COMPILED)
    if replicas > 1:
        devices = tf.config.list_physical_devices("CPU")[:1]
        logical = [tf.config.LogicalDeviceConfiguration()] * replicas
        tf.config.set_logical_device_configuration(devices[0], logical)
        strategy = tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(replicas)])
    else:
        strategy = tf.distribute.get_strategy()
    shape = make_shape(model, batch_size, max_seq_length)
    settings = {
        "training": {"sentence_order_weight": 0.0, "precision": precision, "compile": compile},
        "optimizer": {"name": "lamb", "lr": 1e-3},
    }
    config = PretrainingConfig.of(settings, batch_size=batch_size * replicas).resolved(precision)
    with mock.patch.multiple(objective_model, is_on_cpu=lambda: False, has_gpu=lambda: True):
        with strategy.scope():
            step = build_pretraining(config, shape.config)
        graph = _graph(strategy, step, shape)
    moved = collections.Counter()
    for kind, size in _passes(graph, shape.tokens):
        if size > _LEAST_BYTES:
            moved[kind] += size / replicas / 1e9
    for kind, size in moved.most_common():
        print(f"{kind:<28}{size:>10.2f} GB")
    print(f"{sum(moved.values()):.1f} GB in each replica outside of products")
    return sum(moved.values())


def _graph(strategy, step, shape):
    """Returns the graph of an update of all replicas."""
    rows, length, predictions = shape.batch_size, shape.max_seq_length, shape.predictions
    spec = {
        name: tf.TensorSpec([rows, length], tf.int32)
        for name in ("input_ids", "segment_ids", "input_mask")
    }
    for name in ("masked_lm_positions", "masked_lm_ids"):
        spec[name] = tf.TensorSpec([rows, predictions], tf.int32)
    spec["masked_lm_weights"] = tf.TensorSpec([rows, predictions])
    spec["sentence_order_labels"] = tf.TensorSpec([rows], tf.int32)
    spec["example_weights"] = tf.TensorSpec([rows])
    step.optimizer.build(step.trainable_variables)
    with strategy.scope():
        update = tf.function(lambda features: strategy.run(step.train_step, args=(features,)))
        return update.get_concrete_function(spec).graph


def _passes(graph, rows):
    """Yields the kind and the bytes of each operation; `rows` replaces unknown dimensions."""

    def size(tensor):
        if tensor.dtype in (tf.resource, tf.variant, tf.string) or tensor.shape.rank is None:
            return 0
        return math.prod(rows if each is None else each for each in tensor.shape) * (
            tensor.dtype.size
        )

    for operation in graph.get_operations():
        kind = operation.type
        if kind in _PRODUCTS or kind in _FREE:
            continue
        if kind in ("PartitionedCall", "StatefulPartitionedCall"):
            function = graph._get_function(operation.get_attr("f").name)
            if not function.cached_definition.attr["_XlaMustCompile"].b:
                yield from _passes(function.graph, rows)
                continue
            kind = "compiled by XLA"
        yield kind, sum(map(size, [*operation.inputs, *operation.outputs]))
