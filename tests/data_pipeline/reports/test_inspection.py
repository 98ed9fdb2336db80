"""Records are shown as a reader sees them, and damaged ones are found."""

import random
import shutil

import numpy as np
import pytest

from data_pipeline.building.build import build_records
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.decoding import read_features
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.reports.inspection import inspect_records, verify_records
from data_pipeline.tokenizers.vocabulary_files import VOCAB_FILE

FIRST, SECOND = (f"pretraining-0000{number}-of-00002" for number in range(2))


def test_as_many_records_are_shown_as_are_asked_for(tiny_records):
    everything = inspect_records(tiny_records, 10**6)
    assert len(everything) == len(RecordFiles(tiny_records))
    assert inspect_records(tiny_records, 7) == everything[:7]
    with pytest.raises(InputError, match="`examples` must be at least 1. Received: 0"):
        inspect_records(tiny_records, examples=0)


def test_an_example_shows_the_record_of_its_number(tiny_records, tiny_tokenizer):
    records = RecordFiles(tiny_records)
    rows = read_features(records, np.arange(len(records)))
    for row, example in enumerate(inspect_records(tiny_records, examples=30)):
        features = {name: values[row] for name, values in rows.items()}
        weights, positions = features["masked_lm_weights"], features["masked_lm_positions"]
        originals = features["input_ids"].copy()
        originals[positions[weights > 0]] = features["masked_lm_ids"][weights > 0]
        assert "".join(example.segments).count("→") == weights.sum()
        for number, segment in enumerate(example.segments):
            mine = (features["segment_ids"] == number) & (features["input_mask"] == 1)
            pairs = [piece.split("→") for piece in segment.split(" ")]
            for ids, at in ((features["input_ids"], 0), (originals, -1)):
                assert [pair[at] for pair in pairs] == list(map(tiny_tokenizer.piece_of, ids[mine]))
        label = features["next_sentence_labels"][0]
        assert example.order == ("swapped" if label else "in order")
        assert example.padding == 32 - features["input_mask"].sum()
        assert len(example.segments) == 2


def test_single_segments_have_no_order(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path):
    config = tiny_data_config.replace(input_format="full-sentences", max_seq_length=200)
    folder = build_records(tiny_documents, tiny_tokenizer, tmp_path / "out", config).path
    seen = inspect_records(folder)
    assert {(example.order, len(example.segments)) for example in seen} == {("none", 1)}


@pytest.fixture
def records(tiny_records, tmp_path):
    """Returns a copy of the tiny records that may be damaged."""
    return shutil.copytree(tiny_records, tmp_path / "records")


def is_found(folder):
    try:
        return bool(verify_records(folder).problems)
    except InputError as error:
        return "dataset_info.json` is damaged" in str(error)


def test_sound_records_have_no_problem(tiny_records):
    found, info = verify_records(tiny_records), DatasetInfo.load(tiny_records)
    assert found.problems == []
    assert found.folder == tiny_records
    assert found.num_records == info.num_records > 0
    assert found.num_bytes == sum(path.stat().st_size for path in tiny_records.glob("*.tfrecord"))


def test_each_damaged_file_is_told_and_the_others_are_checked_all_the_same(records):
    first, second = records / f"{FIRST}.tfrecord", records / f"{SECOND}.tfrecord"
    first.unlink()
    second.write_bytes(b"")
    differs = "is damaged or another one: its digest is not in dataset_info.json"
    assert verify_records(records).problems == [
        f"`{first.name}` cannot be read: No such file or directory",
        f"`{second.name}` {differs}",
    ]
    first.symlink_to("/dev/zero")  # it has no end
    index = records / f"{SECOND}.index"
    index.write_bytes(index.read_bytes()[:-8])
    device, *others = verify_records(records).problems
    assert f"/{first.name}` must be a regular file. Received: a pipe, a device" in device
    assert others == [f"`{second.name}` {differs}", f"`{index.name}` {differs}"]


@pytest.mark.parametrize(
    "damage",
    [lambda content: content.replace('"max_ngram": 3', '"max_ngram": 2'), lambda content: "[]"],
)
def test_a_damaged_info_file_is_an_error(damage, records):
    path = records / "dataset_info.json"
    path.write_text(damage(path.read_text()))
    for read in (verify_records, DatasetInfo.load):
        with pytest.raises(InputError, match="dataset_info.json` is damaged"):
            read(records)


def test_a_flipped_bit_of_any_file_is_found(records):
    choice = random.Random(1)
    for path in records.rglob("*.*"):
        if path.name == VOCAB_FILE:  # a listing for people
            continue
        content = path.read_bytes()
        for place in choice.choices(range(len(content)), k=6):
            damaged = bytearray(content)
            damaged[place] ^= 1 << choice.randrange(8)
            path.write_bytes(damaged)
            assert is_found(records), f"byte {place} of {path.name}"
        path.write_bytes(content)
    assert not is_found(records)
