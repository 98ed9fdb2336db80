"""The whole chain: documents in, records out."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.reports.inspection import inspect_records
from data_pipeline.text.corpus import Document
from data_pipeline.tokenizers.library_training import train_byte_bpe
from data_pipeline.tokenizers.tokenization import Tokenizer


def shards_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.tfrecord"))}


def examples_of(folder):
    """Parses all records with the fixed-length schema of the reference's own reader."""
    schema = {
        "input_ids": tf.io.FixedLenFeature([32], tf.int64),
        "input_mask": tf.io.FixedLenFeature([32], tf.int64),
        "segment_ids": tf.io.FixedLenFeature([32], tf.int64),
        "token_boundary": tf.io.FixedLenFeature([32], tf.int64),
        "masked_lm_positions": tf.io.FixedLenFeature([5], tf.int64),
        "masked_lm_ids": tf.io.FixedLenFeature([5], tf.int64),
        "masked_lm_weights": tf.io.FixedLenFeature([5], tf.float32),
        "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
    }
    files = [str(path) for path in sorted(folder.glob("*.tfrecord"))]
    records = tf.data.TFRecordDataset(files)
    return [tf.io.parse_single_example(record, schema) for record in records]


def test_records_parse_with_the_fixed_length_schema(tiny_records, tiny_tokenizer):
    examples = examples_of(tiny_records)
    assert len(examples) == DatasetInfo.load(tiny_records).num_records > 100
    for example in examples[:20]:
        ids = example["input_ids"].numpy()
        assert ids[0] == tiny_tokenizer.cls_id and (ids == tiny_tokenizer.sep_id).sum() == 2
        assert example["input_mask"].numpy().sum() == (ids != 0).sum()


def test_pairs_of_byte_level_bpe_have_two_separators(tiny_documents, tiny_corpus, tmp_path):
    tokenizer = Tokenizer.load(train_byte_bpe(tiny_corpus, tmp_path / "bpe", 400).path)
    config = PretrainingDataConfig(max_seq_length=32, static_masks=False)
    build_records(tiny_documents, tokenizer, tmp_path / "records", config)
    examples = examples_of(tmp_path / "records")
    assert len(examples) > 50
    for example in examples:
        ids, segments = example["input_ids"].numpy(), example["segment_ids"].numpy()
        seps = np.flatnonzero(ids == tokenizer.sep_id)
        assert seps[1] == seps[0] + 1 and len(seps) == 3
        assert segments[seps[1]] == 0 and segments[seps[1] + 1 : seps[2] + 1].all()
    assert max(example["input_mask"].numpy().sum() for example in examples) == 32
    assert inspect_records(tmp_path / "records").masks is None


def test_unmasked_records_hold_the_text(tiny_records, tiny_tokenizer, tiny_documents):
    text = " ".join(document.text for document in tiny_documents).lower()
    text = " ".join(text.replace("\n", " ").split())
    special = [tiny_tokenizer.cls_id, tiny_tokenizer.sep_id]
    for example in examples_of(tiny_records)[:20]:
        ids = example["input_ids"].numpy()
        real = example["masked_lm_weights"].numpy() > 0
        positions = example["masked_lm_positions"].numpy()[real]
        ids[positions] = example["masked_lm_ids"].numpy()[real]
        second = example["segment_ids"].numpy() == 1
        for segment in (ids[~second & (ids > 0)], ids[second]):
            pieces = segment[~np.isin(segment, special)]
            assert tiny_tokenizer.decode(pieces.tolist()) in text


def test_bytes_do_not_depend_on_the_order_of_the_documents(
    tiny_records, tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path
):
    build_records(tiny_documents[::-1], tiny_tokenizer, tmp_path / "again", tiny_data_config)
    assert shards_of(tmp_path / "again") == shards_of(tiny_records)


@pytest.mark.parametrize("changes", [{"workers": 2}, {"workers": 3}])
def test_bytes_do_not_depend_on_the_workers(
    changes, tiny_records, tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path, monkeypatch
):
    monkeypatch.setattr("data_pipeline.building.encoding._BYTES_PER_PART", 2000)
    build_records(tiny_documents, tiny_tokenizer, tmp_path / "a", tiny_data_config, **changes)
    for path in tiny_records.rglob("*.*"):
        assert (tmp_path / "a" / path.relative_to(tiny_records)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("documents", [[], [Document("blank", ("  ",))]])
def test_an_empty_corpus_is_refused_and_leaves_nothing(
    documents, tiny_tokenizer, tiny_data_config, tmp_path
):
    with pytest.raises(InputError, match="empty"):
        build_records(documents, tiny_tokenizer, tmp_path / "out", tiny_data_config)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("copies", [1, 2])
def test_records_keep_the_text_and_say_how_much(
    copies, tiny_documents, tiny_tokenizer, tmp_path, caplog
):
    kept = {}
    for overflow in ("carry", "cut"):
        config = PretrainingDataConfig(max_seq_length=32, copies=copies, overflow=overflow)
        result = build_records(tiny_documents, tiny_tokenizer, tmp_path / overflow, config)
        kept[overflow] = result.kept_text
        assert len(caplog.messages) == (overflow == "cut")
    assert kept["carry"] > 0.98 and 0.4 < kept["cut"] < 0.8
    assert caplog.messages[0].startswith(f"The records contain {100 * kept['cut']:.1f} % of the")
