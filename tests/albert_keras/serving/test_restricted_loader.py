"""Models are loaded and asked where only the operations of servers are."""

import time

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from albert_keras.serving.saved_model.restricted_loader import (
    BATCHES,
    _libraries,
    load_restricted,
    main,
)
from data_pipeline.errors import InputError

STRINGS = tf.TensorSpec([None], tf.string, name="text")


def save(folder, function):
    function = tf.function(function, input_signature=[STRINGS])
    tf.saved_model.save(tf.Module(), str(folder), signatures={"serving_default": function})
    return folder


def trim_pairs(text):
    words = tf_text.WhitespaceTokenizer().tokenize(text)
    first, _ = tf_text.RoundRobinTrimmer(4).trim([words, words])
    return {"words": first.to_tensor("")}


@pytest.mark.slow
def test_our_export_loads_and_answers(tiny_export):
    load_restricted(tiny_export / "1")


def test_the_trimmer_that_servers_lack_is_refused_though_this_process_has_it(tmp_path):
    folder = save(tmp_path, trim_pairs)
    assert tf.saved_model.load(str(folder)).signatures["serving_default"](tf.constant(["a"]))
    with pytest.raises(InputError, match="Op type not registered 'TFText>RoundRobinTrim'"):
        load_restricted(folder)


def test_a_process_that_takes_too_long_is_ended(tmp_path):
    begin = time.monotonic()
    with pytest.raises(InputError, match="did not load and answer within 0.1 s"):
        load_restricted(tmp_path, timeout=0.1)
    assert time.monotonic() - begin < 30


def test_two_libraries_are_left_out():
    names = {path.name for path in _libraries()}
    assert len(names) == 21 and {"_sentencepiece_tokenizer.so", "_normalize_ops.so"} <= names
    assert names.isdisjoint({"_trimmer_ops.so", "_utf8_binarize_op.so"})


def test_texts_are_hostile_in_every_way():
    texts = [text for batch in BATCHES for text in batch]
    assert b"" in texts and max(map(len, texts)) > 20_000
    with pytest.raises(UnicodeDecodeError):
        b"".join(texts).decode()


@pytest.mark.parametrize(
    "answer, rule",
    [
        (lambda text: {"sum": tf.size(text)}, r"output `sum` .* has shape \(\) for 4 rows"),
        (lambda text: {"first": text[:1]}, r"output `first` .* has shape \(1,\)"),
        (
            lambda text: {"ratio": tf.cast(tf.strings.length(text), tf.float32) / 0.0},
            "output `ratio` .* is not finite",
        ),
    ],
)
def test_answers_that_a_server_could_not_give_are_refused(tmp_path, answer, rule):
    with pytest.raises(RuntimeError, match=rule):
        main(save(tmp_path, answer))


def test_a_process_with_tensorflow_text_does_not_count(tmp_path):
    with pytest.raises(RuntimeError, match="so that nothing was checked"):
        main(save(tmp_path, lambda text: {"length": tf.strings.length(text)}))
