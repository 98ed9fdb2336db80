"""Who works on a version, and what is hidden until the version has its number.

Servers ignore what is not a number. While version 3 is made or removed, its folder lies under

    .3.tmp-<pid>        the folder, `3` before or after
    .3.tmp-<pid>.keras  the model for Keras, `3.keras` after
    .3.lock             an empty file, locked by the process that works on the version

A killed process loses its lock, so who gets the lock may remove what is hidden. The lock is on a
file as NFS keeps locks on folders to one machine. On a filesystem without `flock` the file alone
keeps others away from the number, and what a killed process leaves has to be removed by hand.
"""

import contextlib
import errno
import fcntl
import logging
import os
import re
import shutil
from pathlib import Path

from albert_keras.serving.layout import keras_file

logger = logging.getLogger(__name__)

_HIDDEN = re.compile(r"\.([1-9]\d*)\.(?:lock|tmp-.*)", re.ASCII)
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}


class VersionLock:
    """The right to make or to remove one version; leaving the block gives it back.

    What is hidden of the version is removed then, and at the beginning if a killed process left
    any.

    Attributes:
        version: int.
        hidden_folder: Path. Where to make the version; does not exist yet.
    """

    def __init__(self, out, version, descriptor):
        self.version = version
        self.hidden_folder = out / f".{version}.tmp-{os.getpid()}"
        self._out, self._descriptor = out, descriptor

    @classmethod
    def take(cls, out, version):
        """Returns a VersionLock, or None where another process has it; makes `out`.

        Args:
            out: str or Path. Folder of the name.
            version: int.

        Raises:
            OSError: If `out` cannot be written to.
        """
        out = Path(out)
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
            logger.warning("removed what a killed process had left: %s", names)
        return cls(out, version, descriptor)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        try:
            _remove_hidden(self._out, self.version)
            # Last of all, so that nothing hidden lacks a lock.
            _lock_file(self._out, self.version).unlink(missing_ok=True)
        except OSError as error:
            _warn_of_leftovers(self.version, error)
        finally:
            os.close(self._descriptor)


def hidden_versions(out):
    """Lists the versions somebody works on, or worked on when it was killed, ascending.

    Args:
        out: Path. Folder of the name.

    Returns:
        list of int.
    """
    names = os.listdir(out) if out.is_dir() else []
    matches = [_HIDDEN.fullmatch(name) for name in names]
    return sorted({int(match[1]) for match in matches if match})


def remove_leftovers(out):
    """Removes what killed processes have left in the folder of a name; living ones lose nothing."""
    for version in hidden_versions(out):
        try:
            lock = VersionLock.take(out, version)
            if lock is not None:
                with lock:
                    pass
        except OSError as error:
            _warn_of_leftovers(version, error)


def _locked(path):
    """Returns the descriptor of a locked file, or None where another process has the lock."""
    while True:
        descriptor, is_new = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            if error.errno not in _NO_LOCKS or not is_new:
                os.close(descriptor)
            if error.errno not in _NO_LOCKS:
                raise
            logger.warning(
                "`%s` is on a filesystem without locks: what a killed process leaves there, that "
                "file too, has to be removed by hand",
                path,
            )
            return descriptor if is_new else None
        # The process that had the lock before may have removed the file in between.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                return descriptor
        os.close(descriptor)


def _opened(path):
    """Returns a descriptor one can lock, which NFS wants writable, and whether the file is new."""
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):  # removed just now
                return os.open(path, os.O_RDWR), False
        except FileNotFoundError:  # no folder yet, or none any more as another publisher failed
            path.parent.mkdir(parents=True, exist_ok=True)


def _remove_hidden(out, version):
    """Removes what is hidden of a version and returns the paths. The lock has to be held."""
    hidden, model = sorted(out.glob(f".{version}.tmp-*")), keras_file(out / str(version))
    is_without_folder = model.exists() and not (out / str(version)).exists()
    if hidden and is_without_folder and all(path.suffix != ".keras" for path in hidden):
        # Its folder is the hidden one. It goes before that one, which tells us so.
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
    logger.warning("what is left of version %d could not be removed: %s", version, error)
