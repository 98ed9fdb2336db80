"""What one step of `fit` and `evaluate` does beyond Keras' own.

Losses are normalised over the whole batch, across replicas, so the result does not depend on their
number; gradients are summed over replicas and then clipped.
"""

import tensorflow as tf
from tensorflow import keras

from albert_keras.optimization.build import clip_gradients
from albert_keras.training.losses import masked_lm_sums, sentence_order_sums

#: Keeps a batch without predictions from dividing by zero; google-research/albert,
#: `get_masked_lm_output`.
_EPSILON = 1e-5


class PretrainingStep(keras.Model):
    """Trains a model on masked pieces and sentence order; `fit` and `evaluate` run on it.

    Deviation from google-research/albert: that code normalises and clips on each core and then
    averages; here both happen over the global batch.

    Args:
        model: AlbertForPretraining.
        sentence_order_weight: float. See `TrainingConfig`.
        clip_norm: float. Largest global norm of the gradients, see `OptimizerConfig`.
    """

    def __init__(self, model, sentence_order_weight=1.0, clip_norm=1.0, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.sentence_order_weight = sentence_order_weight
        self.clip_norm = clip_norm
        names = ["loss", "masked_lm_loss", "masked_lm_accuracy", "gradient_norm"]
        if model.sentence_order_head is not None:
            names += ["sentence_order_loss", "sentence_order_accuracy"]
        self.means = {name: keras.metrics.Mean(name) for name in names}
        self.tokens = keras.metrics.Sum("tokens")

    @property
    def metrics(self):
        """list. Reset at each report: the log shows means over the interval."""
        return [*self.means.values(), self.tokens]

    def call(self, features, training=False):
        """Returns the model's outputs."""
        return self.model(features, training=training)

    def train_step(self, features):
        """Makes one optimizer step; Keras calls it on each replica with its part of the batch."""
        with tf.GradientTape() as tape:
            loss = self._loss(features, training=True)
        weights = self.model.trainable_variables
        pairs = zip(tape.gradient(loss, weights), weights, strict=True)
        # Without a sentence-order head nothing depends on the pooler.
        pairs = [(tf.convert_to_tensor(part), weight) for part, weight in pairs if part is not None]
        gradients, weights = zip(*pairs, strict=True)
        gradients, norm = clip_gradients(_over_replicas(list(gradients)), self.clip_norm)
        self.optimizer.apply_gradients(
            zip(gradients, weights, strict=True), experimental_aggregate_gradients=False
        )
        self.means["gradient_norm"].update_state(norm)
        self.tokens.update_state(features["input_mask"])
        return self._results()

    def test_step(self, features):
        """Scores one batch; rows with `example_weights` 0 do not count."""
        self._loss(features, training=False)
        self.tokens.update_state(features["input_mask"])
        return self._results()

    def _loss(self, features, training):
        """Returns this replica's share of the loss: over all replicas they add up to it."""
        outputs = self.model(features, training=training)
        examples = features["example_weights"]  # [B]
        masked = masked_lm_sums(
            outputs["masked_lm_logits"],
            features["masked_lm_ids"],
            features["masked_lm_weights"] * examples[:, None],
        )
        loss = self._share("masked_lm", *masked)
        if "sentence_order_logits" in outputs:
            order = sentence_order_sums(
                outputs["sentence_order_logits"], features["sentence_order_labels"], examples
            )
            loss += self.sentence_order_weight * self._share("sentence_order", *order)
        self.means["loss"].update_state(_over_replicas(loss))
        return loss

    def _share(self, task, loss, count, correct):
        self.means[f"{task}_loss"].update_state(tf.math.divide_no_nan(loss, count), count)
        self.means[f"{task}_accuracy"].update_state(tf.math.divide_no_nan(correct, count), count)
        return loss / (_over_replicas(count) + _EPSILON)

    def _results(self):
        return {metric.name: metric.result() for metric in self.metrics}


def _over_replicas(values):
    context = tf.distribute.get_replica_context()
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)
