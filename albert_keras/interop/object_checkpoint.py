"""Checkpoints of TensorFlow 2, whose tensors are called by objects: read by names of variables."""

import logging

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from albert_keras.interop.checkpoint_tensors import CheckpointTensors
from data_pipeline.errors import InputError

_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

logger = logging.getLogger(__name__)


def read_named_tensors(prefix):
    """Reads variables that hold floats, by the names they had in the program that saved them.

    The checkpoint itself tells them, beside the objects that held the variables; other types, such
    as counters, are left.

    Args:
        prefix: str. As TensorFlow's checkpoint readers take it.

    Returns:
        dict of name -> array.

    Raises:
        InputError: If it cannot be read, or two variables have one name.
    """
    stored = CheckpointTensors(prefix)
    graph = TrackableObjectGraph()
    try:
        graph.ParseFromString(stored.read(_GRAPH))
    except (DecodeError, KeyError, TypeError) as error:
        raise InputError(f"`{prefix}` should tell the names of its variables: {error}.") from error
    keys = {}
    for node in graph.nodes:
        for attribute in node.attributes:
            name = attribute.full_name or attribute.checkpoint_key
            keys.setdefault(name, set()).add(attribute.checkpoint_key)
    named = {key for those in keys.values() for key in those}
    for key in sorted(stored.shapes.keys() - named - {_GRAPH}):
        keys.setdefault(key, set()).add(key)
    missing = sorted(named - stored.shapes.keys())
    if missing:
        raise InputError(f"`{prefix}` should hold what it lists. Missing: {', '.join(missing)}.")
    left = sorted(
        name for name, those in keys.items() if not any(stored.types[k].is_floating for k in those)
    )
    if left:
        logger.info("Left in `%s`: %s", prefix, ", ".join(left))
    twice = sorted(name for name, those in keys.items() if len(those) > 1 and name not in left)
    if twice:
        raise InputError(f"`{prefix}` holds two variables of one name: {', '.join(twice)}.")
    return {name: stored.read(*those) for name, those in keys.items() if name not in left}
