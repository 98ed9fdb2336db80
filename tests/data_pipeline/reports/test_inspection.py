"""What is told of records is what a plain count over them gives."""

import shutil

import pytest

from data_pipeline.building.build import build_records
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.decoding import decode_instance
from data_pipeline.records.record_files import frame_at, frame_offsets, map_file
from data_pipeline.reports.inspection import inspect_records


def features_of(folder):
    """Decodes all records of a folder, in order."""
    for shard in DatasetInfo.load(folder).shards:
        data, offsets = map_file(folder / shard.file), frame_offsets(folder / shard.file)
        for number in range(shard.num_records):
            yield decode_instance(frame_at(data, offsets, number)[0])


def test_a_sample_is_a_few_records_drawn_by_the_seed(tiny_records):
    one, again = (inspect_records(tiny_records, sample=7, examples=7) for _ in range(2))
    other = inspect_records(tiny_records, sample=7, examples=7, seed=1)
    assert one == again and one.num_sampled == 7 < one.num_records
    drawn, others = ({example.record for example in seen.examples} for seen in (one, other))
    assert len(drawn) == 7 and drawn != others
    assert inspect_records(tiny_records, examples=7).examples == one.examples


def test_an_example_shows_the_record_of_its_number(tiny_records, tiny_tokenizer):
    """Undoing the marks gives the text; taking what stands before each arrow what a model sees."""
    rows = list(features_of(tiny_records))
    for example in inspect_records(tiny_records, examples=30).examples:
        features = rows[example.record]
        weights, positions = features["masked_lm_weights"], features["masked_lm_positions"]
        ids = features["input_ids"].copy()
        ids[positions[weights > 0]] = features["masked_lm_ids"][weights > 0]
        shown = "".join(example.segments)
        assert shown.count("→") == weights.sum()
        assert shown.count("MASK→") == (features["input_ids"] == tiny_tokenizer.mask_id).sum()
        for number, segment in enumerate(example.segments):
            text = segment.replace("[CLS]", "").replace("[SEP]", "")
            for part in text.split("[")[1:]:
                inside = part.split("]")[0]
                text = text.replace(f"[{inside}]", inside.split("→")[1].replace("▁", ""), 1)
            mine = (features["segment_ids"] == number) & (features["input_mask"] == 1)
            assert text.split() == tiny_tokenizer.decode(ids[mine]).split()
        label = features["next_sentence_labels"][0]
        assert example.order == ("swapped" if label else "in order")
        assert example.padding == 32 - features["input_mask"].sum()
        assert shown.startswith("[CLS]") and shown.count("[SEP]") == 2 == len(example.segments)


def test_records_without_masks_say_so(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path):
    config = tiny_data_config.replace(static_masks=False, copies=1)
    folder = build_records(tiny_documents, tiny_tokenizer, tmp_path / "out", config).path
    seen = inspect_records(folder)
    assert seen.masks is None
    assert "→" not in "".join(seen.examples[0].segments)


def test_single_segments_have_no_order(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path):
    config = tiny_data_config.replace(input_format="full-sentences", max_seq_length=200)
    folder = build_records(tiny_documents, tiny_tokenizer, tmp_path / "out", config).path
    seen = inspect_records(folder)
    assert seen.label_1 is None
    assert {len(example.segments) for example in seen.examples} == {1}


def test_a_damaged_record_is_named(tiny_records, tmp_path):
    folder = shutil.copytree(tiny_records, tmp_path / "copy")
    path = sorted(folder.glob("*.tfrecord"))[1]
    data = bytearray(path.read_bytes())
    data[frame_offsets(path)[4] + 12] = 0
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"Record 4 of `{path}` is damaged: .*data verify"):
        inspect_records(folder)
