"""A version whose files name all files it must have, so that a missing file is noticed."""

import contextlib
import json
import os
from pathlib import Path

from albert_keras.serving.layout import keras_file

_SIZES = {
    "saved_model.pb": 50_000,
    "variables/variables.index": 10_000,
    "variables/variables.data-00000-of-00001": 20_000,
}
_KERAS_SIZE = 10_000


def write_version(draft, small_files=0):
    """Writes files that say which version they belong to and which files it has."""
    sizes = _SIZES | {f"assets/{number}": 10_000 for number in range(small_files)}
    header = json.dumps({"version": draft.version, "files": sizes}) + "\n"
    for name, size in sizes.items():
        (draft.folder / name).parent.mkdir(exist_ok=True)
        (draft.folder / name).write_text(header.ljust(size))
    draft.keras_file.write_text(header.ljust(_KERAS_SIZE))


def look(out, version):
    """Returns "whole", "partial" or "gone".

    A folder is partial if a file or its model for Keras is missing, and the folder still has its
    number after this was found. A version that is removed while it is read loses its number first,
    so it is gone.
    """
    path = Path(out) / str(version)
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return "gone"
    try:
        with contextlib.suppress(OSError):
            if _is_whole(folder, keras_file(path), version):
                return "whole"
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(folder)):
                return "partial"
        return "gone"
    finally:
        os.close(folder)


def _is_whole(folder, model, version):
    contents = {}
    for root, _, names, descriptor in os.fwalk(".", dir_fd=folder):
        for name in names:
            with open(os.open(name, os.O_RDONLY, dir_fd=descriptor), "rb") as file:
                contents[os.path.normpath(os.path.join(root, name))] = file.read()
    headers = {content.split(b"\n")[0] for content in [*contents.values(), model.read_bytes()]}
    if len(headers) != 1:
        return False
    expected = json.loads(headers.pop())
    sizes = {name: len(content) for name, content in contents.items()}
    return expected == {"version": version, "files": sizes} and model.stat().st_size == _KERAS_SIZE
