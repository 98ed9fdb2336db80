"""Record files are TFRecord files to the byte, records are found by number, and damage is found."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import (
    RecordFiles,
    RecordWriter,
    frame_at,
    index_path,
    read_index,
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("size", [1, 1 << 20])  # found when the file is closed, and before
def test_a_full_disk_is_an_error_that_names_the_file(size):
    with pytest.raises(OSError, match="No space left") as caught:
        write_records("/dev/full", [b"x" * size])
    assert caught.value.filename == "/dev/full"


def test_the_writer_knows_what_it_wrote_and_an_index_comes_back(tmp_path):
    writer = write_records(tmp_path / "x", RECORDS[:2], [], RECORDS[2:])
    data = (tmp_path / "x").read_bytes()
    assert writer.sha256 == hashlib.sha256(data).hexdigest()
    assert writer.offsets.dtype == np.uint64
    assert len(writer.offsets) == 6 and writer.offsets[-1] == len(data)
    frames = [frame_at(data, writer.offsets, number) for number in range(5)]
    assert frames == [(record, True) for record in RECORDS]
    write_index(tmp_path / "x.index", writer.offsets)
    offsets = read_index(tmp_path / "x.index", len(RECORDS), writer.offsets[-1])
    assert (tmp_path / "x.index").read_bytes() == writer.offsets.astype("<u8").tobytes()
    assert offsets.dtype == np.uint64
    np.testing.assert_array_equal(offsets, writer.offsets)


@pytest.fixture
def copied_records(tiny_records, tmp_path):
    return shutil.copytree(tiny_records, tmp_path / "records")


def test_a_changed_bit_is_found_when_its_record_is_read(copied_records):
    path = copied_records / "pretraining-00001-of-00002.tfrecord"
    offsets = np.fromfile(index_path(path), "<u8")
    data = bytearray(path.read_bytes())
    data[int(offsets[3]) + 40] ^= 1  # a value: the record can still be parsed
    path.write_bytes(data)
    records = RecordFiles(copied_records)
    number = records.info.shards[0].num_records + 3
    records.read(np.delete(np.arange(len(records)), number))
    fault = f"Record 3 of `{path}` is damaged: the checksum of its data does not match.*data verify"
    with pytest.raises(InputError, match=fault):
        records.read(np.arange(len(records)))
    with pytest.raises(InputError, match=fault), records.failures_named():
        for _ in evaluation_dataset(records, 8).as_numpy_iterator():
            pass


def test_a_shard_cut_at_a_record_edge_is_refused(copied_records):
    path = copied_records / "pretraining-00000-of-00002.tfrecord"
    path.write_bytes(path.read_bytes()[: int(np.fromfile(index_path(path), "<u8")[1])])
    with pytest.raises(InputError, match="must have .* bytes"):
        RecordFiles(copied_records)
