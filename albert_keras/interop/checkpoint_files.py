"""Finds the files of a released TensorFlow checkpoint: its tensors, and what lies beside them."""

import json
import re
from pathlib import Path

from data_pipeline.errors import InputError

_CHECKPOINT_FILE = re.compile(r"(.+)\.(index|meta|data-\d{5}-of-\d{5})")
#: Google's releases have `30k-clean.model`, `vocab_chinese.txt` and `vocab.txt`.
_TOKENIZERS = ("*.model", "vocab*.txt")
_MOST_BYTES = 64 * 2**20  # a vocabulary has one or two million


def find_prefixes(path):
    """Finds the prefixes of checkpoints.

    Args:
        path: str or Path. A prefix, one of a checkpoint's files, or a folder of checkpoints.

    Returns:
        list of str, sorted; empty if there is nothing of the kind.
    """
    path = Path(path)
    if path.is_dir():
        return sorted(str(file).removesuffix(".index") for file in path.glob("*.index"))
    match = _CHECKPOINT_FILE.fullmatch(str(path))
    prefixes = [str(path), *([match[1]] if match else [])]
    return [prefix for prefix in prefixes if Path(f"{prefix}.index").is_file()]


def find_prefix(path):
    """As `find_prefixes`, for one checkpoint: str.

    Raises:
        InputError: If there is none, or a folder holds several.
    """
    prefixes = find_prefixes(path)
    if len(prefixes) == 1:
        return prefixes[0]
    if prefixes:
        raise InputError(
            f"`{path}` should hold one checkpoint. Choose one of them: {', '.join(prefixes)}."
        )
    raise InputError(
        f"`{path}` should be a TensorFlow checkpoint: its prefix, its `.index` file, or a folder "
        "with one. There is nothing of these."
    )


def is_object_based(prefix):
    """Tells whether a checkpoint is one of TensorFlow 2's, whose tensors are called by objects.

    The list of names is not compressed, and this one comes first in it.
    """
    return b"_CHECKPOINTABLE_OBJECT_GRAPH" in Path(f"{prefix}.index").read_bytes()


def find_beside(prefix, name):
    """Finds a file of a name in a checkpoint's folder or in the one above: Path or None."""
    folder = Path(prefix).absolute().parent
    for path in (folder / name, folder.parent / name):
        if path.is_file():
            return path
    return None


def read_json(path):
    """Reads a JSON object: dict.

    Raises:
        InputError: If it is none.
    """
    try:
        return dict(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"`{path}` should hold a JSON object. Received: {error}.") from error


def read_tokenizer_files(*folders):
    """Reads the tokenizer's files of the first folder with any: dict of name -> bytes.

    Raises:
        InputError: If one is far too large to be a vocabulary.
    """
    for folder in folders:
        paths = sorted(path for pattern in _TOKENIZERS for path in Path(folder).glob(pattern))
        for path in paths:
            if path.stat().st_size > _MOST_BYTES:
                raise InputError(
                    f"`{path}` should be a vocabulary, of at most {_MOST_BYTES:,} bytes. "
                    f"Received: {path.stat().st_size:,}."
                )
        if paths:
            return {path.name: path.read_bytes() for path in paths}
    return {}
