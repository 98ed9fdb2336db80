"""The folder of a study.

    study.json           what was asked for, and the updates of the runs if time decided them
    corpus/<id>/         training and held-out text, if a part of the corpus is held out
    vocabularies/<id>/   one for each vocabulary
    records/<id>/        records, for training and held out
    runs/<name>-seed-<n>-<id>/    `run/`, the training; `result.json`, its scores
    report/              report.md, pictures and tables

An id is computed from the settings and the text that decide the content, so runs that need the same
content share it, and a run whose settings have changed gets a folder of its own.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from data_pipeline import files, limits

_ID_LENGTH = 12


def content_id(*parts: Any) -> str:
    """Returns the id of what the parts, JSON values, decide: 12 hexadecimal digits."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]


def read_json(path: Path) -> dict[str, Any] | None:
    """Returns the content of a JSON file of the study; None if it does not exist.

    Raises InputError if it is damaged.
    """
    return limits.read_json(path, "Remove it.") if path.is_file() else None


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Writes a JSON file of the study, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, values, ensure_ascii=False)
