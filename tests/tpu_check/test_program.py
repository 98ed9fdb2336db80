"""What is checked is what a run would train."""

import pytest

from data_pipeline.errors import InputError
from data_pipeline.reader.reader import training_dataset
from data_pipeline.records.record_folder import RecordFiles
from tests.tpu_check.program import Program


def test_features_are_those_of_the_reader(tiny_records):
    records = RecordFiles(tiny_records)
    program = Program(batch=4, sequence_length=records.info.max_seq_length)
    read = training_dataset(records, 4, seed=1).element_spec
    assert program.features() == {
        name: (spec.dtype.name, tuple(spec.shape)) for name, spec in read.items()
    }


def test_the_run_has_the_global_batch_and_nothing_left_to_decide():
    config = Program(model={"size": "albert-tiny"}, batch=16, replicas=8).config()
    assert config.training.batch_size == 128
    assert config.training.precision == "mixed_bfloat16"


def test_a_batch_that_cannot_be_parted_is_refused():
    with pytest.raises(InputError, match="must be a multiple of `accumulation`"):
        Program(batch=4, accumulation=3)


def test_long_sequences_enlarge_the_model():
    config = Program(sequence_length=1024).config()
    assert config.albert_config(30_000).max_position_embeddings == 1024
