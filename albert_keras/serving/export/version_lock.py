"""Locks of versions, and the hidden files of a version that is being published or removed.

Servers ignore names that are not numbers. While version 3 is created or removed, there are

    .3.tmp-<pid>        its folder, to be renamed to `3`, or renamed from it
    .3.tmp-<pid>.keras  the model for Keras, to be renamed to `3.keras`
    .3.lock             an empty file, locked by the process that works on the version
    .README.md.tmp-*    the model card, locked by the process that writes it

A killed process loses its lock, so whoever gets the lock may remove the hidden files. A file is
locked because NFS keeps locks on folders to one machine. On a filesystem without `flock`, the
existence of the file reserves the number, and leftovers of a killed process must be removed by
hand.
"""

import contextlib
import errno
import fcntl
import logging
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from albert_keras.serving.layout import keras_file

logger = logging.getLogger(__name__)

_HIDDEN = re.compile(r"\.([1-9]\d*)\.(?:lock|tmp-.*)", re.ASCII)
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}


class VersionLock:
    """The right to create or remove one version, until the end of a `with` block.

    Hidden files of the version are removed at the end, and at the start if a killed process left
    any.
    """

    def __init__(self, out: Path, version: int, descriptor: int):
        self.version = version
        #: Where to create the version; does not exist yet.
        self.hidden_folder = out / f".{version}.tmp-{os.getpid()}"
        self._out, self._descriptor = out, descriptor

    @classmethod
    def take(cls, out: Path, version: int) -> "VersionLock | None":
        """Returns the lock, or None if another process has it; creates the folder `out`.

        Raises:
            OSError: If `out` cannot be written to.
        """
        descriptor = _locked(_lock_file(out, version))
        if descriptor is None:
            return None
        try:
            removed = _remove_hidden(out, version)
        except BaseException:
            os.close(descriptor)
            raise
        if removed:
            names = ", ".join(f"`{path}`" for path in removed)
            logger.warning("removed the leftovers of a killed process: %s", names)
        return cls(out, version, descriptor)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        try:
            _remove_hidden(self._out, self.version)
            # Last, so that no hidden file is without a lock.
            _lock_file(self._out, self.version).unlink(missing_ok=True)
        except OSError as error:
            _warn_of_leftovers(self.version, error)
        finally:
            os.close(self._descriptor)


def hidden_versions(out: Path) -> list[int]:
    """Lists the versions that are being created or removed, or were when a process was killed."""
    names = os.listdir(out) if out.is_dir() else []
    matches = [_HIDDEN.fullmatch(name) for name in names]
    return sorted({int(match[1]) for match in matches if match})


def remove_leftovers(out: Path) -> None:
    """Removes the hidden files of killed processes; running ones keep theirs."""
    for version in hidden_versions(out):
        try:
            lock = VersionLock.take(out, version)
            if lock is not None:
                with lock:
                    pass
        except OSError as error:
            _warn_of_leftovers(version, error)


@contextlib.contextmanager
def locked_file(temporary: Path) -> Iterator[BinaryIO]:
    """Yields a new file that is locked while it is written, if the filesystem has locks."""
    with open(temporary, "wb") as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield file


def remove_temporaries_of_killed(path: Path) -> None:
    """Removes temporary files of a `whole_file` of this path that no process has locked."""
    for temporary in path.parent.glob(f".{path.name}.tmp-*"):
        try:
            with open(temporary, "r+b") as file:  # writable, which locks on NFS require
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                temporary.unlink()
        except OSError:  # removed by now, in use, or without locks on this filesystem
            continue
        logger.warning("removed the leftover of a killed process: `%s`", temporary)


def _locked(path):
    """Returns the descriptor of a locked file, or None if another process has the lock."""
    while True:
        descriptor, is_new = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                logger.warning(
                    "`%s` is on a filesystem without locks: if this process is killed, remove that "
                    "file and the hidden files beside it by hand",
                    path,
                )
                if is_new:
                    return descriptor
            os.close(descriptor)
            if error.errno in _NO_LOCKS:
                return None
            raise
        # The process that had the lock before may have removed the file in between.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                return descriptor
        os.close(descriptor)


def _opened(path):
    """Returns a writable descriptor, which locks on NFS require, and whether the file is new."""
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):  # removed in this moment
                return os.open(path, os.O_RDWR), False
        except FileNotFoundError:  # no folder yet, or removed since another publisher failed
            path.parent.mkdir(parents=True, exist_ok=True)


def _remove_hidden(out, version):
    """Removes the hidden files of a version and returns their paths. Requires the lock."""
    hidden, model = sorted(out.glob(f".{version}.tmp-*")), keras_file(out / str(version))
    is_without_folder = model.exists() and not (out / str(version)).exists()
    if hidden and is_without_folder and all(path.suffix != ".keras" for path in hidden):
        # Its folder is the hidden one, which shows that it belongs to us; so it is removed first.
        hidden.insert(0, model)
    for path in hidden:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return hidden


def _lock_file(out, version):
    return out / f".{version}.lock"


def _warn_of_leftovers(version, error):
    logger.warning("leftovers of version %d could not be removed: %s", version, error)
