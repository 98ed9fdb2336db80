"""Files and folders that appear complete or not at all: temporary name, fsync, rename."""

import contextlib
import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.folder_lock import LOCK_FILE
from data_pipeline.limits import check_regular_file
from data_pipeline.mistakes import Mistake

#: The name of a temporary file or folder in a path; the name that it is to have.
_TEMPORARY = r"(?<![^/])\.([^/]+)\.tmp-\d+(?![^/])"
#: Temporary files and folders that are being written now.
_temporaries: set[Path] = set()


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path that replaces the file at `path` if the block succeeds."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    _temporaries.add(temporary)
    try:
        yield temporary
        fsync(temporary)
        os.replace(temporary, path)
        fsync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
        _temporaries.discard(temporary)


@contextlib.contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Yields a temporary folder that becomes `path`, missing or empty, if the block succeeds."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    missing = [parent for parent in path.absolute().parents if not parent.exists()]
    temporary.mkdir(parents=True)
    _temporaries.add(temporary)
    try:
        yield temporary
        fsync_folder(temporary)
        os.replace(temporary, path)
        fsync(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        with contextlib.suppress(OSError):  # other programs may have written there
            for parent in missing:
                parent.rmdir()
        raise
    finally:
        _temporaries.discard(temporary)


def remove_temporaries() -> None:
    """Removes what `whole_file` and `whole_folder` are writing, before the process is ended."""
    for path in list(_temporaries):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def naming(path: str | Path):
    """Makes each OSError of the block that names no file or folder name this one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def is_disk_full(error: BaseException) -> bool:
    """Returns whether an error, also one that TensorFlow raises, means that a disk is full."""
    full = (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "errno", None) in full or any(
        os.strerror(number) in str(error) for number in full
    )


def failed_path(error: OSError) -> str | None:
    """Returns the file that an error is about, by the name that it was to have, or None."""
    path = _copies_of(error)[0][1] if _copies_of(error) else error.filename
    return None if path is None else re.sub(_TEMPORARY, r"\1", str(path))


def failure_reason(error: OSError) -> str:
    """Returns why a file could not be read or written."""
    return str(error.strerror or (_copies_of(error)[0][2] if _copies_of(error) else error))


def _copies_of(error):
    """Returns what `shutil` could not copy: a list of (source, target, reason)."""
    copies = error.args[0] if isinstance(error, shutil.Error) and error.args else ()
    return copies if isinstance(copies, list) else ()


def check_output_folder(path: str | Path, option: str = "--out") -> None:
    """Checks, before any work is done, that a new folder can be written at `path`.

    Raises InputError, which names the option to change, if `path` exists and is not an empty
    folder, or if its parent is not writable.
    """
    path = Path(path)
    if path.exists() and not _is_empty_folder(path):
        raise InputError(
            f"`{path}` is not empty, and nothing is ever overwritten. "
            f"Remove it or choose another {option}.",
            Mistake.OUTPUT_EXISTS,
        )
    check_writable(path, option)


def check_writable(path: Path, option: str = "--out") -> None:
    """Checks that files can be written in a folder, or that it can be created; else InputError."""
    parent = path.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise InputError(
            f"`{path}` cannot be created: `{parent}` is a file. Choose another {option}."
        )
    probe = parent / f".{path.name}.probe-{os.getpid()}"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"`{path}` cannot be written: {error.strerror} in `{parent}`. Choose another {option}."
        ) from error


def _is_empty_folder(path):
    """Returns whether there is only a lock in a folder, perhaps of a process that was killed."""
    return path.is_dir() and all(entry.name == LOCK_FILE for entry in path.iterdir())


def sha256_of(path):
    """Returns the SHA-256 of a file's bytes, in hexadecimal; InputError if it is not a file."""
    check_regular_file(path)
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fsync(path):
    """Flushes a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_folder(path):
    """Flushes a folder and all of its contents to the disk."""
    for folder, _, names in os.walk(path):
        for name in names:
            fsync(os.path.join(folder, name))
        fsync(folder)
