"""A version that appears under its number whole or not at all, and old versions that go."""

import contextlib
import logging
import os
import re
import time
from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.export.version_lock import (
    VersionLock,
    hidden_versions,
    remove_leftovers,
)
from albert_keras.serving.layout import keras_file, versions
from albert_keras.serving.names import MAX_VERSION
from data_pipeline.errors import InputError
from data_pipeline.files import fsync, fsync_folder

logger = logging.getLogger(__name__)

#: A server reads "003" and "+3" as version 3, too; each version has a model for Keras beside it.
_NUMBERED = re.compile(r"\+?(\d+)(?:\.keras)?", re.ASCII)
#: Who looks for leftovers has each lock for a moment: a number is in use if its lock is held on.
_LOCK_TRIES, _SECONDS_BETWEEN_TRIES = 10, 0.03


class Draft(NamedTuple):
    """A version in the making.

    Attributes:
        version: int. The number it will have; no other publisher gets it.
        folder: Path. Empty folder to write the version into.
        keras_file: Path. Where the model for Keras may be written; ends in `.keras`.
    """

    version: int
    folder: Path
    keras_file: Path


@contextlib.contextmanager
def new_version(out, version=None, keep=None):
    """Yields a Draft: a version that appears under its number when the block succeeds.

    If the block fails, nothing of it stays. What killed publishers have left is removed first.
    Any number of processes may publish at once.

    Args:
        out: str or Path. Folder of the name; `tensorflow_model_server`'s base path.
        version: int or None. None takes the number after the largest one that is there or is being
            published.
        keep: int or None. So many of the largest versions stay, and the new one; None keeps all.

    Yields:
        Draft.

    Raises:
        InputError: Before the block, if a number is impossible, if the version exists or is being
            published, or if `out` cannot be written to. After it, if somebody has put something
            under the number by other means.
    """
    out = Path(out)
    if version is not None:
        _check_version(version)
    _check_keep(keep)
    with contextlib.ExitStack() as stack:
        with _naming_out(out):
            stack.enter_context(_removing_new_parents(out))
            lock = stack.enter_context(_reserve(out, version))
            draft = Draft(lock.version, lock.hidden_folder, keras_file(lock.hidden_folder))
            draft.folder.mkdir()
        yield draft
        _publish(out, draft)
        remove_old_versions(out, keep, besides=draft.version)


def remove_old_versions(out, keep, besides=None):
    """Removes all but the largest versions; no server ever sees half of one.

    Args:
        out: str or Path. Folder of the name.
        keep: int or None. How many stay; None removes nothing.
        besides: int or None. A version that stays in any case.

    Raises:
        InputError: If `keep` is not None or a positive int.
    """
    out = Path(out)
    _check_keep(keep)
    for version in versions(out)[:-keep] if keep else []:
        if version == besides:
            continue
        lock = VersionLock.take(out, version)
        if lock is None:
            logger.warning("version %d stays for now: another process works on it", version)
            continue
        with lock:
            try:
                os.rename(out / str(version), lock.hidden_folder)
            except FileNotFoundError:  # another process has removed it
                continue
            fsync(out)  # no loss of power may give its name back to half a version
            logger.info("version %d removed: the latest %d stay", version, keep)


def _publish(out, draft):
    folder = out / str(draft.version)
    fsync_folder(draft.folder)
    has_keras_model = draft.keras_file.exists()
    if has_keras_model:
        fsync(draft.keras_file)
    _check_is_free(out, draft.version)
    if has_keras_model:
        os.rename(draft.keras_file, keras_file(folder))
    os.rename(draft.folder, folder)
    fsync(out)


def _reserve(out, version):
    """Returns the VersionLock of a number that is free."""
    remove_leftovers(out)
    tries = 0
    while True:
        if version is not None:
            _check_is_free(out, version)
        number = version or _next_version(out)
        lock = VersionLock.take(out, number)
        if lock is not None and _holder(out, number) is None:
            return lock
        if lock is not None:  # published before we had the lock
            with lock:
                continue
        if version is not None:
            tries += 1
            if tries == _LOCK_TRIES:
                raise InputError(
                    f"`{out / str(version)}` is being published or removed by another process. "
                    "Wait for it or choose another version."
                )
            time.sleep(_SECONDS_BETWEEN_TRIES)


def _next_version(out):
    numbers = [*hidden_versions(out), *(number for number, _ in _numbered(out))]
    return _check_version(1 + max((n for n in numbers if n <= MAX_VERSION), default=0))


def _check_is_free(out, number):
    holder = _holder(out, number)
    if holder is not None:
        raise InputError(
            f"`{holder}` exists, and nothing is ever overwritten. "
            "Remove it or choose another version."
        )


def _holder(out, number):
    """Returns the path that has a number already, a version or a model for Keras, or None."""
    return next((path for held, path in _numbered(out) if held == number), None)


def _numbered(out):
    """Yields (number, path) of each version and each model for Keras, alone or not."""
    for path in sorted(out.iterdir()) if out.is_dir() else ():
        match = _NUMBERED.fullmatch(path.name)
        if match:
            yield int(match[1]), path


@contextlib.contextmanager
def _removing_new_parents(out):
    """Removes the folders that the block makes above a version if it fails."""
    absolute = out.absolute()
    missing = [path for path in (absolute, *absolute.parents) if not path.exists()]
    try:
        yield
        for folder in missing:
            fsync(folder.parent)
    except BaseException:
        with contextlib.suppress(OSError):  # others may have put something there by now
            for folder in missing:
                folder.rmdir()
        raise


@contextlib.contextmanager
def _naming_out(out):
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"`{out}` cannot be written: {reason}. Choose another --out.") from error


def _check_version(version):
    if not _is_int(version) or not 1 <= version <= MAX_VERSION:
        raise InputError(f"`version` should be a positive int64. Received: {version!r}.")
    return version


def _check_keep(keep):
    if keep is not None and (not _is_int(keep) or keep < 1):
        raise InputError(f"`keep` should be None or a positive int. Received: {keep!r}.")


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)
