"""Loads the SavedModel of a version: checks it first, and names its damaged file."""

from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf.fingerprint_pb2 import FingerprintDef
from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting

from albert_keras.serving.layout import AFTER_DAMAGE, EXPORT_RECORD, read_export_record
from albert_keras.serving.saved_model.server_ops import check_ops, read_saved_model
from data_pipeline.errors import InputError
from data_pipeline.limits import check_regular_file

_GRAPH, _INDEX = "saved_model.pb", "variables/variables.index"
#: Hash in a fingerprint -> the file whose parsed content it was computed from. The other files of
#: variables contain checksums, which TensorFlow compares when it reads them.
_HASHED = {"saved_model_checksum": _GRAPH, "checkpoint_hash": _INDEX}


def load_saved_model(folder: Path) -> Any:
    """Loads a version, whose operations of tensorflow-text must be registered.

    Raises:
        InputError: If its files are damaged, if they differ from the hashes in `export.json`, if
            one is a pipe or a device, or if it has operations that are not allowed, see
            `check_ops`. Then nothing of it is loaded.
    """
    for path in folder.rglob("*"):
        check_regular_file(path)
    saved_model = read_saved_model(folder)
    expected = read_export_record(folder).get("fingerprint")
    try:
        if isinstance(expected, dict):
            _check_hashes(folder, expected)
        check_ops(folder, saved_model)
        return tf.saved_model.load(str(folder))
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of any type, as the loader trusts its files
        reason = error.message if isinstance(error, tf.errors.OpError) else str(error)
        reason = reason.strip().split("\n")[0][:200] or type(error).__name__
        raise InputError(
            f"`{_damaged_file(folder)}` is damaged: {reason.rstrip('.')}. {AFTER_DAMAGE}"
        ) from error


def _check_hashes(folder, expected):
    found = FingerprintDef.FromString(fingerprinting.CreateFingerprintDef(str(folder)))
    for name, file in _HASHED.items():
        if expected.get(name) not in (None, f"{getattr(found, name):016x}"):
            raise InputError(
                f"`{folder / file}` is damaged, or it was changed after the export: "
                f"`{name}` in {EXPORT_RECORD} differs. {AFTER_DAMAGE}"
            )


def _damaged_file(folder):
    """Returns the file of a version that cannot be loaded that is most likely the reason."""
    if not (folder / _INDEX).is_file():
        return folder / _INDEX
    try:
        reader = tf.train.load_checkpoint(str((folder / _INDEX).with_suffix("")))
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception:  # as above
        return folder / "variables"
    return folder / _GRAPH
