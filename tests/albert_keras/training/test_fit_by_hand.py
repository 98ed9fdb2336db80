"""`pretrain` is `compile` and `fit`: written by hand, they end in the same weights, bit for bit."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras import AlbertForPretraining
from albert_keras.optimization.muon import Muon
from albert_keras.optimization.schedules import WarmupPolynomialDecay
from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.training.evaluate import evaluate
from albert_keras.training.record_source import log_frequencies
from data_pipeline.reader.reader import evaluation_dataset, training_dataset
from data_pipeline.records.record_files import RecordFiles

STEPS = 12


@pytest.fixture
def build(tiny_run, tiny_records):
    """Returns a function that makes the model of `tiny_run` by hand, before its first step."""
    run, records = Run.open(tiny_run), RecordFiles(tiny_records)
    settings = run.record["config"]
    training, optimizer = settings["training"], settings["optimizer"]
    assert (optimizer["name"], optimizer["clip_norm"], training["steps"]) == ("muon", 1.0, STEPS)

    def build():
        model = AlbertForPretraining(
            run.albert_config, seed=training["seed"], dtype=training["precision"]
        )
        model.masked_lm_head.output_bias.assign(log_frequencies(records))
        schedule = WarmupPolynomialDecay(
            optimizer["lr"], num_steps=STEPS, warmup_steps=optimizer["warmup_steps"]
        )
        model.compile(Muon(schedule, beta_2=optimizer["beta_2"]))
        return model

    def data(first_step=0):
        batch, seed = training["batch_size"], training["seed"]
        return training_dataset(records, batch, seed, first_step=first_step)

    return build, data


def assert_weights_of_run(model, run):
    reader = tf.train.load_checkpoint(Run.open(run).checkpoints.prefix(STEPS))
    for weight in model.weights:
        name = weight.name.split(":")[0]
        np.testing.assert_array_equal(weight, reader.get_tensor(name), err_msg=name)


def test_fit_ends_in_the_weights_and_scores_of_pretrain(
    build, tiny_run, held_out_records, tiny_records
):
    build_model, data = build
    model, held_out = build_model(), RecordFiles(held_out_records)
    validation = evaluation_dataset(held_out, 64)
    assert int(validation.cardinality()) == -(-len(held_out) // 64)
    history = model.fit(
        data(), steps_per_epoch=4, epochs=3, validation_data=validation, verbose=0
    ).history
    assert_weights_of_run(model, tiny_run)
    reports = read_log(tiny_run)  # every four steps
    for name in ("loss", "masked_lm_loss", "sentence_order_accuracy", "gradient_norm"):
        assert history[name] == pytest.approx([line[name] for line in reports], rel=1e-6)
    expected = evaluate(tiny_run, held_out_records)._asdict()
    for name in ("masked_lm_loss", "masked_lm_accuracy", "sentence_order_loss"):
        assert history[f"val_{name}"][-1] == pytest.approx(expected[name], rel=1e-6)
    again = model.evaluate(validation, verbose=0, return_dict=True)
    assert again["loss"] == pytest.approx(history["val_loss"][-1])


def test_a_run_by_hand_resumes_bit_for_bit(build, tiny_run, tmp_path):
    build_model, data = build
    model = build_model()
    model.fit(data(), steps_per_epoch=5, verbose=0)
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "ckpt")
    resumed = build_model()
    tf.train.Checkpoint(model=resumed, optimizer=resumed.optimizer).restore(path)
    done = int(resumed.optimizer.iterations)
    assert done == 5
    resumed.fit(data(first_step=done), steps_per_epoch=STEPS - done, verbose=0)
    assert_weights_of_run(resumed, tiny_run)
