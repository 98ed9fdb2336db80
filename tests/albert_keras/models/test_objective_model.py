"""A step is one update of the whole batch, however the batch is split, or none at all."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.autograph.impl import api

from albert_keras import AlbertConfig, AlbertForPretraining
from albert_keras.keras_versions import name_of
from albert_keras.models import objective_model
from albert_keras.models.objective import Objective
from albert_keras.models.step_state import SPIKE_WINDOW, LossScale, UpdateGuard
from albert_keras.optimization.config import pretraining_lr
from albert_keras.optimization.lamb import Lamb
from data_pipeline.errors import InputError
from data_pipeline.reader.reader import training_dataset
from tests.keras_line import IS_KERAS_3, any_sgd
from tests.parameters import slow

B, S, P, V = 4, 12, 3, 40
CONFIG = AlbertConfig(
    vocab_size=V,
    hidden_size=16,
    num_attention_heads=2,
    intermediate_size=32,
    embedding_size=8,
    num_hidden_layers=2,
    max_position_embeddings=S,
)


def batch(seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(S // 2, S + 1, (B, 1))
    return {
        "input_ids": tf.constant(rng.integers(0, V, (B, S)), tf.int32),
        "input_mask": tf.constant(np.arange(S) < lengths, tf.int32),
        "segment_ids": tf.constant(rng.integers(0, 2, (B, S)), tf.int32),
        "masked_lm_positions": tf.constant(rng.integers(0, S // 2, (B, P)), tf.int32),
        "masked_lm_ids": tf.constant(rng.integers(0, V, (B, P)), tf.int32),
        "masked_lm_weights": tf.constant(np.arange(P) < rng.integers(1, P + 1, (B, 1)), tf.float32),
        "sentence_order_labels": tf.constant(rng.integers(0, 2, B), tf.int32),
        "example_weights": tf.ones(B),
    }


class Received(keras.optimizers.SGD):
    """Keeps the gradients it is given instead of applying them."""

    def apply_gradients(self, pairs, **_):
        self.given = {name_of(variable): gradient.numpy() for gradient, variable in pairs}
        self.iterations.assign_add(1)


def build(dropout=0.0, optimizer=None, dtype="float32", recompute=False, **settings):
    config = CONFIG.replace(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    model = AlbertForPretraining(config, seed=3, dtype=dtype, recompute=recompute)
    model.compile(optimizer or Lamb(0.01), **settings)
    model.has_full_logs = True
    if isinstance(model.optimizer, Lamb):
        model.optimizer.build(model.trainable_variables)
    return model


def gradients(features, **settings):
    step = build(optimizer=Received(), **settings)
    step.train_step(features)
    return step.optimizer.given


def assert_same(ours, others, relative=1e-6):
    assert ours.keys() == others.keys() and ours
    scale = max(np.abs(values).max() for values in others.values())
    for name, values in ours.items():
        np.testing.assert_allclose(values, others[name], rtol=0, atol=relative * scale)


def test_accumulated_parts_are_one_step_of_optimizer_and_schedule():
    step = build(dropout=0.1, clip_norm=None, accumulation_steps=2)
    logs = step.train_step(batch())
    assert step.optimizer.iterations.numpy() == 1
    whole = build(dropout=0.1, clip_norm=None)
    expected = whole.train_step(batch())
    for name, value in expected.items():
        np.testing.assert_allclose(logs[name], value, rtol=1e-5, err_msg=name)
    for ours, others in zip(step.optimizer.variables, whole.optimizer.variables, strict=True):
        np.testing.assert_allclose(ours, others, atol=1e-6, err_msg=ours.name)


def test_parts_of_unequal_size_are_refused():
    with pytest.raises(ValueError, match="multiple of 3 accumulated parts"):
        build(accumulation_steps=3).train_step(batch())


@pytest.mark.parametrize("dtype, dropout", [("float32", 0.1), ("mixed_bfloat16", 0.0)])
def test_blocks_computed_again_give_the_same_gradients(dtype, dropout):
    kept = gradients(batch(), dropout=dropout, dtype=dtype)
    again = gradients(batch(), dropout=dropout, dtype=dtype, recompute=True)
    assert_same(again, kept)


def state_of(step):
    return [value.numpy() for value in [*step.weights, *step.optimizer.variables[1:]]]


@pytest.mark.parametrize("clip_norm, parts", [(1.0, 1), (None, 2)])
def test_what_is_not_finite_changes_nothing_and_is_counted(clip_norm, parts):
    step = build(clip_norm=clip_norm, accumulation_steps=parts)
    good = batch()
    step.train_step(good)
    before = state_of(step)
    bad = good | {"masked_lm_weights": tf.fill((B, P), float("nan"))}
    for count in (1, 2):
        logs = step.train_step(bad)
        assert logs["skipped"] == logs["skipped_in_row"] == count
    for then, now in zip(before, state_of(step), strict=True):
        np.testing.assert_array_equal(then, now)
    assert np.isfinite([float(value) for value in logs.values()]).all()
    assert step.optimizer.iterations.numpy() == 3  # the data goes on, and the schedule with it
    logs = step.train_step(good)
    assert logs["skipped_in_row"] == 0 and logs["skipped"] == 2
    assert any((a != b).any() for a, b in zip(before, state_of(step), strict=True))


def test_a_spike_is_left_out_and_what_stays_high_becomes_usual():
    guard = UpdateGuard(skip_spikes=True)
    rng = np.random.default_rng(0)
    for loss in rng.normal(5.0, 0.1, SPIKE_WINDOW):
        assert guard.decide(tf.constant(loss, tf.float32), tf.constant(1.0))
    assert guard.decide(tf.constant(5.5), tf.constant(1.0))
    assert not guard.decide(tf.constant(6.5), tf.constant(1.0))
    assert guard.consecutive_skips == 1
    assert not guard.decide(tf.constant(float("nan")), tf.constant(1.0))
    decisions = [bool(guard.decide(tf.constant(6.5), tf.constant(1.0))) for _ in range(20)]
    assert not decisions[0] and decisions[-1]


@pytest.mark.slow
def test_the_loss_scale_halves_on_overflow_and_doubles_after_2000_good_steps():
    scale = LossScale()
    begun = float(scale.value())
    scale.update(tf.constant(False))
    assert float(scale.value()) == begun / 2
    for _ in range(1999):
        scale.update(tf.constant(True))
    assert float(scale.value()) == begun / 2
    scale.update(tf.constant(True))
    assert float(scale.value()) == begun
    for _ in range(40):
        scale.update(tf.constant(False))
    assert float(scale.value()) == 1


@pytest.mark.slow
def test_float16_trains_with_a_scaled_loss():
    step = build(dtype="mixed_float16")
    losses = []
    for _ in range(30):
        step.reset_metrics()
        losses.append(float(step.train_step(batch())["loss"]))
    assert losses[-1] < losses[0] - 0.5
    exact = gradients(batch(), clip_norm=None)
    scaled = gradients(batch(), clip_norm=None, dtype="mixed_float16")
    assert_same(scaled, exact, relative=5e-3)


class Shorter(AlbertForPretraining):
    """Has an objective of its own, with decisions by values, which only AutoGraph can trace."""

    def objectives(self, features):
        def size(outputs):
            sizes = tf.norm(outputs["pooled_output"], axis=-1)
            if tf.reduce_sum(sizes) < 0.0:
                sizes = tf.zeros_like(sizes)
            return sizes, tf.zeros_like(sizes)

        weights = features["example_weights"]
        if tf.reduce_sum(weights) < 0.0:
            weights = -weights
        return super().objectives(features) | {"size": Objective(weights, size)}

    def train_step(self, features):
        logs = super().train_step(features)
        loss = logs["loss"]
        if loss < 0.0:
            loss = -loss
        return logs | {"loss": loss}


def test_an_objective_of_ones_own_joins_the_loss_and_nothing_else_is_converted(monkeypatch):
    converted, transform = set(), api._TRANSPILER.transform

    def record(function, context):
        converted.add(function.__qualname__)
        return transform(function, context)

    monkeypatch.setattr(api._TRANSPILER, "transform", record)
    model = Shorter(CONFIG, seed=3)
    model.compile(Lamb(0.01), objective_weights={"size": 0.5}, accumulation_steps=2)
    logs = model.fit(tf.data.Dataset.from_tensors(batch()), verbose=0).history
    expected = build().train_step(batch())
    own = tf.norm(AlbertForPretraining(CONFIG, seed=3)(batch())["pooled_output"], axis=-1)
    np.testing.assert_allclose(logs["size_loss"], tf.reduce_mean(own)[None], rtol=1e-5)
    total = expected["loss"] + 0.5 * tf.reduce_mean(own)
    np.testing.assert_allclose(logs["loss"], total[None], rtol=1e-5)
    # Our own functions need no AutoGraph, and converting them would take seconds.
    assert {"Shorter.objectives", "Shorter.train_step"} <= converted
    assert {name for name in converted if "Shorter" not in name} == {
        "ObjectiveModel.make_train_function.<locals>.run"
    }


def test_what_compile_cannot_use_is_named():
    model = AlbertForPretraining(CONFIG)
    with pytest.raises(TypeError, match="has no argument `loss`.*come from `objectives`"):
        model.compile(loss="mse")
    model.compile(objective_weights={"sizes": 1.0})
    with pytest.raises(ValueError, match="weight for the objective.s. sizes, which `objectives`"):
        model.train_step(batch())
    model.compile()
    with pytest.raises(ValueError, match="take batches of `training_dataset`"):
        model.train_step({"input_ids": batch()["input_ids"]})


def test_a_saved_model_goes_on_with_moments_and_step(tmp_path):
    model = build(jit_compile="none")
    for _ in range(3):
        model.train_step(batch())
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert int(loaded.optimizer.iterations) == 3 and loaded.compiled_part == "none"
    for each in (model, loaded):
        each.train_step(batch())
    for ours, theirs in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("optimizer", ["adam", any_sgd()])
def test_any_optimizer_of_keras_skips_what_is_not_finite(optimizer):
    model = build(optimizer=optimizer)
    before = model(batch())["pooled_output"]
    model.train_step(batch() | {"masked_lm_weights": tf.fill((B, P), float("nan"))})
    np.testing.assert_array_equal(model(batch())["pooled_output"], before)
    model.train_step(batch())
    assert (model(batch())["pooled_output"] != before).numpy().any()


PARTS = ("none", "kernels", "step")


def losses_of(updates, **settings):
    model = build(dropout=0.1, **settings)
    function, batches = model.make_train_function(), iter([batch()] * updates)
    return [float(function(batches)["loss"]) for _ in range(updates)]  # means so far


@pytest.mark.parametrize("settings", [{}, {"accumulation_steps": 2, "recompute": True}])
@pytest.mark.slow
def test_losses_are_the_same_whatever_is_compiled(settings):
    plain, *compiled = (losses_of(50, jit_compile=part, **settings) for part in PARTS)
    assert plain[-1] < plain[0]
    for losses in compiled:  # with dropout, whose masks do not depend on what is compiled
        np.testing.assert_allclose(losses, plain, rtol=1e-4)


def test_a_loss_scale_of_the_optimizer_changes_nothing():
    sgd, wrapped = keras.optimizers.SGD, keras.mixed_precision.LossScaleOptimizer
    optimizers = [sgd(0.1), wrapped(sgd(0.1))]
    optimizers += [sgd(0.1, loss_scale_factor=8.0)] if IS_KERAS_3 else []
    expected, *found = (losses_of(4, optimizer=each) for each in optimizers)
    for losses in found:
        np.testing.assert_allclose(losses, expected, rtol=1e-6)


def test_the_last_execution_of_an_epoch_may_be_shorter():
    model, ends = build(steps_per_execution=4), []
    show = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: ends.append(batch))
    data = tf.data.Dataset.from_tensors(batch()).repeat()
    model.fit(data, steps_per_epoch=10, verbose=0, callbacks=[show])
    assert int(model.optimizer.iterations) == 10 and ends[-1] == 9


def test_what_is_compiled_follows_the_device_and_the_argument(monkeypatch):
    assert build().compiled_part == "kernels"  # on a CPU
    given = {True: "step", False: "none", None: "kernels", "none": "none", "kernels": "kernels"}
    assert [build(jit_compile=value).compiled_part for value in given] == [*given.values()]
    monkeypatch.setattr(objective_model, "has_gpu", lambda: True)
    assert build().compiled_part == "step"
    skipping = AlbertForPretraining(CONFIG, skips_padding=True)
    skipping.compile()
    assert skipping.compiled_part == "kernels"
    monkeypatch.setattr(objective_model, "has_gpu", lambda: False)
    monkeypatch.setattr(objective_model, "is_on_cpu", lambda: False)  # but on several
    assert build().compiled_part == "none"
    with pytest.raises(ValueError, match="Received: 'kernel'. Did you mean `kernels`"):
        build(jit_compile="kernel")


def test_a_step_is_compiled_for_fixed_shapes():
    model = AlbertForPretraining(CONFIG, skips_padding=True)
    model.compile(jit_compile=True)
    with pytest.raises(InputError, match="`training.padding` to compute or `training.compile`"):
        model.fit(tf.data.Dataset.from_tensors(batch()), verbose=0)


def test_the_names_of_metrics_are_those_that_evaluate_returns():
    model = build()
    data = tf.data.Dataset.from_tensors(batch())
    by_name = model.evaluate(data, return_dict=True, verbose=0)
    assert {*model.metrics_names} == {*by_name}
    expected = [by_name[name] for name in model.metrics_names]
    assert model.evaluate(data, verbose=0) == pytest.approx(expected)


def rate_of_last_update(optimizer):
    return float(optimizer.schedule(optimizer.iterations - 1))


def test_an_optimizer_that_is_named_has_the_rates_of_pretrain():
    model, rates = build(optimizer="lamb"), []
    show = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: rates.append(rate_of_last_update(model.optimizer))
    )
    data = tf.data.Dataset.from_tensors(batch()).repeat()
    model.fit(data, steps_per_epoch=10, epochs=2, verbose=0, callbacks=[show])
    peak = pretraining_lr("lamb", B, CONFIG.hidden_size)
    assert rates[:3] == pytest.approx([0, peak / 2, peak * 18 / 20]) and peak == 0.01
    assert rates[-1] == pytest.approx(peak / 20)


def test_weights_of_classes_and_records_of_another_vocabulary_are_refused(tiny_records):
    with pytest.raises(ValueError, match="`class_weight` must not be given"):
        build().fit(tf.data.Dataset.from_tensors(batch()), class_weight={0: 2.0})
    data = training_dataset(tiny_records, 4, seed=1).take(1)
    with pytest.raises(ValueError, match="vocabulary of 307 pieces, and the model one of 40"):
        build().fit(data)


def test_a_batch_alone_is_trained_on_and_scored():
    model = build()
    model.compile(any_sgd())
    losses = model.train_on_batch(batch(), return_dict=True)
    assert losses["loss"] > model.test_on_batch(batch(), return_dict=True)["loss"]


@pytest.mark.parametrize("optimizer", ["lamb", "adam"])
@pytest.mark.parametrize("part", ["none", *slow("step")])
def test_weights_that_no_objective_reads_stay_as_they_are(optimizer, part):
    step = build(optimizer=optimizer, sentence_order_weight=0.0, jit_compile=part)
    before = {name_of(weight): weight.numpy() for weight in step.weights}
    step.fit(tf.data.Dataset.from_tensors(batch()).repeat(2), verbose=0)
    stay = {
        name.removesuffix(":0")
        for weight in step.weights
        if (weight.numpy() == before[name := name_of(weight)]).all()
    }
    unread = {name for name in before if "pooler" in name or "seq_relationship" in name}
    assert stay == unread and unread


def test_epochs_by_position_are_those_of_the_schedule():
    step = build(optimizer="lamb")
    step.fit(tf.data.Dataset.from_tensors(batch()).repeat(2), None, None, 3, 0)
    assert step.optimizer.schedule.num_steps == step.optimizer.iterations.numpy() == 6
