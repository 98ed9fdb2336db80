"""What is known of the versions that lie in the folder of a name, for the model card."""

import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.serving.export_record import EXPORT_RECORD
from albert_keras.serving.layout import size_of, versions
from albert_keras.tasks.kinds import KINDS

logger = logging.getLogger(__name__)

#: Where a number ends to be one that anybody has measured or counted.
_LARGEST = 2.0**63


class CardVersion(NamedTuple):
    """A version, as its card sees it.

    Attributes:
        number: int.
        folder: Path.
        record: dict. What `export.json` holds; empty if it is missing or damaged.
        num_bytes: int. All files of the version together.
    """

    number: int
    folder: Path
    record: dict[str, Any]
    num_bytes: int

    def at(self, *names, kind=str):
        """Returns a value of the record; see `value_at`."""
        return value_at(self.record, *names, kind=kind)

    @property
    def kind(self):
        """str. "pretraining", "finetuning", or "" if nothing tells."""
        # Runs were of pre-training only when they did not say what they were.
        usual = "pretraining" if self.at("run", kind=dict) else ""
        return self.at("kind") or self.at("run", "kind") or usual

    @property
    def task_kind(self):
        """TaskKind, or None if it has no task or its kind is not known."""
        return KINDS.get(self.at("task", "kind")) if self.kind == "finetuning" else None

    @property
    def signatures(self):
        """dict of name -> {"inputs": {name: [dtype, shape]}, "outputs": likewise}."""
        found = self.at("signatures", kind=dict)
        return {name: one for name, one in sorted(found.items()) if isinstance(one, dict)}


def read_versions(out):
    """Reads the records of all versions.

    Args:
        out: str or Path. Folder of the name.

    Returns:
        list of CardVersion, the newest first.
    """
    found = []
    for number in reversed(versions(out)):
        folder = Path(out) / str(number)
        try:
            record = read_json(folder / EXPORT_RECORD)
            num_bytes = size_of(folder)
        except FileNotFoundError:  # another publisher has just removed it
            continue
        if folder.is_dir():
            found.append(CardVersion(number, folder, record, num_bytes))
    return found


def read_json(path):
    """Reads a JSON object: dict, empty if there is none or it is damaged, of which it warns."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        logger.warning("the model card leaves out `%s`, which is damaged: %s", path, error)
        return {}
    return value if isinstance(value, dict) else {}


def value_at(record, *names, kind=str):
    """Returns a value deep in a record, if it is there and what it should be.

    Args:
        record: Any JSON.
        *names: str. Keys, the outermost first.
        kind: type. str, int, float (an int, too, and finite), bool, list or dict.

    Returns:
        The value; else an empty one of str, list or dict, None of the others.
    """
    value = record
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    accepted = int | float if kind is float else kind
    is_number = kind in (int, float)
    is_right = isinstance(value, accepted) and not (is_number and isinstance(value, bool))
    if is_right and is_number:
        is_right = abs(value) < _LARGEST  # neither NaN nor infinity is
    return value if is_right else (None if is_number or kind is bool else kind())
