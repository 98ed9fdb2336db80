"""A larger vocabulary in a model: old rows bit by bit, new ones the mean of old ones."""

import numpy as np
import pytest

from albert_keras.formats.extension import PER_PIECE, extend_rows
from albert_keras.formats.open_weights import open_weights
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.run import Run
from albert_keras.training.start import ContinuedPretraining
from data_pipeline.building.build import build_records
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_extension import extend_vocabulary, segments_of_added
from tests.albert_keras.loaded_weights import values_of


@pytest.fixture(scope="module")
def extended(tiny_tokenizer, tiny_corpus, tmp_path_factory):
    """Returns a Tokenizer with 20 more pieces, of words that occur in the corpus."""
    out = tmp_path_factory.mktemp("extended") / "tokenizer"
    extend_vocabulary(tiny_tokenizer, tiny_corpus, out, 20)
    return Tokenizer.load(out)


@pytest.fixture(scope="module")
def records(extended, tiny_documents, tiny_data_config, tmp_path_factory):
    out = tmp_path_factory.mktemp("records") / "records"
    return RecordFiles(build_records(tiny_documents, extended, out, tiny_data_config).path)


def model_of(albert_config, seed=7):
    return AlbertForPretraining(albert_config, seed=seed)


def loss_of(model, records):
    model.compile(None)
    batches = evaluation_dataset(records, 64).take(1)
    return model.evaluate(batches, verbose=0, return_dict=True)["masked_lm_loss"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_new_rows_are_means(dtype):
    rows = np.arange(8, dtype=dtype).reshape(4, 2) ** 3
    extended = extend_rows(rows, [[1, 2], [3, 3, 0]])
    assert extended.dtype == dtype
    np.testing.assert_array_equal(extended[:4], rows)
    np.testing.assert_array_equal(extended[4], (rows[1] + rows[2]) / 2)
    wanted = ((rows[0].astype(float) + 2.0 * rows[3]) / 3).astype(dtype)
    np.testing.assert_array_equal(extended[5], wanted)
    np.testing.assert_array_equal(extend_rows(rows[:, 0], [[0, 1]])[4:], rows[:2, 0].mean())


def test_only_what_has_a_row_for_each_piece_grows(tiny_run, extended):
    origin = open_weights(tiny_run)
    tensors, grown = origin.tensors, origin.extended(extended).tensors
    weights = {name: shape for name, shape in tensors.shapes.items() if name in grown.shapes}
    others = tensors.shapes.keys() - weights.keys()  # the state of the optimizer and the metrics
    assert grown.shapes.keys() == weights.keys() and set(PER_PIECE) <= weights.keys()
    assert all("/adam_" in name or name.startswith(("training/", "global_")) for name in others)
    for name, shape in weights.items():
        more = 20 if name in PER_PIECE else 0
        assert grown.shapes[name] == [*(size + more for size in shape[:1]), *shape[1:]]
        assert list(grown.read(name).shape) == grown.shapes[name]


@pytest.mark.slow
def test_a_model_grows_and_goes_on(tiny_run, tiny_tokenizer, extended, records, tiny_records):
    origin = open_weights(tiny_run)
    continued = ContinuedPretraining.of(origin, records)
    model = model_of(continued.albert_config)
    report = continued.load(model)
    assert not report.new and continued.describe()["origin_digest"] == origin.digest
    assert continued.lines(report)[-1].startswith(
        "vocabulary: the rows of 307 pieces are kept; each of the 20 new ones starts as the mean"
    )

    old = model_of(origin.albert_config, seed=8)
    Run.open(tiny_run).checkpoints.restore(12, old)
    segments = segments_of_added(tiny_tokenizer, extended)
    for name, values in values_of(old).items():
        found = values_of(model)[name]
        np.testing.assert_array_equal(found[: len(values)], values, err_msg=name)
        if name in PER_PIECE:
            wanted = [values[segment].astype(float).mean(0) for segment in segments]
            np.testing.assert_allclose(found[len(values) :], wanted, rtol=1e-6)
        else:
            assert found.shape == values.shape

    # Near to what the old model reaches on its own records, and far from random weights.
    grown, before = loss_of(model, records), loss_of(old, RecordFiles(tiny_records))
    random = loss_of(model_of(continued.albert_config), records)
    assert grown < before + 0.35 and grown < random - 0.3
