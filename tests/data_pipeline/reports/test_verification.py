"""Whatever happens to a folder of records is found and told by its name."""

import json
import logging
import random
import shutil
import time

import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of
from data_pipeline.records.dataset_info import DatasetInfo, ShardInfo
from data_pipeline.records.examples import decode_instance, encode_instances
from data_pipeline.records.record_files import RecordWriter, frame_offsets, record_at
from data_pipeline.records.schema import schema_fault
from data_pipeline.reports import verification
from data_pipeline.reports.verification import verify_records
from data_pipeline.tokenizers.tokenization import Tokenizer

FIRST, SECOND = (f"pretraining-0000{number}-of-00002" for number in range(2))


@pytest.fixture
def records(tiny_records, tmp_path):
    """Returns a copy of the tiny records that may be damaged."""
    return shutil.copytree(tiny_records, tmp_path / "records")


def problems_of(folder):
    return [tuple(problem) for problem in verify_records(folder).problems]


def swap(one, other):
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def rewrite(folder, change):
    """Writes the first shard anew with changed features, and an info file that agrees with it."""
    path = folder / f"{FIRST}.tfrecord"
    record = record_at(path.read_bytes(), frame_offsets(path), 0)
    features = {name: values[None] for name, values in decode_instance(record).items()}
    with RecordWriter(path) as writer:
        writer.write(encode_instances(change(features)))
    info = DatasetInfo.read(folder)
    shard = ShardInfo.of(path.name, writer.offsets, writer.sha256)
    (folder / f"{FIRST}.index").unlink()
    info.replace(shards=(shard, *info.shards[1:])).save(folder)


def flip_a_bit(folder, choice):
    """Flips one bit, every bit of the folder being equally likely; returns how to undo it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
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
    count = DatasetInfo.read(records).shards[1].num_bytes
    assert problems_of(records) == [
        (f"{FIRST}.tfrecord", "does not exist, but dataset_info.json lists it"),
        (
            f"{SECOND}.tfrecord",
            f"must have {count} bytes, but has 0; must contain "
            f"{DatasetInfo.read(records).shards[1].num_records} records, but contains 0",
        ),
    ]


def test_a_shard_cut_within_a_record_is_told(records):
    path = records / f"{FIRST}.tfrecord"
    path.write_bytes(path.read_bytes()[:-5])
    ((file, says),) = problems_of(records)
    last = DatasetInfo.read(records).shards[0].num_records - 1
    assert file == path.name and f"is damaged: record {last} at byte" in says


def test_a_shard_with_fewer_whole_records_is_told(records):
    path, shard = records / f"{FIRST}.tfrecord", DatasetInfo.read(records).shards[0]
    offsets = np.fromfile(records / f"{FIRST}.index", "<u8")
    path.write_bytes(path.read_bytes()[: int(offsets[-2])])
    count = shard.num_records
    ((_, says),) = problems_of(records)
    assert f"must contain {count} records, but contains {count - 1}" in says


def test_a_changed_byte_is_told_with_its_record(records):
    path = records / f"{FIRST}.tfrecord"
    offsets = np.fromfile(records / f"{FIRST}.index", "<u8")
    data = bytearray(path.read_bytes())
    data[int(offsets[7]) + 20] ^= 1
    path.write_bytes(data)
    says = f"is damaged: record 7 at byte {offsets[7]}: the checksum of its data does not match"
    assert problems_of(records) == [(path.name, says)]


def test_another_sound_file_of_the_same_size_is_told(records):
    path = records / f"{FIRST}.tfrecord"
    data, offsets = path.read_bytes(), frame_offsets(path)
    contents = [record_at(data, offsets, number) for number in range(len(offsets) - 1)]
    like_first = next(i for i, content in enumerate(contents) if i and content != contents[0])
    contents[0], contents[like_first] = contents[like_first], contents[0]
    with RecordWriter(path) as writer:
        writer.write(contents)
    (_, says), *_ = problems_of(records)
    assert says == "is valid, but not the file that was written: its sha256 differs"


def test_swapped_shards_are_recognised(records):
    swap(records / f"{FIRST}.tfrecord", records / f"{SECOND}.tfrecord")
    says = "has the content of `{}.tfrecord`: swapped or overwritten"
    assert problems_of(records) == [
        (f"{FIRST}.tfrecord", says.format(SECOND)),
        (f"{SECOND}.tfrecord", says.format(FIRST)),
    ]


def test_swapped_indexes_are_recognised(records):
    swap(records / f"{FIRST}.index", records / f"{SECOND}.index")
    says = "has the content of `{}.index`: swapped or overwritten"
    assert problems_of(records) == [
        (f"{FIRST}.index", says.format(SECOND)),
        (f"{SECOND}.index", says.format(FIRST)),
    ]


def test_a_missing_index_is_told(records):
    (records / f"{SECOND}.index").unlink()
    says = f"does not exist; it is the index of `{SECOND}.tfrecord`"
    assert problems_of(records) == [(f"{SECOND}.index", says)]


def test_a_cut_and_a_changed_index_are_told(records):
    first, second = records / f"{FIRST}.index", records / f"{SECOND}.index"
    size = first.stat().st_size
    first.write_bytes(first.read_bytes()[:-8])
    second.write_bytes(b"\1" + second.read_bytes()[1:])
    assert problems_of(records) == [
        (first.name, f"must have {size} bytes, but has {size - 8}"),
        (second.name, "is damaged: its sha256 differs from dataset_info.json"),
    ]


def test_an_index_that_was_wrong_from_the_beginning_is_told(records):
    path, info = records / f"{FIRST}.index", DatasetInfo.read(records)
    offsets = np.fromfile(path, "<u8")
    offsets[3] += 1
    offsets.tofile(path)
    shard = info.shards[0].replace(index_sha256=sha256_of(path))
    info.replace(shards=(shard, info.shards[1])).save(records)
    says = f"does not match the records of `{FIRST}.tfrecord`"
    assert problems_of(records) == [(path.name, says)]


def test_files_that_look_like_records_are_told_and_notes_are_not(records):
    names = [".hidden.tfrecord", "COPY.TFRECORD", "old.tfrecord-0", "sub/a.tfrecord", "x.index"]
    (records / "sub").mkdir()
    for name in ("README.md", *names):
        (records / name).write_bytes(b"")
    shutil.copy(records / f"{FIRST}.tfrecord", records / "sub" / ".notes")
    (records / "sub" / "pipe").symlink_to(records)  # a cycle
    says = "does not belong here: dataset_info.json does not list it"
    names = sorted([*names, "sub/.notes"])
    assert problems_of(records) == [(name, says) for name in names]


def test_a_missing_tokenizer_is_told_if_there_should_be_one(records):
    shutil.rmtree(records / "tokenizer")
    says = "does not exist, but dataset_info.json has its digest"
    assert problems_of(records) == [("tokenizer", says)]
    DatasetInfo.read(records).replace(tokenizer_digest=None).save(records)
    assert problems_of(records) == []


def test_another_tokenizer_is_told(records, tiny_tokenizer):
    config = tiny_tokenizer.config.replace(compat_py3=True)
    Tokenizer(tiny_tokenizer.model_bytes, config).save(records / "tokenizer")
    says = "is not the tokenizer of these records according to dataset_info.json"
    assert problems_of(records) == [("tokenizer", says)]


def test_a_tokenizer_that_does_not_load_is_told(records):
    (records / "tokenizer" / "tokenizer.model").unlink()
    ((file, says),) = problems_of(records)
    assert file == "tokenizer" and says.startswith("cannot be loaded: ")


def test_a_changed_list_of_pieces_is_told(records):
    path = records / "tokenizer" / "tokenizer.vocab"
    path.write_bytes(path.read_bytes() + b"more\t0\n")
    says = "does not list the vocabulary of the model"
    assert problems_of(records) == [("tokenizer/tokenizer.vocab", says)]
    path.unlink()
    says = "does not exist; it lists the vocabulary of the model"
    assert problems_of(records) == [("tokenizer/tokenizer.vocab", says)]


@pytest.mark.parametrize(
    "change, says",
    [
        ({"input_ids": 31}, "must have 32 int64 values in `input_ids`, but has 31 of int64"),
        ({"masked_lm_weights": 6}, "must have 5 float32 values in `masked_lm_weights`"),
        ({"next_sentence_labels": 0}, "must have 1 int64 values in `next_sentence_labels`"),
    ],
)
def test_records_of_other_lengths_are_told(change, says, records):
    rewrite(
        records,
        lambda features: (
            features
            | {name: np.resize(features[name], (1, length)) for name, length in change.items()}
        ),
    )
    ((file, told),) = problems_of(records)
    assert file == f"{FIRST}.tfrecord" and told.startswith(f"is damaged: record 0 {says}")


@pytest.mark.parametrize(
    "name, limit, value",
    [("input_ids", 307, 307), ("masked_lm_ids", 307, 999), ("masked_lm_positions", 32, 32)],
)
def test_values_out_of_range_are_told(name, limit, value, records):
    rewrite(records, lambda features: features | {name: np.full(features[name].shape, value)})
    ((_, says),) = problems_of(records)
    assert f"values of `{name}` from 0 to below {limit}" in says and says.endswith(
        f"but has {value}"
    )


def test_a_record_that_is_none_is_told(records, monkeypatch):
    def unreadable(record):
        raise InputError("no example")

    monkeypatch.setattr(verification, "decode_instance", unreadable)
    assert [says for _, says in problems_of(records)] == [
        "is damaged: record 0 cannot be read: no example"
    ] * 2


def test_a_feature_of_another_type_or_none_at_all_is_told(tiny_records):
    info = DatasetInfo.read(tiny_records)
    assert schema_fault({}, info) == "has no feature `input_ids`"
    wrong = {"input_ids": np.zeros(32, np.float32)}
    assert schema_fault(wrong, info).endswith("but has 32 of float32")


def test_records_may_lack_what_a_reader_does_not_need(records):
    def without(features):
        return {name: v for name, v in features.items() if name != "token_boundary"}

    rewrite(records, without)
    assert problems_of(records) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-20],
        lambda content: content.replace('"max_ngram": 3', '"max_ngram": 2'),
        lambda content: content.replace("\n  ", "\n\t", 1),
        lambda content: "[]",
        lambda content: "3",
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


def test_an_info_file_without_a_digest_is_read_but_not_verified(records):
    path = records / "dataset_info.json"
    values = json.loads(path.read_text())
    assert list(values)[-1] == "digest"
    del values["digest"]
    before = DatasetInfo.read(records)
    path.write_text(json.dumps(values))
    assert DatasetInfo.read(records) == before
    ((file, says),) = problems_of(records)
    assert file == "dataset_info.json" and says.startswith("has no `digest`, so it may have been")


def test_a_folder_without_info_is_an_error(tmp_path):
    with pytest.raises(InputError, match="has no dataset_info.json"):
        verify_records(tmp_path)
    with pytest.raises(InputError, match="not a folder of records"):
        verify_records(tmp_path / "nowhere")


def test_progress_is_logged(tiny_records, monkeypatch, caplog):
    monkeypatch.setattr(verification, "_SECONDS_BETWEEN_LINES", 0)
    with caplog.at_level(logging.INFO, "data_pipeline.reports.verification"):
        verify_records(tiny_records)
    assert [message.split(",")[0] for message in caplog.messages] == [
        "0 of 2 files",
        "1 of 2 files",
    ]


def check_flips(folder, count, seed):
    choice = random.Random(seed)
    for _ in range(count):
        path, place, undo = flip_a_bit(folder, choice)
        assert is_found(folder), f"byte {place} of {path.name}"
        undo()
    assert not is_found(folder)


def test_flipped_bits_are_found(records):
    check_flips(records, 60, seed=1)


@pytest.mark.parametrize("kind", ["dataset_info.json", "*.index", "tokenizer/*"])
def test_flipped_bits_in_small_files_are_found(kind, records):
    choice = random.Random(2)
    for path in sorted(records.glob(kind)):
        content = path.read_bytes()
        for _ in range(6):
            damaged = bytearray(content)
            damaged[choice.randrange(len(content))] ^= 1 << choice.randrange(8)
            path.write_bytes(damaged)
            assert is_found(records), path
        path.write_bytes(content)


@pytest.mark.slow
def test_a_thousand_flipped_bits_are_found(records):
    check_flips(records, 1000, seed=3)


@pytest.mark.slow
def test_every_flipped_bit_of_the_info_file_is_found(records):
    path = records / "dataset_info.json"
    content = path.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(InputError, match="is damaged"):
                DatasetInfo.read(records)


@pytest.mark.slow
def test_verification_is_as_fast_as_promised(tmp_path, tiny_records):
    block = [bytes(2200)] * 1000
    with RecordWriter(tmp_path / "x.tfrecord") as writer:
        for _ in range(50):
            writer.write(block)
    info = DatasetInfo.read(tiny_records)
    shard = ShardInfo.of("x.tfrecord", writer.offsets, writer.sha256)
    info.replace(shards=(shard,), tokenizer_digest=None).save(tmp_path)
    speeds = []
    for _ in range(3):
        started = time.process_time()
        found = verify_records(tmp_path)
        speeds.append(found.num_bytes / 1e6 / (time.process_time() - started))
    assert max(speeds) > 300
