"""A head on a frozen encoder: which layers it reads, how it joins them, and what is trained."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import name_of
from albert_keras.models.encoder_inputs import encoder_inputs
from albert_keras.models.feature_settings import FeatureSettings
from data_pipeline.errors import InputError
from tests.albert_keras import numpy_albert
from tests.albert_keras.tasks.conftest import SHAPE
from tests.albert_keras.tasks.small_tasks import build_model, task_sums

CONFIG = SHAPE.replace(
    num_hidden_layers=3, hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5
)


def frozen_model(kind, skips_padding=False, **settings):
    settings = {"freeze_encoder": True} | settings
    model = build_model(
        kind,
        CONFIG,
        3,
        dtype="float32",
        head_dropout=0.0,
        skips_padding=skips_padding,
        features=settings,
    )
    numpy_albert.scramble(model)
    return model


@pytest.mark.parametrize(
    "layers, numbers",
    [
        (None, (1, 2, 3)),
        ("last", (3,)),
        ("second-to-last", (2,)),
        ("last-2", (2, 3)),
        ("all", (1, 2, 3)),
        ("embeddings", (0,)),
        ("3,1", (3, 1)),
        ([1, 3], (1, 3)),
        (2, (2,)),
    ],
)
def test_layers_have_names_and_numbers(layers, numbers):
    assert FeatureSettings(freeze_encoder=True, layers=layers).layer_numbers(CONFIG) == numbers


def test_the_defaults_are_those_of_the_paper():
    settings, base = FeatureSettings(freeze_encoder=True), AlbertConfig.from_name("bert-base")
    assert settings.layer_numbers(base) == (9, 10, 11, 12) and settings.is_concatenated(base)
    everything = settings.replace(layers="all")
    assert not everything.is_concatenated(base)
    assert everything.replace(combine="concat").is_concatenated(base)


@pytest.mark.parametrize(
    "values, says",
    [
        ({"layers": "last-4"}, "`layers` requires a frozen encoder"),
        (
            {"freeze_encoder": True, "layers": "first"},
            "`layers` must be last, .* Received: 'first'",
        ),
        ({"freeze_encoder": True, "layers": "1,1"}, "different numbers"),
    ],
)
def test_settings_that_mean_nothing_are_refused(values, says):
    with pytest.raises(InputError, match=says):
        FeatureSettings(**values)


def test_layers_are_joined_side_by_side(rows_of):
    inputs = rows_of("tagging")
    for layers, names in (("1,3", (0, 2)), ("embeddings", ())):
        model = frozen_model("tagging", layers=layers)
        encoded = model.encoder(encoder_inputs(inputs), return_all_layers=True)
        parts = [encoded["layer_outputs"][number] for number in names]
        expected = np.concatenate(parts or [encoded["embedding_output"]], axis=-1)
        np.testing.assert_array_equal(model.features(encoded), expected)


def test_a_weighted_sum_begins_as_the_mean_and_is_learned(rows_of):
    model = frozen_model("tagging", layers="all", combine="weighted-sum")
    inputs, read = rows_of("tagging"), model.features
    outputs = model.encoder(encoder_inputs(inputs), return_all_layers=True)
    encoded = outputs["layer_outputs"]
    read.layer_weights.assign([0.0, 0.0, 0.0])
    read.scale.assign(1.0)
    np.testing.assert_allclose(read(outputs), np.mean(encoded, axis=0), atol=1e-6)
    read.layer_weights.assign(np.log([1.0, 2.0, 5.0]))
    read.scale.assign(2.0)
    expected = 2 * np.einsum("j,jbsh->bsh", [1 / 8, 2 / 8, 5 / 8], encoded)
    np.testing.assert_allclose(read(outputs), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["classification", "choice", "tagging", "spans_or_none"])
def test_only_the_head_is_trained_and_a_file_has_the_whole_model(kind, tmp_path, rows_of):
    model, inputs = frozen_model(kind, combine="weighted-sum"), rows_of(kind)
    with tf.GradientTape() as tape:
        loss = task_sums(kind, model.outputs_of(inputs, training=True), inputs).loss
    gradients = tape.gradient(loss, model.trainable_weights)
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        # A bias that a softmax cancels has none; these reach every layer of the head.
        if name_of(weight).startswith("features/"):
            assert np.abs(gradient).max() > 0, name_of(weight)
    trained = {name_of(weight) for weight in model.trainable_weights}
    of_encoder = {name_of(weight) for weight in model.encoder.weights}
    assert trained == {name_of(weight) for weight in model.weights} - of_encoder
    assert trained == {name_of(weight) for weight in model.trainable_variables}
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    expected, found = model.outputs_of(inputs), loaded.outputs_of(inputs)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5)
