"""The graph over strings computes what Python computes, whatever the strings."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.run import Run
from albert_keras.serving.graph.text_model import TextModel

LENGTH = 32


@pytest.fixture(scope="module")
def model(tiny_run):
    run = Run.open(tiny_run)
    model = AlbertForPretraining(run.albert_config)
    run.checkpoints.restore(12, model)
    return model


@pytest.fixture(scope="module")
def text_model(model, tiny_tokenizer):
    return TextModel(model, tiny_tokenizer, LENGTH)


def packed_in_python(tokenizer, first, second=None):
    """Packs one text or a pair the slow way."""
    if second is None:
        ids = [tokenizer.cls_id, *first[: LENGTH - 2], tokenizer.sep_id]
        return ids, [0] * len(ids)
    first, second = list(first), list(second)
    while len(first) + len(second) > LENGTH - 3:
        (first if len(first) > len(second) else second).pop()
    ids = [tokenizer.cls_id, *first, tokenizer.sep_id, *second, tokenizer.sep_id]
    return ids, [0] * (len(first) + 2) + [1] * (len(second) + 1)


def test_pairs_are_packed_as_in_python(text_model, tiny_tokenizer, tiny_corpus):
    firsts = ["", "short", tiny_corpus[0], " ".join(tiny_corpus[:4]), "one " * 40]
    seconds = ["also short", "", " ".join(tiny_corpus[5:9]), tiny_corpus[3], "two " * 40]
    packed = text_model.packer.pack(text_model.tokenizer(firsts), text_model.tokenizer(seconds))
    for row, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        ids, segments = packed_in_python(
            tiny_tokenizer, tiny_tokenizer.encode(first), tiny_tokenizer.encode(second)
        )
        real = packed["input_mask"][row].numpy().astype(bool)
        assert packed["input_ids"][row].numpy()[real].tolist() == ids
        assert packed["segment_ids"][row].numpy()[real].tolist() == segments


def test_masks_are_filled_with_the_likeliest_pieces(text_model, model, tiny_tokenizer):
    text = "The old [MASK] left the (small) [MASK]."
    answer = text_model.functions["fill_mask"](tf.constant([text]))
    first, second, third = text.split("[MASK]")
    ids = [
        *tiny_tokenizer.encode(first),
        tiny_tokenizer.mask_id,
        *tiny_tokenizer.continuation_ids(second),
        tiny_tokenizer.mask_id,
        *tiny_tokenizer.continuation_ids(third),
    ]
    ids, _ = packed_in_python(tiny_tokenizer, ids)
    positions = np.flatnonzero(np.array(ids) == tiny_tokenizer.mask_id)
    logits = model({"input_ids": np.array([ids]), "masked_lm_positions": positions[None]})
    expected = tf.nn.softmax(logits["masked_lm_logits"])[0].numpy()
    best = expected.argmax(axis=1)
    assert answer["pieces"][0, :, 0].numpy().tolist() == [
        tiny_tokenizer.piece_of(int(piece)).encode() for piece in best
    ]
    np.testing.assert_allclose(answer["scores"][0, :, 0], expected.max(axis=1), atol=1e-5)
    words = [tiny_tokenizer.piece_of(int(piece)).replace("▁", "") for piece in best]
    filled = f"The old {words[0]} left the (small) {words[1]}."
    assert answer["filled_text"][0].numpy().decode() == filled


def test_neighbours_do_not_change_an_answer(text_model):
    fill_mask = text_model.functions["fill_mask"]
    alone = fill_mask(tf.constant(["A [MASK] ended."]))
    beside = fill_mask(tf.constant(["[MASK] " * 5, "A [MASK] ended.", "", "long " * 90]))
    np.testing.assert_allclose(alone["scores"][0, 0], beside["scores"][1, 0], atol=1e-5)
    assert (alone["pieces"][0, 0] == beside["pieces"][1, 0]).numpy().all()
    assert not beside["scores"][1, 1:].numpy().any()


def test_the_literal_means_a_mask_in_fill_mask_only(text_model, tiny_tokenizer):
    ids = text_model.packer.pack(text_model.tokenizer(["A [MASK] here."]))["input_ids"]
    assert tiny_tokenizer.mask_id not in ids.numpy()


def test_a_mask_beyond_the_length_is_left_as_typed(text_model):
    answer = text_model.functions["fill_mask"](tf.constant(["long " * 60 + "[MASK]"]))
    assert answer["filled_text"][0].numpy().endswith(b"[MASK]")
    assert not answer["scores"].numpy().any()


def test_tokens_that_do_not_fit_are_counted(text_model, tiny_tokenizer):
    texts = ["The ferry left.", "", "the ferry " * 40]
    counts = [len(tiny_tokenizer.encode(text)) for text in texts]
    dropped = [max(0, count - LENGTH + 2) for count in counts]
    assert dropped[:2] == [0, 0] and dropped[2] > 30
    for name in ("encode", "explain_tokens", "attention"):
        found = text_model.functions[name](tf.constant(texts))
        assert found["dropped_tokens"].numpy().tolist() == dropped
    filled = text_model.functions["fill_mask"](tf.constant([f"[MASK] {text}" for text in texts]))
    assert filled["dropped_tokens"].numpy().tolist() == [0, 0, dropped[2] + 1]
    order = text_model.functions["sentence_order"](tf.constant(texts), tf.constant(texts[::-1]))
    room = LENGTH - 3
    expected = [max(0, sum(pair) - room) for pair in zip(counts, counts[::-1], strict=True)]
    assert order["dropped_tokens"].numpy().tolist() == expected


def test_tokens_beyond_the_bytes_that_are_read_are_estimated(text_model, tiny_tokenizer):
    text = "the ferry left " * 400
    texts = [text, text + " " * 5000, " " * 5000 + "x", " " * 5000, "x" * 32 * LENGTH + "é"]
    found = text_model.functions["explain_tokens"](tf.constant(texts))["dropped_tokens"].numpy()
    exact = len(tiny_tokenizer.encode(text)) - LENGTH + 2
    assert found[0] == pytest.approx(exact, rel=0.02) and found[1] > found[0]
    assert found[2:4].tolist() == [1, 0]
    assert found[4] == pytest.approx(len(tiny_tokenizer.encode(texts[4])) - LENGTH + 2, abs=3)


def test_attention_is_that_of_the_encoder(text_model, model, tiny_tokenizer):
    text = "The old ferry left."
    ids = [tiny_tokenizer.cls_id, *tiny_tokenizer.encode(text), tiny_tokenizer.sep_id]
    expected = model.encoder({"input_ids": [ids]}, return_attention=True)["attention"]
    found = text_model.functions["attention"](tf.constant([text, "", "long " * 50]))
    size = len(ids)
    assert found["attention"].shape == (3, 2, 2, 32, 32)
    for block, shares in enumerate(expected):
        own = found["attention"][0, block]
        np.testing.assert_allclose(own[:, :size, :size], shares[0], atol=1e-5)
        assert not own.numpy()[:, size:].any() and not own.numpy()[:, :, size:].any()
    pieces = [tiny_tokenizer.piece_of(id).encode() for id in ids]
    assert found["pieces"][0].numpy().tolist() == pieces + [b""] * (32 - size)


def test_an_empty_batch_is_answered(text_model):
    assert text_model.functions["fill_mask"](tf.constant([], tf.string))["pieces"].shape[0] == 0
    empty = tf.constant([], tf.string)
    assert text_model.functions["sentence_order"](empty, empty)["in_order"].shape == (0,)


def test_no_content_raises(text_model, shared_data):
    strings = (shared_data / "dirty" / "blns" / "blns.txt").read_bytes().split(b"\n")
    strings += [bytes([byte]) * 3 for byte in range(256)]
    strings += [b"[MASK]" + text for text in strings]
    batch = tf.constant(strings)
    scores = text_model.functions["fill_mask"](batch)["scores"]
    assert len(scores) == len(strings) and np.isfinite(scores).all()
    assert len(text_model.functions["encode"](batch)["pooled_output"]) == len(strings)
