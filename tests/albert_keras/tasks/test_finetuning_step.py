"""A step learns the answers of a task: the right loss, the right weights, however it is split."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, logsumexp
from tensorflow import keras

from albert_keras.tasks.classification.model import AlbertForClassification
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.kinds import KINDS, SIMILARITY
from albert_keras.tasks.train_seed import build_trained as build_step
from tests.albert_keras import numpy_albert
from tests.albert_keras.tasks import conftest
from tests.albert_keras.tasks.small_tasks import SETTINGS, build_model

B = 8
#: Two layers, so that gradients of the weights they share add up.
SHAPE = conftest.SHAPE.replace(num_hidden_layers=2)
POOLED = ("classification", "regression", "choice", "multi_label", "multi_regression")


class Received(keras.optimizers.legacy.SGD):
    """Keeps the gradients it is given instead of applying them."""

    def apply_gradients(self, pairs, **_):
        self.given = {variable.name: gradient for gradient, variable in pairs}
        self.iterations.assign_add(1)


def build(kind, optimizer=None, **settings):
    model = build_model(kind, SHAPE, 3, dtype="float32", head_dropout=0.0)
    numpy_albert.scramble(model)
    model.is_in_run = True
    model.compile(optimizer=optimizer or Received(), clip_norm=None, **settings)
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
def batches(task_of, examples_of, tiny_tokenizer):
    def batch(kind):
        return batch_of(task_of(kind).features(examples_of(kind), tiny_tokenizer, training=True))

    return batch


def cross_entropy(scores, labels):
    right = np.take_along_axis(scores, labels[..., None], -1)[..., 0]
    return logsumexp(scores, axis=-1) - right


def loss_by_hand(kind, model, batch):
    """Computes the mean loss in NumPy, from the weights on."""
    batch = {name: values.numpy() for name, values in batch.items()}
    weights = numpy_albert.weights_by_name(model)
    shape = batch["input_ids"].shape
    names = ("input_ids", "input_mask", "segment_ids")
    inputs = [batch[name].reshape(-1, shape[-1]) for name in names]
    sequence, pooled, _ = numpy_albert.encode(weights, dict(SHAPE), *inputs)
    counts = batch["example_weights"]
    if kind in POOLED:
        scores = pooled @ weights["output_weights"].T + weights["output_bias"]
        if kind == "regression":
            losses = (scores[:, 0] - batch["labels"]) ** 2
        elif kind == "multi_regression":
            losses = ((scores - batch["labels"]) ** 2).mean(axis=1)
        elif kind == "multi_label":
            chance = expit(scores)
            losses = -np.log(np.where(batch["labels"] == 1, chance, 1 - chance)).mean(axis=1)
        else:
            losses = cross_entropy(scores.reshape(B, 3), batch["labels"])
    elif kind == "similarity":
        return cosent_by_hand(sequence, batch)
    elif kind == "tagging":
        scores = sequence @ weights["output_weights"].T + weights["output_bias"]
        losses = cross_entropy(scores, np.maximum(batch["tag_ids"], 0))
        counts = counts[:, None] * (batch["tag_ids"] >= 0)
    elif kind == "spans":
        scores = sequence @ weights["cls/squad/output_weights"].T + weights["cls/squad/output_bias"]
        scores = np.where(batch["input_mask"][..., None] == 1, scores, -1e30)
        places = [batch["start_positions"], batch["end_positions"]]
        losses = sum(cross_entropy(scores[..., end], places[end]) for end in (0, 1)) / 2
    else:
        # The head has an oracle of its own, in the tests of models; here it is what is made of it.
        outputs = {name: value.numpy() for name, value in model(batch, training=True).items()}
        losses = sum(
            -np.take_along_axis(outputs[f"{end}_log_probs"], batch[f"{end}_positions"][:, None], 1)
            for end in ("start", "end")
        )[:, 0]
        chance = expit(outputs["null_logits"])
        none = batch["is_impossible"]
        losses = (losses - np.log(np.where(none, chance, 1 - chance))) / 2
    return (counts * losses).sum() / counts.sum()


def cosent_by_hand(sequence, batch):
    """Computes the loss of pairs with scores, one pair of pairs after the other."""
    mask = batch["input_mask"].reshape(2 * B, -1, 1)
    vectors = (sequence * mask).sum(axis=1) / mask.sum(axis=1)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).reshape(B, 2, -1)
    cosines, labels = np.prod(vectors, axis=1).sum(axis=1), batch["labels"]
    rows = np.flatnonzero(batch["example_weights"])
    terms = [(cosines[j] - cosines[i]) / 0.05 for i in rows for j in rows if labels[i] > labels[j]]
    return logsumexp([0, *terms])


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if kind == "classification" else ())
        for kind in KINDS  # of classes as of options
    ],
)
def test_loss_is_that_by_hand_and_parts_give_the_gradients_of_the_whole(kind, batches):
    batch = batches(kind)
    whole, parts = build(kind), build(kind, accumulation_steps=2)
    logs = whole.train_step(batch)
    assert float(logs["loss"]) == pytest.approx(loss_by_hand(kind, whole.model, batch), rel=1e-4)
    assert float(logs["answer_loss"]) == pytest.approx(float(logs["loss"]), rel=1e-5)
    of_numbers = ("regression", "multi_regression", "similarity")
    assert ("answer_accuracy" in logs) == (kind not in of_numbers)
    if kind == "similarity":  # whose rows are compared within a part
        assert len(whole.optimizer.given) == len(whole.weights) - 2
        return
    again = parts.train_step(batch)
    assert float(again["loss"]) == pytest.approx(float(logs["loss"]), rel=1e-5)
    assert_same(parts.optimizer.given, whole.optimizer.given)
    has_pooler = any("pooler" in name for name in whole.optimizer.given)
    assert has_pooler == (kind in POOLED)
    assert len(whole.optimizer.given) == len(whole.weights) - 2 * (not has_pooler)


def test_a_row_without_weight_changes_nothing(batches):
    batch = batches("classification")
    step = build("classification")
    step.train_step(batch)
    expected = step.optimizer.given
    ids = batch["input_ids"].numpy()
    ids[3] = 7
    labels = batch["labels"].numpy()
    labels[3] = (labels[3] + 1) % 3
    step.train_step(batch | {"input_ids": tf.constant(ids), "labels": tf.constant(labels)})
    assert_same(step.optimizer.given, expected)


def test_a_pooler_that_is_not_read_neither_moves_nor_decays(batches, small_shape, task_of):
    config = FinetuneConfig(
        task={"name": "tagging", "labels": SETTINGS["tagging"]["labels"]},
        training={"steps": 10, "precision": "float32"},
        optimizer={"lr": 0.1, "warmup_steps": 0, "weight_decay": 0.5},
    )
    step = build_step(config, small_shape, task_of("tagging"))
    before = {weight.name: weight.numpy() for weight in step.weights}
    step.train_step(batches("tagging"))
    moved = {
        weight.name for weight in step.weights if (weight.numpy() != before[weight.name]).any()
    }
    still = before.keys() - moved
    assert still == {"bert/pooler/dense/kernel:0", "bert/pooler/dense/bias:0"}
    # The pooler has moments nevertheless: checkpoints hold two for every weight.
    assert len(step.optimizer.variables) == 1 + 2 * len(before)


def test_a_step_is_made_as_it_was_configured(small_shape, task_of):
    config = FinetuneConfig(
        task={"name": "pair", **{k: SETTINGS["classification"][k] for k in ("text", "pair")}},
        model={"head_dropout": 0.25},
        training={
            "steps": 10, "seed": 5, "accumulation_steps": 4, "precision": "mixed_float16",
            "steps_per_execution": 2, "skip_spikes": True, "recompute": True,
        },
        optimizer={"lr": 0.1, "clip_norm": 0.5},
    )  # fmt: skip
    step = build_step(config, small_shape, task_of("classification"), skips_padding=True)
    assert isinstance(step, AlbertForClassification) and step.num_labels == 3
    assert (step.head_dropout, step.seed) == (0.25, 5)
    assert step.encoder.recompute and step.encoder.skips_padding
    assert (step.accumulation_steps, step.clip_norm) == (4, 0.5)
    assert step.loss_scale is not None
    again = build_step(config, small_shape, task_of("classification"))
    for ours, others in zip(step.weights, again.weights, strict=True):
        np.testing.assert_array_equal(ours, others)


def update_on(kind, strategy, features):
    """Compares the gradients of two replicas with the gradients of one."""
    batch = batch_of(features)
    whole = build(kind)
    whole.train_step(batch)
    with strategy.scope():
        step = build(kind, keras.optimizers.legacy.SGD(1000.0))  # so that digits are not lost
    before = {weight.name: weight.numpy() for weight in step.weights}
    parts = strategy.experimental_distribute_values_from_function(
        lambda context: {
            name: values[4 * context.replica_id_in_sync_group :][:4]
            for name, values in batch.items()
        }
    )
    tf.function(lambda parts: strategy.run(step.train_step, args=(parts,)))(parts)
    for weight in step.weights:
        copies = strategy.experimental_local_results(weight)
        assert len(copies) == 2 and (copies[0].numpy() == copies[1].numpy()).all(), weight.name
    moved = {weight.name: (before[weight.name] - weight) / 1000 for weight in step.weights}
    for name in moved.keys() - whole.optimizer.given.keys():
        assert not moved.pop(name).numpy().any(), name
    assert_same(moved, whole.optimizer.given)


@pytest.mark.slow
def test_two_replicas_make_the_update_of_one(on_two_replicas):
    # Texts and scores of similarity are compared within the part of a replica.
    on_two_replicas(update_on, [kind for kind in KINDS if kind != SIMILARITY.name])
