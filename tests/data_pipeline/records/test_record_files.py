"""Record files are TFRecord files to the byte, and damage anywhere in them is found."""

import hashlib
import random
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.records import record_files
from data_pipeline.records.record_files import (
    RecordWriter,
    frame_at,
    frame_offsets,
    read_index,
    scan_records,
    write_index,
)

RECORDS = [b"first", b"", b"third" * 100, bytes(range(256)), b"x"]


def write_records(path, *batches):
    with RecordWriter(path) as writer:
        for batch in batches:
            writer.write(batch)
    return writer


@pytest.fixture
def path(tmp_path):
    """Returns the path of a file of RECORDS."""
    path = tmp_path / "x-00000-of-00001.tfrecord"
    write_records(path, RECORDS)
    return path


def test_the_bytes_are_those_of_tensorflow(path, tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "other")) as writer:
        for record in RECORDS:
            writer.write(record)
    assert path.read_bytes() == (tmp_path / "other").read_bytes()


def test_the_writer_knows_what_it_wrote(tmp_path):
    writer = write_records(tmp_path / "x", RECORDS[:2], [], RECORDS[2:])
    data = (tmp_path / "x").read_bytes()
    assert writer.sha256 == hashlib.sha256(data).hexdigest()
    assert writer.offsets.dtype == np.uint64
    assert len(writer.offsets) == 6 and writer.offsets[-1] == len(data)
    assert writer.offsets.tolist() == frame_offsets(tmp_path / "x").tolist()
    frames = [frame_at(data, writer.offsets, number) for number in range(5)]
    assert frames == [(record, True) for record in RECORDS]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("size", [1, 1 << 20])  # found when the file is closed, and before
def test_a_full_disk_is_an_error_that_names_the_file(size):
    with pytest.raises(OSError, match="No space left") as caught:
        write_records("/dev/full", [b"x" * size])
    assert caught.value.filename == "/dev/full"


@pytest.mark.parametrize("records", [RECORDS, []])
def test_an_index_comes_back(records, tmp_path):
    writer = write_records(tmp_path / "x", records)
    write_index(tmp_path / "x.index", writer.offsets)
    offsets = read_index(tmp_path / "x.index", len(records), writer.offsets[-1])
    assert (tmp_path / "x.index").read_bytes() == writer.offsets.astype("<u8").tobytes()
    assert offsets.dtype == np.uint64
    np.testing.assert_array_equal(offsets, writer.offsets)


def test_every_flipped_bit_is_found_in_its_record(path, monkeypatch):
    monkeypatch.setattr(record_files, "_BLOCK", 64)
    data, offsets = path.read_bytes(), scan_records(path).offsets
    choice = random.Random(7)
    for _ in range(200):
        place, bit = choice.randrange(len(data)), choice.randrange(8)
        damaged = bytearray(data)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        scan = scan_records(path)
        record = int(np.searchsorted(offsets, place, side="right")) - 1
        assert scan.fault.startswith(f"record {record} at byte {offsets[record]}: the checksum")
        np.testing.assert_array_equal(scan.offsets, offsets[: record + 1])
        assert scan.sha256 == hashlib.sha256(damaged).hexdigest()


def test_a_file_cut_between_records_only_counts_fewer(path):
    data, offsets = path.read_bytes(), scan_records(path).offsets
    path.write_bytes(data[: offsets[3]])
    scan = scan_records(path)
    assert scan.fault is None
    np.testing.assert_array_equal(scan.offsets, offsets[:4])
