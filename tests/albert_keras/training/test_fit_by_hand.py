"""`pretrain` is `compile` and `fit`: written by hand, they end in the same weights, bit for bit."""

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
from tests.albert_keras.checkpoint_tensors import assert_same, tensors_of
from tests.albert_keras.loaded_weights import values_of


@pytest.mark.slow
def test_fit_and_a_checkpoint_of_keras_end_in_the_weights_and_scores_of_pretrain(
    tiny_run, tiny_records, held_out_records, tmp_path
):
    run = Run.open(tiny_run)
    records, held_out = (RecordFiles(folder) for folder in (tiny_records, held_out_records))
    training, optimizer = (run.record["config"][name] for name in ("training", "optimizer"))
    assert (optimizer["name"], optimizer["clip_norm"], training["steps"]) == ("muon", 1.0, 12)

    def build():
        model = AlbertForPretraining(run.albert_config, seed=training["seed"], dtype="float32")
        model.masked_lm_head.output_bias.assign(log_frequencies(records))
        schedule = WarmupPolynomialDecay(optimizer["lr"], 12, optimizer["warmup_steps"])
        model.compile(Muon(schedule, beta_2=optimizer["beta_2"]))
        return model, tf.train.Checkpoint(model=model, optimizer=model.optimizer)

    def data(first_step):
        return training_dataset(
            records, training["batch_size"], training["seed"], first_step=first_step
        )

    model, checkpoint = build()
    first = model.fit(data(0), steps_per_epoch=4, verbose=0).history
    path = checkpoint.save(tmp_path / "ckpt")
    model, checkpoint = build()
    checkpoint.restore(path)
    done = int(model.optimizer.iterations)
    assert done == 4
    validation = evaluation_dataset(held_out, 64)
    assert int(validation.cardinality()) == -(-len(held_out) // 64)
    history = model.fit(
        data(done), steps_per_epoch=4, epochs=2, validation_data=validation, verbose=0
    ).history
    found, expected = values_of(model), tensors_of(tiny_run, 12)
    assert_same(found, {name: expected[name] for name in found})
    reports = read_log(tiny_run)  # every four steps
    for name in ("loss", "masked_lm_loss", "sentence_order_accuracy", "gradient_norm"):
        fitted = first[name] + history[name]
        assert fitted == pytest.approx([line[name] for line in reports], rel=1e-6)
    expected = evaluate(tiny_run, held_out_records)._asdict()
    for name in ("masked_lm_loss", "masked_lm_accuracy", "sentence_order_loss"):
        assert history[f"val_{name}"][-1] == pytest.approx(expected[name], rel=1e-6)
    again = model.evaluate(validation, verbose=0, return_dict=True)
    assert again["loss"] == pytest.approx(history["val_loss"][-1])
