"""The graph over strings computes what Python computes, whatever the strings."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.export.source import open_source

#: Tokens of a sequence of the small export.
LENGTH = 32


@pytest.fixture(scope="module")
def source(tiny_run):
    return open_source(tiny_run)


@pytest.fixture(scope="module")
def call(predictor):
    """Returns a function that calls a signature with lists of texts, str or bytes."""

    def call(name, *texts):
        names = ("first", "second") if name == "sentence_order" else ("text",)
        return predictor.ask(name, **dict(zip(names, texts, strict=True)))

    return call


def test_masks_are_filled_with_the_likeliest_pieces(call, source):
    tokenizer = source.tokenizer
    text = "The old [MASK] left the (small) [MASK]."
    answer = call("fill_mask", [text])
    first, second, third = text.split("[MASK]")
    ids = [tokenizer.cls_id, *tokenizer.encode(first), tokenizer.mask_id]
    ids += [*tokenizer.continuation_ids(second), tokenizer.mask_id]
    ids += [*tokenizer.continuation_ids(third), tokenizer.sep_id]
    positions = np.flatnonzero(np.array(ids) == tokenizer.mask_id)
    logits = source.model({"input_ids": np.array([ids]), "masked_lm_positions": positions[None]})
    expected = tf.nn.softmax(logits["masked_lm_logits"])[0].numpy()
    best = [tokenizer.piece_of(int(id)) for id in expected.argmax(axis=1)]
    assert [piece.decode() for piece in answer["pieces"][0, :, 0]] == best
    np.testing.assert_allclose(answer["scores"][0, :, 0], expected.max(axis=1), atol=1e-5)
    words = [piece.replace("▁", "") for piece in best]
    filled = f"The old {words[0]} left the (small) {words[1]}."
    assert answer["filled_text"][0].decode() == filled


def test_a_mask_beyond_the_length_is_left_as_typed(call):
    found = call("fill_mask", ["A [MASK] [MASK] ended.", "[MASK]", "long " * 60 + "[MASK]"])
    assert not found["scores"][1, 1:].any()
    assert found["filled_text"][2].endswith(b"[MASK]") and not found["scores"][2].any()


def test_tokens_that_do_not_fit_are_counted(call, source):
    texts = ["The ferry left.", "", "the ferry " * 40]
    counts = [len(source.tokenizer.encode(text)) for text in texts]
    dropped = [max(0, count - LENGTH + 2) for count in counts]
    assert dropped[:2] == [0, 0] and dropped[2] > 30
    assert call("embed", texts)["dropped_tokens"].tolist() == dropped
    filled = call("fill_mask", [f"[MASK] {text}" for text in texts])
    assert filled["dropped_tokens"].tolist() == [0, 0, dropped[2] + 1]
    order = call("sentence_order", texts, texts[::-1])
    expected = [max(0, sum(pair) - LENGTH + 3) for pair in zip(counts, counts[::-1], strict=True)]
    assert order["dropped_tokens"].tolist() == expected


def test_tokens_beyond_the_bytes_that_are_read_are_estimated(call, source):
    text = "the ferry left " * 400
    texts = [text, text + " " * 5000, " " * 5000 + "x", " " * 5000, "x" * 32 * LENGTH + "é"]
    found = call("embed", texts)["dropped_tokens"]
    exact = len(source.tokenizer.encode(text)) - LENGTH + 2
    assert found[0] == pytest.approx(exact, rel=0.02) and found[1] > found[0]
    assert found[2:4].tolist() == [1, 0]
    exact = len(source.tokenizer.encode(texts[4])) - LENGTH + 2
    assert found[4] == pytest.approx(exact, abs=3)


def test_no_content_raises(call, shared_data):
    strings = (shared_data / "dirty" / "blns" / "blns.txt").read_bytes().split(b"\n")
    strings += [bytes([byte]) * 3 for byte in range(256)]
    strings += [b"[MASK]" + text for text in strings]
    scores = call("fill_mask", strings)["scores"]
    assert len(scores) == len(strings) and np.isfinite(scores).all()
    assert len(call("embed", strings)["embedding"]) == len(strings)
    assert call("fill_mask", [])["pieces"].shape[0] == 0
    assert call("sentence_order", [], [])["in_order"].shape == (0,)
