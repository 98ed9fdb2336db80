"""Files of vectors: `x.npy`, float32 [N, H], with `x.npy.texts.jsonl`, the text of each row, and
`x.npy.json`, which says what made the vectors."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file, whole_text
from data_pipeline.limits import check_regular_file, reading_json

_REPAIR = "`albert-keras embed` writes vectors and their description: embed the texts again."


def texts_file(path: Path) -> Path:
    """Returns the file of texts beside `x.npy`."""
    return path.with_name(f"{path.name}.texts.jsonl")


def description_file(path: Path) -> Path:
    """Returns the file that describes how vectors were made."""
    return path.with_name(f"{path.name}.json")


def check_vector_file(path: Path) -> None:
    """Checks, before any work, that vectors can be written at `path`; else InputError."""
    if path.suffix.lower() != ".npy":
        raise InputError(f"The file of vectors must end in .npy. Received: `{path}`.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"The folder `{path.absolute().parent}` of `{path}` does not exist.")
    for each in (path, texts_file(path), description_file(path)):
        if each.exists():
            raise InputError(
                f"`{each}` exists already, and nothing is overwritten. Choose another file."
            )


def write_vectors(
    path: Path, texts: Sequence[str], vectors: np.ndarray, description: Mapping[str, Any]
) -> None:
    """Writes the vectors of texts to files that appear at the end, all or none.

    Args:
        description: What made them, see `TextEncoder.describe`.
    """
    with (
        # The last one that is entered gets its name first, and `path` itself last.
        whole_file(path) as array,
        whole_text(texts_file(path)) as lines,
        whole_text(description_file(path)) as about,
    ):
        with open(array, "wb") as file:
            np.save(file, vectors)
        lines.writelines(json.dumps(text) + "\n" for text in texts)
        about.write(json.dumps(dict(description), indent=2, ensure_ascii=False) + "\n")


class VectorFile(NamedTuple):
    """Vectors that `embed` wrote."""

    path: Path
    model: str  # that made them, see `TextEncoder.describe`
    digests: tuple[str, str]  # of its encoder and of its tokenizer
    sequence_length: int
    texts: list[str]
    vectors: np.ndarray  # float32 [N, H], mapped from the disk


def read_vectors(path: str | Path) -> VectorFile:
    """Reads a file of vectors; InputError if it, or a file beside it, is missing or damaged."""
    path = Path(path)
    about_file = description_file(path)
    if not about_file.is_file():
        raise InputError(
            f"`{path}` must be a file of vectors (.npy) beside its description, "
            f"`{about_file.name}`, which does not exist. {_REPAIR}"
        )
    with reading_json(about_file, _REPAIR) as about:
        size, model = int(about["size"]), str(about["model"])
        digests = str(about["encoder_digest"]), str(about["tokenizer_digest"])
        length = int(about["max_seq_length"])
    try:
        check_regular_file(path)
        vectors = np.lib.format.open_memmap(path, mode="r")
        check_regular_file(texts_file(path))
        with open(texts_file(path), encoding="utf-8") as file:
            texts = [str(json.loads(line)) for line in file]
    except Exception as error:  # NumPy parses headers as Python, and trusts their sizes
        raise InputError(
            f"`{path}` or `{texts_file(path).name}` cannot be read, or is damaged: {error}. "
            f"{_REPAIR}"
        ) from error
    if vectors.dtype != np.float32 or vectors.shape != (len(texts), size):
        raise InputError(
            f"`{path}` must contain float32 [{len(texts)}, {size}], as the files beside it say. "
            f"Received: {vectors.dtype} {list(vectors.shape)}. {_REPAIR}"
        )
    return VectorFile(path, model, digests, length, texts, vectors)
