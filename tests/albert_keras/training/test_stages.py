"""A run of several stages: one optimizer, one log, and the same bits wherever it is interrupted."""

import dataclasses
import shutil

import numpy as np
import pytest

from albert_keras.formats.open_weights import open_weights
from albert_keras.runs.log_file import read_log
from albert_keras.runs.trained_data import RECORDS, read_digests
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain
from albert_keras.training.record_source import RecordSource
from albert_keras.training.stages import Stages, stages_of
from albert_keras.training.trained_records import digest_features
from data_pipeline.building.build import build_records
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import RecordFiles
from tests.albert_keras.checkpoint_tensors import assert_equal_runs, tensors_of

STEPS, EDGE = 9, 3
POSITIONS = "bert/embeddings/position_embeddings"


@pytest.fixture(scope="session")
def short_records(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path_factory):
    """Returns records of 16 tokens, without masks, of the documents of `tiny_records`."""
    out = tmp_path_factory.mktemp("short-records") / "records"
    config = tiny_data_config.replace(max_seq_length=16, static_masks=False)
    return build_records(tiny_documents, tiny_tokenizer, out, config).path


@pytest.fixture(scope="session")
def staged(tiny_training, short_records):
    """Returns settings of two stages that differ in everything."""
    values = tiny_training.model_dump(exclude_unset=True)
    values["training"] |= {"steps": STEPS, "checkpoint_every": 3, "keep_checkpoints": 9}
    values["training"] |= {"masks": "dynamic"}
    values["model"] |= {"num_hidden_layers": 1}
    values["stages"] = [
        {"share": 0.33, "data": str(short_records), "batch_size": 16, "mask_rate": 0.1},
        {"share": 0.67},
    ]
    return PretrainingConfig(**values)


@pytest.fixture(scope="session")
def staged_run(staged, train, made_once):
    """Returns a run that was not interrupted."""
    return made_once("staged-run", lambda out: train(out, staged))


@pytest.fixture(scope="module")
def continued_run(tiny_run, tiny_records, short_records, tmp_path_factory):
    """Returns a run of a short and a long stage, from weights of 24 trained positions, unmoved."""
    values = {
        "training": {"steps": 2, "batch_size": 8, "precision": "float32"},
        "optimizer": {"lr": 1e-30, "warmup_steps": 0},
        "stages": [{"share": 0.5, "data": str(short_records)}, {"share": 0.5}],
    }
    values["training"] |= {"checkpoint_every": 1, "keep_checkpoints": 2}
    # As if the longest sequences of `tiny_run` had had 24 tokens; they had 32.
    initial = dataclasses.replace(open_weights(tiny_run), sequence_length=24)
    out = tmp_path_factory.mktemp("continued") / "run"
    return pretrain(tiny_records, out, PretrainingConfig(**values), initial=initial).path


def changed(config, *stages):
    """Returns a configuration with other stages, of equal shares."""
    stages = [{"share": 1 / len(stages)} | stage for stage in stages]
    return PretrainingConfig(**config.model_dump(exclude_unset=True) | {"stages": stages})


@pytest.mark.slow
def test_an_interrupted_run_of_two_stages_equals_one_that_was_not(
    staged, staged_run, tiny_records, tmp_path
):
    for steps in (2, 1, 1, 5):  # until an edge, a step before it and a step after it
        pretrain(tiny_records, tmp_path / "run", staged, max_steps=steps)
    assert_equal_runs(tmp_path / "run", staged_run, STEPS)


def test_the_log_says_which_stage_a_step_belongs_to(staged_run):
    found = [(line["step"], line["stage"]) for line in read_log(staged_run)]
    assert found == [(EDGE, 1), (4, 2), (8, 2), (9, 2)]


@pytest.mark.slow
def test_a_short_stage_keeps_the_positions_that_were_trained_before(tiny_run, continued_run):
    before = tensors_of(tiny_run, 12)[POSITIONS]
    short, found = (tensors_of(continued_run, step)[POSITIONS] for step in (1, 2))
    np.testing.assert_array_equal(short, before)
    np.testing.assert_array_equal(found[:24], before[:24])
    np.testing.assert_array_equal(found[24:32], before[1:9])
    np.testing.assert_array_equal(found[32:], before[32:])
    short, long = (open_weights(continued_run, step) for step in (1, 2))
    assert (short.sequence_length, short.trained_positions) == (16, 24)
    assert (long.sequence_length, long.trained_positions) == (32, 32)
    lengthened = short.lengthened(96).tensors.read(POSITIONS)
    np.testing.assert_array_equal(lengthened[:24], before[:24])
    np.testing.assert_array_equal(lengthened[24:46], before[1:23])


def records_of(source, step):
    """Returns the digests of the records of a step, which do not depend on the masks."""
    batch = next(source.read(step).as_numpy_iterator())
    return digest_features(batch).tolist()


def test_stages_without_changes_read_what_a_run_without_stages_reads(
    staged, tiny_records, short_records
):
    records = RecordFiles(tiny_records)

    def order(*stages):
        config = changed(staged, *stages).resolved("float32")
        shape = config.albert_config(307)
        plan = Stages(stages_of(config, records, shape), config)
        return [records_of(plan._source(plan.plan.number_at(step)), step) for step in range(STEPS)]

    whole = RecordSource(records, staged.training)
    whole = [records_of(whole, step) for step in range(STEPS)]
    assert order({}) == order({}, {}, {}) == order({}, {"mask_rate": 0.1}, {}) == whole
    # Other batches continue the same epoch, and other records begin with their own.
    flat = sum(order({}, {"batch_size": 4}, {"batch_size": 2}), [])
    assert flat == sum(whole, [])[: len(flat)]
    other = order({"data": short_records}, {}, {})
    assert other[3:] == whole[:6]
    alone = RecordSource(RecordFiles(short_records), staged.training)
    assert other[:3] == [records_of(alone, step) for step in range(3)]


@pytest.mark.parametrize(
    "stages, message",
    [
        ([{"data": "short"}, {"data": "short"}], "At least one stage must be trained on the rec"),
        ([{}, {"data": "other tokenizer"}], "other tokenizer` must be built with the tokenizer of"),
        (
            [{}, {"data": "too long"}],
            "too long` must have at most 64 tokens, the positions of .* Received: 128",
        ),
        ([{}, {"data": "no labels"}], "must have the objective of .* Received: none and sop"),
        ([{}, {"data": "short", "mask_rate": 0.9}], "Stage 2: `training.mask_rate` 0.9 of 16"),
        ([{}, {"data": "nowhere"}], "`nowhere` does not exist"),
        ([{}] * 10, "must be more than 9 for 10 stages. Received: 9"),
        ([{"batch_size": 5}, {}], "Stage 1: `training.batch_size` must be a multiple of"),
    ],
)
def test_stages_that_do_not_fit_are_refused(
    stages, message, staged, tiny_records, short_records, tmp_path
):
    def folder_of(name):
        change = {
            "other tokenizer": {"tokenizer_digest": "0" * 64, "vocab_size": 500},
            "too long": {"max_seq_length": 128},
            "no labels": {"objective": "none"},
        }.get(name)
        if change is None:
            return short_records if name == "short" else name
        shutil.copytree(short_records, tmp_path / name)
        DatasetInfo.load(short_records).replace(**change).save(tmp_path / name)
        return tmp_path / name

    stages = [stage | {"data": folder_of(stage.get("data"))} for stage in stages]
    config = changed(staged.with_flags(accumulation_steps=2), *stages)
    with pytest.raises(InputError, match=message):
        pretrain(tiny_records, tmp_path / "run", config)
    assert not (tmp_path / "run").exists()


def test_records_of_every_stage_count_as_trained_on(
    staged, staged_run, tiny_records, short_records, tmp_path
):
    with pytest.raises(InputError, match="696 of 696 records of .* were trained on"):
        pretrain(tiny_records, tmp_path / "run", staged, short_records)
    assert len(read_digests(staged_run, RECORDS).fingerprints) == 2


def test_a_run_is_resumed_with_its_stages_only(staged, staged_run, tiny_records, tmp_path):
    shutil.copytree(staged_run, tmp_path / "run")
    values = staged.model_dump(exclude_unset=True)
    values["stages"][1]["batch_size"] = 4
    with pytest.raises(InputError, match="config.stages.1.batch_size: was None, is now 4"):
        pretrain(tiny_records, tmp_path / "run", PretrainingConfig(**values))
    del values["stages"]
    with pytest.raises(
        InputError, match="stages.0.batch_size: was 16, is now None(.|\\n)*stages.1.share"
    ):
        pretrain(tiny_records, tmp_path / "run", PretrainingConfig(**values))
