"""The masked-LM head starts with the frequencies of the masked pieces."""

import shutil

import numpy as np
import pytest

from albert_keras.training.pretrain import pretrain
from albert_keras.training.record_source import RecordSource, log_frequencies
from data_pipeline.errors import InputError
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import RecordFiles


def test_shares_are_those_of_the_labels(tiny_records):
    records = RecordFiles(tiny_records)
    shares = np.exp(log_frequencies(records))
    assert shares.sum() == np.float32(1) or abs(shares.sum() - 1) < 1e-5
    masked = np.concatenate(
        [
            batch["masked_lm_ids"][(batch["masked_lm_weights"] > 0)]
            for batch in evaluation_dataset(records, 1).as_numpy_iterator()
        ]
    )
    counts = np.bincount(masked, minlength=307) + 1
    np.testing.assert_allclose(shares, counts / counts.sum(), rtol=1e-5)


def test_a_training_may_change_the_masks_of_its_records(tiny_records, tiny_training):
    records = RecordFiles(tiny_records)

    def masks(**changes):
        training = tiny_training.training.replace(masks="dynamic", **changes)
        batch = next(iter(RecordSource(records, training).read(0)))
        return (batch["masked_lm_weights"].numpy() > 0).sum()

    assert 0 < masks(mask_rate=0.05) < masks() / 2


def test_records_whose_tokenizer_is_lost_are_refused(tiny_records, tiny_training, tmp_path):
    records = shutil.copytree(tiny_records, tmp_path / "records")
    shutil.rmtree(records / "tokenizer")
    with pytest.raises(InputError, match="tokenizer`, with which the records were built, is missi"):
        pretrain(records, tmp_path / "run", tiny_training)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"masks": "static", "mask_rate": 0.1}, "requires dynamic masks"),
        (
            {"masks": "dynamic", "mask_rate": 0.9},
            "build the records with `max_predictions_per_seq=",
        ),
    ],
)
def test_masks_that_the_records_cannot_have_are_refused(
    tiny_records, tiny_training, changes, message, tmp_path
):
    config = tiny_training.replace(training=tiny_training.training.replace(**changes))
    with pytest.raises(InputError, match=message):
        pretrain(tiny_records, tmp_path / "run", config)
    assert not (tmp_path / "run").exists()
