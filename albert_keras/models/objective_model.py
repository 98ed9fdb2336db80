"""Models with objectives: what `compile`, `fit` and `evaluate` do beyond Keras' own methods.

A step is one update of the weights from the whole batch; accumulated parts and replicas only split
the work. Losses are normalised over the whole batch, gradients are summed and then clipped, so that
the result depends neither on the number of parts nor on the number of replicas.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from albert_keras.keras_versions import (
    OwnStepModel,
    apply_summed,
    batches_done,
    count_batch,
    fit_executions,
    forget_steps,
    steps_per_execution,
    track,
)
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.layers.kernels import (
    compiled,
    compiled_kernels,
    compiled_part_of,
    has_gpu,
    is_on_cpu,
)
from albert_keras.layers.rows import token_mask
from albert_keras.models.objective import Objective, num_rows, sum_over_parts, with_autograph
from albert_keras.models.planned_training import PlannedTraining
from albert_keras.models.step_state import LossScale, Running, UpdateGuard
from albert_keras.optimization.build import clip_gradients
from albert_keras.optimization.config import pretraining_lr
from albert_keras.optimization.lamb import Lamb
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

#: Keeps the quotient finite for a batch without a prediction (google-research/albert,
#: `run_pretraining.py`).
NO_PREDICTION_GUARD = 1e-5


class ObjectiveModel(PlannedTraining, OwnStepModel):
    """Base class of the models of this project: `fit` and `evaluate` train and score objectives.

    To train another objective, or to mask one differently, override `objectives`, and give
    `compile` the weight of each new one. Batches are dicts of features, such as
    `training_dataset` reads.

    Deviation from google-research/albert: that code normalises and clips on each core and then
    averages; here both happen over the global batch.

    Example:
        class Shorter(AlbertForPretraining):
            def objectives(self, features):
                found = super().objectives(features)
                size = lambda outputs: tf.norm(outputs["pooled_output"], axis=-1)
                loss = lambda outputs: (size(outputs), tf.zeros_like(size(outputs)))
                return found | {"size": Objective(features["example_weights"], loss)}

        model = Shorter(AlbertConfig.from_name("albert-tiny"))
        model.compile(objective_weights={"size": 0.01})
    """

    def stored_model(self) -> keras.Model:
        """Returns what a run stores of the model: by default all of it."""
        return self  # by a method, as Keras 3 saves the values of all properties

    def objectives(self, features: dict[str, tf.Tensor]) -> dict[str, Objective]:
        """Returns what the model learns from a batch, or from a part of it, by name.

        This is the one method to override for other losses and masks. It is called on each replica
        while the graph is built, on the batch and on each accumulated part of it.

        Args:
            features: dict of [B, ...]. What the data set yields.
        """
        raise NotImplementedError

    def outputs_of(
        self,
        features: dict[str, tf.Tensor],
        training: bool,
        dropout_seed: DropoutSeed | None = None,
    ) -> dict[str, tf.Tensor]:
        """Returns the outputs that the losses of `objectives` read."""
        return self(features, training=training, dropout_seed=dropout_seed)

    def compile(
        self,
        optimizer: Any = "lamb",
        objective_weights: Mapping[str, float] | None = None,
        clip_norm: float | str | None = "auto",
        accumulation_steps: int = 1,
        skip_spikes: bool = False,
        learning_rate: Any = "auto",
        jit_compile: bool | str | None = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures the training; call it in the scope of the strategy that the model is made in.

        Args:
            optimizer: "lamb", "adamw" or "muon", with the learning rate that `pretrain` and
                `finetune` choose by default, see `PlannedRates`; an optimizer of Keras or its name;
                or None for a model that is only evaluated.
            objective_weights: dict of str to float. Weight of each objective in the loss.
            clip_norm: float, None or "auto". Largest global norm of the gradients of the whole
                batch; None does not clip. "auto" is the `global_clipnorm` of the optimizer, or 1 if
                it clips nothing.
            accumulation_steps: int. Parts of a replica's batch, computed one after the other, which
                need less memory.
            skip_spikes: bool. Whether to skip updates whose loss is an outlier, see `UpdateGuard`.
                Updates that are not finite are always skipped.
            jit_compile: bool, str or None. What XLA compiles of a step: True or "step" for all of
                it, "kernels" for what lies between the products, False or "none" for nothing.
                "auto" or None chooses, see `compiled_part`.
            learning_rate: float, schedule or "auto". Peak rate of an optimizer that is named, or
                its schedule.
            **kwargs: `steps_per_execution` and `run_eagerly` of Keras.

        Raises:
            TypeError: For `loss`, `metrics` and unknown arguments.
            ValueError: For another value of `jit_compile`.
        """
        allowed = ("steps_per_execution", "jit_compile", "run_eagerly")
        kwargs.pop("from_serialized", None)  # as Keras loads a folder, with None for what is unset
        kwargs = {name: value for name, value in kwargs.items() if value is not None}
        for name in kwargs:
            if name not in allowed:
                raise TypeError(
                    f"`compile` of {type(self).__name__} has no argument `{name}`"
                    f"{did_you_mean(name, allowed)} Its losses and metrics come from `objectives`, "
                    "which a subclass may override."
                )
        compiled_part_of(jit_compile)  # which checks it
        optimizer = self._optimizer(optimizer, learning_rate)
        # Of a LossScaleOptimizer the optimizer within: the step has a loss scale of its own.
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        super().compile(optimizer=optimizer, **kwargs)
        fit_executions(self)
        clip_norm = _clip_norm(self.optimizer) if clip_norm == "auto" else clip_norm
        # The logs of a step are those of the whole batch on each replica; Keras would add them up.
        self.distribute_reduction_method = "first"
        self.objective_weights = dict(objective_weights or {})
        self._remember(
            clip_norm=clip_norm,
            accumulation_steps=accumulation_steps,
            skip_spikes=skip_spikes,
            jit_compile=jit_compile,
            objective_weights=dict(self.objective_weights),
        )
        self.clip_norm, self.accumulation_steps = clip_norm, accumulation_steps
        if getattr(self.optimizer, "global_clipnorm", None) is not None:
            self.optimizer.global_clipnorm = None
        self.waited: float | None = None  # seconds spent waiting for data, if that is known
        #: Whether the logs of a step contain what only the reports of a run read.
        self.has_full_logs = False
        self._keeps_means = False
        names = ["loss", "gradient_norm"]
        names += [f"{name}_{what}" for name in self.objective_weights for what in _MEANS]
        with self.distribute_strategy.scope():
            self.guard = UpdateGuard(skip_spikes)
            is_float16 = self.dtype_policy.name == "mixed_float16"
            self.loss_scale = LossScale() if is_float16 else None
            # Reset at each report or epoch: logs have means and sums over the interval.
            self.means = {name: Running(name) for name in names}
            track(self, "means")
            self.tokens = Running("tokens", sums=True)
            self.skipped = Running("skipped", sums=True)

    def _compile_again(self, **config: Any) -> None:
        ObjectiveModel.compile(self, **config)  # which has the weights of all objectives

    @property
    def trained_weights(self) -> list[tf.Variable]:
        """list of variables. What the loss depends on."""
        return self.trainable_variables

    @property
    def state(self) -> dict[str, tf.Variable]:
        """dict of name -> variable. What resuming needs besides weights and moments."""
        variables = self.guard.variables()
        for running in self._running():
            variables |= running.variables()
        return variables | (self.loss_scale.variables() if self.loss_scale else {})

    @property
    def metrics(self) -> list[Any]:
        # By their names Keras knows that logs are means already; `reset_metrics` resets them.
        return [*getattr(self, "means", {}).values()]

    @property
    def metrics_names(self) -> list[str]:
        """list of str. Names of what `evaluate` returns, in order."""
        return [name for name in getattr(self, "means", {}) if name != "gradient_norm"]

    def usual_lr(self, optimizer: str, batch_size: int) -> float:
        """Returns the default of the peak learning rate of an optimizer that is named."""
        return pretraining_lr(optimizer, batch_size, self.config.hidden_size)

    def fit(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the model, see `fit` of Keras.

        Raises:
            InputError: For `class_weight`.
            ValueError: If the records in a data set have another vocabulary than the model.
        """
        if kwargs.pop("class_weight", None) is not None:
            raise InputError(
                f"`class_weight` must not be given: {type(self).__name__} has no classes. Weight "
                "examples by `example_weights` in the batches."
            )
        check_vocabulary(x, self.config.vocab_size)
        callbacks = self._plan(x, batch_size, epochs, callbacks=callbacks, **kwargs)
        steps = kwargs.get("steps_per_epoch")
        if isinstance(x, tf.data.Dataset):
            kwargs["shuffle"] = False  # Keras 3 warns that it cannot
            steps = steps or int(x.cardinality())
        fit_executions(self, steps)
        return super().fit(x, y, batch_size, epochs, verbose, callbacks, **kwargs)

    def forget_graphs(self) -> None:
        """Makes the next `fit` and `evaluate` build new graphs, as required for other shapes.

        A graph that has seen two shapes is built for any shape, and differs in the last bits.
        """
        forget_steps(self)
        self.test_function = None

    def keep_means(self) -> None:
        """Makes the next `fit` continue the restored means instead of resetting them."""
        self._keeps_means = True

    def reset_metrics(self) -> None:
        """Resets all means and sums; Keras calls it at the beginning of each epoch."""
        if self._keeps_means:
            self._keeps_means = False
        else:
            for running in self._running():
                running.reset()

    @contextlib.contextmanager
    def means_kept(self) -> Iterator[None]:
        """Restores the means of the training after a block that evaluates the model."""
        variables = [
            variable for running in self._running() for variable in running.variables().values()
        ]
        values = [variable.numpy() for variable in variables]
        yield
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def _checked_objectives(self, features):
        """Returns the objectives in the order of their weights; those of weight 0 are left out."""
        found = with_autograph(self.objectives)(features)
        missing = [name for name in self.objective_weights if name not in found]
        if missing:
            raise ValueError(
                f"`compile` has a weight for the objective(s) {', '.join(missing)}, which "
                f"`objectives` must return. Received: {', '.join(found)}."
            )
        return [found[name] for name in self.objective_weights]

    @property
    def has_fixed_shapes(self) -> bool:
        """bool. Whether all steps of a training have the same shapes."""
        return False

    @property
    def compiled_part(self) -> str:
        """str. What XLA compiles of a training step: "step", "kernels" or "none".

        If `compile` leaves it open, it is the kernels on a CPU, whose products XLA computes slowly.
        On GPUs it is the whole step if its shapes are fixed, because a GPU waits for each operation
        that is started one by one; else the kernels. With several replicas on CPUs it is nothing,
        nor on TPUs, which compile the whole step themselves.
        """
        given = compiled_part_of(self._compiled_with["jit_compile"])
        if given != "auto":
            return given
        if has_gpu():
            return "step" if self.has_fixed_shapes else "kernels"
        return "kernels" if is_on_cpu() else "none"

    def train_step(self, features):
        """Makes one optimizer step; Keras calls it on each replica with its part of the batch."""
        part, features = self.compiled_part, _only(features)
        with compiled_kernels(part == "kernels"):
            if part == "step" and self.distribute_strategy.num_replicas_in_sync == 1:
                return compiled(self._train_step)(features)
            return self._train_step(features)

    def _train_step(self, features):
        weights = self.trained_weights
        *counts, tokens = tf.unstack(_over_replicas(self._counts(features)))
        counts = tf.stack(counts)
        scale = self.loss_scale.value() if self.loss_scale else None
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        first_row = tf.cast(replica, tf.int64) * num_rows(features)

        unused: set[int] = set()  # weights that the loss does not depend on, which stay as they are

        def gradients_of(part, number):
            dropout_seed = DropoutSeed(
                batches_done(self.optimizer), first_row + number * num_rows(part)
            )
            with tf.GradientTape() as tape:
                sums = self._sums(part, training=True, dropout_seed=dropout_seed)
                loss = self._loss(sums, counts)
                loss = loss if scale is None else loss * scale
            gradients = tape.gradient(loss, weights)
            unused.update(at for at, gradient in enumerate(gradients) if gradient is None)
            pairs = zip(gradients, weights, strict=True)
            filled = [tf.zeros_like(of) if one is None else one for one, of in pairs]
            return [*map(tf.convert_to_tensor, filled), sums]

        def gradients_of_batch(features):
            like = [*weights, tf.zeros([len(self.objective_weights), 3])]
            return sum_over_parts(gradients_of, features, self.accumulation_steps, like)

        # XLA cannot compile the sum over replicas: of several, it compiles what comes before.
        if self.compiled_part == "step" and tf.distribute.has_strategy():
            gradients_of_batch = compiled(gradients_of_batch)
        *gradients, sums = gradients_of_batch(features)
        gradients, sums = _over_replicas(gradients), _over_replicas(sums)
        if scale is not None:
            gradients = [gradient / scale for gradient in gradients]
        norm = tf.linalg.global_norm(gradients)
        loss = self._loss(sums, counts)
        is_usable = self.guard.decide(loss, norm)
        if self.loss_scale is not None:
            self.loss_scale.update(tf.math.is_finite(norm))
        gradients = clip_gradients(gradients, self.clip_norm, norm, is_usable)
        if not isinstance(self.optimizer, Lamb):  # ours change nothing if a gradient is not finite
            gradients = [tf.where(is_usable, each, tf.zeros_like(each)) for each in gradients]
        used = [at for at in range(len(weights)) if at not in unused]
        apply_summed(self.optimizer, [gradients[at] for at in used], [weights[at] for at in used])
        self._count(sums, loss, is_usable)
        self.means["gradient_norm"].add(norm, is_usable)
        self.tokens.add(tokens)
        self.skipped.add(tf.cast(~is_usable, tf.float32))
        results = self._results()
        if self.has_full_logs:
            results |= {running.name: running.result() for running in (self.tokens, self.skipped)}
            results["skipped_in_row"] = self.guard.consecutive_skips
            if scale is not None:
                results["loss_scale"] = scale
        return {name: tf.convert_to_tensor(value) for name, value in results.items()}

    def test_step(self, features):
        """Scores one batch; rows with `example_weights` 0 do not count."""
        # On a CPU, TensorFlow itself joins the operations of inference with products.
        with compiled_kernels(has_gpu() and self.compiled_part != "none"):
            sums = _over_replicas(self._sums(_only(features), training=False))
        self._count(sums, tf.constant(0.0), tf.constant(True))
        results = self._results()
        results.pop("gradient_norm", None)
        # Each prediction counts once, although the last batch may be filled up.
        losses = [
            weight * results[f"{name}_loss"] for name, weight in self.objective_weights.items()
        ]
        return results | {"loss": tf.add_n(losses)}

    def make_train_function(self, force=False):
        """Returns the function that `fit` calls for each step; it measures the wait for data."""
        if self.train_function is not None and not force:
            return self.train_function
        if hasattr(self.optimizer, "build"):  # all moments exist, as in a restored checkpoint
            with self.distribute_strategy.scope():  # `fit` is called outside of it
                self.optimizer.build(self.trainable_variables)
        self.check_compiled_part()
        if self.run_eagerly or steps_per_execution(self) > 1:
            return super().make_train_function(force)
        strategy = self.distribute_strategy

        @tf.function(reduce_retracing=True)
        def run(features):
            results = strategy.run(self.train_step, args=(features,))
            count_batch(self)
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

    def check_compiled_part(self):
        """Raises InputError if a step cannot be compiled as a whole; `fit` calls it, too."""
        if self.compiled_part == "step" and self.encoder.skips_padding:
            raise InputError(
                "XLA compiles a step for fixed shapes, but skipping padding changes them with each "
                "batch. Set `training.padding` to compute or `training.compile` to kernels, in "
                "Python `skips_padding=False` or `compile(jit_compile='kernels')`."
            )

    def _counts(self, features):
        """Returns this replica's counts of each objective, and tokens, float32 [objectives + 1]."""
        weights = [each.weights for each in self._checked_objectives(features)]
        counted = [*weights, token_mask(features)]
        return tf.stack([tf.reduce_sum(tf.cast(each, tf.float32)) for each in counted])

    def _sums(self, features, training, dropout_seed=None):
        """Returns loss, count and correct answers of each objective, float32 [objectives, 3]."""
        found = self._checked_objectives(features)
        outputs = with_autograph(self.outputs_of)(features, training, dropout_seed)
        return tf.stack([tf.stack(each.sums(outputs)) for each in found])

    def _loss(self, sums, counts):
        """Returns what the sums of a part add to the loss of the batch, float32 scalar."""
        weights = [*self.objective_weights.values()]
        return tf.reduce_sum(tf.constant(weights) * sums[:, 0] / (counts + NO_PREDICTION_GUARD))

    def _count(self, sums, loss, is_usable):
        self.means["loss"].add(loss, is_usable)
        for number, name in enumerate(self.objective_weights):
            total, count, correct = tf.unstack(sums[number])
            for what, value in zip(_MEANS, (total, correct), strict=True):
                self.means[f"{name}_{what}"].add(value, is_usable, count)

    def _running(self):
        return [*self.means.values(), self.tokens, self.skipped]

    def _results(self):
        return {name: running.result() for name, running in self.means.items()}


_MEANS = ("loss", "accuracy")


def _clip_norm(optimizer):
    """Returns the largest norm of gradients that an optimizer was made with; 1 if it has none."""
    given = getattr(optimizer, "global_clipnorm", None)
    if given is not None:
        return given
    clips = any(getattr(optimizer, name, None) is not None for name in ("clipnorm", "clipvalue"))
    return None if clips else 1.0


def check_vocabulary(data: Any, vocab_size: int) -> None:
    """Raises ValueError if a data set reads records with another number of pieces than a model."""
    while data is not None:
        found = getattr(data, "vocab_size", vocab_size)
        if found != vocab_size:
            raise ValueError(
                f"The records have a vocabulary of {found:,} pieces, and the model one of "
                f"{vocab_size:,}. Make the configuration with `records=`, as in "
                '`AlbertConfig.from_name("albert-base", records=records)`.'
            )
        inputs = data._inputs() if isinstance(data, tf.data.Dataset) else ()
        data = inputs[0] if inputs else None


def _only(batch):
    """Returns the features of a batch, which `train_on_batch` puts into a tuple, without labels."""
    features, *others = keras.utils.unpack_x_y_sample_weight(batch)
    return features if all(other is None for other in others) else batch


def _over_replicas(values):
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)
