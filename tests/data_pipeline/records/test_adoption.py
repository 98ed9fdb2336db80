"""Records as ALBERT, BERT, tensorflow/models and NVIDIA write them are read."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.adoption import adopt_records
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.reports.inspection import inspect_records, verify_records
from data_pipeline.tokenizers.tokenization import Tokenizer

S, P, VOCAB = 12, 3, 307
#: Names of features where they differ.
BERT, V2 = {}, {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"}


def rows_of(count=5):
    """Returns features as the loop of the original makes them, by the names of BERT."""
    draw = np.random.default_rng(3)
    rows = []
    for number in range(count):
        real = int(draw.integers(6, S + 1))
        ids = [2, *draw.integers(5, VOCAB, real - 2).tolist(), 3] + [0] * (S - real)
        rows.append(
            {
                "input_ids": ids,
                "input_mask": [1] * real + [0] * (S - real),
                "segment_ids": [0] * 4 + [1] * (real - 4) + [0] * (S - real),
                "masked_lm_positions": [1, 4, 0],
                "masked_lm_ids": [7 + number, 290, 0],
                "masked_lm_weights": [1.0, 1.0, 0.0],
                "next_sentence_labels": [number % 2],
                "extra": [1],
            }
        )
    return rows


def write(path, rows, names=BERT, compression=""):
    """Writes `tf.train.Example`s as `write_instance_to_example_files` does."""
    with tf.io.TFRecordWriter(str(path), options=compression) as writer:
        for row in rows:
            feature = {
                names.get(name, name): tf.train.Feature(float_list=tf.train.FloatList(value=values))
                if name == "masked_lm_weights"
                else tf.train.Feature(int64_list=tf.train.Int64List(value=values))
                for name, values in row.items()
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


@pytest.mark.parametrize("names", [BERT, V2], ids=["bert", "v2"])
def test_records_of_each_program_are_read(tmp_path, names):
    rows = rows_of()
    write(tmp_path / "examples.tf_record-00000-of-00001", rows, names)
    info = adopt_records(tmp_path, vocab_size=VOCAB)
    assert (info.max_seq_length, info.max_predictions_per_seq) == (S, P)
    assert info.objective == "nsp" and info.num_records == 5
    batch = next(evaluation_dataset(RecordFiles(tmp_path), 5).as_numpy_iterator())
    batch["next_sentence_labels"] = batch.pop("sentence_order_labels")
    del batch["example_weights"]
    for name, values in batch.items():
        wanted = np.array([row[name] for row in rows]).reshape(values.shape)
        np.testing.assert_array_equal(values, wanted, err_msg=name)
    assert not verify_records(tmp_path).problems
    assert inspect_records(tmp_path, examples=1).objective == "nsp"


def test_compressed_files_are_refused_with_the_command_that_unpacks_them(tmp_path):
    write(tmp_path / "a.tfrecord", rows_of(), BERT, "GZIP")
    with pytest.raises(InputError, match="not a TFRecord file.* unpack it with `gunzip`"):
        adopt_records(tmp_path, vocab_size=VOCAB)


def test_what_a_label_means_follows_from_the_program(tmp_path):
    rows = [row | {"token_boundary": [1] * S} for row in rows_of()]
    write(tmp_path / "a.tfrecord", rows)
    info = adopt_records(tmp_path, vocab_size=VOCAB)
    assert (info.objective, info.builder_version) == ("sop", "google-research/albert")
    (tmp_path / "dataset_info.json").unlink()
    assert adopt_records(tmp_path, vocab_size=VOCAB, objective="nsp").objective == "nsp"
    assert DatasetInfo.load(tmp_path).objective == "nsp"


def test_a_tokenizer_that_contradicts_the_folder_is_refused(tmp_path, tiny_tokenizer):
    write(tmp_path / "a.tfrecord", rows_of())
    config = tiny_tokenizer.config.replace(compat_py3=True)
    other = Tokenizer(tiny_tokenizer.model_bytes, config)
    other.save(tmp_path / "tokenizer")
    with pytest.raises(InputError, match="but contains another one. Remove it"):
        adopt_records(tmp_path, tokenizer=tiny_tokenizer)
    info = adopt_records(tmp_path, tokenizer=other)
    assert info.tokenizer_digest == other.digest and info.vocab_size == VOCAB


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"next_sentence_labels": [2]}, r"Record 3 of .*0 and 1 in `next_sentence_labels`.* 2"),
        ({"masked_lm_ids": [1, 307, 0]}, r"Record 3 of .*below 307, the size of the vocabulary"),
        ({"input_ids": [2] * (S - 1)}, r"Record 3 of .*12 int64 values in `input_ids`, but has 11"),
    ],
)
def test_every_record_is_checked_and_nothing_is_left_behind(tmp_path, change, problem):
    rows = rows_of()
    rows[3] |= change
    write(tmp_path / "a.tfrecord", rows, V2)
    with pytest.raises(InputError, match=problem):
        adopt_records(tmp_path, vocab_size=VOCAB)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tfrecord"]
