"""Where bytes lie: on this machine, or behind a scheme that TensorFlow knows (`gs://`, `hdfs://`).

Both are used alike, and what fails is an InputError that names the path. TensorFlow is loaded by
the first path with a scheme, never by a local one.
"""

import contextlib
import glob
import io
import os
import re
import shutil

from data_pipeline.errors import InputError

#: What is asked of a file at a time; all that reading holds of it.
BUFFER_BYTES = 1 << 16

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_remote(path) -> bool:
    """Tells whether a path has a scheme. A Path has none: it would turn "//" into "/"."""
    return isinstance(path, str) and _SCHEME.match(path) is not None


def open_to_read(path, begin=0, end=None):
    """Opens a stretch of a file.

    Args:
        path: str or Path.
        begin: int. First byte.
        end: int or None. Byte behind the last; None reads to the end of the file.

    Returns:
        io.BufferedReader. It raises InputError, now or later, if the file cannot be read or ends
        before `end`.
    """
    return io.BufferedReader(_Stretch(path, begin, end), BUFFER_BYTES)


def open_to_write(path):
    """Opens a new file, or an old one emptied; some remote files appear when it is closed.

    Args:
        path: str or Path.

    Returns:
        Binary file.

    Raises:
        InputError: If the file cannot be written; a local one that fails later raises OSError.
    """
    if is_remote(path):
        return io.BufferedWriter(_RemoteOutput(path), BUFFER_BYTES)
    with _refusing(path, "written"):
        return open(path, "wb")


def size_of(path) -> int:
    """Returns a file's size in bytes; raises InputError if there is no such file."""
    with _refusing(path, "read"):
        return _gfile().stat(path).length if is_remote(path) else os.path.getsize(path)


def exists(path) -> bool:
    """Tells whether there is such a file or folder; raises InputError for an unknown scheme."""
    with _refusing(path, "read"):
        return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_folder(path) -> bool:
    """Tells whether there is such a folder."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def matches(pattern) -> list[str]:
    """Lists what matches a glob pattern, sorted; "**" works on this machine only."""
    with _refusing(pattern, "read"):
        found = _gfile().glob(pattern) if is_remote(pattern) else glob.glob(pattern, recursive=True)
    return sorted(found)


def walk(folder):
    """Yields (folder, names of folders, names of files) from the top down, as `os.walk` does.

    Who removes a name from the list of folders keeps the walk out of it.

    Args:
        folder: str or Path.

    Raises:
        InputError: If a folder cannot be read.
    """
    with _refusing(folder, "read"):
        steps = _gfile().walk if is_remote(folder) else os.walk
        yield from steps(folder, onerror=_raise)


def rename(old, new):
    """Gives a file or a folder another name in the same storage; a file there is replaced."""
    with _refusing(new, "written"):
        if is_remote(old):
            _gfile().rename(old, new, overwrite=True)
        else:
            os.replace(old, new)


def make_folders(path):
    """Makes a folder and those above it; one that is there already is fine."""
    with _refusing(path, "written"):
        if is_remote(path):
            _gfile().makedirs(path)
        else:
            os.makedirs(path, exist_ok=True)


def remove(path):
    """Removes a file; raises InputError if there is none."""
    with _refusing(path, "removed"):
        if is_remote(path):
            _gfile().remove(path)
        else:
            os.remove(path)


def remove_folder(path):
    """Removes a folder and all that it holds; raises InputError if there is none."""
    with _refusing(path, "removed"):
        if is_remote(path):
            _gfile().rmtree(path)
        else:
            shutil.rmtree(path)


class _Stretch(io.RawIOBase):
    """Bytes `begin` to `end` of a local or remote file, as Python's buffers want them."""

    def __init__(self, path, begin, end):
        self._path, self._at, self._end = path, begin, end
        with _refusing(path, "read"):
            if is_remote(path):
                self._file = _gfile().GFile(path, "rb")
            else:
                self._file = open(path, "rb", buffering=0)
            if begin:
                self._file.seek(begin)

    def readable(self):
        return True

    def readinto(self, buffer):
        wanted = len(buffer) if self._end is None else min(len(buffer), self._end - self._at)
        with _refusing(self._path, "read"):
            data = self._file.read(wanted) if wanted else b""
        if wanted and not data and self._end is not None:
            raise InputError(
                f"`{self._path}` should stay as it is while it is read. "
                f"It now ends before byte {self._end}."
            )
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self):
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()


class _RemoteOutput(io.RawIOBase):
    def __init__(self, path):
        self._path = path
        self._file = _gfile().GFile(path, "wb")
        with _refusing(path, "written"):
            self._file.write(b"")  # opens it, so that a wrong place is known at once

    def writable(self):
        return True

    def write(self, data):
        with _refusing(self._path, "written"):
            self._file.write(bytes(data))
        return len(data)

    def close(self):
        if not self.closed:
            with _refusing(self._path, "written"):
                self._file.close()
        super().close()


def _gfile():
    import tensorflow as tf  # takes seconds

    return tf.io.gfile


def _raise(error):
    raise error


@contextlib.contextmanager
def _refusing(path, action):
    try:
        yield
    except _failures(path) as error:
        raise InputError(f"`{path}` cannot be {action}: {_reason(error)}.") from None


def _failures(path):
    if not is_remote(path):
        return OSError
    import tensorflow as tf

    return (OSError, tf.errors.OpError)


def _reason(error):
    if isinstance(error, OSError):
        return error.strerror or str(error)
    # Some file systems leave the message empty: "NotFoundError" then reads "not found".
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__.removesuffix("Error")).lower()
    return (error.message or words).splitlines()[0].rstrip(".")
