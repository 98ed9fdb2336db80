"""What writer and reader of an export agree on; light, so that mistakes are answered at once."""

import re
from pathlib import Path

from albert_keras.serving.names import MAX_VERSION
from data_pipeline.errors import InputError

#: What a user types where a piece is to be filled in; only `fill_mask` takes it for more than text.
MASK_LITERAL = "[MASK]"
#: Candidates for each [MASK].
TOP_K = 10


def versions(folder):
    """Lists the versions of an exported model, ascending.

    Args:
        folder: str or Path. Folder of the name; `tensorflow_model_server`'s base path.

    Returns:
        list of int.
    """
    folder = Path(folder)
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    # A set: a listing may tell a name twice while others write there.
    numbers = {int(name) for name in names if re.fullmatch(r"[1-9]\d*", name, re.ASCII)}
    return sorted(number for number in numbers if number <= MAX_VERSION)


def existing_versions(folder):
    """Lists the versions of an exported model as `versions` does; InputError if there is none."""
    found = versions(folder)
    if not found:
        raise InputError(
            f"`{folder}` holds no exported model. Make one with `albert-keras export`."
        )
    return found


def size_of(folder):
    """Returns the bytes of all files of a version together, int."""
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def keras_file(folder):
    """Returns the path of a version's model for Keras, `3.keras` beside the folder `3`.

    Args:
        folder: str or Path. Folder of the version.
    """
    folder = Path(folder)
    return folder.with_name(f"{folder.name}.keras")
