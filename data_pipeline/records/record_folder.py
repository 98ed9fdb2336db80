"""A folder of records, whose records are read by number: no TensorFlow, no searching."""

from pathlib import Path

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import index_path, map_file, read_index, record_edges

# Around each record of a TFRecord file: length and checksum before it, checksum after it.
_HEADER, _FOOTER = 12, 4


class RecordFiles:
    """All records of a folder by number, whichever shard they lie in.

    Args:
        folder: str or Path. A folder of records with its info file.

    Attributes:
        failure: Exception or None. What went wrong while a data set read: TensorFlow passes on its
            text alone.

    Raises:
        InputError: As `DatasetInfo.load`; and if a shard does not hold as many records as it
            should, or is no TFRecord file.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.failure = None
        self.info = DatasetInfo.load(folder)
        self._offsets = [self._offsets_of(shard) for shard in self.info.shards]
        self._data = [None] * len(self.info.shards)
        self._first = np.cumsum([0, *(shard.num_records for shard in self.info.shards)])

    def _offsets_of(self, shard):
        """Returns where the frames of a shard's records begin, and where the last one ends."""
        path = self.folder / shard.file
        if shard.index_sha256 is not None:
            return read_index(index_path(path), shard.num_records, shard.num_bytes)
        edges = record_edges(map_file(path), path)
        if len(edges) != shard.num_records:
            raise InputError(
                f"`{path}` should hold {shard.num_records} records by dataset_info.json. "
                f"Received: {len(edges)}."
            )
        return np.append(edges[:, 0] - _HEADER, shard.num_bytes)

    def __len__(self):
        return int(self._first[-1])

    def read(self, numbers):
        """Returns the serialised records of these numbers (int [N]) as a list of bytes."""
        shards = np.searchsorted(self._first, numbers, side="right") - 1
        places = np.asarray(numbers) - self._first[shards]
        return [
            self._read(shard, place)
            for shard, place in zip(shards.tolist(), places.tolist(), strict=True)
        ]

    def name_of(self, number):
        """Names a record for errors: its place in its file, and the file."""
        shard = int(np.searchsorted(self._first, number, side="right")) - 1
        path = self.folder / self.info.shards[shard].file
        return f"Record {number - self._first[shard]} of `{path}`"

    def _read(self, shard, place):
        if self._data[shard] is None:  # files are opened when they are first needed
            self._data[shard] = map_file(self.folder / self.info.shards[shard].file)
        offsets = self._offsets[shard]
        begin, end = int(offsets[place]), int(offsets[place + 1])
        return self._data[shard][begin + _HEADER : end - _FOOTER]
