"""Files of any file system: local, or with a scheme that TensorFlow supports (`gs://`, `hdfs://`).

Both are used alike, and a failure is an InputError that names the path. TensorFlow is loaded for
the first path with a scheme, never for a local one.
"""

import contextlib
import functools
import io
import os
import re
import shutil
import types

from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import check_regular_file

#: Bytes that are read at once and kept in memory.
BUFFER_BYTES = 1 << 16

#: What files begin with that contain text, but are none.
_OTHER_KINDS = {
    b"\x1f\x8b": "compressed by gzip",
    b"PK\x03\x04": "a zip archive, as .xlsx and .docx are",
    b"PAR1": "Parquet",
    b"\x89HDF": "HDF5",
    b"WARC/": "an archive of web pages (WARC or WET)",
}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_remote(path) -> bool:
    """Returns whether a path has a scheme. A Path has none: it would turn "//" into "/"."""
    return isinstance(path, str) and _SCHEME.match(path) is not None


def open_to_read(path, begin: int = 0, end: int | None = None) -> io.BufferedReader:
    """Opens the bytes of a file from `begin` to before `end`, or to the end of the file.

    Raises InputError, now or while reading, if the file cannot be read, ends before `end`, or is of
    a kind that contains text and is none, such as a compressed one.
    """
    return io.BufferedReader(_FileRange(path, begin, end), BUFFER_BYTES)


@contextlib.contextmanager
def open_to_write(path):
    """Opens a binary file, new or emptied, for a block; some remote files appear at its end.

    Raises InputError if the file cannot be written.
    """
    with _refusing(path, "written"), _files_of(path).GFile(path, "wb") as file:
        file.write(b"")  # opens a remote file, so that a wrong path fails before the block
        yield file


def size_of(path) -> int:
    """Returns a file's size in bytes; raises InputError if the file does not exist."""
    return state_of(path)[0]


def state_of(path) -> tuple[int, int]:
    """Returns a file's size in bytes and the nanosecond of its last change, as `size_of`."""
    with _refusing(path, "read"):
        found = _files_of(path).stat(path)
    if is_remote(path):
        return found.length, found.mtime_nsec
    return found.st_size, found.st_mtime_ns


def exists(path) -> bool:
    """Returns whether a file or folder exists; raises InputError for an unknown scheme."""
    with _refusing(path, "read"):
        return _files_of(path).exists(path)


def is_folder(path) -> bool:
    """Returns whether a folder exists."""
    return _files_of(path).isdir(path)


def walk(folder):
    """Yields (folder, names of folders, names of files) from the top down, as `os.walk` does.

    Folders that the caller removes from the list are not visited; links are followed. Raises
    InputError if a folder cannot be read.
    """
    with _refusing(folder, "read"):
        yield from _files_of(folder).walk(folder, onerror=_raise)


def rename(old, new):
    """Renames a file or a folder in the same storage; an existing file is replaced."""
    with _refusing(new, "written"):
        _files_of(old).rename(old, new, overwrite=True)


def make_folders(path):
    """Creates a folder and its parents, unless they exist already."""
    with _refusing(path, "written"):
        _files_of(path).makedirs(path)


def remove(path):
    """Removes a file, or a folder with its contents; InputError if it does not exist."""
    with _refusing(path, "removed"):
        files = _files_of(path)
        remove_one = files.rmtree if files.isdir(path) else files.remove
        remove_one(path)


class _FileRange(io.RawIOBase):
    """A range of a local or remote file, as a raw file for Python's buffers."""

    def __init__(self, path, begin, end):
        self._path, self._at, self._end = path, begin, end
        if not is_remote(path):
            check_regular_file(path)  # opening a pipe would wait for its other end
        with _refusing(path, "read"):
            self._file = _files_of(path).GFile(path, "rb")
            head = b"" if begin else self._file.read(8)
            self._file.seek(begin)
        for start, kind in _OTHER_KINDS.items():
            if head.startswith(start):
                self._file.close()
                raise InputError(
                    f"`{path}` must be text. It is {kind}. Write its text to a file in UTF-8.",
                    Mistake.NOT_TEXT,
                )

    def readable(self):
        return True

    def readinto(self, buffer):
        size = len(buffer) if self._end is None else min(len(buffer), self._end - self._at)
        with _refusing(self._path, "read"):
            data = self._file.read(size) if size else b""
        if size and not data and self._end is not None:
            raise InputError(
                f"`{self._path}` must not change while it is read. "
                f"It now ends before byte {self._end}."
            )
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self):
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()


#: What `tf.io.gfile` has, for local files and without TensorFlow.
_LOCAL_FILES = types.SimpleNamespace(
    GFile=open,
    exists=os.path.exists,
    isdir=os.path.isdir,
    makedirs=functools.partial(os.makedirs, exist_ok=True),
    remove=os.remove,
    rename=lambda old, new, overwrite: os.replace(old, new),
    rmtree=shutil.rmtree,
    stat=os.stat,
    walk=functools.partial(os.walk, followlinks=True),
)


def _files_of(path):
    """Returns the functions of the file system of a path."""
    if not is_remote(path):
        return _LOCAL_FILES
    import tensorflow as tf  # takes seconds

    return tf.io.gfile


def _raise(error):
    raise error


@contextlib.contextmanager
def _refusing(path, action):
    failures = (OSError,)
    if is_remote(path):
        import tensorflow as tf

        failures += (tf.errors.OpError,)
    try:
        yield
    except failures as error:
        mistakes = (Mistake.FILE_NOT_FOUND,) if isinstance(error, FileNotFoundError) else ()
        place = getattr(error, "filename", None) or path  # perhaps a folder below it
        message = f"`{place}` cannot be {action}: {_reason(error)}."
        raise InputError(message, *mistakes) from None


def _reason(error):
    if isinstance(error, OSError):
        return error.strerror or str(error)
    # Some file systems give no message: "NotFoundError" then becomes "not found".
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__.removesuffix("Error")).lower()
    return (error.message or words).splitlines()[0].rstrip(".")
