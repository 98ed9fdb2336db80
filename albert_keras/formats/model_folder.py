"""Small files of a model folder: vocabularies, and names that must stay inside it."""

from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_VOCABULARY_BYTES, read_limited

#: Google's releases have `30k-clean.model`, `vocab_chinese.txt` and `vocab.txt`.
_VOCABULARIES = ("*.model", "vocab*.txt")


def read_vocabulary_file(path: Path) -> bytes:
    """Reads the file of a vocabulary; InputError if it is far too large to be one."""
    return read_limited(path, MAX_VOCABULARY_BYTES)


def read_tokenizer_files(*folders: str | Path) -> dict[str, bytes]:
    """Reads the vocabularies of the first folder that has any, by file name."""
    for folder in folders:
        paths = sorted(path for pattern in _VOCABULARIES for path in Path(folder).glob(pattern))
        if paths:
            return {path.name: read_vocabulary_file(path) for path in paths}
    return {}


def write_files(folder: str | Path, files: dict[str, bytes]):
    """Writes files into a folder."""
    for name, content in files.items():
        Path(folder, name).write_bytes(content)


def check_file_name(name: object, source: str | Path):
    """Raises InputError for a file name in `source` that leads out of its folder."""
    is_plain = isinstance(name, str) and name not in ("", ".", "..")
    if not is_plain or any(mark in name for mark in "/\\:\0"):
        raise InputError(f"`{source}` must name files of its own folder. Received: {name!r}.")
