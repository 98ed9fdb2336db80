"""Small files of a model folder: JSON objects, vocabularies, and names that must stay inside it."""

import json
from pathlib import Path

from data_pipeline.errors import InputError

#: Google's releases have `30k-clean.model`, `vocab_chinese.txt` and `vocab.txt`.
_VOCABULARIES = ("*.model", "vocab*.txt")
_MAX_JSON_BYTES = 16_000_000
_MAX_VOCABULARY_BYTES = 64 * 2**20  # released vocabularies have one or two million bytes


def read_json(path, max_bytes=_MAX_JSON_BYTES):
    """Reads a JSON object: dict.

    Raises:
        InputError: If the file is missing, too large, not JSON, or not an object.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(max_bytes + 1)
        if len(text) > max_bytes:
            raise InputError(f"`{path}` is too large: it must have at most {max_bytes:,} bytes.")
        values = json.loads(text)
    except InputError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"`{path}` is not a readable JSON file: {error}.") from error
    if not isinstance(values, dict):
        raise InputError(f"`{path}` must contain a JSON object. Received: {type(values).__name__}.")
    return values


def write_json(path, values, **options):
    """Writes values as indented JSON; `options` are those of `json.dumps`."""
    text = json.dumps(values, **{"indent": 2, **options}) + "\n"
    Path(path).write_text(text, encoding="utf-8")


def read_vocabulary_file(path):
    """Reads the file of a vocabulary: bytes.

    Raises:
        InputError: If it is far too large to be a vocabulary.
    """
    size = path.stat().st_size
    if size > _MAX_VOCABULARY_BYTES:
        raise InputError(
            f"`{path}` is too large for a vocabulary, which has at most "
            f"{_MAX_VOCABULARY_BYTES:,} bytes. Received: {size:,} bytes."
        )
    return path.read_bytes()


def read_tokenizer_files(*folders):
    """Reads the vocabularies of the first folder that has any: dict of file name -> bytes.

    Raises:
        InputError: If a file is far too large to be a vocabulary.
    """
    for folder in folders:
        paths = sorted(path for pattern in _VOCABULARIES for path in Path(folder).glob(pattern))
        if paths:
            return {path.name: read_vocabulary_file(path) for path in paths}
    return {}


def write_files(folder, files):
    """Writes files (dict of name -> bytes) into a folder."""
    for name, content in files.items():
        Path(folder, name).write_bytes(content)


def check_file_name(name, source):
    """Refuses a file name that leads out of its folder.

    Args:
        name: object. The name as a foreign file spells it.
        source: str or Path. The file that contains the name, for the message.

    Raises:
        InputError: If the name is not a plain file name.
    """
    is_plain = isinstance(name, str) and name not in ("", ".", "..")
    if not is_plain or any(mark in name for mark in "/\\:\0"):
        raise InputError(f"`{source}` must name files of its own folder. Received: {name!r}.")
