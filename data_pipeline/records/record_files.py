"""TFRecord files and folders of them, without TensorFlow: writing, checking, reading by number.

A file is a chain of frames: length of the record (uint64, little-endian), checksum of these 8
bytes, the record, checksum of the record. Nothing in a file says how many frames it has, so a file
truncated at the end of a frame is valid; only the info file beside it shows the loss.

Source:
    https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
"""

import array
import contextlib
import functools
import hashlib
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import numpy as np

from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import naming
from data_pipeline.limits import check_regular_file
from data_pipeline.records.dataset_info import DatasetInfo

#: Suffix of the file that lists where the records of a shard begin.
INDEX_SUFFIX = ".index"

#: Bytes before and after each record in its frame.
_HEADER, _FOOTER = 12, 4


class RecordWriter:
    """Writes a record file at a path, within a `with` block.

    Temporary names, fsync and rename are left to the caller, see `whole_file`. An OSError of any
    method has the name of the file.
    """

    def __init__(self, path: str | Path):
        self._path = path
        self._file = open(path, "wb")
        self._digest = hashlib.sha256()
        self._offsets = array.array("Q", [0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with naming(self._path):
            self._file.close()

    def write(self, records: list[bytes]):
        """Appends records in a single write."""
        frames = [_header(len(record)) + record + _checksum(record) for record in records]
        data = b"".join(frames)
        with naming(self._path):
            self._file.write(data)
        self._digest.update(data)
        for frame in frames:
            self._offsets.append(self._offsets[-1] + len(frame))

    @property
    def sha256(self):
        """str. Hex digest of the bytes written so far."""
        return self._digest.hexdigest()

    @property
    def offsets(self):
        """np.uint64 [N + 1]. Where the frame of each record begins, then the size of the file."""
        return np.array(self._offsets, np.uint64)


def index_path(path: str | Path) -> Path:
    """Returns the path of the index of a record file: `x.tfrecord` has `x.index`."""
    path = Path(path)
    return path.with_name(path.name.removesuffix(".tfrecord") + INDEX_SUFFIX)


def write_index(path: Path, offsets: np.ndarray):
    """Writes `RecordWriter.offsets` (uint64 [N + 1]) to a path, little-endian."""
    with naming(path):
        path.write_bytes(np.asarray(offsets, "<u8").tobytes())


def read_index(path: Path, num_records: int, num_bytes: int) -> np.ndarray:
    """Maps the index of a record file into memory; only the used parts are read from disk.

    Returns `RecordWriter.offsets`. Raises InputError if the index does not exist, or does not
    belong to a file of that many records and bytes.
    """
    data = map_file(path) if path.is_file() else b""
    offsets = np.frombuffer(data, "<u8") if len(data) == 8 * (num_records + 1) else None
    if offsets is None or offsets[0] != 0 or offsets[-1] != num_bytes:
        raise InputError(
            f"`{path}` must be the index of {num_records} records in {num_bytes} bytes, but is "
            f"missing or damaged, with {len(data)} bytes. Copy or build the folder again."
        )
    return offsets


def map_file(path):
    """Maps a file into memory, read-only; returns empty bytes for an empty file."""
    check_regular_file(path)
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def frame_at(data, offsets, index):
    """Returns a record, and whether it is as it was written.

    `data` is the file, `offsets` is as in its index; if they are wrong, the record is not either.
    """
    content = data[int(offsets[index]) + _HEADER : int(offsets[index + 1])]
    record = content[:-_FOOTER]
    return record, content[-_FOOTER:] == _checksum(record)


@functools.lru_cache(maxsize=1 << 14)
def _header(length):
    encoded = length.to_bytes(8, "little")
    return encoded + _checksum(encoded)


def _checksum(data):
    """Returns the CRC-32C rotated by 15 bits plus a constant, as TFRecord files store it."""
    value = google_crc32c.value(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")


class RecordFiles:
    """All records of a folder by number, whichever shard they are stored in.

    The checksum of each record is compared when it is read, so no changed bit is ever trained on.

    Args:
        folder: str or Path. A folder of records with its info file.

    Attributes:
        failure: Exception or None. The error of a dataset that reads these records: TensorFlow
            only passes on its text.

    Raises:
        InputError: As `DatasetInfo.load`; and if the index of a shard is missing or belongs to
            another number of records or bytes than the info file says.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.failure: Exception | None = None
        self.info = DatasetInfo.load(folder)
        self._offsets = [
            read_index(index_path(self.folder / shard.file), shard.num_records, shard.num_bytes)
            for shard in self.info.shards
        ]
        self._data = [None] * len(self.info.shards)
        self._first = np.cumsum([0, *(shard.num_records for shard in self.info.shards)])

    def __repr__(self) -> str:
        info = self.info
        return (
            f"<RecordFiles `{self.folder}`, {len(self):,} records of {info.max_seq_length} tokens, "
            f"{info.vocab_size:,} pieces>"
        )

    @classmethod
    def of(cls, records: "RecordFiles | str | Path") -> "RecordFiles":
        """Returns records as they are, or the records of a folder."""
        return records if isinstance(records, RecordFiles) else cls(records)

    def check_for(
        self,
        model: str | Path,
        vocab_size: int,
        max_length: int,
        tokenizer_digest: str | None = None,
    ) -> None:
        """Raises InputError unless a model can read the records.

        They must be built with the tokenizer of the model and be no longer than its positions.

        Args:
            model: The model, as it is named in a message.
            vocab_size: Pieces of its vocabulary.
            max_length: Positions that it has.
            tokenizer_digest: Of its tokenizer; None if it is not known.
        """
        info = self.info
        problem = None
        if info.vocab_size != vocab_size:
            problem = f"{info.vocab_size} pieces, not {vocab_size}"
        elif tokenizer_digest not in (None, info.tokenizer_digest):
            problem = "another one of the same size"
        if problem is not None:
            raise InputError(
                f"`{self.folder}` must be built with the tokenizer of `{model}`. Received: "
                f"{problem}. Build the records with that tokenizer.",
                Mistake.OTHER_TOKENIZER,
            )
        if info.max_seq_length > max_length:
            raise InputError(
                f"The records of `{self.folder}` must have at most {max_length} tokens, the "
                f"positions of `{model}`. Received: {info.max_seq_length}. Build the records with "
                f"`max_seq_length={max_length}`, or train a model with "
                f"`model.max_position_embeddings={info.max_seq_length}`.",
                Mistake.TOO_LONG,
            )

    @contextlib.contextmanager
    def failures_named(self) -> Iterator[None]:
        """Raises `failure` in place of the error of a block in which these records are read."""
        try:
            yield
        except Exception as error:
            if self.failure is None or self.failure is error:
                raise
            raise self.failure from error

    def __len__(self) -> int:
        return int(self._first[-1])

    def read(self, numbers: np.ndarray) -> list[bytes]:
        """Returns the serialized records of these numbers (int [N]).

        Raises InputError if the bytes of a record have changed since it was written, or its index
        points elsewhere.
        """
        shards = np.searchsorted(self._first, numbers, side="right") - 1
        indices = np.asarray(numbers) - self._first[shards]
        records = []
        for number, shard, index in zip(numbers, shards.tolist(), indices.tolist(), strict=True):
            if self._data[shard] is None:  # files are opened when they are first needed
                self._data[shard] = map_file(self.folder / self.info.shards[shard].file)
            record, is_intact = frame_at(self._data[shard], self._offsets[shard], index)
            if not is_intact:
                raise InputError(
                    f"{self.name_of(number)} is damaged: the checksum of its data does not match. "
                    "Copy or build the folder again; `albert-keras data verify` lists everything "
                    "that is damaged."
                )
            records.append(record)
        return records

    def name_of(self, number: int) -> str:
        """Names a record for errors: its number in its file, and the file."""
        shard = int(np.searchsorted(self._first, number, side="right")) - 1
        path = self.folder / self.info.shards[shard].file
        return f"Record {number - self._first[shard]} of `{path}`"
