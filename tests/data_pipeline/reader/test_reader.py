"""Records come back in a reproducible order, with static shapes, or not at all."""

import numpy as np
import pytest

from data_pipeline.config import MASKS
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import unmask
from data_pipeline.reader.reader import evaluation_dataset, training_dataset, training_numbers
from data_pipeline.records.decoding import read_features
from data_pipeline.records.record_files import RecordFiles


def test_each_epoch_sees_each_record_once_in_another_order():
    steps = [training_numbers(step, 10, 25, seed=3) for step in range(5)]
    numbers = np.concatenate(steps)
    assert sorted(numbers[:25]) == sorted(numbers[25:]) == list(range(25))
    assert (numbers[:25] != numbers[25:]).any()
    assert (training_numbers(0, 10, 25, seed=4) != steps[0]).any()


def test_shapes_are_static(tiny_records):
    specifications = training_dataset(RecordFiles(tiny_records), 8, 1).element_spec
    lengths = {"input_ids": [32], "input_mask": [32], "segment_ids": [32]}
    lengths |= {"masked_lm_positions": [5], "masked_lm_ids": [5], "masked_lm_weights": [5]}
    lengths |= {"sentence_order_labels": [], "example_weights": []}
    shapes = {name: one.shape.as_list() for name, one in specifications.items()}
    assert shapes == {name: [8, *length] for name, length in lengths.items()}


def test_workers_and_replicas_share_a_batch(tiny_records):
    def read(count, **share):
        dataset = training_dataset(RecordFiles(tiny_records), 8, 1, 5, **share).take(count)
        return list(dataset.as_numpy_iterator())

    whole = read(2)
    shares = [read(1, worker=(number, 4))[0] for number in range(4)]
    for name, values in whole[0].items():
        np.testing.assert_array_equal(np.concatenate([share[name] for share in shares]), values)
    dealt = [part["input_ids"] for part in read(4, worker=(1, 2), replicas=2)]
    second_half = [batch["input_ids"][4:] for batch in whole]
    np.testing.assert_array_equal(np.concatenate(dealt), np.concatenate(second_half))


NAMES = ("input_ids", "masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


def text_of(batch):
    return unmask(*(batch[name] for name in NAMES)).tolist()


def batches(records, count, **words):
    return list(training_dataset(records, 8, seed=1, **words).take(count).as_numpy_iterator())


def test_dynamic_masks_hide_other_pieces_of_the_same_text_in_each_epoch(tiny_records):
    records = RecordFiles(tiny_records)
    steps = -(-len(records) // 8)
    static, dynamic = (batches(records, 2 * steps + 2, masks=masks) for masks in MASKS[1:])
    seen = {}
    for before, now in zip(static, dynamic, strict=True):
        assert text_of(before) == text_of(now)
        assert now["masked_lm_weights"].sum(axis=1).min() >= 1
        np.testing.assert_array_equal(before["segment_ids"], now["segment_ids"])
        for text, positions in zip(text_of(now), now["masked_lm_positions"].tolist(), strict=True):
            seen.setdefault(tuple(text), []).append(tuple(positions))
    # Two epochs: two masks of each text, nearly always different ones.
    assert sum(len(masks) > len(set(masks)) for masks in seen.values()) < 0.1 * len(seen)


@pytest.mark.parametrize("masks", ["static", "dynamic"])
def test_a_reader_that_begins_later_sees_what_it_would_have_seen(tiny_records, masks):
    records = RecordFiles(tiny_records)
    whole = batches(records, 90, masks=masks)
    (later,) = batches(records, 1, masks=masks, first_step=89)
    for name, values in later.items():
        np.testing.assert_array_equal(values, whole[89][name])
    other = next(training_dataset(records, 8, seed=2, masks=masks).as_numpy_iterator())
    assert (other["masked_lm_positions"] != whole[0]["masked_lm_positions"]).any()


@pytest.fixture(scope="module")
def unmasked_records(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path_factory):
    from data_pipeline.building.build import build_records

    config = tiny_data_config.replace(static_masks=False, input_format="full-sentences")
    out = tmp_path_factory.mktemp("unmasked") / "records"
    return build_records(tiny_documents, tiny_tokenizer, out, config).path


def test_records_without_masks_get_them_from_the_reader(unmasked_records, tiny_tokenizer):
    records = RecordFiles(unmasked_records)
    example = read_features(records, np.array([0]))
    assert not example["masked_lm_weights"].any()
    assert tiny_tokenizer.mask_id not in example["input_ids"]
    (batch,) = batches(records, 1)
    assert (batch["masked_lm_weights"].sum(axis=1) >= 1).all()
    assert (batch["input_ids"] == tiny_tokenizer.mask_id).any()
    with pytest.raises(InputError, match="contain no masks"):
        training_dataset(records, 8, 1, masks="static")


def test_evaluation_counts_each_record_once(tiny_records):
    records = RecordFiles(tiny_records)
    batches = list(evaluation_dataset(records, 64).as_numpy_iterator())
    assert all(len(batch["input_ids"]) == 64 for batch in batches)
    assert sum(batch["example_weights"].sum() for batch in batches) == len(records)
