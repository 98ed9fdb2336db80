"""Publishes versions completely or not at all, and removes old ones."""

import contextlib
import itertools
import logging
import os
import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.export.version_lock import (
    VersionLock,
    hidden_versions,
    remove_leftovers,
)
from albert_keras.serving.layout import MAX_VERSION, check_version, keras_file, versions
from data_pipeline.errors import InputError
from data_pipeline.files import fsync, fsync_folder, is_disk_full

logger = logging.getLogger(__name__)

#: A server reads "003" and "+3" as version 3, too; each version has a model for Keras beside it.
_NUMBERED = re.compile(r"\+?(\d+)(?:\.keras)?", re.ASCII)
#: A process that looks for leftovers holds each lock for a moment. Only a lock that is still held
#: after these tries means that the number is in use.
_LOCK_TRIES, _SECONDS_BETWEEN_TRIES = 10, 0.03


class Draft(NamedTuple):
    """A version that is not published yet."""

    version: int  #: The number it will have; no other publisher gets it.
    folder: Path  #: Empty folder to write the version into.
    keras_file: Path  #: Where the model for Keras may be written; ends in `.keras`.


@contextlib.contextmanager
def new_version(
    out: Path, version: int | None = None, keep: int | None = None
) -> Generator[Draft, None, None]:
    """Yields a Draft: a version that gets its number when the block succeeds.

    If the block fails, nothing remains. Leftovers of killed publishers are removed first. Any
    number of processes may publish at once.

    Args:
        out: Folder of the model; `tensorflow_model_server`'s base path.
        version: None takes the number after the largest one that exists or is being published.
        keep: Number of largest versions to keep, besides the new one if it is not among them; None
            keeps all.

    Raises:
        InputError: Before the block, if a number is impossible, if the version exists or is being
            published, or if `out` cannot be written to. After it, if something else has been given
            the number by other means, or if the disk is full.
    """
    if version is not None:
        check_version(version)
    is_int = isinstance(keep, int) and not isinstance(keep, bool)
    if keep is not None and (not is_int or keep < 1):
        raise InputError(f"`keep` must be None or a positive int. Received: {keep!r}.")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_removing_new_parents(out))
            lock = stack.enter_context(_reserve(out, version))
            draft = Draft(lock.version, lock.hidden_folder, keras_file(lock.hidden_folder))
            draft.folder.mkdir()
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"`{out}` cannot be written: {reason}. Choose another --out."
            ) from error
        try:
            yield draft
            _publish(out, draft)
        except Exception as error:
            if not is_disk_full(error):
                raise
            raise InputError(
                f"`{out}` cannot be written: the disk is full. Version {draft.version} was not "
                "published and its files are removed. Free some space or choose another --out."
            ) from error
        remove_old_versions(out, keep, besides=draft.version)


def remove_old_versions(out: Path, keep: int | None, besides: int | None = None) -> None:
    """Removes all but the largest `keep` versions; no server ever sees a part of one.

    The version `besides` is kept in any case; with `keep` None nothing is removed.
    """
    for version in versions(out)[:-keep] if keep else []:
        if version == besides:
            continue
        lock = VersionLock.take(out, version)
        if lock is None:
            logger.warning("version %d is kept for now: another process is using it", version)
            continue
        with lock:
            try:
                os.rename(out / str(version), lock.hidden_folder)
            except FileNotFoundError:  # another process has removed it
                continue
            fsync(out)  # so that a power failure cannot give a partly removed version its name back
            logger.info("version %d removed: the newest %d are kept", version, keep)


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
    """Returns the VersionLock of a free number."""
    remove_leftovers(out)
    for attempt in itertools.count(1):
        if version is not None:
            _check_is_free(out, version)
        number = version or _next_version(out)
        lock = VersionLock.take(out, number)
        if lock is not None:
            if _path_of(out, number) is None:
                return lock
            with lock:  # published before we got the lock
                continue
        if version is not None:
            if attempt >= _LOCK_TRIES:
                raise InputError(
                    f"`{out / str(version)}` is being published or removed by another process. "
                    "Wait until it is done or choose another version."
                )
            time.sleep(_SECONDS_BETWEEN_TRIES)


def _next_version(out):
    numbers = [*hidden_versions(out), *(number for number, _ in _numbered(out))]
    return check_version(1 + max((n for n in numbers if n <= MAX_VERSION), default=0))


def _check_is_free(out, number):
    path = _path_of(out, number)
    if path is not None:
        raise InputError(
            f"`{path}` exists, and nothing is ever overwritten. "
            "Remove it or choose another version."
        )


def _path_of(out, number):
    """Returns the path that has a number, a version or a model for Keras, or None."""
    return next((path for found, path in _numbered(out) if found == number), None)


def _numbered(out):
    """Yields (number, path) of each version and each model for Keras, even without the other."""
    for path in sorted(out.iterdir()) if out.is_dir() else ():
        match = _NUMBERED.fullmatch(path.name)
        if match:
            yield int(match[1]), path


@contextlib.contextmanager
def _removing_new_parents(out):
    """Removes `out` and its parents if the block creates them and then fails."""
    absolute = out.absolute()
    missing = [path for path in (absolute, *absolute.parents) if not path.exists()]
    try:
        yield
        for folder in missing:
            fsync(folder.parent)
    except BaseException:
        with contextlib.suppress(OSError):  # others may have written there by now
            for folder in missing:
                folder.rmdir()
        raise
