"""Rows come out as the model gives them at full length, however they were put together."""

import numpy as np
import tensorflow as tf

from albert_keras.models.row_predictor import RowPredictor
from albert_keras.models.text_rows import Rows
from tests.albert_keras import numpy_albert
from tests.albert_keras.tasks.conftest import SHAPE
from tests.albert_keras.tasks.small_tasks import build_model


class Some(Rows):
    """Some rows of features; notes in `asked` how many it was asked for at a time, how long."""

    def __init__(self, features, rows):
        self.features, self.rows, self.asked = features, np.asarray(rows), []
        self.lengths, self.max_seq_length = features.lengths[rows], features.max_seq_length

    def batch(self, rows, length=None):
        self.asked.append((len(rows), length))
        return self.features.batch(self.rows[rows], length)


def scrambled_model(kind, strategy):
    with strategy.scope():
        model = build_model(kind, SHAPE, 3, dtype="float32")
    numpy_albert.scramble(model)
    return model


def check(kind, features, strategy=None, batch_size=4):
    """Compares with the model's own outputs at full length, wherever there is a piece."""
    strategy = strategy or tf.distribute.get_strategy()
    model = scrambled_model(kind, strategy)
    found = RowPredictor(
        strategy, model.outputs_of, batch_size, kind in ("spans", "tagging"), config=model.config
    ).predict(features)
    rows = np.arange(len(features))
    inputs = getattr(features, "features", features).batch(getattr(features, "rows", rows))
    expected = model.outputs_of(inputs, training=False)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        values, ours = np.asarray(values), found[name]
        assert (ours.shape, ours.dtype) == (values.shape, values.dtype), name
        if kind == "tagging":  # tags of padding mean nothing
            real = inputs["input_mask"] == 1
            ours, values = ours[real], values[real]
        np.testing.assert_allclose(ours, values, rtol=1e-5, atol=1e-5, err_msg=f"{kind} {name}")
    return found


def test_short_rows_are_computed_with_short_ones(features_of, monkeypatch, caplog):
    monkeypatch.setattr("data_pipeline.progress._SECONDS_BETWEEN_LINES", 0)
    caplog.set_level("INFO")
    features = features_of("regression")
    asked = Some(features, np.arange(21))
    check("regression", asked)
    longest = [np.sort(features.lengths)[begin:][:4].max() for begin in range(0, 21, 4)]
    lengths = [min(40, -(-length // 16) * 16) for length in longest]
    assert asked.asked == list(zip([4] * 5 + [1], lengths, strict=True))
    assert {16, 40} <= set(lengths)
    # Progress has a count and an ETA.
    assert [line.split(", ETA ")[0] for line in caplog.messages][-5:] == [
        f"computing: {count} of 21 rows" for count in range(4, 21, 4)
    ]


def check_on(kind, strategy, features):
    """Compares the predictions of two replicas, see `test_finetuning_step.py`."""
    for rows in (np.arange(len(features)), [5], np.arange(9)):
        check(kind, Some(features, rows), strategy, batch_size=4)
