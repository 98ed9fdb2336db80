"""Features kept on disk, under a name made from all they depend on, so that none can be stale."""

import functools
import hashlib
import json
import logging
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import sentencepiece

from data_pipeline.files import whole_file

_KEY = "cache_key"  # the name of an array in the file
_SOURCES = ("albert_keras/tasks", "data_pipeline")

logger = logging.getLogger(__name__)


def cached_features(folder, kind, examples, tokenizer, settings, build) -> dict[str, np.ndarray]:
    """Returns features made earlier from the very same things, else makes and keeps them.

    Older files stay; the folder can be deleted at any time.

    Args:
        folder: path. Where the files are; made if missing.
        kind: str. What the features are, such as "pair"; part of the file's name.
        examples: list of named tuples of plain values. What `build` makes features of.
        tokenizer: Tokenizer. What `build` encodes with.
        settings: dict of plain values. All else that `build` depends on: lengths, label names.
        build: callable without arguments. Returns a dict of str to array, no arrays of objects.

    Returns:
        dict of str to array. As `build` returns it.

    Raises:
        TypeError: If examples or settings hold other than plain values.
        ValueError: If `build` returns an array of objects.
    """
    key = features_key(kind, examples, tokenizer, settings)
    path = Path(folder) / f"{kind}-{key[:32]}.npz"
    if path.exists():
        try:
            return _read(path, key)
        except Exception as error:  # what a damaged zip file may raise has no end
            logger.warning("`%s` is damaged and is made anew: %s.", path, error)
    features = build()
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, key, features)
    return features


def features_key(kind, examples, tokenizer, settings) -> str:
    """Names features by their content; arguments as in `cached_features`.

    Returns:
        str. 64 hexadecimal digits that change with any example, the tokenizer, the settings, the
        code here and the versions of what it relies on.
    """
    digest = hashlib.sha256()
    for part in (kind, tokenizer.digest, settings, _code_version()):
        digest.update(_line(part))
    for example in examples:
        digest.update(_line([type(example).__name__, example]))
    return digest.hexdigest()


def _line(value):
    """JSON without line breaks, in ASCII: a line cannot be mistaken for two."""
    return (json.dumps(value, sort_keys=True) + "\n").encode()


@functools.cache
def _code_version():
    """Hashes the sources that features come from; so nobody needs to count versions."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((root / folder).glob("*.py")):
            content = path.read_bytes()
            digest.update(f"{folder}/{path.name} {len(content)}\n".encode() + content)
    return [digest.hexdigest(), sentencepiece.__version__, unicodedata.unidata_version]


def _write(path, key, features):
    for name, values in features.items():
        if values.dtype.hasobject:
            raise ValueError(f"Features should be arrays of numbers or text. {name!r} is not.")
    # Through a file, as to a name NumPy would add an ending.
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **features, **{_KEY: np.array(key)})


def _read(path, key):
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()  # by checksum, before any header is believed
    if damaged:
        raise ValueError(f"`{damaged}` in it has another checksum")
    with np.load(path, allow_pickle=False) as arrays:
        if str(arrays[_KEY]) != key:
            raise ValueError("it holds features of something else")
        return {name: arrays[name] for name in arrays.files if name != _KEY}
