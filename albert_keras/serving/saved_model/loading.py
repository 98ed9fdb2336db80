"""Checks a version before it is loaded, names its damaged file, and limits the time it takes."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from tensorflow.core.protobuf.fingerprint_pb2 import FingerprintDef
from tensorflow.python.eager.cancellation import CancellationManager, CancellationManagerContext
from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting

from albert_keras.serving.layout import AFTER_DAMAGE, EXPORT_RECORD, read_export_record
from albert_keras.serving.saved_model.server_ops import check_ops, read_saved_model
from data_pipeline.errors import InputError
from data_pipeline.files import DIGESTS, find_damage
from data_pipeline.limits import check_regular_file

_GRAPH, _INDEX = "saved_model.pb", "variables/variables.index"
#: Hash in a fingerprint -> the file whose parsed content it was computed from. The other files of
#: variables contain checksums, which TensorFlow compares when it reads them.
_HASHED = {"saved_model_checksum": _GRAPH, "checkpoint_hash": _INDEX}


def check_saved_model(folder: Path) -> None:
    """Checks a version before anything of it is loaded.

    Raises:
        InputError: If its files are damaged, as far as the hashes in `export.json` and
            `digests.json` show that, if one is a pipe or a device, or if it has operations that
            are not allowed, see `check_ops`.
    """
    for path in folder.rglob("*"):
        check_regular_file(path)
    saved_model = read_saved_model(folder)
    expected = read_export_record(folder).get("fingerprint")
    if isinstance(expected, dict):
        with reporting_damage(folder):
            created = fingerprinting.CreateFingerprintDef(str(folder))
        found = FingerprintDef.FromString(created)
        for name, file in _HASHED.items():
            if expected.get(name) not in (None, f"{getattr(found, name):016x}"):
                raise InputError(
                    f"`{folder / file}` is damaged, or it was changed after the export: "
                    f"`{name}` in {EXPORT_RECORD} differs. {AFTER_DAMAGE}"
                )
    if (folder / DIGESTS).is_file():  # also shows changes that a parser ignores
        for file in _HASHED.values():
            damage = find_damage(folder, [file])
            if damage is not None:
                named = folder / (DIGESTS if f"`{DIGESTS}`" in damage else file)
                raise InputError(
                    f"`{named}` is damaged, or it was changed after the export: {damage}. "
                    f"{AFTER_DAMAGE}"
                )
    check_ops(folder, saved_model)


@contextlib.contextmanager
def reporting_damage(folder: Path) -> Iterator[None]:
    """Makes each error of the block, which loads a version, an InputError with the damaged file."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of any type, as the loader trusts its files
        reason = error.message if isinstance(error, tf.errors.OpError) else str(error)
        reason = reason.strip().split("\n")[0][:200] or type(error).__name__
        raise InputError(
            f"`{_damaged_file(folder)}` is damaged: {reason.rstrip('.')}. {AFTER_DAMAGE}"
        ) from error


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


@contextlib.contextmanager
def time_limit(seconds: float, path: Path) -> Iterator[None]:
    """Cancels what TensorFlow runs in the block, in this thread, after some seconds.

    A SavedModel is a program, and may contain an endless loop.
    InputError, which names the `path` of the SavedModel, if that happens.
    """
    manager = CancellationManager()
    timer = threading.Timer(seconds, manager.start_cancel)
    timer.daemon = True
    timer.start()
    try:
        with CancellationManagerContext(manager):
            yield
    except tf.errors.CancelledError as error:
        if not manager.is_cancelled:
            raise
        raise InputError(
            f"`{path}` must load and answer within {seconds:,g} s. It did not, and was stopped. "
            "It may contain an endless loop. If it is only slow, give shorter texts."
        ) from error
    finally:
        timer.cancel()
        timer.join()
