"""Records in the form of google-research/albert: no info file, no `token_boundary`."""

import shutil

import pytest
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.reader.reader import training_dataset
from data_pipeline.records.adoption import adopt_records
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.vocabulary import train_vocabulary


@pytest.fixture
def foreign_records(tiny_records, tmp_path):
    """Returns the tiny records as the reference would have left them."""
    for source in sorted(tiny_records.glob("*.tfrecord")):
        with tf.io.TFRecordWriter(str(tmp_path / source.name)) as writer:
            for record in tf.data.TFRecordDataset(str(source)):
                example = tf.train.Example.FromString(record.numpy())
                del example.features.feature["token_boundary"]
                example.features.feature["extra"].int64_list.value.append(1)
                writer.write(example.SerializeToString())
    return tmp_path


def test_foreign_records_are_read_like_our_own(foreign_records, tiny_records, tiny_tokenizer):
    adopt_records(foreign_records, tokenizer=tiny_tokenizer)
    ours = next(training_dataset(RecordFiles(tiny_records), 16, 1).as_numpy_iterator())
    theirs = next(training_dataset(RecordFiles(foreign_records), 16, 1).as_numpy_iterator())
    assert all((ours[name] == theirs[name]).all() for name in ours)


def test_a_folder_that_needs_no_adoption_is_refused(tiny_records, tmp_path):
    shutil.copytree(tiny_records, tmp_path / "copy")
    with pytest.raises(InputError, match="already"):
        adopt_records(tmp_path / "copy", vocab_size=307)


def test_a_tokenizer_that_contradicts_the_folder_is_refused(
    foreign_records, tiny_tokenizer, tiny_corpus
):
    train_vocabulary(tiny_corpus, foreign_records / "tokenizer", size=300)
    with pytest.raises(InputError, match="but contains another one. Remove it"):
        adopt_records(foreign_records, tokenizer=tiny_tokenizer)
    shutil.rmtree(foreign_records / "tokenizer")
    info = adopt_records(foreign_records, tokenizer=tiny_tokenizer)
    assert info.tokenizer_digest == tiny_tokenizer.digest
