"""A step learns the answers of a task: the right loss, the right weights, however it is split."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.keras_versions import name_of, variable_of
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.train_seed import build_trained as build_step
from albert_keras.tasks.trainer import TaskTrainer
from tests.albert_keras import numpy_albert
from tests.albert_keras.tasks.conftest import SHAPE
from tests.albert_keras.tasks.small_tasks import SETTINGS, build_model, make_task

B = 8
#: Two layers, so that gradients of the weights they share add up.
DEEP = SHAPE.replace(num_hidden_layers=2)
POOLED = ("classification", "regression", "choice", "multi_label", "multi_regression")


class Received(keras.optimizers.SGD):
    """Keeps the gradients it is given instead of applying them."""

    def apply_gradients(self, pairs, **_):
        self.given = {name_of(variable): gradient for gradient, variable in pairs}
        self.iterations.assign_add(1)


def build(kind, optimizer=None, **settings):
    model = build_model(kind, DEEP, 3, dtype="float32", head_dropout=0.0)
    numpy_albert.scramble(model)
    model = TaskTrainer(model)
    model.compile(optimizer=optimizer or Received(), clip_norm=None, **settings)
    model.has_full_logs = True
    if hasattr(model.optimizer, "build"):
        model.optimizer.build(model.trainable_variables)
    return model


def batch_of(features):
    """Returns a batch of the first rows; one row does not count."""
    weights = np.ones(B, np.float32)
    weights[3] = 0
    batch = features.batch(np.arange(B)) | {"example_weights": weights}
    return {name: tf.constant(values) for name, values in batch.items()}


def assert_same(ours, others):
    assert ours.keys() == others.keys() and ours
    scale = max(np.abs(values).max() for values in others.values())
    for name, values in ours.items():
        np.testing.assert_allclose(values, others[name], rtol=0, atol=3e-5 * scale, err_msg=name)


@pytest.fixture(scope="module")
def batches(features_of):
    return lambda kind: batch_of(features_of(kind, training=True))


@pytest.mark.parametrize(
    "kind",
    # Of classes, options and numbers as of several labels, of other spans as of spans or none.
    ["multi_label", "tagging", "spans_or_none", "similarity"],
)
def test_parts_of_a_batch_give_the_gradients_of_the_whole(kind, batches):
    batch = batches(kind)
    whole, parts = build(kind), build(kind, accumulation_steps=2)
    logs = whole.train_step(batch)
    assert float(logs["answer_loss"]) == pytest.approx(float(logs["loss"]), rel=1e-5)
    assert ("answer_accuracy" in logs) == (kind != "similarity")
    if kind == "similarity":  # whose rows are compared within a part
        assert len(whole.optimizer.given) == len(whole.weights) - 2
        return
    again = parts.train_step(batch)
    assert float(again["loss"]) == pytest.approx(float(logs["loss"]), rel=1e-5)
    assert_same(parts.optimizer.given, whole.optimizer.given)
    has_pooler = any("pooler" in name for name in whole.optimizer.given)
    assert has_pooler == (kind in POOLED)
    assert len(whole.optimizer.given) == len(whole.weights) - 2 * (not has_pooler)


def test_a_pooler_that_is_not_read_neither_moves_nor_decays(batches):
    config = FinetuneConfig(
        task={"name": "tagging", "labels": SETTINGS["tagging"]["labels"]},
        training={"steps": 10, "precision": "float32"},
        optimizer={"name": "adamw", "lr": 0.1, "warmup_steps": 0, "weight_decay": 0.5},
    )
    step = build_step(config, SHAPE, make_task("tagging"))
    before = {name_of(weight): weight.numpy() for weight in step.weights}
    step.train_step(batches("tagging"))
    moved = {
        name_of(weight)
        for weight in step.weights
        if (weight.numpy() != before[name_of(weight)]).any()
    }
    still = before.keys() - moved
    assert still == {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
    assert len(step.optimizer.variables) == 1 + 2 * len(moved)


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_lamb_has_no_trust_ratio_for_new_weights(kind):
    model = build(kind, "lamb")
    adapted = {
        name_of(variable)
        for variable in model.trainable_variables
        if model.optimizer._is_adapted(variable)
    }
    of_encoder = {name_of(variable) for variable in model.encoder.trainable_variables}
    vectors = ("bias", "gamma", "beta")
    assert adapted == {name for name in of_encoder if not name.endswith(vectors)} and adapted


def update_on(kind, strategy, features):
    """Compares the gradients of two replicas with the gradients of one."""
    batch = batch_of(features)
    whole = build(kind)
    whole.train_step(batch)
    with strategy.scope():
        step = build(kind, keras.optimizers.SGD(1000.0))  # so that digits are not lost
    before = {name_of(weight): weight.numpy() for weight in step.weights}
    parts = strategy.experimental_distribute_values_from_function(
        lambda context: {
            name: values[4 * context.replica_id_in_sync_group :][:4]
            for name, values in batch.items()
        }
    )
    tf.function(lambda parts: strategy.run(step.train_step, args=(parts,)))(parts)
    for weight in step.weights:
        copies = strategy.experimental_local_results(variable_of(weight))
        assert len(copies) == 2 and (copies[0].numpy() == copies[1].numpy()).all(), name_of(weight)
    moved = {name_of(weight): (before[name_of(weight)] - weight) / 1000 for weight in step.weights}
    for name in moved.keys() - whole.optimizer.given.keys():
        assert not np.any(moved.pop(name)), name
    assert_same(moved, whole.optimizer.given)


#: Devices can only be set up before TensorFlow starts.
ON_TWO_REPLICAS = """
import json, sys
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.albert_keras.tasks.small_tasks import SETTINGS, make_examples, make_task, rows_for
from tests.albert_keras.tasks.test_finetuning_step import update_on
from tests.albert_keras.tasks.test_row_predictor import check_on

corpus, tokenizer = json.load(sys.stdin), Tokenizer.load(sys.argv[1])
strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
for kind in SETTINGS:
    task, examples = make_task(kind), make_examples(corpus, kind)
    check_on(kind, strategy, rows_for(task, examples, tokenizer))
    features = rows_for(task, examples, tokenizer, training=True)
    if kind != "similarity":  # its texts and scores are compared within the part of a replica
        update_on(kind, strategy, features)
    print(kind)
"""


@pytest.mark.slow
def test_two_replicas_predict_the_same_and_make_the_update_of_one(tiny_corpus, tiny_vocabulary):
    run = subprocess.run(
        [sys.executable, "-c", ON_TWO_REPLICAS, str(tiny_vocabulary.path)],
        input=json.dumps(tiny_corpus),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": ":".join(sys.path), "CUDA_VISIBLE_DEVICES": ""},
    )
    assert run.stdout.split() == list(SETTINGS), run.stderr[-3000:]
