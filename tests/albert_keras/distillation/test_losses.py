"""The losses between student and teacher agree with NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.distillation import student as step_module
from albert_keras.distillation.config import TeachingConfig
from albert_keras.distillation.student import (
    TaughtStudent,
    compared_layers,
    cosine_distances,
    outputs_of_teacher,
    soft_targets,
)
from albert_keras.distillation.teaching import teacher_model
from albert_keras.formats.open_weights import open_weights
from albert_keras.shape import HEADS
from data_pipeline.reader.reader import evaluation_dataset
from tests.albert_keras.checkpoint_tensors import assert_same
from tests.albert_keras.loaded_weights import values_of

RNG = np.random.default_rng(0)
LOGITS, TEACHER = (RNG.normal(size=(2, 3, 7), scale=3).astype(np.float32) for _ in range(2))


def softmax(values):
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("temperature", [1.0, 5.0])
def test_soft_targets_are_the_divergence_times_the_squared_temperature(temperature):
    losses, agrees = soft_targets(LOGITS, TEACHER, temperature)
    teacher, student = softmax(TEACHER / temperature), softmax(LOGITS / temperature)
    divergences = (teacher * np.log(teacher / student)).sum(-1)
    np.testing.assert_allclose(losses, temperature**2 * divergences, rtol=1e-5)
    np.testing.assert_array_equal(agrees, TEACHER.argmax(-1) == LOGITS.argmax(-1))


def test_the_cosine_is_that_of_the_hidden_states():
    cosines = (LOGITS * TEACHER).sum(-1) / np.linalg.norm(LOGITS, axis=-1)
    cosines /= np.linalg.norm(TEACHER, axis=-1)
    np.testing.assert_allclose(cosine_distances(LOGITS, TEACHER), 1 - cosines, rtol=1e-5)


@pytest.mark.parametrize(
    "layers, student, compared", [(12, 6, [1, 3, 5, 7, 9, 11]), (2, 3, [0, 1, 1])]
)
def test_layers_are_compared_at_equal_distances(layers, student, compared):
    assert compared_layers(list(range(layers)), student) == compared


def taught_student(run, records):
    """Returns a student of the shape of its teacher, and a batch of eight records."""
    opened = open_weights(run)
    settings = TeachingConfig(cosine_weight=1.0)
    student = TaughtStudent(opened.albert_config, teacher_model(opened, "float32"), settings)
    return student, next(iter(evaluation_dataset(records, 8)))


def test_the_teacher_runs_once_per_row_and_is_not_trained(tiny_run, held_out_records, monkeypatch):
    student, features = taught_student(tiny_run, held_out_records)
    before, rows = values_of(student.teacher), []

    def counted(teacher, features):
        rows.append(len(features["input_ids"]))
        return outputs_of_teacher(teacher, features)

    monkeypatch.setattr(step_module, "outputs_of_teacher", counted)
    weights = {"soft_target": 5.0, "cosine": 1.0}
    student.compile("adamw", objective_weights=weights, accumulation_steps=2)
    student.train_step(features)
    assert rows == [4, 4]
    assert not any(weight.trainable for weight in student.teacher.weights)
    assert_same(values_of(student.teacher), before)


def test_hidden_states_count_at_every_token_and_after_each_layer(tiny_run, held_out_records):
    student, features = taught_student(tiny_run, held_out_records)
    student.compile(objective_weights={"soft_target": 5.0, "cosine": 1.0})
    opened, config = open_weights(tiny_run), student.config
    objective = student.objectives(features)["cosine"]

    def loss():
        return objective.sums(student.outputs_of(features, training=False))

    tokens = float(tf.reduce_sum(features["input_mask"]))
    last = 8 + float(tf.reduce_sum(features["masked_lm_weights"]))
    assert float(loss().weight) == tokens * (config.num_hidden_layers - 1) + last
    assert float(loss().loss) > 1
    opened.load(student, heads=HEADS["masked_lm"])
    assert float(loss().loss) == pytest.approx(0, abs=1e-3)
    embeddings = student.encoder.embeddings.weights[0]
    embeddings.assign(embeddings + 0.1 * tf.random.stateless_normal(embeddings.shape, (1, 2)))
    assert float(loss().loss) > 0.01
