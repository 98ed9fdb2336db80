"""A record is recognized by its text under other masks."""

import numpy as np
import pytest

from albert_keras.training.trained_records import digest_features, digests_of
from data_pipeline.building.build import build_records
from data_pipeline.records.decoding import decode_batch
from data_pipeline.records.record_files import RecordFiles


@pytest.fixture(scope="module")
def records(tiny_records):
    return RecordFiles(tiny_records)


@pytest.fixture(scope="module")
def digests(records):
    return digests_of(records).normalised


@pytest.fixture
def features(records):
    """Returns the features of four records."""
    return decode_batch(records.read(np.arange(4)), records.info)


def test_a_text_is_recognized_under_other_masks(
    digests, tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path
):
    config = tiny_data_config.replace(static_masks=False, copies=1, num_shards=3)
    path = build_records(tiny_documents, tiny_tokenizer, tmp_path / "records", config).path
    others = digests_of(RecordFiles(path)).normalised
    assert np.isin(others, digests).all()


def test_another_token_is_another_text(features):
    before = digest_features({key: values.copy() for key, values in features.items()})
    features["input_ids"][:, 2] += 1
    features["masked_lm_weights"][:] = 0
    assert (digest_features(features) != before).all()
