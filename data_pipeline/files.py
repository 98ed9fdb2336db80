"""Files and folders that appear whole or not at all: temporary name, fsync, rename."""

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

from data_pipeline.errors import InputError


@contextlib.contextmanager
def whole_file(path):
    """Yields a temporary path beside `path` that takes its name when the block succeeds.

    Args:
        path: str or Path. The file to appear; an older one stays until then.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        yield temporary
        fsync(temporary)
        os.replace(temporary, path)
        fsync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path):
    """Yields a temporary folder beside `path` that takes its name when the block succeeds.

    Args:
        path: str or Path. The folder to appear; it must not exist, or be empty.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    missing = [parent for parent in path.absolute().parents if not parent.exists()]
    temporary.mkdir(parents=True)
    try:
        yield temporary
        fsync_folder(temporary)
        os.replace(temporary, path)
        fsync(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        with contextlib.suppress(OSError):  # others may have put something there by now
            for parent in missing:
                parent.rmdir()
        raise


@contextlib.contextmanager
def naming(path):
    """Lets each OSError of the block say which file or folder it is about.

    Args:
        path: str or Path. What to name where the error names nothing.
    """
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def check_output_folder(path, option="--out"):
    """Makes sure, before any work is done, that a new folder can be written at `path`.

    Args:
        path: str or Path. The folder to come.
        option: str. What the user would change, for the message.

    Raises:
        InputError: If something other than an empty folder is there already, or if its parent
            cannot be written to.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(
            f"`{path}` is not empty, and nothing is ever overwritten. "
            f"Remove it or choose another {option}."
        )
    parent = path.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise InputError(f"`{path}` cannot be made: `{parent}` is a file. Choose another {option}.")
    probe = parent / f".{path.name}.probe-{os.getpid()}"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"`{path}` cannot be written: {error.strerror} in `{parent}`. Choose another {option}."
        ) from error


def sha256_of(path):
    """Returns the hex digest of a file's bytes, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fsync(path):
    """Waits until a file, or the names in a folder, would survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_folder(path):
    """Waits until a folder with all that is in it would survive a loss of power."""
    for folder, _, names in os.walk(path):
        for name in names:
            fsync(os.path.join(folder, name))
        fsync(folder)
