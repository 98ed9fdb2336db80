"""Models of texts come back from their files: with weights, heads, and what is frozen."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import albert_keras
from albert_keras.keras_versions import name_of
from albert_keras.models.text_classifiers import AlbertForClassification
from data_pipeline.errors import InputError
from tests.albert_keras.tasks.test_text_model import FIT, KINDS, LABELS, TEXTS, preset
from tests.keras_line import IS_KERAS_3
from tests.parameters import slow


@pytest.fixture
def model(tiny_tokenizer):
    """Returns an untrained model of two classes."""
    return preset(tiny_tokenizer, labels=["no", "yes"])


@pytest.mark.parametrize("name", ["AlbertForMultiLabel", *slow(*[*KINDS][1:])])
def test_every_model_learns_and_answers_and_comes_back_from_its_file(
    name, tiny_tokenizer, tmp_path, eagerly
):
    arguments, inputs, labels = KINDS[name]
    model = preset(tiny_tokenizer, name, **arguments)
    history = model.fit(inputs, labels, validation_data=(inputs, labels), **FIT).history
    assert len(history["loss"]) == 2 and np.isfinite(history["loss"]).all()
    scores = model.evaluate(inputs, labels, return_dict=True, verbose=0)
    assert scores == pytest.approx({name: history[f"val_{name}"][-1] for name in scores})
    assert IS_KERAS_3 or [*scores] == model.metrics_names
    found, answers = model.predict(inputs, verbose=0), model.answer(inputs)
    assert len(answers) == len(labels)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.answer(inputs) == answers
    tf.nest.map_structure(np.testing.assert_array_equal, again.predict(inputs, verbose=0), found)
    again.fit(inputs, labels, **FIT)  # a training may follow another


@pytest.mark.slow
def test_the_best_weights_are_restored_and_checkpoints_are_loaded(model, tmp_path):
    # Keras 3 saves no folders.
    paths = [str(tmp_path / name) for name in ("folder", "file.keras")[IS_KERAS_3:]]
    stop = keras.callbacks.EarlyStopping("loss", patience=0, restore_best_weights=True, mode="max")
    saves = [keras.callbacks.ModelCheckpoint(path, save_best_only=False) for path in paths]
    model.compile(keras.optimizers.Adam(1e-2))  # whose loss falls from the first epoch on
    model.fit(TEXTS, LABELS, epochs=4, batch_size=4, verbose=0, callbacks=[*saves, stop])
    expected = model.predict(TEXTS, verbose=0)
    best = str(tmp_path / ("best.keras" if IS_KERAS_3 else "best"))
    model.save(best)
    again = keras.models.load_model(best)
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), expected, atol=1e-6)
    assert again.answer(TEXTS) == model.answer(TEXTS)
    for path in paths:
        found = keras.models.load_model(path).predict(TEXTS, verbose=0)
        assert found.shape == expected.shape and not np.allclose(found, expected, atol=1e-9)


def test_what_is_frozen_stays_frozen_in_a_file(model, tmp_path):
    model.encoder.trainable = False
    model.compile()
    model.fit(TEXTS, LABELS, **FIT)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    again.fit(TEXTS, LABELS, **FIT)
    for ours, theirs in zip(model.encoder.weights, again.encoder.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (model.head.output_weights.numpy() != again.head.output_weights.numpy()).any()


@pytest.mark.parametrize(
    "part_of",
    [
        lambda model: model,
        lambda model: model.head,
        lambda model: model.encoder.embeddings,
        lambda model: model.encoder.attention_blocks[0].normalization,
    ],
    ids=["model", "head", "embeddings", "norm"],
)
def test_a_part_of_a_model_may_be_frozen(part_of, model):
    part_of(model).trainable = False
    again = type(model).from_config(model.get_config())
    trained = [[name_of(weight) for weight in each.trainable_weights] for each in (model, again)]
    assert trained[0] == trained[1] and len(trained[0]) < len(model.weights)


def test_a_part_of_a_frozen_encoder_may_be_trained(model):
    model.encoder.trainable = False
    model.encoder.attention_blocks[0].trainable = True
    again = type(model).from_config(model.get_config())
    trained = [[name_of(weight) for weight in each.trainable_weights] for each in (model, again)]
    assert trained[0] == trained[1]


def test_a_preset_is_an_encoder_a_fine_tuning_or_a_file(tuned_toy, tmp_path):
    from_preset = AlbertForClassification.from_preset
    fine_tuned = from_preset(tuned_toy.path)
    assert fine_tuned.labels == ("no", "yes")
    assert fine_tuned.answer(TEXTS[:2])[0].label == "yes"
    fine_tuned.save(tmp_path / "own.keras")
    again = from_preset(tmp_path / "own.keras", sequence_length=12)
    assert again.preprocessor.sequence_length == 12
    for ours, theirs in zip(fine_tuned.weights, again.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    new = from_preset(tuned_toy.path, labels=3)
    assert new.labels == ("0", "1", "2") and new.predict(TEXTS[:2], verbose=0).shape == (2, 3)
    with pytest.raises(InputError, match="`sequence_length` must not exceed .* 64"):
        from_preset(tuned_toy.path, labels=3, sequence_length=4000)
    with pytest.raises(InputError, match="`head_dropout` must not be given"):
        from_preset(tuned_toy.path, head_dropout=0.5)
    with pytest.raises(InputError, match="`labels` must be the names"):
        albert_keras.AlbertForTokenClassification.from_preset(tuned_toy.path)
