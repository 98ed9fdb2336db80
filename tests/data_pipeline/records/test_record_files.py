"""Record files are TFRecord files to the byte, and damage anywhere in them is found."""

import hashlib
import random
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.records import record_files
from data_pipeline.records.examples import encode_instances
from data_pipeline.records.record_files import (
    RecordWriter,
    frame_offsets,
    index_path,
    map_file,
    read_index,
    record_at,
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


def test_tensorflow_reads_and_parses_what_is_written(tmp_path):
    instances = {
        "input_ids": np.array([[2, 29999, 3], [2, 127, 3]]),
        "input_mask": np.ones((2, 3), int),
        "segment_ids": np.zeros((2, 3), int),
        "masked_lm_positions": np.array([[1, 0], [1, 2]]),
        "masked_lm_ids": np.array([[16384, 0], [128, 7]]),
        "masked_lm_weights": np.array([[1, 0], [1, 1]], np.float32),
        "next_sentence_labels": np.array([[0], [1]]),
    }
    write_records(tmp_path / "x", encode_instances(instances))
    schema = {
        name: tf.io.FixedLenFeature(values.shape[1:], values.dtype)
        for name, values in instances.items()
    }
    batch = next(iter(tf.data.TFRecordDataset(str(tmp_path / "x")).batch(2)))
    for name, values in tf.io.parse_example(batch, schema).items():
        np.testing.assert_array_equal(values, instances[name])


def test_the_writer_knows_what_it_wrote(tmp_path):
    writer = write_records(tmp_path / "x", RECORDS[:2], [], RECORDS[2:])
    data = (tmp_path / "x").read_bytes()
    assert writer.sha256 == hashlib.sha256(data).hexdigest()
    assert writer.offsets.dtype == np.uint64
    assert len(writer.offsets) == 6 and writer.offsets[-1] == len(data)
    assert writer.offsets.tolist() == frame_offsets(tmp_path / "x").tolist()
    assert [record_at(data, writer.offsets, number) for number in range(5)] == RECORDS


def test_how_records_are_batched_does_not_show(path, tmp_path):
    write_records(tmp_path / "x", *[[record] for record in RECORDS])
    assert (tmp_path / "x").read_bytes() == path.read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("size", [1, 1 << 20])  # found when the file is closed, and before
def test_a_full_disk_is_an_error_that_names_the_file(size):
    with pytest.raises(OSError, match="No space left") as caught:
        write_records("/dev/full", [b"x" * size])
    assert caught.value.filename == "/dev/full"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_named_for_an_index_too():
    with pytest.raises(OSError, match="No space left") as caught:
        write_index(Path("/dev/full"), np.arange(3))
    assert caught.value.filename == "/dev/full"


def test_an_index_is_named_after_its_file():
    shard = Path("records") / "x-00000-of-00004.tfrecord"
    assert index_path(shard) == Path("records") / "x-00000-of-00004.index"
    assert index_path("x.records-1") == Path("x.records-1.index")
    assert index_path("x") == Path("x.index")


@pytest.mark.parametrize("records", [RECORDS, []])
def test_an_index_comes_back(records, tmp_path):
    writer = write_records(tmp_path / "x", records)
    write_index(tmp_path / "x.index", writer.offsets)
    offsets = read_index(tmp_path / "x.index", len(records), writer.offsets[-1])
    assert (tmp_path / "x.index").read_bytes() == writer.offsets.astype("<u8").tobytes()
    assert offsets.dtype == np.uint64
    np.testing.assert_array_equal(offsets, writer.offsets)


@pytest.mark.parametrize(
    "offsets, message",
    [
        ([0, 21, 37], "must have 16 bytes, as the index of 1 records. Received: 24"),
        ([], "must have 16 bytes, as the index of 1 records. Received: 0"),
        ([0, 20], "must list offsets from 0 to 21, .* Received: from 0 to 20"),
        ([1, 21], "must list offsets from 0 to 21, .* Received: from 1 to 21"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(offsets, message, tmp_path):
    write_index(tmp_path / "x.index", offsets)
    with pytest.raises(InputError, match=message):
        read_index(tmp_path / "x.index", num_records=1, num_bytes=21)


def test_a_missing_index_is_refused(tmp_path):
    with pytest.raises(InputError, match="x.index` does not exist"):
        read_index(tmp_path / "x.index", num_records=1, num_bytes=21)


def test_a_mapped_file_is_its_bytes(path, tmp_path):
    (tmp_path / "empty").touch()
    assert map_file(path)[:] == path.read_bytes()
    assert map_file(tmp_path / "empty") == b""


def test_a_file_that_is_no_chain_of_records_is_refused(path):
    path.write_bytes(b"some text, which begins with a very large length")
    with pytest.raises(InputError, match=r"not a TFRecord file, or is damaged at byte 0"):
        frame_offsets(path)


@pytest.mark.parametrize("block", [13, 100, 1 << 20])
def test_a_sound_file_has_no_fault(block, path, monkeypatch):
    monkeypatch.setattr(record_files, "_BLOCK", block)
    data, scan = path.read_bytes(), scan_records(path)
    assert scan.fault is None
    assert scan.offsets.tolist() == frame_offsets(path).tolist()
    assert scan.num_bytes == len(data)
    assert scan.sha256 == hashlib.sha256(data).hexdigest()


def test_an_empty_file_has_no_records(tmp_path):
    (tmp_path / "x").touch()
    scan = scan_records(tmp_path / "x")
    assert (scan.offsets.tolist(), scan.num_bytes, scan.fault) == ([0], 0, None)


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


def test_the_fault_says_what_is_wrong(path):
    data, offsets = bytearray(path.read_bytes()), scan_records(path).offsets.tolist()
    data[offsets[2] + 12] ^= 1
    path.write_bytes(data)
    at = f"record 2 at byte {offsets[2]}"
    assert scan_records(path).fault == f"{at}: the checksum of its data does not match"
    data[offsets[2]] ^= 1
    path.write_bytes(data)
    assert scan_records(path).fault == f"{at}: the checksum of its length does not match"


def test_a_file_cut_within_a_record_is_found(path):
    data, offsets = path.read_bytes(), scan_records(path).offsets
    for size in set(range(len(data))) - set(offsets.tolist()):
        path.write_bytes(data[:size])
        scan = scan_records(path)
        assert scan.fault.endswith("the file ends within it")
        assert scan.offsets[-1] == offsets[offsets < size][-1]


def test_an_impossible_length_with_a_right_checksum_is_found(path):
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + record_files._header(2**62) + b"short")
    assert scan_records(path).fault == f"record 5 at byte {size}: the file ends within it"


def test_a_file_cut_between_records_only_counts_fewer(path):
    data, offsets = path.read_bytes(), scan_records(path).offsets
    path.write_bytes(data[: offsets[3]])
    scan = scan_records(path)
    assert scan.fault is None
    np.testing.assert_array_equal(scan.offsets, offsets[:4])
