"""The contestant keras-nlp: `AlbertMaskedLM` and `fit`, with its own sampling of masks."""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.formats.keras_nlp import to_keras_nlp
from albert_keras.models.pretraining import AlbertForPretraining
from tests.benchmarks.learning.batches import (
    HELD_OUT,
    TRAINING,
    load,
    rows_of_batches,
    take,
)
from tests.benchmarks.learning.job import Job, Recorder

_SCORED_AT_ONCE = 64
_ENDLESS = 10**9


class _Follow(keras.callbacks.Callback):
    """Sets the rate by the clock, and ends `fit` when the time is over."""

    def __init__(self, recorder, lr):
        super().__init__()
        self._recorder, self._lr = recorder, lr

    def on_train_begin(self, logs=None):
        self._recorder.start()

    def on_train_batch_begin(self, batch, logs=None):
        self.model.optimizer.learning_rate.assign(self._lr * self._recorder.rate_factor())

    def on_train_batch_end(self, batch, logs=None):
        self._recorder.add_updates()
        self.model.stop_training = self._recorder.is_over


def train(job: Job):
    """Trains from new random weights with Keras' AdamW."""
    settings = job.settings
    keras.utils.set_random_seed(job.seed)
    config = AlbertConfig.from_dict(settings["config"])
    # The weights are ours before their first update: normal with the same standard deviation.
    model = to_keras_nlp(AlbertForPretraining(config, sentence_head=False, dtype=job.precision))
    model.backbone.pooled_dense.trainable = False  # the loss does not depend on it
    optimizer = keras.optimizers.AdamW(
        settings["lr"],
        weight_decay=settings["weight_decay"],
        global_clipnorm=settings["clip_norm"],
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[],
    )
    arrays = load(job.arrays, "training", TRAINING)
    batches = training_batches(job, arrays)
    held_out = load(job.arrays, "held_out", HELD_OUT)
    score = build_score(model, held_out)
    positions = settings["batch_size"] * arrays["input_ids"].shape[1]
    recorder = Recorder(job, score, positions)
    callbacks = [_Follow(recorder, settings["lr"])]
    model.fit(batches, steps_per_epoch=_ENDLESS, epochs=1, verbose=0, callbacks=callbacks)
    weights = {id(weight): int(tf.size(weight)) for weight in model.weights}
    versions = {name: version(name) for name in ("keras-nlp", "tensorflow")}
    recorder.end({"weights": sum(weights.values()), "versions": versions})


def training_batches(job: Job, arrays: dict[str, np.ndarray]) -> tf.data.Dataset:
    """Returns endless batches for `fit`, with masks of KerasNLP's `MaskedLMMaskGenerator`."""
    batch_size, length = job.settings["batch_size"], arrays["input_ids"].shape[1]
    vocabulary = json.loads((Path(job.arrays) / "vocabulary.json").read_text())
    # `formats` has loaded KerasNLP, which registers its layers in Keras under these names.
    generator = keras.saving.get_registered_object("keras_nlp>MaskedLMMaskGenerator")(
        vocabulary_size=vocabulary["size"],
        mask_selection_rate=job.settings["mask_rate"],
        mask_token_id=vocabulary["mask_id"],
        mask_selection_length=max(1, round(job.settings["mask_rate"] * length)),
        unselectable_token_ids=vocabulary["special_ids"],
    )

    def masked(batch):
        found = generator(batch["input_ids"])
        inputs = {
            "token_ids": found["token_ids"],
            "mask_positions": found["mask_positions"],
            "padding_mask": batch["input_mask"],
            "segment_ids": batch["segment_ids"],
        }
        return inputs, found["mask_ids"], found["mask_weights"]

    rows = rows_of_batches(len(arrays["input_ids"]), batch_size, job.seed)
    dataset = tf.data.Dataset.from_generator(
        lambda: (take(arrays, chosen, np.int32) for chosen in rows),
        output_signature={name: tf.TensorSpec([batch_size, length], tf.int32) for name in TRAINING},
    )
    return dataset.map(masked, num_parallel_calls=2).prefetch(4)


def build_score(model, held_out: dict[str, np.ndarray]):
    """Returns a function that scores the model: mean loss in nats, and accuracy."""

    @tf.function
    def sums(batch):
        inputs = {
            "token_ids": batch["input_ids"],
            "mask_positions": batch["masked_lm_positions"],
            "padding_mask": batch["input_mask"],
            "segment_ids": batch["segment_ids"],
        }
        scores = tf.cast(model(inputs, training=False), tf.float32)  # [B, P, V]
        labels, weights = batch["masked_lm_ids"], tf.cast(batch["masked_lm_weights"], tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
        hits = tf.cast(tf.argmax(scores, -1, tf.int32) == labels, tf.float32)
        return tf.stack([tf.reduce_sum(values * weights) for values in (losses, hits, 1.0)])

    def score():
        total = np.zeros(3)
        for start in range(0, len(held_out["input_ids"]), _SCORED_AT_ONCE):
            batch = take(held_out, slice(start, start + _SCORED_AT_ONCE), np.int32)
            total += sums({name: tf.constant(array) for name, array in batch.items()}).numpy()
        return total[0] / total[2], total[1] / total[2]

    return score
