"""Files of vectors: NumPy, Parquet or JSON lines, each with a description of how it was made.

`x.npy` has the vectors alone, float32 [N, H]; `x.npy.ids.jsonl` has the id and the text of each
row. `x.parquet` and `x.jsonl` have the columns `id`, `text` and `vector`. Beside each of them,
`x.npy.json` (`x.parquet.json`, `x.jsonl.json`) says which model and settings made the vectors.
"""

import contextlib
import itertools
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from albert_keras.embeddings.texts import Text
from data_pipeline.array_files import map_array
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import naming, whole_file
from data_pipeline.limits import parse_json, reading_json

#: Rows of a block that a reader yields.
_BLOCK = 16_384


def ids_file(path: Path) -> Path:
    """Returns the file of ids and texts beside `x.npy`."""
    return path.with_name(f"{path.name}.ids.jsonl")


def description_file(path: Path) -> Path:
    """Returns the file that describes how vectors were made."""
    return path.with_name(f"{path.name}.json")


def check_vector_file(path: Path, overwrite: bool = False) -> None:
    """Checks, before any work, that vectors can be written at `path`; else InputError."""
    if path.suffix.lower() not in _FORMATS:
        raise InputError(
            f"The file of vectors must end in {', '.join(_FORMATS)}. Received: `{path}`."
        )
    if path.suffix.lower() == ".parquet":
        _pyarrow()
    if not path.absolute().parent.is_dir():
        raise InputError(f"The folder `{path.absolute().parent}` of `{path}` does not exist.")
    existing = [each for each in _files_of(path) if each.exists()]
    if path.is_dir() or existing and not overwrite:
        raise InputError(
            f"`{existing[0]}` exists already, and nothing is overwritten. Choose another file, or "
            "use --overwrite (`overwrite=True`) to replace it."
        )


@contextlib.contextmanager
def writing_vectors(path: Path, size: int):
    """Yields a writer of vectors; its files appear at the end of the block, all or none.

    The writer has `add(texts, vectors)`, a list of Text and float32 [n, H], and `description`, a
    dict to set before the end of the block.
    """
    with contextlib.ExitStack() as files, naming(path):
        # The last one that is entered gets its name first, and `path` itself last.
        temporary = [files.enter_context(whole_file(each)) for each in _files_of(path)]
        writer = _FORMATS[path.suffix.lower()](temporary, size)
        with contextlib.closing(writer):
            yield writer
        text = json.dumps(writer.description, indent=2, ensure_ascii=False)
        temporary[-1].write_text(text + "\n", encoding="utf-8")


def is_vector_file(path: str | Path) -> bool:
    """Returns whether a file is one of vectors: it has a description beside it, or is `.npy`."""
    path = Path(path)
    is_known = path.suffix.lower() in _FORMATS
    return is_known and (description_file(path).is_file() or path.suffix.lower() != ".jsonl")


class VectorFile:
    """Vectors that `embed` wrote, read in blocks.

    Attributes:
        description: dict. What made the vectors, see `TextEncoder.describe`.

    Raises:
        InputError: If a file is missing or damaged.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"The file of vectors `{path}` does not exist.")
        beside = description_file(self.path)
        if not beside.is_file():
            raise InputError(
                f"`{path}` must be in the same folder as its description, `{beside.name}`, which "
                "`albert-keras embed` writes. The description does not exist."
            )
        with reading_json(beside) as self.description:
            self._size = int(self.description["size"])

    def blocks(self) -> Iterator[np.ndarray]:
        """Yields the vectors in order, float32 [n, H] each."""
        read = {".npy": self._npy, ".jsonl": self._jsonl, ".parquet": self._parquet}
        for block in read[self.path.suffix.lower()]():
            if block.ndim != 2 or block.shape[1] != self._size:
                raise InputError(
                    f"`{self.path}` must contain vectors of {self._size} numbers, as its "
                    f"description says. Received: {list(block.shape)}."
                )
            yield block

    def lookup(self, rows: Collection[int]) -> dict[int, Text]:
        """Returns the ids and texts of some rows."""
        wanted, found = set(rows), {}
        if self.path.suffix.lower() == ".parquet":
            for number, record in enumerate(self._parquet_texts()):
                if number in wanted:
                    found[number] = Text(*record)
            return found
        path = ids_file(self.path) if self.path.suffix.lower() == ".npy" else self.path
        if not path.is_file():
            raise InputError(f"The ids of `{self.path}` are missing: there is no `{path}`.")
        with open(path, "rb") as file:
            for number, line in enumerate(file):
                if number in wanted:  # no other line is parsed
                    record = _parsed(path, number, line)
                    found[number] = Text(str(record["id"]), str(record["text"]))
        missing = wanted - set(found)
        if missing:
            raise InputError(f"`{path}` is damaged: it has no line {min(missing) + 1}.")
        return found

    def _npy(self):
        try:
            vectors = map_array(self.path)
        except (ValueError, OSError) as error:
            raise InputError(f"`{self.path}` must be a NumPy file: {error}.") from error
        if vectors.ndim != 2 or vectors.dtype.kind != "f":
            raise InputError(
                f"`{self.path}` must contain one array of numbers, [texts, {self._size}]. "
                f"Received: {vectors.dtype} {list(vectors.shape)}."
            )
        for begin in range(0, len(vectors), _BLOCK):
            yield np.asarray(vectors[begin : begin + _BLOCK], np.float32)

    def _jsonl(self):
        with open(self.path, "rb") as file:
            numbered = enumerate(file)
            while lines := list(itertools.islice(numbered, _BLOCK)):
                records = (_parsed(self.path, number, line) for number, line in lines)
                try:
                    yield np.array([record["vector"] for record in records], np.float32)
                except (ValueError, TypeError, KeyError, OverflowError) as error:
                    raise InputError(f"`{self.path}` has a wrong `vector`: {error}.") from error

    def _parquet(self):
        for batch in self._parquet_batches(["vector"]):
            values = batch.column("vector")
            yield values.flatten().to_numpy().astype(np.float32).reshape(len(values), -1)

    def _parquet_texts(self):
        for batch in self._parquet_batches(["id", "text"]):
            yield from zip(
                *(batch.column(name).to_pylist() for name in ("id", "text")), strict=True
            )

    def _parquet_batches(self, columns):
        pyarrow = _pyarrow()
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                missing = set(columns) - set(file.schema_arrow.names)
                if missing:
                    raise ValueError(f"it has no column {', '.join(sorted(missing))}")
                yield from file.iter_batches(_BLOCK, columns=columns)
        except (ValueError, OSError) as error:  # pyarrow's errors are among these
            raise InputError(f"`{self.path}` is damaged: {error}.") from error


class _NpyWriter:
    def __init__(self, temporary, size):
        path, ids, _ = temporary
        self.description: dict[str, Any] = {}
        self._size, self._count = size, 0
        self._file = open(path, "wb")
        self._ids = open(ids, "w", encoding="utf-8")
        self._write_header()

    def _write_header(self):
        # NumPy leaves room in a header for a larger number of rows.
        shape = (self._count, self._size)
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)

    def add(self, texts, vectors):
        self._file.write(np.ascontiguousarray(vectors, "<f4").tobytes())
        self._ids.writelines(json.dumps(text._asdict()) + "\n" for text in texts)
        self._count += len(texts)

    def close(self):
        with self._file, self._ids:
            self._file.seek(0)
            self._write_header()


class _JsonlWriter:
    def __init__(self, temporary, size):
        self.description: dict[str, Any] = {}
        self._file = open(temporary[0], "w", encoding="utf-8")

    def add(self, texts, vectors):
        for text, vector in zip(texts, vectors, strict=True):
            # As few digits as identify a float32.
            numbers = ", ".join(np.format_float_scientific(value, trim="-") for value in vector)
            self._file.write(f'{json.dumps(text._asdict())[:-1]}, "vector": [{numbers}]}}\n')

    def close(self):
        self._file.close()


class _ParquetWriter:
    def __init__(self, temporary, size):
        self.description: dict[str, Any] = {}
        self._pyarrow = pyarrow = _pyarrow()
        vector = pyarrow.list_(pyarrow.float32(), size)
        names = [("id", pyarrow.string()), ("text", pyarrow.string()), ("vector", vector)]
        self._schema = pyarrow.schema(names)
        self._writer = pyarrow.parquet.ParquetWriter(temporary[0], self._schema)

    def add(self, texts, vectors):
        pyarrow = self._pyarrow
        flat = pyarrow.array(np.ascontiguousarray(vectors, np.float32).ravel())
        vector = pyarrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        columns = [[text.id for text in texts], [text.text for text in texts], vector]
        self._writer.write_table(
            pyarrow.Table.from_arrays(list(map(_arrow, columns)), schema=self._schema)
        )

    def close(self):
        self._writer.close()


_FORMATS = {".npy": _NpyWriter, ".parquet": _ParquetWriter, ".jsonl": _JsonlWriter}


def _files_of(path):
    """Returns the files of vectors at `path`: itself first, its description last."""
    ids = [ids_file(path)] if path.suffix.lower() == ".npy" else []
    return [path, *ids, description_file(path)]


def _parsed(path, number, line):
    try:
        record = parse_json(line)
        if {"id", "text"} <= record.keys():
            return record
    except (ValueError, AttributeError):
        pass
    raise InputError(f"`{path}` line {number + 1} must be a JSON object with `id` and `text`.")


def _pyarrow():
    try:
        import pyarrow
        import pyarrow.parquet  # noqa: F401 (an attribute of the former)
    except ModuleNotFoundError as error:
        raise InputError(
            "Parquet files require pyarrow, which is not installed. Install it with `pip install "
            "'albert-keras[parquet]'`, or choose a file that ends in .npy or .jsonl.",
            Mistake.EXTRA_MISSING,
        ) from error
    return pyarrow


def _arrow(values):
    return _pyarrow().array(values) if isinstance(values, list) else values
