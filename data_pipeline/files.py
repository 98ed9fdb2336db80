"""Files and folders that appear whole or not at all, and their digests.

A file or folder is written under a temporary name, flushed to the disk and renamed.
"""

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import check_regular_file, reading_json

#: Name of the locked file of a folder; a folder with nothing else counts as empty.
LOCK_FILE = ".lock"
#: Name of the file that lists the digests of the others in a folder.
DIGESTS = "digests.json"

#: The name of a temporary file or folder in a path; the name that it is to have.
_TEMPORARY = r"(?<![^/])\.([^/]+)\.tmp-\d+(?![^/])"
#: Numbers of the errors that mean that there is no space.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path that replaces the file at `path` if the block succeeds."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        with naming(path):
            temporary.unlink(missing_ok=True)  # in a folder of somebody else, it may be a link
            yield temporary
            fsync(temporary)
            os.replace(temporary, path)
            fsync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_text(path: str | Path) -> Iterator[TextIO]:
    """Yields a file in UTF-8 that replaces `path` if the block succeeds; its folder is created.

    Half a surrogate pair, which JSON allows and UTF-8 does not, is written as its escape.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            yield file


def write_json(path: str | Path, values: Any, **options: Any) -> None:
    """Writes values as an indented JSON file, whole; `options` are passed to `json.dumps`."""
    text = json.dumps(values, **{"indent": 2, **options}) + "\n"
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json_lines(path: str | Path, rows: Iterable[Any], **options: Any) -> None:
    """Writes a line of JSON for each row, whole; in ASCII, so that no text can end a line."""
    with whole_text(path) as file:
        file.writelines(json.dumps(row, allow_nan=False, **options) + "\n" for row in rows)


@contextlib.contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Yields a temporary folder that becomes `path`, missing or empty, if the block succeeds.

    Temporary folders for the same path that killed processes left are removed.
    """
    path = Path(os.path.realpath(path) if os.path.islink(path) else path)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    remove_unfinished(path.parent, glob.escape(path.name))
    missing = [parent for parent in path.absolute().parents if not parent.exists()]
    temporary.mkdir(parents=True)
    try:
        with naming(path):
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


def remove_unfinished(parent: Path, names: str) -> None:
    """Removes the temporary folders of `whole_folder` whose processes do not run on this machine.

    `names` is a pattern of `glob` for the names that they are to have.
    """
    for temporary in parent.glob(f".{names}.tmp-*"):
        try:
            os.kill(int(temporary.name.rpartition("-")[2]), 0)  # only asks
        except ProcessLookupError:
            shutil.rmtree(temporary, ignore_errors=True)
        except (ValueError, OverflowError, OSError):  # another name, or of another user
            continue


@contextlib.contextmanager
def naming(path: str | Path):
    """Makes each OSError of the block that names no file or folder name this one.

    Errors of libraries because of a full disk become one.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None:  # else its text is not that of the system
            error.filename = error.filename or str(path)
        raise
    except Exception as error:
        number = is_disk_full(error)
        if isinstance(error, InputError) or number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


@contextlib.contextmanager
def temporary_folder(prefix: str = "albert-keras-"):
    """Yields a folder for the time of the block; its errors name it, see `naming`."""
    with tempfile.TemporaryDirectory(prefix=prefix) as folder, naming(folder):
        yield folder


def is_disk_full(error: BaseException) -> int | None:
    """Returns the number of an error, also one of TensorFlow, that means that a disk is full.

    None for all others.
    """
    own, text = getattr(error, "errno", None), str(error)
    return next((one for one in _NO_SPACE if one == own or os.strerror(one) in text), None)


def disk_full(error: BaseException, path: str | Path | None = None) -> InputError:
    """Returns the InputError for an `is_disk_full` error; `path` is named if it has none."""
    name = (failed_path(error) if isinstance(error, OSError) else None) or path
    what = f"`{name}` could not be written. " if name else ""
    return InputError(
        f"The disk is full: {what}Free some space or choose a folder on another disk.",
        Mistake.DISK_FULL,
    )


def failed_path(error: OSError) -> str | None:
    """Returns the file that an error is about, by the name that it was to have, or None."""
    return error.filename and re.sub(_TEMPORARY, r"\1", str(error.filename))


def check_output_folder(path: str | Path, name: str = "out") -> None:
    """Checks, before any work is done, that a new folder can be written at `path`.

    Raises InputError, which names the parameter to change, if `path` exists and is not an empty
    folder, or if its parent is not writable.
    """
    path = Path(path)
    # A lock alone may be that of a process that was killed.
    if path.exists() and not (
        path.is_dir() and all(entry.name == LOCK_FILE for entry in path.iterdir())
    ):
        raise InputError(
            f"`{path}` is not empty, and nothing is ever overwritten. "
            f"Remove it or choose another `{name}`.",
            Mistake.OUTPUT_EXISTS,
        )
    check_writable(path, name)


def check_writable(path: Path, name: str = "out") -> None:
    """Checks that files can be written in a folder, or that it can be created; else InputError."""
    parent = path.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise InputError(
            f"`{path}` cannot be created: `{parent}` is a file. Choose another `{name}`."
        )
    probe = parent / f".{path.name}.probe-{os.getpid()}"
    try:
        open(probe, "x").close()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"`{path}` cannot be written: {error.strerror} in `{parent}`. Choose another `{name}`."
        ) from error


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


def write_digests(folder: Path, files: dict[str, Path], **facts: Any) -> None:
    """Writes `digests.json`: further facts, and SHA-256 and size of files.

    The names of the `files` are relative to the folder; until it is renamed they may have others.
    """
    entries = {
        name: {"sha256": sha256_of(path), "bytes": path.stat().st_size}
        for name, path in files.items()
    }
    write_json(folder / DIGESTS, facts | {"files": entries})


def find_damage(folder: Path, only: Iterable[str] | None = None, **facts: Any) -> str | None:
    """Returns what is wrong with the files of a folder that has a `digests.json`, or None.

    Args:
        folder: Path.
        only: Names of files to compare. None means all that are listed.
        **facts: What `digests.json` must contain besides the files.
    """
    if not (folder / DIGESTS).is_file():
        return f"`{DIGESTS}` is missing"
    try:
        with reading_json(folder / DIGESTS) as digests:
            found = {name: digests[name] for name in facts}
            saved = {name: (one["bytes"], one["sha256"]) for name, one in digests["files"].items()}
    except InputError as error:
        return f"`{DIGESTS}` cannot be read ({error})"
    for name, value in found.items():
        if value != facts[name]:
            return f"`{DIGESTS}` belongs to {name} {value}"
    for name in saved if only is None else only:
        try:
            saved_size, saved_digest = saved[name]
            size = (folder / name).stat().st_size
            if size != saved_size:
                return f"`{name}` has {size} bytes, but {saved_size} were saved"
            digest = sha256_of(folder / name)
        except KeyError:
            return f"`{DIGESTS}` does not list `{name}`"
        except OSError as error:
            return f"`{name}` cannot be read ({error.strerror})"
        if digest != saved_digest:
            return f"`{name}` has SHA-256 {digest}, but was saved with {saved_digest}"
    return None
