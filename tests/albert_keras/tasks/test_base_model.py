"""Models for tasks as Keras users take them: texts in, answers out, saved and loaded."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

import albert_keras
from albert_keras.tasks.finetune import finetune
from data_pipeline.errors import InputError

TEXTS = ["the harbour was full", "a window was open", "no harbour here", "the window broke"] * 4
LABELS = ["yes", "no"] * 8
FIT = {"epochs": 2, "batch_size": 8, "verbose": 0}
CONTEXTS = ["the ferry left the harbour at noon"] * 8
#: By class: the arguments of the model, inputs, and labels.
KINDS = {
    "AlbertForMultiLabel": ({"labels": ["x", "y"]}, TEXTS[:8], [["x"], [], ["x", "y"], ["y"]] * 2),
    "AlbertForRegression": ({}, (TEXTS[:8], TEXTS[8:]), [0.5, 1, 2.5, 3] * 2),
    "AlbertForTagging": (
        {"labels": ["O", "B-X"]},
        [text.split() for text in TEXTS[:8]],
        [["O", "B-X", "O", "O"], ["O", "O", "O", "B-X"], ["O", "O", "B-X"], ["O", "O", "O"]] * 2,
    ),
    "AlbertForSpans": ({}, (CONTEXTS, ["when did it leave"] * 8), ["noon"] * 8),
    "AlbertForMultipleChoice": (
        {},
        (CONTEXTS, ["what left"] * 8, [["a ferry", "a window"]] * 8),
        [0, 1] * 4,
    ),
    "AlbertForSimilarity": ({}, (TEXTS[:8], TEXTS[8:]), [0.0, 1.0, 2.0, 5.0] * 2),
}


class Series:
    """What a column of pandas has in common with other columns."""

    def __init__(self, values):
        self._values = values

    def tolist(self):
        return self._values


def write(path, rows):
    path.write_text("\n".join(["text\tlabel", *map("\t".join, rows)]) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def encoder(tuned_toy):
    """Returns the folder of a fine-tuning, whose encoder is the preset of these tests."""
    return tuned_toy.path


def of_two_classes(encoder, **words):
    return albert_keras.AlbertForClassification.from_preset(
        encoder, labels=["no", "yes"], sequence_length=16, **words
    )


@pytest.mark.parametrize(
    "name, eagerly",
    [(name, name != "AlbertForSpans") for name in KINDS],
    indirect=["eagerly"],
)
def test_a_model_learns_answers_and_comes_back_from_its_file(name, eagerly, encoder, tmp_path):
    arguments, inputs, labels = KINDS[name]
    arguments = {"labels": None} | arguments
    model = getattr(albert_keras, name).from_preset(encoder, sequence_length=16, **arguments)
    history = model.fit(inputs, labels, validation_data=(inputs, labels), **FIT).history
    assert len(history["loss"]) == 2 and np.isfinite(history["loss"]).all()
    scores = model.evaluate(inputs, labels)
    assert f"val_{model.task.metric}" in history
    if name != "AlbertForMultiLabel":  # thresholds are fitted to other halves in validation
        assert scores[model.task.metric] == pytest.approx(history[f"val_{model.task.metric}"][-1])
    answers = model.predict(inputs)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.predict(inputs) == answers


@pytest.mark.parametrize("optimizer", ["lamb", keras.optimizers.Adam])
def test_a_loaded_model_continues_the_training(optimizer, encoder, tmp_path, eagerly):
    model = of_two_classes(encoder)
    model.compile(optimizer if isinstance(optimizer, str) else optimizer())
    model.fit(TEXTS, LABELS, epochs=4, initial_epoch=3, batch_size=8, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert type(again.optimizer) is type(model.optimizer)
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations) == 2
    ours, theirs = model.optimizer.variables, again.optimizer.variables
    assert sum(float(tf.reduce_sum(tf.abs(each))) > 0 for each in ours if each.shape.rank) > 10
    for left, right in zip(ours, theirs, strict=True):
        assert left.name == right.name
        np.testing.assert_array_equal(left, right, err_msg=left.name)
    for each in (model, again):
        each.fit(TEXTS, LABELS, epochs=8, initial_epoch=7, batch_size=8, verbose=0)
    for left, right in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(left, right, err_msg=left.name)


def test_data_in_memory_has_many_forms(encoder):
    model = of_two_classes(encoder)
    found = [
        model.evaluate(x, y)
        for x, y in (
            (TEXTS, LABELS),
            (np.array(TEXTS), np.array([1, 0] * 8)),
            (Series(TEXTS), Series(LABELS)),
            (tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)), None),
        )
    ]
    assert found[0] == found[1] == found[2] == found[3]


def test_a_model_and_a_fine_tuning_in_memory_learn_what_files_teach(
    encoder, end_at_once, eagerly, tmp_path
):
    train = list(zip(TEXTS, ["a", "b"] * 8, strict=True))
    dev = [(f"{text} today", label) for text, label in train[:8]]
    words = {"batch_size": 8, "epochs": 2, "max_seq_length": 16, "evaluate_every": 4, "seed": 7}
    words |= {"task": "classification", "precision": "float32", "from_step": "best"}
    words |= {"random_baseline": False}
    files = {
        name: write(tmp_path / f"{name}.tsv", rows)
        for name, rows in (("train", train), ("dev", dev))
    }
    by_file = finetune(
        encoder, tmp_path / "file", text="text", label="label", bag_of_words=False, **files, **words
    )
    train, dev = (list(zip(*rows, strict=True)) for rows in (train, dev))
    with end_at_once():
        in_memory = finetune(
            encoder, tmp_path / "memory", train=tuple(train), dev=tuple(dev), **words
        )
    assert in_memory.examples == by_file.examples and in_memory.bag_of_words.examples == 16
    records = [
        json.loads((Path(result.path) / "seed-7" / "run.json").read_text())["data"]
        for result in (by_file, in_memory)
    ]
    for name in ("fingerprint", "dev_fingerprint"):
        assert records[0][name] == records[1][name]
    model = albert_keras.AlbertForClassification.from_preset(
        encoder, labels=["a", "b"], sequence_length=16, step="best", seed=7
    )
    model.fit(*train, **FIT)
    for ours, theirs in zip(model.weights, by_file.model.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6, err_msg=ours.name)
    scores, found = by_file.seeds[0].scores["dev"], model.evaluate(*dev)
    assert "accuracy" in scores
    assert {name: found[name] for name in scores} == pytest.approx(scores)


def test_features_may_have_labels_as_in_keras():
    config = albert_keras.AlbertConfig.from_name("albert-tiny", vocab_size=50)
    model = albert_keras.AlbertForClassification(config, num_labels=2)
    model.compile(keras.optimizers.SGD(0.0))
    x, y = {"input_ids": np.arange(32).reshape(4, 8)}, np.array([0, 1, 1, 1])
    logits = model(x)["logits"].numpy()
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    loss, accuracy = model.evaluate(x, y, verbose=0)
    assert loss == pytest.approx(np.mean(losses)) and accuracy == np.mean(logits.argmax(-1) == y)
    loss, _ = model.evaluate(x, y, sample_weight=np.array([1.0, 0, 0, 0]), verbose=0)
    assert loss == pytest.approx(float(losses[0]))
    assert model.fit(x, y, verbose=0).history.keys() == {"loss", "accuracy"}


def test_a_schedule_that_has_ended_is_refused(encoder):
    model = of_two_classes(encoder)
    model.fit(TEXTS, LABELS, **FIT)
    with pytest.raises(InputError, match="schedule of the learning rate has ended"):
        model.fit(TEXTS, LABELS, **FIT)


def test_what_does_not_suit_the_task_is_refused(encoder):
    with pytest.raises(InputError, match="`shuffle` must not be given with texts"):
        of_two_classes(encoder).fit(TEXTS, LABELS, shuffle=False)
    with pytest.raises(InputError, match="`validation_data` of texts must be"):
        of_two_classes(encoder).fit(TEXTS, LABELS, validation_data=(TEXTS, LABELS, LABELS))
    with pytest.raises(InputError, match="`head_dropout` must not be given"):
        albert_keras.AlbertForClassification.from_preset(encoder, head_dropout=0.5)
    with pytest.raises(InputError, match="`labels` must be the names"):
        albert_keras.AlbertForTagging.from_preset(encoder)
    model = of_two_classes(encoder)
    with pytest.raises(InputError, match="16 of text, 3 of labels"):
        model.fit(TEXTS, LABELS[:3])
    with pytest.raises(InputError, match="Label 2 of .*unknown label, `maybe`"):
        model.fit(["a", "b"], ["yes", "maybe"])
    with pytest.raises(InputError, match="`loss` must not be given"):
        model.compile(loss="mse")


def test_a_fine_tuned_folder_is_opened_with_its_head(encoder):
    model = albert_keras.AlbertForClassification.from_preset(encoder)
    assert model.task.labels == ("no", "yes")
    assert model.predict(TEXTS[:2])[0].label in ("no", "yes")
