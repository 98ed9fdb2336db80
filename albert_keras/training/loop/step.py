"""One training step: what `fit` and `evaluate` do beyond Keras' own methods, and its settings.

A step is one update of the weights from the whole batch; accumulated parts and replicas only split
the work. Losses are normalised over the whole batch, gradients are summed and then clipped, so that
the result depends neither on the number of parts nor on the number of replicas.
"""

import time

import tensorflow as tf
from tensorflow import keras

from albert_keras.layers.dropout import DropoutSeed
from albert_keras.layers.kernels import compiled_kernels, is_on_cpu
from albert_keras.optimization.build import build_optimizer, clip_gradients
from albert_keras.training.hard_examples import hardest, in_parts, row_losses
from albert_keras.training.loop.loop_config import LoopConfig
from albert_keras.training.loop.step_state import LossScale, Running, UpdateGuard
from albert_keras.training.losses import Sums
from data_pipeline.errors import InputError

#: Keeps the quotient finite for a batch without a prediction (google-research/albert,
#: `run_pretraining.py`).
NO_PREDICTION_GUARD = 1e-5
#: Proportion of padding from which skipping it pays: it costs some passes over memory.
_MIN_PADDING = 0.05


class TrainingLogic(keras.Model):
    """What `fit` and `evaluate` do in a step. Subclasses define the objectives, and the `model`.

    Deviation from google-research/albert: that code normalises and clips on each core and then
    averages; here both happen over the global batch.
    """

    def prepare(
        self,
        objectives: dict[str, float],  # weight of each objective in the loss
        clip_norm: float | None = 1.0,  # largest global norm, see `OptimizerConfig`
        accumulation_steps: int = 1,  # parts of a replica's batch, one after the other
        skip_spikes: bool = False,  # see `UpdateGuard`
        scales_loss: bool = False,  # whether to scale the loss, as float16 requires
        hard_examples: float = 1.0,  # fraction of a batch that is trained on, see hard_examples.py
    ):
        """Sets what a step does and creates its state, in the scope of the strategy."""
        self.objectives = objectives
        self.clip_norm = clip_norm
        self.accumulation_steps = accumulation_steps
        self.guard = UpdateGuard(skip_spikes)
        self.loss_scale = LossScale() if scales_loss else None
        self.hard_examples = hard_examples
        self.waited = None  # seconds spent waiting for data, if that is known
        self._keeps_means = False
        names = ["loss", "gradient_norm"]
        names += [f"{name}_{what}" for name in objectives for what in ("loss", "accuracy")]
        if hard_examples < 1:  # the loss of all records; the chosen ones have a higher loss
            names.append("candidate_loss")
        # Reset at each report: the log shows means and sums over the interval.
        self.means = {name: Running(name) for name in names}
        self.tokens = Running("tokens", sums=True)
        self.skipped = Running("skipped", sums=True)

    @property
    def saved_weights(self):
        """list of variables. The weights of the model that a checkpoint contains."""
        return self.model.weights

    def take_over(self, state: dict):
        """Prepares for the variables of a checkpoint with this `state`, before they are restored.

        Subclasses whose weights depend on it override this.
        """

    def counts(self, features: dict[str, tf.Tensor]) -> list[tf.Tensor]:
        """Returns the divisor of each objective's loss for a replica's features: float32 scalars.

        The caller sums them over the replicas.
        """
        raise NotImplementedError

    def sums(self, features, training: bool, dropout_seed: DropoutSeed | None = None) -> list[Sums]:
        """Runs the model on a part of a batch and returns the sums of each objective."""
        raise NotImplementedError

    def row_sums(self, features: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns loss and count of each objective and row, float32 [objectives, 2, B].

        It is required for hard examples only. Nothing is trained, so there is no dropout.
        """
        raise NotImplementedError

    @property
    def state(self):
        """dict of name -> variable. What resuming needs besides weights and moments."""
        variables = self.guard.variables()
        for running in self._running():
            variables |= running.variables()
        return variables | (self.loss_scale.variables() if self.loss_scale else {})

    def forget_graphs(self):
        """Makes the next `fit` and `evaluate` build new graphs, as required for other shapes.

        A graph that has seen two shapes would be built for any shape: its results would differ in
        the last bits from the results of a graph for one shape.
        """
        self.train_function = self.train_tf_function = self.test_function = None

    def keep_means(self):
        """Makes the next `fit` continue the restored means instead of resetting them."""
        self._keeps_means = True

    def reset_metrics(self):
        """Resets all means and sums; Keras calls it at the beginning of `fit`."""
        if self._keeps_means:
            self._keeps_means = False
        else:
            for running in self._running():
                running.reset()

    def train_step(self, features):
        """Makes one optimizer step; Keras calls it on each replica with its part of the batch."""
        with compiled_kernels(is_on_cpu()):
            return self._train_step(features)

    def _train_step(self, features):
        weights = self.trained_weights
        features, candidate_loss = self._chosen(features)
        *counts, tokens = tf.unstack(_over_replicas(self._counts(features)))
        counts = tf.stack(counts)
        scale = self.loss_scale.value() if self.loss_scale else None
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        first_row = tf.cast(replica, tf.int64) * features["input_ids"].shape[0]

        def gradients_of(part, number):
            rows = part["input_ids"].shape[0]
            dropout_seed = DropoutSeed(self.optimizer.iterations, first_row + number * rows)
            with tf.GradientTape() as tape:
                sums = self._sums(part, training=True, dropout_seed=dropout_seed)
                loss = self._loss(sums, counts)
                loss = loss if scale is None else loss * scale
            return [*map(tf.convert_to_tensor, tape.gradient(loss, weights)), sums]

        *gradients, sums = _sum_over_parts(
            gradients_of,
            features,
            self.accumulation_steps,
            [*weights, tf.zeros([len(self.objectives), 3])],
        )
        gradients, sums = _over_replicas(gradients), _over_replicas(sums)
        if scale is not None:
            gradients = [gradient / scale for gradient in gradients]
        norm = tf.linalg.global_norm(gradients)
        loss = self._loss(sums, counts)
        is_usable = self.guard.decide(loss, norm)
        if self.loss_scale is not None:
            self.loss_scale.update(tf.math.is_finite(norm))
        # The optimizer changes nothing if a gradient is not finite.
        gradients, _ = clip_gradients(gradients, self.clip_norm, norm, is_usable)
        self.optimizer.apply_gradients(
            zip(gradients, weights, strict=True), experimental_aggregate_gradients=False
        )
        self._count(sums, loss, is_usable)
        self.means["gradient_norm"].add(norm, is_usable)
        if candidate_loss is not None:
            self.means["candidate_loss"].add(candidate_loss, is_usable)
        self.tokens.add(tokens)
        self.skipped.add(tf.cast(~is_usable, tf.float32))
        results = self._results() | {"skipped_in_row": self.guard.consecutive_skips}
        if scale is not None:
            results["loss_scale"] = scale
        return {name: tf.convert_to_tensor(value) for name, value in results.items()}

    def test_step(self, features):
        """Scores one batch; rows with `example_weights` 0 do not count."""
        *counts, tokens = tf.unstack(_over_replicas(self._counts(features)))
        counts = tf.stack(counts)
        sums = _over_replicas(self._sums(features, training=False))
        self._count(sums, self._loss(sums, counts), tf.constant(True))
        self.tokens.add(tokens)
        results = self._results()
        results.pop("candidate_loss", None)  # nothing is chosen
        return results

    def make_train_function(self, force=False):
        """Returns the function that `fit` calls for each step; it measures the wait for data."""
        if self.train_function is not None and not force:
            return self.train_function
        if self._jit_compile or int(self._steps_per_execution.numpy()) > 1:
            return super().make_train_function(force)
        strategy = self.distribute_strategy

        @tf.function(reduce_retracing=True)
        def run(features):
            results = strategy.run(self.train_step, args=(features,))
            self._train_counter.assign_add(1)
            return {
                name: strategy.experimental_local_results(value)[0]
                for name, value in results.items()
            }

        def train_function(batches):
            started = time.monotonic()
            features = next(batches)
            self.waited += time.monotonic() - started
            return run(features)

        self.waited = self.waited or 0.0
        self.train_function = self.train_tf_function = train_function
        return train_function

    def _chosen(self, features):
        """Returns the features to train on, and the mean loss of all candidates or None."""
        if self.hard_examples == 1:
            return features, None
        number = round(features["input_ids"].shape[0] * self.hard_examples)
        sums = in_parts(self.row_sums, features, self.accumulation_steps)
        weights = list(self.objectives.values())[: sums.shape[0]]
        losses, counts = tf.unstack(_over_replicas(tf.reduce_sum(sums, axis=2)), axis=1)
        mean = tf.reduce_sum(tf.constant(weights) * losses / (counts + NO_PREDICTION_GUARD))
        return hardest(features, row_losses(sums, weights), number), mean

    def _counts(self, features):
        """Returns this replica's counts of each objective, and tokens, float32 [objectives + 1]."""
        tokens = tf.reduce_sum(tf.cast(features["input_mask"], tf.float32))
        return tf.stack([*self.counts(features), tokens])

    def _sums(self, features, training, dropout_seed=None):
        """Returns loss, count and correct answers of each objective, float32 [objectives, 3]."""
        return tf.stack(
            [tf.stack(values) for values in self.sums(features, training, dropout_seed)]
        )

    def _loss(self, sums, counts):
        """Returns what the sums of a part add to the loss of the batch, float32 scalar."""
        weights = list(self.objectives.values())
        return tf.reduce_sum(tf.constant(weights) * sums[:, 0] / (counts + NO_PREDICTION_GUARD))

    def _count(self, sums, loss, is_usable):
        self.means["loss"].add(loss, is_usable)
        for number, name in enumerate(self.objectives):
            total, count, correct = tf.unstack(sums[number])
            for what, value in (("loss", total), ("accuracy", correct)):
                self.means[f"{name}_{what}"].add(value, is_usable, count)

    def _running(self):
        return [*self.means.values(), self.tokens, self.skipped]

    def _results(self):
        return {running.name: running.result() for running in self._running()}


class TrainingStep(TrainingLogic):
    """Trains a model; further arguments as in `TrainingLogic.prepare`."""

    def __init__(
        self,
        model: keras.Model,  # takes a batch of features, `training` and `dropout_seed`
        objectives: dict[str, float],
        **kwargs,
    ):
        super().__init__()
        self.model = model
        self.prepare(objectives, **kwargs)

    @property
    def trained_weights(self):
        """list of variables. The weights that the loss depends on."""
        return self.model.trainable_variables

    def call(self, features, training=False):
        """Returns the model's outputs."""
        return self.model(features, training=training)


def _sum_over_parts(function, features, num_parts, like):
    """Splits a batch into parts of equal size, calls a function on each and sums the results.

    The parts run in a loop of the graph, so that the memory of one is free before the next starts.
    The function takes the features of a part and its number (int64 scalar). It returns a list of
    float tensors with the static shapes and the dtypes of `like`.
    """
    if num_parts == 1:
        return function(features, tf.zeros([], tf.int64))
    sizes = {name: values.shape[0] for name, values in features.items()}
    if any(size is None or size % num_parts for size in sizes.values()):
        raise ValueError(
            f"The batch of a replica must be a multiple of {num_parts} accumulated parts. "
            f"Received: {sizes}."
        )
    parts = {
        name: tf.reshape(values, [num_parts, -1, *values.shape[1:]])
        for name, values in features.items()
    }

    def add_part(number, sums):
        results = function({name: values[number] for name, values in parts.items()}, number)
        return number + 1, [total + value for total, value in zip(sums, results, strict=True)]

    zeros = [tf.zeros(result.shape, result.dtype) for result in like]
    _, sums = tf.while_loop(
        lambda number, _: number < num_parts,
        add_part,
        (tf.zeros([], tf.int64), zeros),
        maximum_iterations=num_parts,
        parallel_iterations=1,
    )
    return sums


def _over_replicas(values):
    context = tf.distribute.get_replica_context()
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)


def should_skip_padding(
    strategy: tf.distribute.Strategy, training: LoopConfig, statistics: dict | None = None
) -> bool:
    """Returns whether training does no work on padding; raises InputError for "skip" on a TPU.

    The statistics are `positions` and `real_positions` of the data.
    """
    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if training.padding == "skip" and on_tpu:
        raise InputError(
            "`training.padding` must be auto or compute on a TPU, whose shapes are fixed. "
            "Received: skip."
        )
    if training.padding != "auto" or on_tpu or not statistics:
        return training.padding == "skip"
    return statistics["real_positions"] < (1 - _MIN_PADDING) * statistics["positions"]


def model_settings(training: LoopConfig, skips_padding: bool) -> dict:
    """Returns the keyword arguments that the settings determine for any trained model."""
    return {
        "seed": training.seed,
        "dtype": training.precision,
        "recompute": training.recompute,
        "skips_padding": skips_padding,
    }


def step_settings(config) -> dict:
    """Returns the keyword arguments that a configuration determines for a TrainingStep."""
    training = config.training
    return {
        "clip_norm": config.optimizer.clip_norm,
        "accumulation_steps": training.accumulation_steps,
        "skip_spikes": training.skip_spikes,
        "scales_loss": training.precision == "mixed_float16",
    }


def compile_step(training_step, config):
    """Compiles a TrainingStep for a resolved configuration; call it in the strategy's scope.

    The optimizer's moments exist afterwards.
    """
    training = config.training
    optimizer = build_optimizer(
        config.optimizer,
        num_steps=training.steps,
        batch_size=training.batch_size,
        adjustable=training.time_budget is not None,
        matrix_dtype="bfloat16" if training.precision == "mixed_bfloat16" else "float32",
    )
    training_step.compile(optimizer=optimizer, steps_per_execution=training.steps_per_execution)
    # Keras creates the moments at the first update; restoring a checkpoint needs them before.
    optimizer._create_all_weights(training_step.model.trainable_variables)
