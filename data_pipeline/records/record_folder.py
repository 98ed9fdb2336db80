"""A folder of records that are read by number, without TensorFlow and without searching."""

from pathlib import Path

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import (
    frame_offsets,
    index_path,
    map_file,
    read_index,
    record_at,
)


class RecordFiles:
    """All records of a folder by number, whichever shard they are stored in.

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
        """Returns the serialized records of these numbers (int [N])."""
        shards = np.searchsorted(self._first, numbers, side="right") - 1
        indices = np.asarray(numbers) - self._first[shards]
        return [
            self._read(shard, index)
            for shard, index in zip(shards.tolist(), indices.tolist(), strict=True)
        ]

    def name_of(self, number: int) -> str:
        """Names a record for errors: its number in its file, and the file."""
        shard = int(np.searchsorted(self._first, number, side="right")) - 1
        path = self.folder / self.info.shards[shard].file
        return f"Record {number - self._first[shard]} of `{path}`"

    def _read(self, shard, index):
        if self._data[shard] is None:  # files are opened when they are first needed
            self._data[shard] = map_file(self.folder / self.info.shards[shard].file)
        return record_at(self._data[shard], self._offsets[shard], index)
