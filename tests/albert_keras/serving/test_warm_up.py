"""Warm-up requests are read by servers, fill the lengths, and have been answered once."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.saved_model.signature_methods import Signature, read_signatures
from albert_keras.serving.saved_model.warm_up import (
    WARM_UP_FILE,
    Request,
    _prediction_log,
    sample_inputs,
    sample_requests,
    write_warm_up,
)
from data_pipeline.errors import InputError

STRINGS = tf.TensorSpec([None], tf.string)
TEXT = Signature("fill_mask", "predict", {"text": STRINGS}, {}, {})
PAIR = Signature("sentence_order", "predict", {"first": STRINGS, "second": STRINGS}, {}, {})
TOKENS = Signature("tokens", "predict", {"ids": tf.TensorSpec([None, None], tf.int64)}, {}, {})
FEATURES = {"text": tf.string, "pair": tf.string}
CLASSIFY = Signature("classify", "classify", {"inputs": STRINGS}, {}, FEATURES)

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
    log = _prediction_log("name", method, {"inputs": [example.SerializeToString()]})
    assert log.SerializeToString() == start + EXAMPLE_REQUEST


def test_requests_to_predict_are_written_as_the_official_package_does():
    text = np.array([b"a"], object)
    log = _prediction_log("pairs", "predict", {"first": text, "second": text})
    assert log.SerializeToString(deterministic=True) == PREDICT


def test_there_is_a_request_for_each_signature_batch_and_length():
    requests = sample_requests([TEXT, TOKENS, CLASSIFY], [16, 32])
    assert [request.signature for request in requests] == (
        ["fill_mask"] * 6 + ["tokens"] * 6 + ["classify"] * 6
    )
    shapes = [value.shape for request in requests for value in request.inputs.values()]
    assert shapes[:6] == shapes[12:] == [(1,), (8,), (32,)] * 2
    assert shapes[6:12] == [(size, length) for length in (16, 32) for size in (1, 8, 32)]


def test_requests_of_too_many_pieces_are_left_out_when_asked():
    requests = sample_requests([TEXT], [16, 64, 512], max_tokens=512)
    assert [len(request.inputs["text"]) for request in requests] == [1, 8, 32, 1, 8, 1]


@pytest.mark.parametrize("length", [16, 32, 512])
def test_a_text_fills_its_length_with_the_special_pieces(tiny_tokenizer, length):
    (request,) = sample_requests([TEXT], [length], batch_sizes=[1])
    (text,) = request.inputs["text"]
    assert len(tiny_tokenizer.encode(text.decode())) + 2 == length


@pytest.mark.parametrize("length", [16, 32, 512])
def test_two_texts_fill_a_length_together(tiny_tokenizer, length):
    (request,) = sample_requests([PAIR], [length], batch_sizes=[1])
    pieces = [len(tiny_tokenizer.encode(text[0].decode())) for text in request.inputs.values()]
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
    inputs = sample_inputs(Signature("n", "predict", specs, {}, {}), [b"a", b"b"], 16)
    assert inputs["ids"].dtype == np.int32 and inputs["ids"].tolist() == [[1] * 3] * 2
    assert inputs["choices"].tolist() == [[b"a", b"a"], [b"b", b"b"]]


@pytest.mark.parametrize("shape", [[], [4], None])
def test_an_input_without_a_free_batch_is_refused(shape):
    signature = TEXT._replace(inputs={"text": tf.TensorSpec(shape, tf.string)})
    with pytest.raises(InputError, match="`text` of signature `fill_mask` must have a free batch"):
        sample_inputs(signature, [b"a"], 16)


@pytest.mark.parametrize("lengths, received", [([], 0), (range(4, 338), 1002)])
def test_a_number_that_servers_refuse_is_refused(lengths, received):
    with pytest.raises(InputError, match=f"from 1 to 1000. Received: {received}"):
        sample_requests([TEXT], lengths)


def test_the_file_lies_where_servers_look_with_one_record_for_each_request(model):
    requests = sample_requests(read_signatures(model), [16, 32], batch_sizes=[1, 8])
    write_warm_up(model, requests, tf.saved_model.load(str(model)))
    path = model / "assets.extra" / "tf_serving_warmup_requests"
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert records == [
        _prediction_log("lengths", "predict", inputs).SerializeToString(deterministic=True)
        for _, inputs in requests
    ]
    assert len(records) == 4


def test_a_request_the_model_does_not_answer_is_not_written(model):
    requests = sample_requests(read_signatures(model), [16], batch_sizes=[1, 9])
    with pytest.raises(InputError, match=r"`lengths` does not answer `text` \(9,\): .*more than 8"):
        write_warm_up(model, requests, tf.saved_model.load(str(model)))
    assert not list((model / WARM_UP_FILE).parent.iterdir())


@pytest.mark.parametrize(
    "request_, rule",
    [
        (Request("unknown", {}), "Received: `unknown`"),
        (Request("lengths", {"words": np.array([b"a"], object)}), "does not answer `words`"),
        (Request("lengths", {"text": np.array([1])}), "does not answer `text`"),
    ],
)
def test_a_request_to_no_signature_or_with_other_inputs_is_refused(model, request_, rule):
    with pytest.raises(InputError, match=rule):
        write_warm_up(model, [request_], tf.saved_model.load(str(model)))


def test_progress_is_logged_with_a_count_and_an_eta(model, monkeypatch, caplog):
    monkeypatch.setattr("data_pipeline.progress._SECONDS_BETWEEN_LINES", 0)
    caplog.set_level("INFO")
    requests = sample_requests(read_signatures(model), [16, 32], batch_sizes=[1, 8])
    write_warm_up(model, requests, tf.saved_model.load(str(model)))
    assert [line.split(", ETA")[0] for line in caplog.messages] == [
        f"answering: {number} of 4 warm-up requests" for number in (1, 2, 3)
    ]
