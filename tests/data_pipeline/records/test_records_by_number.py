"""Records are found by number, wherever they lie, without reading what lies before."""

import shutil

import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.decoding import decode_instance
from data_pipeline.records.record_files import RecordFiles, index_path


@pytest.fixture
def copied_records(tiny_records, tmp_path):
    shutil.copytree(tiny_records, tmp_path / "records")
    return tmp_path / "records"


def without_indexes(folder):
    info = DatasetInfo.load(folder)
    for shard in info.shards:
        index_path(folder / shard.file).unlink()
    shards = tuple(shard.replace(index_sha256=None) for shard in info.shards)
    info.replace(shards=shards).save(folder)


def test_records_are_found_with_and_without_an_index(tiny_records, copied_records):
    without_indexes(copied_records)
    with_index, without = RecordFiles(tiny_records), RecordFiles(copied_records)
    numbers = np.arange(len(with_index))[::-1]
    records = with_index.read(numbers)
    assert records == without.read(numbers)
    assert len(decode_instance(records[0])["input_ids"]) == 32


def test_a_changed_bit_is_found_when_its_record_is_read(copied_records):
    path = copied_records / "pretraining-00001-of-00002.tfrecord"
    offsets = np.fromfile(index_path(path), "<u8")
    data = bytearray(path.read_bytes())
    data[int(offsets[3]) + 40] ^= 1  # a value: the record can still be parsed
    path.write_bytes(data)
    records = RecordFiles(copied_records)
    number = records.info.shards[0].num_records + 3
    records.read(np.delete(np.arange(len(records)), number))
    fault = f"Record 3 of `{path}` is damaged: the checksum of its data does not match"
    with pytest.raises(InputError) as error:
        records.read(np.arange(len(records)))
    assert str(error.value).startswith(fault)
    with pytest.raises(InputError) as error, records.failures_named():
        for _ in evaluation_dataset(records, 8).as_numpy_iterator():
            pass
    assert str(error.value).startswith(fault)
