"""A folder of records that are read by number, without TensorFlow and without searching."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import (
    frame_at,
    frame_offsets,
    index_path,
    map_file,
    read_index,
)


class RecordFiles:
    """All records of a folder by number, whichever shard they are stored in.

    The checksum of each record is compared when it is read, so no changed bit is ever trained on.

    Args:
        folder: str or Path. A folder of records with its info file.

    Attributes:
        failure: Exception or None. The error of a dataset that reads these records: TensorFlow
            only passes on its text.

    Raises:
        InputError: As `DatasetInfo.load`; and if a shard contains another number of records than
            the info file says, or is not a TFRecord file.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.failure: Exception | None = None
        self.info = DatasetInfo.load(folder)
        self._offsets = [self._offsets_of(shard) for shard in self.info.shards]
        self._data = [None] * len(self.info.shards)
        self._first = np.cumsum([0, *(shard.num_records for shard in self.info.shards)])

    @classmethod
    def of(cls, records: "RecordFiles | str | Path") -> "RecordFiles":
        """Returns records as they are, or the records of a folder."""
        return records if isinstance(records, RecordFiles) else cls(records)

    @contextlib.contextmanager
    def failures_named(self) -> Iterator[None]:
        """Raises `failure` in place of the error of a block in which these records are read."""
        try:
            yield
        except Exception as error:
            if self.failure is None or self.failure is error:
                raise
            raise self.failure from error

    def _offsets_of(self, shard):
        path = self.folder / shard.file
        if shard.index_sha256 is not None:
            return read_index(index_path(path), shard.num_records, shard.num_bytes)
        offsets = frame_offsets(path)
        if len(offsets) - 1 != shard.num_records:
            raise InputError(
                f"`{path}` must contain {shard.num_records} records according to "
                f"dataset_info.json. Received: {len(offsets) - 1}."
            )
        return offsets

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
