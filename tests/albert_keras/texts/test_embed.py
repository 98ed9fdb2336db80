"""Texts → vectors, in memory and in files."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras import embed
from albert_keras.formats.open_weights import open_weights
from albert_keras.texts.encoder import TextEncoder
from albert_keras.texts.reading import read_texts
from albert_keras.texts.vectors import read_vectors
from data_pipeline.errors import InputError

TEXTS = ["The old ferry left the harbour.", "Rain.", "Seven geese crossed the frozen lake " * 9]


@pytest.fixture(scope="module")
def outputs(tiny_run):
    """Returns the outputs of the encoder of the small run for each of TEXTS alone, as NumPy."""
    opened = open_weights(tiny_run)
    encoder, tokenizer = opened.build().encoder, opened.tokenizer
    found = []
    for text in TEXTS:
        ids = [tokenizer.cls_id, *tokenizer.encode(text)[:30], tokenizer.sep_id]
        one = encoder({"input_ids": tf.constant([ids])})
        found.append(tf.nest.map_structure(lambda each: each.numpy()[0], one))
    return found


def test_lf_and_crlf_end_a_text(tmp_path):
    for name, end in {"lf": "\n", "crlf": "\r\n"}.items():
        path = tmp_path / f"{name}.txt"
        path.write_bytes(end.join(["one", "", "two", ""]).encode())
        assert read_texts(path) == ["one", "two"]


def test_a_vector_is_the_mean_over_the_tokens_of_its_text_alone(tiny_run, outputs, caplog):
    result = embed(tiny_run, TEXTS)
    expected = np.array([one["sequence_output"].mean(axis=0) for one in outputs])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(result.vectors, expected, atol=1e-5)
    assert result.vectors.dtype == np.float32
    assert (result.num_texts, result.size, result.num_truncated) == (3, 32, 1)
    # The length of the training, not the 64 positions.
    assert "1 of 3 texts have more than 32 tokens and were truncated" in caplog.text
    assert caplog.text.count("was not trained for similarity") == 1


def test_a_table_is_embedded_as_its_texts(tiny_run, tiny_corpus, tmp_path):
    table, out = tmp_path / "texts.tsv", tmp_path / "x.npy"
    rows = [f"n{number}\t{text}" for number, text in enumerate(tiny_corpus[:60])]
    table.write_text("\n".join(["key\tbody", *rows]) + "\n")
    result = embed(tiny_run, file=table, out=out, text_column="body")
    assert (result.num_texts, result.path) == (60, str(out))
    file, encoder = read_vectors(out), TextEncoder(tiny_run)
    assert (file.vectors == result.vectors).all() and (np.load(out) == result.vectors).all()
    expected = encoder.encode(tiny_corpus[:60]).vectors
    np.testing.assert_allclose(file.vectors, expected, atol=1e-6)
    assert file.texts == tiny_corpus[:60]
    assert file.digests[0] == encoder.digest
    assert {path.name for path in tmp_path.iterdir()} == {
        *("texts.tsv", "x.npy", "x.npy.texts.jsonl", "x.npy.json")
    }


def test_a_plain_file_has_a_text_on_each_line_and_nothing_is_replaced(tiny_run, tmp_path):
    path, out = tmp_path / "texts.txt", tmp_path / "x.npy"
    path.write_bytes("\ufeffA ferry.\r\n\r\n \nA tab\there.".encode())
    out.write_text("kept")
    with pytest.raises(InputError, match=r"x\.npy` exists already, and nothing is overwritten"):
        embed(tiny_run, file=path, out=out)
    assert out.read_text() == "kept"
    assert read_texts(path) == ["A ferry.", "A tab\there."]


def test_a_row_that_cannot_be_read_is_named_before_any_work(tiny_run, tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("body\nA ferry.\nA boat.\n\nRain.\n")
    before = set(tmp_path.iterdir())
    with pytest.raises(InputError, match="line 4"):
        embed(tiny_run, file=path, out=tmp_path / "x.npy", text_column="body")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "Either `texts` or `file` must be given. Received: none"),
        ({"texts": "a ferry"}, "must be a list of texts"),
        ({"texts": ["a\ud800"]}, "half a surrogate pair"),
        ({"texts": []}, "at least one text"),
        ({"texts": ["a"], "text_column": "b"}, "requires `file`"),
        ({"texts": ["a"], "sequence_length": 65}, "from 3 to 64.*Received: 65"),
        ({"file": __file__, "text_column": "a"}, "requires a table"),
    ],
)
def test_wrong_input_is_named(tiny_run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        embed(tiny_run, **arguments)
    assert not any(tmp_path.iterdir())
