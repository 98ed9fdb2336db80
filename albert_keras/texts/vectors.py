"""Files of vectors: `x.npy`, float32 [N, H], with `x.npy.ids.jsonl`, the id and the text of each
row, and `x.npy.json`, which says what made the vectors."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_keras.texts.encoder import EmbeddingSettings
from albert_keras.texts.reading import Text
from data_pipeline.array_files import map_array
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file, whole_text
from data_pipeline.limits import check_regular_file, reading_json


def ids_file(path: Path) -> Path:
    """Returns the file of ids and texts beside `x.npy`."""
    return path.with_name(f"{path.name}.ids.jsonl")


def description_file(path: Path) -> Path:
    """Returns the file that describes how vectors were made."""
    return path.with_name(f"{path.name}.json")


def check_vector_file(path: Path, overwrite: bool = False) -> None:
    """Checks, before any work, that vectors can be written at `path`; else InputError."""
    if path.suffix.lower() != ".npy":
        raise InputError(f"The file of vectors must end in .npy. Received: `{path}`.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"The folder `{path.absolute().parent}` of `{path}` does not exist.")
    files = (path, ids_file(path), description_file(path))
    existing = [each for each in files if each.exists()]
    if path.is_dir() or existing and not overwrite:
        raise InputError(
            f"`{existing[0]}` exists already, and nothing is overwritten. Choose another file, or "
            "use `overwrite=True` to replace it."
        )


@contextlib.contextmanager
def writing_vectors(
    path: Path, texts: Sequence[Text], size: int
) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    """Writes vectors to files that appear at the end of the block, all or none.

    Yields an array to fill, float32 [N, H], and an empty dict for the description.
    """
    description: dict[str, Any] = {}
    with (
        # The last one that is entered gets its name first, and `path` itself last.
        whole_file(path) as vectors,
        whole_text(ids_file(path)) as ids,
        whole_text(description_file(path)) as about,
    ):
        ids.writelines(json.dumps(text._asdict()) + "\n" for text in texts)
        shape = (len(texts), size)
        array = np.lib.format.open_memmap(vectors, mode="w+", dtype=np.float32, shape=shape)
        yield array, description
        array.flush()
        about.write(json.dumps(description, indent=2, ensure_ascii=False) + "\n")


class VectorFile:
    """Vectors that `embed` wrote.

    Attributes:
        model, step: The model that made them, and its checkpoint, see `TextEncoder.describe`.
        digests: tuple of str. Of its encoder and of its tokenizer.
        settings: EmbeddingSettings.
        vectors: float32 [N, H], mapped from the disk.

    Raises:
        InputError: If a file is missing or damaged.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        repair = "`albert-keras embed` writes vectors and their description: embed the texts again."
        beside = description_file(self.path)
        if not beside.is_file():
            raise InputError(
                f"`{path}` must be a file of vectors (.npy) beside its description, "
                f"`{beside.name}`, which does not exist. {repair}"
            )
        with reading_json(beside, repair) as about:
            self.model, self.step = str(about["model"]), about.get("step")
            self.digests = str(about["encoder_digest"]), str(about["tokenizer_digest"])
            self.settings = EmbeddingSettings(*(about[name] for name in EmbeddingSettings._fields))
            size = int(about["size"])
        try:
            self.vectors = map_array(self.path)
        except (ValueError, OSError) as error:
            raise InputError(f"`{self.path}` must be a NumPy file: {error}.") from error
        shape = list(self.vectors.shape)
        if self.vectors.dtype != np.float32 or len(shape) != 2 or shape[1] != size:
            raise InputError(
                f"`{self.path}` must contain one array of float32, [texts, {size}], as its "
                f"description says. Received: {self.vectors.dtype} {shape}."
            )

    def texts(self) -> list[Text]:
        """Returns the ids and texts of all rows."""
        path = ids_file(self.path)
        check_regular_file(path)
        try:
            with open(path, encoding="utf-8") as file:
                records = map(json.loads, file)
                found = [Text(str(record["id"]), str(record["text"])) for record in records]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"`{path}` cannot be read, or is damaged: {error}") from error
        if len(found) != len(self.vectors):
            raise InputError(
                f"`{path}` is damaged: it must have {len(self.vectors):,} lines. Received: "
                f"{len(found):,}."
            )
        return found
