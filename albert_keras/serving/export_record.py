"""What an export tells of itself: `export.json` in the folder of a version."""

import json
from pathlib import Path

from data_pipeline.errors import InputError

#: Its name.
EXPORT_RECORD = "export.json"


def read_export_record(folder):
    """Reads what an export tells of itself.

    Args:
        folder: str or Path. Of the version.

    Returns:
        dict. Empty where there is no such file: a SavedModel may come without.

    Raises:
        InputError: If the file is damaged.
    """
    path = Path(folder) / EXPORT_RECORD
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{path}` is damaged: {error}.") from error
    if not isinstance(record, dict):
        raise InputError(f"`{path}` is damaged: it should hold an object.")
    return record
