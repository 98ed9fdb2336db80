"""Warm-up requests are read by servers, fill the lengths, and have been answered once."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.predictor import Predictor
from albert_keras.serving.saved_model.signatures import (
    WARM_UP_FILE,
    Signature,
    _prediction_log,
    read_signatures,
    sample_inputs,
    sample_requests,
    write_warm_up,
)
from data_pipeline.errors import InputError

STRINGS = tf.TensorSpec([None], tf.string)
TEXT = Signature("fill_mask", "predict", {"text": STRINGS}, {})
PAIR = Signature("sentence_order", "predict", {"first": STRINGS, "second": STRINGS}, {})
TOKENS = Signature("tokens", "predict", {"ids": tf.TensorSpec([None, None], tf.int64)}, {})
CLASSIFY = Signature("classify", "classify", {"inputs": STRINGS}, {})

#: What `tensorflow-serving-api` 2.15.1 writes.
PREDICT = (
    b"28\n6\n\x07\x1a\x05pairs\x12\x14\n\x05first\x12\x0b\x08\x07\x12\x04\x12\x02\x08\x01B\x01a"
    b"\x12\x15\n\x06second\x12\x0b\x08\x07\x12\x04\x12\x02\x08\x01B\x01a"
)
EXAMPLE_REQUEST = (
    b"!\n\x1f\n\x06\x1a\x04name\x12\x15\n\x13\n\x11\n\x0f\n\r\n\x04text\x12\x05\n\x03\n\x01a"
)


def parse(example):
    return tf.train.Example.FromString(example).features.feature


@pytest.fixture
def model(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def lengths(text):
        tf.debugging.assert_less(tf.size(text), 9, "more than 8 texts")
        return {"lengths": tf.strings.length(text)}

    tf.saved_model.save(tf.Module(), str(tmp_path), signatures={"lengths": lengths})
    return tmp_path


@pytest.mark.parametrize("method, start", [("classify", b"\x12"), ("regress", b"\x1a")])
def test_requests_with_examples_are_written_as_the_official_package_does(method, start):
    example = tf.train.Example()
    example.features.feature["text"].bytes_list.value.append(b"a")
    signature = CLASSIFY._replace(name="name", method=method)
    log = _prediction_log(signature, {"inputs": [example.SerializeToString()]})
    assert log.SerializeToString() == start + EXAMPLE_REQUEST


def test_requests_to_predict_are_written_as_the_official_package_does():
    text = np.array([b"a"], object)
    log = _prediction_log(PAIR._replace(name="pairs"), {"first": text, "second": text})
    assert log.SerializeToString(deterministic=True) == PREDICT


def test_there_is_a_request_for_each_signature_batch_and_length_that_is_not_too_large():
    requests = list(sample_requests([TEXT, TOKENS, CLASSIFY], [16, 64, 512]))
    names = [signature.name for signature, _ in requests]
    assert names == ["fill_mask"] * 4 + ["tokens"] * 4 + ["classify"] * 4
    shapes = [value.shape for _, inputs in requests for value in inputs.values()]
    assert shapes[:4] == shapes[8:] == [(1,), (8,), (1,), (1,)]
    assert shapes[4:8] == [(1, 16), (8, 16), (1, 64), (1, 512)]


@pytest.mark.parametrize("length", [16, 32, 512])
def test_texts_fill_a_length_with_the_special_pieces(tiny_tokenizer, length):
    (_, alone), *_ = sample_requests([TEXT], [length])
    assert len(tiny_tokenizer.encode(alone["text"][0].decode())) + 2 == length
    (_, pair), *_ = sample_requests([PAIR], [length])
    pieces = [len(tiny_tokenizer.encode(text[0].decode())) for text in pair.values()]
    assert pieces[0] == pieces[1] and length - 2 < sum(pieces) + 3 <= length


def test_examples_have_the_features_the_model_reads():
    first, second = sample_inputs(CLASSIFY, [b"one", b"\xff"], 16)["inputs"]
    assert parse(first)["text"].bytes_list.value == [b"one"]
    assert parse(second)["text"].bytes_list.value == [b"\xff"]
    assert parse(first)["pair"].bytes_list.value == [b"one"]


def test_numbers_are_ones_and_further_strings_repeat_the_text():
    specs = {
        "ids": tf.TensorSpec([None, 3], tf.int32),
        "choices": tf.TensorSpec([None] * 2, "string"),
    }
    inputs = sample_inputs(Signature("n", "predict", specs, {}), [b"a", b"b"], 16)
    assert inputs["ids"].dtype == np.int32 and inputs["ids"].tolist() == [[1] * 3] * 2
    assert inputs["choices"].tolist() == [[b"a", b"a"], [b"b", b"b"]]


@pytest.mark.parametrize("shape", [[], [4], None])
def test_an_input_without_a_free_batch_is_refused(shape):
    signature = TEXT._replace(inputs={"text": tf.TensorSpec(shape, tf.string)})
    with pytest.raises(InputError, match="`text` of signature `fill_mask` must have a free batch"):
        sample_inputs(signature, [b"a"], 16)


def test_the_file_lies_where_servers_look_with_one_record_for_each_request(model):
    signatures = read_signatures(model)
    write_warm_up(model, signatures, [16, 32], Predictor(model).call)
    path = model / "assets.extra" / "tf_serving_warmup_requests"
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert records == [
        _prediction_log(*request).SerializeToString(deterministic=True)
        for request in sample_requests(signatures, [16, 32])
    ]
    assert len(records) == 4


def test_a_request_the_model_does_not_answer_is_not_written(model):
    with pytest.raises(InputError, match="`lengths` of .* failed: .*more than 8"):
        write_warm_up(model, read_signatures(model), [8], Predictor(model).call)
    assert not list((model / WARM_UP_FILE).parent.iterdir())
