"""How a model of texts is trained, scored and asked: the methods of `keras.Model`, for texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.models.compiling import LossOfKeras, MetricsOfKeras
from albert_keras.models.objective_model import Objective, ObjectiveModel, with_autograph
from albert_keras.models.presets import answers_of
from albert_keras.models.text_inputs import (
    BATCH_SIZE,
    Converter,
    Reader,
    error_of_input,
    examples_of,
    in_epochs,
    in_order,
    is_features,
    is_stream,
    sizes_of,
)
from albert_keras.optimization.config import finetuning_lr
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
    has_accuracy: bool
    needs_labels: bool
    takes_losses: bool
    usual_objective_weights: Mapping[str, float]
    _own_loss: LossOfKeras | None = None
    _own_metrics: MetricsOfKeras | None = None
    _shows_accuracy: bool

    def compile(  # type: ignore[override]
        self,
        optimizer: Any = "adamw",
        loss: Any = None,
        metrics: Sequence[Any] | str | None = None,
        learning_rate: Any = "auto",
        weighted_metrics: Sequence[Any] | None = None,
        clip_norm: float | str | None = "auto",
        accumulation_steps: int = 1,
        skip_spikes: bool = False,
        steps_per_execution: int | None = None,
        run_eagerly: bool | None = None,
        jit_compile: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures the training; without it, `fit` uses the defaults of `finetune`.

        Args:
            optimizer: "adamw", "lamb" or "muon", with a tenth of the updates of each `fit` as
                warm-up and a linear decay over the rest; or any optimizer of Keras, or its name.
            loss: A loss of Keras, or a function of labels and predictions; by default the loss of
                the class. It is given probabilities, not logits.
            metrics: Metrics of Keras, or their names; by default the accuracy.
            learning_rate: Of a named optimizer: its peak, or a schedule; "auto" depends on the
                hidden size, as in `finetune`.
            weighted_metrics: As `metrics`, weighted by `sample_weight` and `class_weight`.
            clip_norm: Largest global norm of the gradients of the whole batch; None does not clip.
                "auto" is the `global_clipnorm` of the optimizer, or 1 if it clips nothing.
            accumulation_steps, skip_spikes: See `ObjectiveModel.compile`.
            steps_per_execution, run_eagerly, jit_compile: As in Keras.
            **kwargs: None; other arguments are a TypeError.

        Raises:
            InputError, TypeError, ValueError: For arguments that do not fit.
        """
        optimizer = "adamw" if optimizer in (None, "auto") else optimizer
        loss = None if isinstance(loss, str) and loss == "auto" else loss
        metrics = [metrics] if isinstance(metrics, str) and metrics != "auto" else metrics
        chosen = None if metrics in (None, "auto") else list(metrics)
        own = [each for each in chosen or () if not is_accuracy(each)]
        has_accuracy = chosen is None or len(own) < len(chosen)
        if not self.takes_losses and (loss is not None or own or weighted_metrics):
            raise InputError(
                f"`compile` of {type(self).__name__} takes no loss and no metrics of Keras: its "
                "answers are spans. Override `compute_losses` for an objective of your own."
            )
        if chosen is not None and has_accuracy and not self.has_accuracy:
            raise InputError("`metrics` must not have accuracy: numbers are not right or wrong.")
        self._own_loss = None if loss is None else LossOfKeras(loss)
        with self.distribute_strategy.scope():
            self._own_metrics = MetricsOfKeras(own, weighted_metrics or ())
        self._shows_accuracy = self.has_accuracy and has_accuracy
        further = {
            "steps_per_execution": steps_per_execution,
            "run_eagerly": run_eagerly,
            "jit_compile": jit_compile,
        }
        super().compile(
            optimizer,
            self.usual_objective_weights,
            clip_norm,
            accumulation_steps,
            skip_spikes,
            learning_rate,
            **further,
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

    def compile_from_config(self, config: dict[str, Any]) -> None:
        config = {name: value for name, value in config.items() if name != "objective_weights"}
        for name in ("loss", "metrics", "weighted_metrics"):
            if name in config:
                config[name] = keras.saving.deserialize_keras_object(config[name])
        super().compile_from_config(config)

    def _compile_again(self, **settings):
        self.compile(**settings)

    @property
    def metrics(self) -> list[Any]:
        return [*super().metrics, *(self._own_metrics.all if self._own_metrics else ())]

    @property
    def metrics_names(self) -> list[str]:
        own = self._own_metrics.all if self._own_metrics else ()
        accuracy = ["accuracy"] if self._shows_accuracy else []
        return ["loss", *accuracy, *(metric.name for metric in own)]

    def reset_metrics(self) -> None:
        super().reset_metrics()
        if self._own_metrics:
            self._own_metrics.reset()

    def usual_lr(self, optimizer: str, batch_size: int) -> float:
        return finetuning_lr(self.config.hidden_size, self.feature_settings.freeze_encoder)

    def usual_warmup(self, num_steps: int) -> int:
        return num_steps // 10

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
        of_validation = validation_batch_size or batch_size
        if self._takes_texts(x):
            if not is_stream(x):
                examples = examples_of(x, y, sample_weight, self.text_names)
                examples, held_out = examples.split(validation_split)
                self._learn_inputs(examples)
                reader = Reader(self, examples, is_fixed=True)
                steps_per_epoch = steps_per_epoch or -(-len(reader) // (batch_size or BATCH_SIZE))
                seed, first = (self.seed if shuffle else None), initial_epoch * steps_per_epoch
                x = in_epochs(reader, batch_size or BATCH_SIZE, seed, self._steps_from(first))
                if held_out is not None:
                    reader = Reader(self, held_out, self.needs_fixed_length)
                    validation_data = in_order(reader, of_validation or BATCH_SIZE)
            else:
                _check_stream(y, sample_weight, validation_split)
                x = Converter(self, True, True).converted(x, batch_size)
            y = sample_weight = batch_size = None
            validation_split, validation_batch_size = 0.0, None
        if validation_data is not None:
            parts = validation_data if isinstance(validation_data, tuple) else (validation_data,)
            of_x, of_y, weights = (*parts, None, None)[:3]
            validation_data = self._data(of_x, of_y, weights, of_validation)
        if class_weight is not None:
            x = self._with_class_weights(x, class_weight)
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
            x = self._data(x, y, sample_weight, batch_size=batch_size)
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
                data = Converter(self, self.needs_fixed_length, False).texts(x, batch_size)
                return _dense(super().predict(data, **further))
            examples = examples_of(x, None, None, self.text_names)
            self.note_inputs(examples.columns)
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
        examples = examples_of(x, None, None, self.text_names)
        self.note_inputs(examples.columns)
        return answers_of(self, examples.columns, batch_size)

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
        x, y, sample_weight = self._batch(x, y, sample_weight, learns=True)
        if class_weight is not None:
            x = self._weighted(class_weight)(x)
        return super().train_on_batch(
            x, y, sample_weight, reset_metrics=reset_metrics, return_dict=return_dict
        )

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
        return super().test_on_batch(*batch, reset_metrics=reset_metrics, return_dict=return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Returns the predictions for one batch, as in Keras."""
        if not self._takes_texts(x):
            return super().predict_on_batch(x)
        examples = examples_of(x, None, None, self.text_names)
        found = self(self.preprocessor.columns(examples.columns), training=False)
        return _dense(tf.nest.map_structure(_numpy, found))

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
        return shown | (self._own_metrics.results() if self._own_metrics else {})

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

    def _data(self, x, y=None, sample_weight=None, batch_size=None):
        """Returns examples to be scored as a data set of features."""
        if not self._takes_texts(x):
            return x if y is None and sample_weight is None else (x, y, sample_weight)
        is_fixed = self.needs_fixed_length
        if is_stream(x):
            _check_stream(y, sample_weight)
            return Converter(self, is_fixed, True).converted(x, batch_size)
        examples = examples_of(x, y, sample_weight, self.text_names)
        self.note_inputs(examples.columns)
        self._check_labels(examples)
        return in_order(Reader(self, examples, is_fixed), batch_size or BATCH_SIZE)

    def _batch(self, x, y, sample_weight, learns=False):
        """Returns a batch in memory as features, labels and weights."""
        if not self._takes_texts(x):
            return x, y, sample_weight
        examples = examples_of(x, y, sample_weight, self.text_names)
        self.note_inputs(examples.columns, learns)
        self._check_labels(examples)
        return Converter(self, False, True).batch((x, y, sample_weight)), None, None

    def _learn_inputs(self, examples):
        """Takes from the first examples of a training what a new model does not know yet."""
        self._check_labels(examples)
        self.note_inputs(examples.columns, learns=True)
        if examples.labels is not None:
            targets = self.targets(examples.labels, examples.columns)
            self.initialize_output_bias(next(iter(targets.values())))

    def _check_labels(self, examples):
        if examples.labels is None and self.needs_labels:
            raise InputError("There must be a label for each example. Received: none.")

    def _steps_from(self, first_step):
        """Returns a function for the number of the step at which batches of a `fit` begin.

        It counts the updates of the model, so that a callback that restores them, such as
        `BackupAndRestore`, continues with the batches that were not used yet.
        """
        before = int(self.optimizer.iterations.numpy())
        first_step = max(first_step, before)
        return lambda: first_step + int(self.optimizer.iterations.numpy()) - before

    def _with_class_weights(self, x, class_weight):
        """Returns features whose `sample_weight` includes the weight of the class of each row."""
        weighted = self._weighted(class_weight)
        if hasattr(x, "__next__"):
            return map(weighted, x)
        if not isinstance(x, tf.data.Dataset):
            raise InputError(
                "`class_weight` requires texts, in memory, in a data set or of a generator. "
                f"Received: {type(x).__name__}. Give `sample_weight` instead."
            )
        return x.map(weighted)

    def _weighted(self, class_weight):
        """Returns a function that weights the rows of features by their classes."""
        weights = self.class_weights(class_weight)

        def weighted(*features):
            features = _with_targets(features[0] if len(features) == 1 else features)
            of_rows = tf.gather(tf.constant(weights), features["labels"])
            given = features.get("sample_weight")
            return features | {"sample_weight": of_rows if given is None else of_rows * given}

        return weighted

    def class_weights(self, class_weight: Mapping[Any, float]) -> np.ndarray:
        """Returns the weight of each class, float32 [C], as `fit` takes them.

        Raises:
            InputError: If the model has no classes, or a class is unknown.
        """
        raise InputError(
            f"`class_weight` requires classes of texts. Received: {type(self).__name__}. Give "
            "`sample_weight` instead."
        )

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
            if has_loss or self._own_loss or (self._own_metrics and self._own_metrics.all):
                labels, predictions = self._compared(outputs, features)
                if self._own_metrics:
                    self._own_metrics.update(labels, predictions, weights, given)
                if has_loss:  # of a subclass, which weights the rows itself
                    found = self.compute_loss(features, labels, predictions, given)
                    found, given = tf.zeros_like(weights) + tf.cast(found, tf.float32), None
                elif self._own_loss:
                    found = tf.reshape(self._own_loss(labels, predictions), tf.shape(weights))
            return (found if given is None else found * given), is_right

        return {"answer": Objective(weights, of_rows)}


def is_accuracy(metric: Any) -> bool:
    """Returns whether a metric is the accuracy that the models have themselves."""
    return isinstance(metric, str) and metric in ("accuracy", "acc")


def _check_stream(labels, weights, validation_split=0.0):
    """Raises InputError for arguments that only go with examples in memory."""
    given = {"y": labels, "sample_weight": weights, "validation_split": validation_split or None}
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"`{name}` must not be given with a data set or a generator, whose elements have "
                "the labels and weights of their examples."
            )


def _with_targets(batch):
    """Returns the features of a batch of Keras, to which labels and weights are added."""
    if not isinstance(batch, tuple):
        return batch
    features, labels, weights = keras.utils.unpack_x_y_sample_weight(batch)
    if labels is not None:
        features = features | (labels if isinstance(labels, Mapping) else {"labels": labels})
    return features if weights is None else features | {"sample_weight": weights}


def _numpy(values):
    return values if isinstance(values, tf.RaggedTensor) else values.numpy()


def _dense(found):
    """Returns predictions as arrays; what differs in length is padded with zeros."""

    def dense(values):
        values = values.to_tensor().numpy() if isinstance(values, tf.RaggedTensor) else values
        return values.view(Predictions)

    return tf.nest.map_structure(dense, found)
