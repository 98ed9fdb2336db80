"""TFRecord files, without TensorFlow: writing with an index and a digest, and checking.

A file is a chain of frames: length of the record (uint64, little-endian), checksum of these 8
bytes, the record, checksum of the record. Nothing in a file says how many frames it has, so a file
truncated at the end of a frame is valid; only the info file beside it shows the loss.

Source:
    https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
"""

import array
import functools
import hashlib
import mmap
import os
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import naming

#: Suffix of the file that lists where the records of a shard begin.
INDEX_SUFFIX = ".index"

#: Bytes before and after each record in its frame.
_HEADER, _FOOTER = 12, 4
#: Bytes read at a time.
_BLOCK = 1 << 18


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


def frame_offsets(path: Path) -> np.ndarray:
    """Finds the `RecordWriter.offsets` of a record file, int64, without checking checksums.

    Raises InputError if it is not a chain of complete records.
    """
    data, offsets = map_file(path), [0]
    while (begin := offsets[-1]) < len(data):
        length = int.from_bytes(data[begin : begin + 8], "little")
        end = begin + _HEADER + length + _FOOTER
        if end > len(data):
            raise InputError(f"`{path}` is not a TFRecord file, or is damaged at byte {begin}.")
        offsets.append(end)
    return np.array(offsets)


class Scan(NamedTuple):
    """The result of reading a record file once from beginning to end."""

    offsets: np.ndarray  # np.uint64 [N + 1], as in an index, of the valid records before the fault
    num_bytes: int  # of the whole file
    sha256: str  # hex digest of the whole file
    fault: str | None  # "record 17 at byte 12345: the checksum of its data does not match"


def scan_records(path: Path) -> Scan:
    """Reads a record file once from beginning to end and checks every checksum.

    Frames are checked up to the first fault; the digest covers the whole file.
    """
    digest, offsets, fault = hashlib.sha256(), array.array("Q", [0]), None
    with open(path, "rb", buffering=_BLOCK) as file:
        size = os.fstat(file.fileno()).st_size
        while fault is None and (header := file.read(_HEADER)):
            digest.update(header)
            length = int.from_bytes(header[:8], "little")
            end = offsets[-1] + _HEADER + length + _FOOTER
            if len(header) == _HEADER and header != _header(length):
                fault = "the checksum of its length does not match"
            elif end > size:
                fault = "the file ends within it"
            else:
                content = file.read(length + _FOOTER)
                digest.update(content)
                if content[length:] == _checksum(content[:length]):
                    offsets.append(end)
                else:
                    fault = "the checksum of its data does not match"
        while block := file.read(_BLOCK):  # after a fault
            digest.update(block)
        num_bytes = file.tell()
    if fault:
        fault = f"record {len(offsets) - 1} at byte {offsets[-1]}: {fault}"
    return Scan(np.array(offsets, np.uint64), num_bytes, digest.hexdigest(), fault)


@functools.lru_cache(maxsize=1 << 14)
def _header(length):
    encoded = length.to_bytes(8, "little")
    return encoded + _checksum(encoded)


def _checksum(data):
    """Returns the CRC-32C rotated by 15 bits plus a constant, as TFRecord files store it."""
    value = google_crc32c.value(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")
