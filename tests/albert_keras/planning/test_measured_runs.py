"""Rows of measured runs, made from a run and its scores."""

import json

import pytest

from albert_keras.config import AlbertConfig
from albert_keras.models.weight_count import count_weights
from albert_keras.planning.measured_runs import add_run, measured_run, read_runs
from data_pipeline.errors import InputError

CONFIG = AlbertConfig.from_name("albert-tiny", vocab_size=8000)
SCORES = {"step": 600, "masked_lm_loss": 5.123456, "masked_lm_accuracy": 0.212121}


@pytest.fixture
def run(tmp_path):
    """Returns a folder with the record of a run of 600 updates, and its scores beside it."""
    folder = tmp_path / "tiny-600"
    folder.mkdir()
    record = {
        "config": {"training": {"steps": 600, "batch_size": 64}},
        "albert_config": CONFIG.to_dict(),
        "data": {"max_seq_length": 64, "num_records": 1000},
    }
    (folder / "run.json").write_text(json.dumps(record))
    (tmp_path / "tiny-600.json").write_text(json.dumps(SCORES))
    return folder


def scores_of(run):
    return run.with_name(f"{run.name}.json")


def test_a_run_and_its_scores_are_a_row(run):
    row = measured_run(run, scores_of(run))
    assert row.weights == 2 * count_weights(CONFIG).blocks  # two layers share them
    assert (row.name, row.sharing) == ("tiny-600", "all")
    assert (row.name, row.tokens, row.text_tokens) == ("tiny-600", 600 * 4096, 64_000)
    assert (row.loss, row.accuracy) == (5.1235, 0.2121)
    assert measured_run(run, scores_of(run), copies=4).text_tokens == 16_000


def test_rows_are_added_and_replaced_by_name(run, tmp_path):
    table = tmp_path / "runs.csv"
    add_run(run, scores_of(run), path=table)
    add_run(run.rename(run.with_name("b")), scores_of(run), path=table)
    scores_of(run).write_text(json.dumps(SCORES | {"masked_lm_loss": 4.5}))
    add_run(tmp_path / "b", scores_of(run), path=table)
    assert [(row.name, row.loss) for row in read_runs(table)] == [("tiny-600", 5.1235), ("b", 4.5)]


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    "changes, scores, message",
    [
        ({}, {"step": 500}, "must contain the scores of the last of 600 steps"),
        ({"data": {}}, {}, "Received: no 'max_seq_length' in them"),
        ({"config": {"training": {}, "stages": [1]}}, {}, "Received: no 'batch_size' in them"),
    ],
)
def test_what_is_no_finished_run_is_refused(run, changes, scores, message):
    change(run / "run.json", **changes)
    change(scores_of(run), **scores)
    with pytest.raises(InputError, match=message):
        measured_run(run, scores_of(run))


def test_a_run_with_stages_is_refused(run):
    training = {"steps": 600, "batch_size": 64}
    change(run / "run.json", config={"training": training, "stages": [{"share": 1}]})
    with pytest.raises(InputError, match="must be a run without stages"):
        measured_run(run, scores_of(run))


def test_a_file_that_is_missing_is_named(run):
    with pytest.raises(InputError, match="no.json` cannot be read: No such file"):
        measured_run(run, run / "no.json")
