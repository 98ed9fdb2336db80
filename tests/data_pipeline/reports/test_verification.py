"""Whatever happens to a folder of records is found and told by its name."""

import random
import shutil

import pytest

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.reports.inspection import verify_records
from data_pipeline.tokenizers.vocabulary import VOCAB_FILE

FIRST, SECOND = (f"pretraining-0000{number}-of-00002" for number in range(2))


@pytest.fixture
def records(tiny_records, tmp_path):
    """Returns a copy of the tiny records that may be damaged."""
    return shutil.copytree(tiny_records, tmp_path / "records")


def problems_of(folder):
    return [tuple(problem) for problem in verify_records(folder).problems]


def flip_a_bit(folder, choice):
    """Flips one bit, every bit of the folder being equally likely; returns how to undo it.

    The listing of the vocabulary, which is for people, is left out.
    """
    paths = sorted(path for path in folder.rglob("*.*") if path.name != VOCAB_FILE)
    place = choice.randrange(sum(path.stat().st_size for path in paths))
    for path in paths:
        if place < path.stat().st_size:
            break
        place -= path.stat().st_size
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[place] ^= 1 << choice.randrange(8)
    path.write_bytes(damaged)
    return path, place, lambda: path.write_bytes(content)


def is_found(folder):
    try:
        return bool(verify_records(folder).problems)
    except InputError as error:
        return "dataset_info.json` is damaged" in str(error)


def test_sound_records_have_no_problem(tiny_records):
    found, info = verify_records(tiny_records), DatasetInfo.load(tiny_records)
    assert found.problems == []
    assert (found.folder, found.num_shards) == (tiny_records, 2)
    assert found.num_records == info.num_records > 0
    assert found.num_bytes == sum(shard.num_bytes for shard in info.shards)
    assert found.seconds > 0


def test_a_missing_shard_is_told_and_the_others_are_checked_all_the_same(records):
    (records / f"{FIRST}.tfrecord").unlink()
    (records / f"{SECOND}.tfrecord").write_bytes(b"")
    shard = DatasetInfo.read(records).shards[1]
    assert problems_of(records) == [
        (f"{FIRST}.tfrecord", "cannot be read: No such file or directory"),
        (
            f"{SECOND}.tfrecord",
            f"is not the file that was written: it must have {shard.num_records} records in "
            f"{shard.num_bytes} bytes, but has 0 in 0, or others",
        ),
    ]


def test_a_device_in_place_of_a_shard_is_refused(records):
    path = records / f"{FIRST}.tfrecord"
    path.unlink()
    path.symlink_to("/dev/zero")  # it has no end
    with pytest.raises(InputError, match="must be a regular file. Received: a pipe, a device"):
        verify_records(records)


def test_a_cut_and_a_changed_index_are_told(records):
    first, second = records / f"{FIRST}.index", records / f"{SECOND}.index"
    first.write_bytes(first.read_bytes()[:-8])
    second.write_bytes(b"\1" + second.read_bytes()[1:])
    assert problems_of(records) == [
        (first.name, "is damaged: its sha256 differs from dataset_info.json"),
        (second.name, "is damaged: its sha256 differs from dataset_info.json"),
    ]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-20],
        lambda content: content.replace('"max_ngram": 3', '"max_ngram": 2'),
        lambda content: "[]",
        lambda content: "",
    ],
)
def test_a_damaged_info_file_is_an_error(damage, records):
    path = records / "dataset_info.json"
    content = path.read_text()
    path.write_text(damage(content))
    assert path.read_text() != content
    for read in (verify_records, DatasetInfo.read, DatasetInfo.load):
        with pytest.raises(InputError, match="dataset_info.json` is damaged"):
            read(records)


def test_flipped_bits_are_found(records):
    choice = random.Random(1)
    for _ in range(40):
        path, place, undo = flip_a_bit(records, choice)
        assert is_found(records), f"byte {place} of {path.name}"
        undo()
    assert not is_found(records)
