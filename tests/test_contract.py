"""What is written is read, under the names the model takes."""

import inspect

import numpy as np
import pytest

from albert_keras import AlbertConfig, AlbertForPretraining
from albert_keras.models import encoder
from data_pipeline.reader.reader import training_dataset
from data_pipeline.records.examples import PRETRAINING_FEATURES
from data_pipeline.records.record_files import RecordFiles


@pytest.fixture(scope="module")
def batch(tiny_records):
    dataset = training_dataset(RecordFiles(tiny_records), 4, seed=1)
    return next(dataset.as_numpy_iterator())


def test_every_required_feature_reaches_the_model_under_its_name(batch):
    written = {name for name, feature in PRETRAINING_FEATURES.items() if feature.required}
    in_memory = {"next_sentence_labels": "sentence_order_labels"}
    assert {in_memory.get(name, name) for name in written} == set(batch) - {"example_weights"}


def test_the_model_takes_a_batch_as_it_is(batch):
    config = AlbertConfig.from_name("albert-tiny", vocab_size=307)
    outputs = AlbertForPretraining(config)(batch)
    assert outputs["masked_lm_logits"].shape == (4, 5, 307)
    assert outputs["sentence_order_logits"].shape == (4, 2)
    assert np.isfinite(outputs["masked_lm_logits"]).all()


def test_the_encoder_names_the_features_it_reads(batch):
    source = inspect.getsource(encoder)
    assert all(f'"{name}"' in source for name in ("input_ids", "input_mask", "segment_ids"))
