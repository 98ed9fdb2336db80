"""Publishes versions completely or not at all."""

import contextlib
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.layout import MAX_VERSION, check_version, keras_file
from data_pipeline.errors import InputError
from data_pipeline.files import fsync, is_disk_full, whole_folder

#: A server reads "003" and "+3" as version 3, too; each version has a model for Keras beside it.
_NUMBERED = re.compile(r"\+?(\d+)(?:\.keras)?", re.ASCII)


class Draft(NamedTuple):
    """A version that is not published yet."""

    version: int  #: The number it will have.
    folder: Path  #: Empty folder to write the version into.
    keras_file: Path  #: Where the model for Keras may be written; ends in `.keras`.


@contextlib.contextmanager
def new_version(out: Path, version: int | None = None) -> Generator[Draft, None, None]:
    """Yields a Draft: a version that gets its number when the block succeeds.

    Servers ignore its folder until then, as its name is not a number. If the block fails, nothing
    remains.

    Args:
        out: Folder of the model; `tensorflow_model_server`'s base path.
        version: None takes the number after the largest one.

    Raises:
        InputError: If a number is impossible, or if the version exists, also at the end.
    """
    if version is not None:
        check_version(version)
    used = (number for number, _ in _numbered(out) if number <= MAX_VERSION)
    number = check_version(1 + max(used, default=0)) if version is None else version
    target = out / str(number)
    _check_is_free(out, number)
    with whole_folder(target) as folder:
        model = folder.with_name(f"{folder.name}.keras")
        try:
            with _reporting_full_disk(out):
                yield Draft(number, folder, model)
            _check_is_free(out, number)  # another export may have published it
            if model.exists():
                fsync(model)
                os.replace(model, keras_file(target))
        finally:
            model.unlink(missing_ok=True)


@contextlib.contextmanager
def _reporting_full_disk(out):
    try:
        yield
    except Exception as error:
        if not is_disk_full(error):
            raise
        raise InputError(
            f"`{out}` cannot be written: the disk is full, and nothing was published. Free some "
            "space or choose another --out."
        ) from error


def _check_is_free(out, number):
    path = next((path for found, path in _numbered(out) if found == number), None)
    if path is not None:
        raise InputError(
            f"`{path}` exists, and nothing is ever overwritten. "
            "Remove it or choose another version."
        )


def _numbered(out):
    """Yields (number, path) of each version and each model for Keras, even without the other."""
    for path in sorted(out.iterdir()) if out.is_dir() else ():
        match = _NUMBERED.fullmatch(path.name)
        if match:
            yield int(match[1]), path
