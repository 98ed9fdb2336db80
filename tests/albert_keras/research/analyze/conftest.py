"""Texts to analyse, and the encoder of the small run for each of them alone."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.rows import Rows
from albert_keras.runs.run import Run

TEXTS = ["The old ferry left the harbour.", "Rain.", "Seven geese crossed the frozen lake"]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Returns a file with a text on each line."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


@pytest.fixture(scope="module")
def sequences(tiny_run):
    """Returns the ids of each text, int32 [1, S] without padding."""
    tokenizer = Run.open(tiny_run).tokenizer
    return [
        np.array([[tokenizer.cls_id, *tokenizer.encode(text), tokenizer.sep_id]], np.int32)
        for text in TEXTS
    ]


@pytest.fixture(scope="module")
def encoder(tiny_run):
    """Returns the encoder of the small run, in float32."""
    return Run.open(tiny_run).load_model(precision="float32").encoder


@pytest.fixture(scope="module")
def states(encoder, sequences):
    """Returns the embedding and the output of each layer, for each text: lists of [S, H]."""
    found = []
    for ids in sequences:
        mask = tf.ones_like(ids)
        embedded = encoder.embeddings(ids, tf.zeros_like(ids), mask, Rows(mask)).numpy()
        outputs = encoder({"input_ids": ids}, return_all_layers=True)["layer_outputs"]
        found.append([embedded, *(layer.numpy()[0] for layer in outputs)])
    return found
