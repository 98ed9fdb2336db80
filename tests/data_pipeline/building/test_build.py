"""The whole chain: documents in, records out."""

import numpy as np
import tensorflow as tf

from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.reports.inspection import inspect_records
from data_pipeline.tokenizers.library_training import train_byte_bpe
from data_pipeline.tokenizers.tokenization import Tokenizer


def examples_of(folder):
    """Returns all records as dicts of arrays, parsed with the schema of the reference's reader."""
    lengths = {"input_ids": 32, "input_mask": 32, "segment_ids": 32, "token_boundary": 32}
    lengths |= {"masked_lm_positions": 5, "masked_lm_ids": 5, "next_sentence_labels": 1}
    schema = {name: tf.io.FixedLenFeature([length], tf.int64) for name, length in lengths.items()}
    schema["masked_lm_weights"] = tf.io.FixedLenFeature([5], tf.float32)
    records = tf.data.TFRecordDataset(sorted(map(str, folder.glob("*.tfrecord"))))
    parsed = tf.io.parse_example(list(records.as_numpy_iterator()), schema)
    columns = {name: values.numpy() for name, values in parsed.items()}
    count = len(columns["input_ids"])
    return [{name: values[row] for name, values in columns.items()} for row in range(count)]


def test_records_hold_the_text(tiny_records, tiny_tokenizer, tiny_documents):
    text = " ".join(document.text for document in tiny_documents).lower()
    text = " ".join(text.replace("\n", " ").split())
    special = [tiny_tokenizer.cls_id, tiny_tokenizer.sep_id]
    examples = examples_of(tiny_records)
    assert len(examples) == DatasetInfo.load(tiny_records).num_records > 100
    for example in examples[:20]:
        ids = example["input_ids"]
        assert ids[0] == tiny_tokenizer.cls_id and (ids == tiny_tokenizer.sep_id).sum() == 2
        assert example["input_mask"].sum() == (ids != 0).sum()
        real = example["masked_lm_weights"] > 0
        ids[example["masked_lm_positions"][real]] = example["masked_lm_ids"][real]
        second = example["segment_ids"] == 1
        for segment in (ids[~second & (ids > 0)], ids[second]):
            assert tiny_tokenizer.decode(segment[~np.isin(segment, special)].tolist()) in text


def test_pairs_of_byte_level_bpe_have_two_separators(tiny_documents, tiny_corpus, tmp_path):
    tokenizer = Tokenizer.load(train_byte_bpe(tiny_corpus, tmp_path / "bpe", 400).path)
    config = PretrainingDataConfig(max_seq_length=32, static_masks=False)
    build_records(tiny_documents, tokenizer, tmp_path / "records", config)
    examples = examples_of(tmp_path / "records")
    assert len(examples) > 50
    for example in examples:
        ids, segments = example["input_ids"], example["segment_ids"]
        seps = np.flatnonzero(ids == tokenizer.sep_id)
        assert seps[1] == seps[0] + 1 and len(seps) == 3
        assert segments[seps[1]] == 0 and segments[seps[1] + 1 : seps[2] + 1].all()
    assert max(example["input_mask"].sum() for example in examples) == 32
    assert "→" not in str(inspect_records(tmp_path / "records"))  # the reader masks


def test_records_keep_the_text_and_say_how_much(tiny_documents, tiny_tokenizer, tmp_path, caplog):
    kept = {}
    for overflow in ("carry", "cut"):
        config = PretrainingDataConfig(max_seq_length=32, copies=2, overflow=overflow)
        result = build_records(tiny_documents, tiny_tokenizer, tmp_path / overflow, config)
        kept[overflow] = result.kept_text
        assert len(caplog.messages) == (overflow == "cut")
    assert kept["carry"] > 0.98 and 0.4 < kept["cut"] < 0.8
    assert caplog.messages[0].startswith(f"The records contain {100 * kept['cut']:.1f} % of the")
