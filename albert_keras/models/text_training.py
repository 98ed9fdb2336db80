"""How a model of texts is trained, scored and asked: the methods of `keras.Model`, for texts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.models.compiling import MetricsOfKeras, loss_of_keras
from albert_keras.models.objective_model import Objective, ObjectiveModel, with_autograph
from albert_keras.models.presets import answers_of
from albert_keras.models.text_data import (
    BATCH_SIZE,
    Converter,
    Reader,
    error_of_input,
    features_of,
    in_batches,
    in_epochs,
    in_order,
    is_features,
    is_stream,
)
from albert_keras.models.text_inputs import Examples, examples_of, sizes_of
from albert_keras.optimization.config import (
    FinetuneOptimizer,
    finetuning_lr,
    finetuning_optimizer,
)
from data_pipeline.errors import InputError

#: Outputs of a model, or features of a batch, by name.
Tensors = Mapping[str, Any]


class Predictions(np.ndarray):
    """What `predict` returns: an array, where earlier versions returned named answers."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return np.asarray(array)[()]  # what is computed from it is a plain array

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"An array has no `{name}`: `predict` returns predictions as in Keras. Named answers "
            "are those of `answer`."
        )


class TextTraining(ObjectiveModel):
    """What `compile`, `fit`, `evaluate`, `predict` and the calls for one batch do with texts.

    `AlbertForTexts` says what a model has for this: its preprocessor, its losses and predictions.
    A subclass with a `compute_loss`, as of `keras.Model`, is trained with it: it is given features,
    labels, predictions and weights, and returns the loss of each row, or their mean.
    """

    config: Any
    preprocessor: Any
    feature_settings: Any
    seed: int
    #: Whether an answer is simply right or wrong.
    has_accuracy = True
    #: Whether examples must have labels to be learned from.
    needs_labels = True
    #: Whether `compile` takes a loss and metrics of Keras.
    takes_losses = True
    optimizer_class = FinetuneOptimizer
    #: Weights of the `objectives` in the loss.
    usual_objective_weights: Mapping[str, float] = {"answer": 1.0}
    _own_loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None = None
    _own_metrics = MetricsOfKeras()
    _shows_accuracy: bool

    def compile(  # type: ignore[override]
        self,
        optimizer: Any = "auto",
        loss: Any = None,
        metrics: Sequence[Any] | str | None = None,
        learning_rate: Any = "auto",
        weighted_metrics: Sequence[Any] | None = None,
        clip_norm: float | str | None = "auto",
        accumulation_steps: int = 1,
        skip_spikes: bool = False,
        steps_per_execution: int | None = None,
        run_eagerly: bool | None = None,
        jit_compile: bool | str | None = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures the training; without it, `fit` uses the defaults of `finetune`.

        Args:
            optimizer: "lamb", "adamw" or "muon", with a tenth of the updates of each `fit` as
                warm-up and a linear decay over the rest; or any optimizer of Keras, or its name.
                "auto" depends on the hidden size, as in `finetune`.
            loss: A loss of Keras, or a function of labels and predictions; by default the loss of
                the class. It is given probabilities, not logits.
            metrics: Metrics of Keras, or their names; by default the accuracy.
            weighted_metrics: As `metrics`, weighted by `sample_weight` and `class_weight`.
            steps_per_execution, run_eagerly: As in Keras.
            others: See `ObjectiveModel.compile`. Unknown ones are a TypeError.

        Raises:
            InputError, TypeError, ValueError: For arguments that do not fit.
        """
        if optimizer in (None, "auto"):
            optimizer = finetuning_optimizer(
                self.config.hidden_size, self.feature_settings.freeze_encoder
            )
        loss = None if isinstance(loss, str) and loss == "auto" else loss
        metrics = [metrics] if isinstance(metrics, str) and metrics != "auto" else metrics
        chosen = None if metrics in (None, "auto") else list(metrics)
        own = [each for each in chosen or () if each != "accuracy"]
        has_accuracy = chosen is None or len(own) < len(chosen)
        if not self.takes_losses and (loss is not None or own or weighted_metrics):
            raise InputError(
                f"`compile` of {type(self).__name__} takes no loss and no metrics of Keras: its "
                "answers are spans. Override `compute_losses` for an objective of your own."
            )
        named = [
            each for each in [*(chosen or ()), *(weighted_metrics or ())] if isinstance(each, str)
        ]
        if {"accuracy", "acc"} & {*named} and not self.has_accuracy:
            raise InputError("`metrics` must not have accuracy: numbers are not right or wrong.")
        self._own_loss = None if loss is None else loss_of_keras(loss)
        with self.distribute_strategy.scope():
            self._own_metrics = MetricsOfKeras(own, weighted_metrics or ())
        self._shows_accuracy = self.has_accuracy and has_accuracy
        super().compile(
            optimizer,
            self.usual_objective_weights,
            clip_norm,
            accumulation_steps,
            skip_spikes,
            learning_rate,
            jit_compile,
            steps_per_execution=steps_per_execution,
            run_eagerly=run_eagerly,
            **kwargs,
        )
        self._given_to_compile = {
            "loss": loss,
            "metrics": chosen,
            "weighted_metrics": weighted_metrics and list(weighted_metrics),
        }

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        if config is None:
            return None
        return config | {
            name: keras.saving.serialize_keras_object(value)
            for name, value in self._given_to_compile.items()
            if value is not None
        }

    def _compile_again(self, objective_weights, **settings):
        self.compile(**settings)

    @property
    def metrics(self) -> list[Any]:
        return [*super().metrics, *self._own_metrics.all]

    @property
    def metrics_names(self) -> list[str]:
        accuracy = ["accuracy"] if self._shows_accuracy else []
        return ["loss", *accuracy, *(metric.name for metric in self._own_metrics.all)]

    def reset_metrics(self) -> None:
        super().reset_metrics()
        self._own_metrics.reset()

    def usual_lr(self, optimizer: str, batch_size: int) -> float:
        return finetuning_lr(
            optimizer, self.config.hidden_size, self.feature_settings.freeze_encoder
        )

    def fit(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Mapping[Any, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the model, as `fit` of Keras.

        The batches of texts in memory are a function of the model's seed and the number of the
        step: each epoch has a new order, and the last batch of an epoch is filled up from the next.

        Args:
            x: Texts in memory, see `text_inputs.examples_of`; a data set, in batches or not, of
                texts and labels, perhaps with weights; a generator or a Sequence of batches; or
                features of the preprocessor, as in Keras, with "labels" among them or as `y`.
            y: Labels: names, numbers or booleans, or one-hot; None if `x` has them.
            batch_size: Examples per update, 32 by default; not for data that comes in batches.
            epochs: Passes over the examples.
            validation_split: Fraction of the examples in memory, the last ones, that is scored
                after each epoch and not trained on.
            validation_data: Instead: (x, y), (x, y, weights) or a data set.
            shuffle: False keeps the order of examples in memory.
            class_weight: By class, its number or its name, how much its examples count.
            sample_weight: float [N]. How much each example counts.
            others: As in Keras.

        Returns:
            History of `loss`, `accuracy` and the metrics of `compile`, with `val_` of the
            validation.

        Raises:
            InputError: If inputs and labels do not suit the model.
        """
        if not hasattr(self, "guard"):
            self.compile()
        if batch_size is not None and batch_size < 1:
            raise InputError(f"`batch_size` must be at least 1. Received: {batch_size}.")
        of_training, of_validation = batch_size, validation_batch_size
        if self._takes_texts(x):
            if is_stream(x):
                _check_stream(y, sample_weight, validation_split)
                x = Converter(self, True, True).converted(x, batch_size)
            else:
                examples = self.examples(x, y, sample_weight, has_targets=True, learns=True)
                examples, held_out = examples.split(validation_split)
                self._learn_inputs(examples)
                reader, size = Reader(self, examples, is_fixed=True), batch_size or BATCH_SIZE
                steps_per_epoch = steps_per_epoch or -(-len(reader) // size)
                first = self._steps_from(initial_epoch * steps_per_epoch)
                x = in_epochs(reader, size, self.seed if shuffle else None, first)
                if held_out is not None:
                    validation_data = held_out.columns, held_out.labels, held_out.weights
            y = sample_weight = batch_size = None
            validation_split, validation_batch_size = 0.0, None
        if validation_data is not None:
            validation_data = _unpacked(validation_data)
            if not is_stream(validation_data[0]):
                of_validation = of_validation or of_training
            validation_data = self._data(validation_data, of_validation)
        if class_weight is not None:
            weighted = self._weighted(class_weight)
            if is_stream(x):
                x = in_batches(x, weighted)
            else:
                x, y, sample_weight = weighted(x, y, sample_weight), None, None
        with error_of_input():
            return super().fit(
                x,
                y,
                batch_size=batch_size,
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_split=validation_split,
                validation_data=validation_data,
                shuffle=shuffle,
                sample_weight=sample_weight,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                validation_steps=validation_steps,
                validation_batch_size=validation_batch_size,
                validation_freq=validation_freq,
                **kwargs,
            )

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Returns the loss and the metrics, as `evaluate` of Keras; arguments as in `fit`.

        `evaluate_task` computes the official scores of a task.
        """
        if not hasattr(self, "guard"):
            self.compile()
        if self._takes_texts(x):
            x = self._data((x, y, sample_weight), batch_size)
            y = sample_weight = batch_size = None
        with error_of_input():
            return super().evaluate(
                x,
                y,
                batch_size=batch_size,
                verbose=verbose,
                sample_weight=sample_weight,
                steps=steps,
                callbacks=callbacks,
                return_dict=return_dict,
                **kwargs,
            )

    def predict(  # type: ignore[override]
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns what the call of the model returns, as NumPy arrays; arguments as in `fit`.

        Examples in memory are computed in the order of their lengths, and returned in their own.
        """
        further = {"verbose": verbose, "steps": steps, "callbacks": callbacks, **kwargs}
        if not self._takes_texts(x):
            return super().predict(x, batch_size, **further)
        with error_of_input():
            if is_stream(x):
                data = Converter(self, self.needs_fixed_length, False).converted(x, batch_size)
                return _dense(super().predict(data, **further))
            examples = self.examples(x)
            order = np.argsort(sizes_of(examples.columns), kind="stable")
            examples, size = examples.rows(order), batch_size or BATCH_SIZE
            if self.preprocessor.uses_windows:
                columns = self.preprocessor.columns(examples.columns)
                data = tf.data.Dataset.from_tensor_slices(columns).batch(size)
            else:
                data = in_order(Reader(self, examples, self.needs_fixed_length), size)
            found = _dense(super().predict(data, **further))
        return tf.nest.map_structure(lambda values: values[np.argsort(order)], found)

    def answer(self, x: Any, batch_size: int = 64) -> list[Any]:
        """Answers texts in memory: a list with one named tuple per example, such as `ClassAnswer`.

        Args:
            x: As in `fit`.
            batch_size: Examples per device and call.
        """
        return answers_of(self, self.examples(x).columns, batch_size)

    def train_on_batch(  # type: ignore[override]
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Mapping[Any, float] | None = None,
        reset_metrics: bool = False,
        return_dict: bool = False,
    ) -> Any:
        """Makes one update, as in Keras; arguments as in `fit`."""
        if not hasattr(self, "guard"):
            self.compile()
        batch = self._batch(x, y, sample_weight, learns=True)
        if class_weight is not None:
            batch = _unpacked(self._weighted(class_weight)(*batch))
        return super().train_on_batch(*batch, None, reset_metrics, return_dict)

    def test_on_batch(  # type: ignore[override]
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        reset_metrics: bool = False,
        return_dict: bool = False,
    ) -> Any:
        """Scores one batch, as in Keras; arguments as in `fit`."""
        if not hasattr(self, "guard"):
            self.compile()
        batch = self._batch(x, y, sample_weight)
        return super().test_on_batch(*batch, reset_metrics, return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Returns the predictions for one batch, as in Keras."""
        if not self._takes_texts(x):
            return super().predict_on_batch(x)
        columns = self.preprocessor.columns(self.examples(x).columns)
        return _dense(self(columns, training=False))

    def train_step(self, features: Any) -> dict[str, Any]:
        results = super().train_step(_with_targets(features))
        return results if self.has_full_logs else self._shown(results)

    def test_step(self, features: Any) -> dict[str, Any]:
        return self._shown(super().test_step(_with_targets(features)))

    def _shown(self, results):
        """Returns what Keras shows of the results of a step."""
        shown = {"loss": results["loss"]}
        if self._shows_accuracy:
            shown["accuracy"] = results["answer_accuracy"]
        return shown | self._own_metrics.results()

    def _results(self):
        return {
            name: value
            for name, value in super()._results().items()
            if self.has_accuracy or not name.endswith("_accuracy")
        }

    # === Texts → features

    def _takes_texts(self, x):
        """Returns whether inputs are texts for the preprocessor."""
        if is_features(x):
            return False
        if self.preprocessor is None:
            raise ValueError(
                "A model without a preprocessor takes features, a dict with `input_ids`. "
                f"Received: {type(x).__name__}."
            )
        return True

    def _data(self, batch, batch_size=None):
        """Returns examples to be scored, (x, y, weights), as a data set of features."""
        x, y, sample_weight = batch
        if not self._takes_texts(x):
            return keras.utils.pack_x_y_sample_weight(*batch)
        is_fixed = self.needs_fixed_length
        if is_stream(x):
            _check_stream(y, sample_weight)
            return Converter(self, is_fixed, True).converted(x, batch_size)
        examples = self.examples(x, y, sample_weight, has_targets=True)
        return in_order(Reader(self, examples, is_fixed), batch_size or BATCH_SIZE)

    def _batch(self, x, y, sample_weight, learns=False):
        """Returns examples in memory as one batch of features, labels and weights."""
        if not self._takes_texts(x):
            return x, y, sample_weight
        examples = self.examples(x, y, sample_weight, has_targets=True, learns=learns)
        return features_of(self, examples, is_fixed=False), None, None

    def examples(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        has_targets: bool = False,
        learns: bool = False,
    ) -> Examples:
        """Returns Examples that the model takes.

        Args:
            x, y, sample_weight: As in `fit`, in memory.
            has_targets: Whether they are to be learned from or scored.
            learns: Whether they say if a new model takes single texts or pairs.

        Raises:
            InputError: If there are no such texts, or labels are missing.
        """
        examples = examples_of(x, y, sample_weight, self.text_names, self.labels)
        if has_targets and examples.labels is None and self.needs_labels:
            raise InputError("There must be a label for each example. Received: none.")
        self.note_inputs(examples.columns, learns)
        return examples

    def _learn_inputs(self, examples):
        """Takes from the first examples of a training what a new model does not know yet."""
        if examples.labels is not None:
            targets = self.targets(examples.labels, examples.columns)
            self.initialize_output_bias(next(iter(targets.values())))

    def _steps_from(self, first_step):
        """Returns a function for the number of the step at which batches of a `fit` begin.

        It counts the updates of the model, so that a callback that restores them, such as
        `BackupAndRestore`, continues with the batches that were not used yet.
        """
        before = int(self.optimizer.iterations.numpy())
        first_step = max(first_step, before)
        return lambda: first_step + int(self.optimizer.iterations.numpy()) - before

    def _weighted(self, class_weight):
        """Returns a function that weights the rows of a batch of Keras by their classes."""
        weights = self.class_weights(class_weight)

        def weighted(*batch):
            features = _with_targets(batch[0] if len(batch) == 1 else batch)
            of_rows = tf.gather(tf.constant(weights), features["labels"])
            given = features.get("sample_weight")
            return features | {"sample_weight": of_rows if given is None else of_rows * given}

        return weighted

    def _compared(self, outputs, features):
        """Returns labels and predictions as losses and metrics of Keras compare them."""
        labels = features.get("tag_ids")
        if labels is None:
            labels = features.get("one_hot", features.get("labels"))
        else:
            labels = tf.maximum(labels, 0)
        return tf.convert_to_tensor(labels), self.predictions(outputs)

    def objectives(self, features: Tensors) -> dict[str, Objective]:
        weights = self.weights_of(features)
        losses = with_autograph(self.compute_losses)

        def of_rows(outputs):
            found, is_right = losses(outputs, features)
            # Of each row or position: as in Keras, a loss is weighted, but the sum of losses is
            # divided by the number of rows, not by the sum of their weights.
            given = features.get("sample_weight")
            if given is not None:
                given = tf.cast(given, tf.float32)
                given = tf.reshape(given, [-1, *[1] * (found.shape.rank - 1)])
            has_loss = type(self).compute_loss is not keras.Model.compute_loss
            if has_loss or self._own_loss or self._own_metrics.all:
                labels, predictions = self._compared(outputs, features)
                self._own_metrics.update(labels, predictions, weights, given)
                if has_loss:  # of a subclass, which weights the rows itself
                    found = self.compute_loss(features, labels, predictions, given)
                    found, given = tf.zeros_like(weights) + tf.cast(found, tf.float32), None
                elif self._own_loss:
                    found = self._own_loss(labels, predictions)
                    # A function of the user may return the mean of the rows.
                    fitted = tf.broadcast_to if found.shape.rank == 0 else tf.reshape
                    found = fitted(found, tf.shape(weights))
            return (found if given is None else found * given), is_right

        return {"answer": Objective(weights, of_rows)}


def _check_stream(labels, weights, validation_split=0.0):
    """Raises InputError for arguments that only go with examples in memory."""
    given = {"y": labels, "sample_weight": weights, "validation_split": validation_split or None}
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"`{name}` must not be given with a data set or a generator, whose elements have "
                "the labels and weights of their examples."
            )


def _unpacked(batch):
    """Returns features, labels and weights of a batch or of data of Keras; None if it has none."""
    return keras.utils.unpack_x_y_sample_weight(batch)


def _with_targets(batch):
    """Returns the features of a batch of Keras, to which labels and weights are added."""
    features, labels, weights = _unpacked(batch)
    if labels is not None:
        features = features | (labels if isinstance(labels, Mapping) else {"labels": labels})
    return features if weights is None else features | {"sample_weight": weights}


def _dense(found):
    """Returns predictions as arrays; what differs in length is padded with zeros."""

    def dense(values):
        values = values.to_tensor() if isinstance(values, tf.RaggedTensor) else values
        return np.asarray(values).view(Predictions)

    return tf.nest.map_structure(dense, found)
