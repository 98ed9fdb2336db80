"""How a model of texts is trained, scored and asked: by the methods of `keras.Model`.

Each of them turns texts into features, labels and weights, and calls the method of Keras.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.keras_versions import BuiltModel, is_compiled
from albert_keras.layers.kernels import compiled_kernels, compiled_part_of, has_gpu, is_on_cpu
from albert_keras.models.planned_training import PlannedTraining
from albert_keras.models.row_predictor import RowPredictor
from albert_keras.models.text_data import (
    BATCH_SIZE,
    Converter,
    Reader,
    error_of_input,
    is_features,
    is_stream,
)
from albert_keras.models.text_inputs import Examples, alike, examples_of, plain, sizes_of
from albert_keras.models.text_rows import TextRows
from albert_keras.optimization.config import (
    FinetuneOptimizer,
    finetuning_lr,
    finetuning_optimizer,
)
from data_pipeline.errors import InputError

#: Outputs of a model, or features of a batch, by name.
Tensors = Mapping[str, Any]


class TextTraining(PlannedTraining, BuiltModel):
    """What `compile`, `fit`, `evaluate`, `predict` and the calls for one batch do with texts.

    The training step, losses, metrics, weights of examples and classes, and callbacks are those of
    Keras, as for a model of the features that `preprocessor` makes.
    """

    config: Any
    preprocessor: Any
    feature_settings: Any
    #: Whether an answer is simply right or wrong.
    has_accuracy = True
    #: Whether examples must have labels to be learned from.
    needs_labels = True
    optimizer_class = FinetuneOptimizer
    #: The loss and the metrics that `compile` takes, unless others are given.
    usual_loss: Any = None
    usual_loss_weights: Any = None
    usual_metrics: Any = None
    _predictor: RowPredictor | None = None

    def compile(  # type: ignore[override]
        self,
        optimizer: Any = "auto",
        loss: Any = "auto",
        metrics: Any = "auto",
        *,
        weighted_metrics: Any = None,
        learning_rate: Any = "auto",
        jit_compile: bool | str | None = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures the training; without it, `fit` uses the defaults of `finetune`.

        Args:
            optimizer: "lamb", "adamw" or "muon", which clip gradients to a global norm of 1, with a
                tenth of the updates of each `fit` as warm-up and a linear decay over the rest; or
                any optimizer of Keras, or its name. "auto" depends on the hidden size, as in
                `finetune`.
            loss: As in Keras; "auto" is the loss of the class. It is given what the call returns,
                such as probabilities.
            metrics: As in Keras; "auto" is the accuracy, where the class has one, unless a loss or
                `weighted_metrics` are given.
            weighted_metrics: As in Keras.
            learning_rate: float, schedule or "auto". Peak rate of an optimizer that is named, or
                its schedule.
            jit_compile: What XLA compiles: True or "step" for each step, as in Keras; "kernels" for
                what lies between the products; False or "none" for nothing. "auto" or None is
                "kernels" on one CPU and on GPUs.
            **kwargs: As in Keras: `steps_per_execution`, `run_eagerly` and others.

        Raises:
            ValueError: For a learning rate beside an optimizer that has one, or another value of
                `jit_compile`.
        """
        part = compiled_part_of(jit_compile)
        given = {"loss": loss, "metrics": metrics, "weighted_metrics": weighted_metrics}
        self._remember(**given, jit_compile=jit_compile, **kwargs)
        if isinstance(optimizer, str) and optimizer == "auto":
            optimizer = finetuning_optimizer(
                self.config.hidden_size, self.feature_settings.freeze_encoder
            )
        if isinstance(metrics, str) and metrics == "auto":
            is_usual = self.has_usual_loss and not weighted_metrics
            metrics = self.usual_metrics if is_usual else None
        optimizer = self._optimizer(optimizer, learning_rate, clips=True)
        with self.distribute_strategy.scope(), self._steps_on_features():
            if self.has_usual_loss and self.usual_loss_weights:
                kwargs = {"loss_weights": self.usual_loss_weights} | kwargs
            super().compile(
                optimizer,
                self.usual_loss if self.has_usual_loss else loss,
                metrics=metrics,  # by name: Keras 3 has another order
                weighted_metrics=weighted_metrics,
                jit_compile=part == "step",
                **kwargs,
            )

    @contextlib.contextmanager
    def _steps_on_features(self) -> Iterator[None]:
        """Context in which Keras 3 finds that XLA can compile the model.

        It asks all layers. A step reads features and no texts, unless windows are put together
        again; a preprocessor in another model reads texts.
        """
        if self.preprocessor is not None:
            self.preprocessor.supports_jit = not self.preprocessor.uses_windows
        try:
            yield
        finally:
            if self.preprocessor is not None:
                self.preprocessor.supports_jit = False

    @property
    def has_usual_loss(self) -> bool:
        """bool. Whether the loss is that of the class."""
        loss = self._compiled_with.get("loss", "auto")
        return isinstance(loss, str) and loss == "auto"

    def usual_lr(self, optimizer: str, batch_size: int) -> float:
        """Returns the default of the peak learning rate of an optimizer that is named."""
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
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: Mapping[Any, float] | None = None,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the model, as `fit` of Keras.

        Args:
            x: Texts in memory, see `text_inputs.examples_of`; a data set, in batches or not, of
                texts and labels, perhaps with weights; a generator or a Sequence of batches; or
                features of the preprocessor, as in Keras.
            y: Labels: names, numbers or booleans, one-hot, or a value for each class; None if `x`
                has them.
            batch_size, epochs, verbose, callbacks, shuffle: As in Keras.
            validation_split: Fraction of the examples in memory, the last ones, that is scored
                after each epoch and not trained on.
            validation_data: Instead: (x, y), (x, y, weights) or a data set.
            class_weight: By class, its number or its name, how much its examples count.
            sample_weight: float [N]. How much each example counts.
            **kwargs: As in Keras.

        Returns:
            History of `loss` and the metrics of `compile`, with `val_` of the validation.

        Raises:
            InputError: If inputs and labels do not suit the model.
        """
        self._compile_if_needed()
        kwargs |= {"verbose": verbose, "callbacks": callbacks, "shuffle": shuffle}
        _size(batch_size)  # which checks it
        of_validation = kwargs.pop("validation_batch_size", None)
        if self._takes_texts(x):
            if is_stream(x):
                _check_stream(y, sample_weight, validation_split)
                converter = Converter(self, True, True, learns=True)
                x, batch_size = converter.converted(x, batch_size), None
            else:
                examples = self.examples(x, y, sample_weight, has_targets=True, learns=True)
                examples, held_out = examples.split(validation_split)
                self.learn_labels(examples)
                x, y, sample_weight = Reader(self, examples).arrays(is_fixed=True)
                if held_out is not None:
                    validation_data = held_out.columns, held_out.labels, held_out.weights
                validation_split = 0.0
        else:
            y = self.named_targets(y)
        if validation_data is not None:
            validation_data = keras.utils.unpack_x_y_sample_weight(validation_data)
            if not is_stream(validation_data[0]):
                of_validation = of_validation or batch_size
            validation_data = self._scored(validation_data, of_validation)
            if isinstance(validation_data, tuple):  # features
                kwargs["validation_batch_size"] = of_validation
        if class_weight is not None:
            if sample_weight is not None or len(getattr(x, "element_spec", ())) > 2:
                raise InputError(
                    "`class_weight` must not be given beside weights of examples. Multiply these "
                    "by the weights of their classes."
                )
            class_weight = self.class_weights(class_weight)
        kwargs["callbacks"] = self._plan(x, batch_size, epochs, **kwargs)
        if is_stream(x) and not isinstance(x, keras.utils.Sequence):
            kwargs["shuffle"] = False  # Keras 3 warns that it cannot
        kwargs |= {"validation_split": validation_split, "validation_data": validation_data}
        kwargs |= {"class_weight": class_weight, "sample_weight": sample_weight}
        with error_of_input():
            return super().fit(x, y, batch_size, epochs, **kwargs)

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the loss and the metrics, as `evaluate` of Keras; arguments as in `fit`.

        `evaluate_task` computes the official scores of a task.
        """
        self._compile_if_needed()
        if not kwargs.get("_use_cached_eval_dataset"):  # `fit` has converted what it scores
            scored = self._scored((x, y, sample_weight), batch_size)
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(scored)
            batch_size = None if is_stream(x) else batch_size
        with error_of_input():
            return super().evaluate(x, y, batch_size, verbose, sample_weight, **kwargs)

    def predict(  # type: ignore[override]
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Returns what the call of the model returns, as NumPy arrays; arguments as in `fit`.

        Unless there are callbacks, examples in memory are computed in the order of their lengths,
        which takes less time.
        """
        kwargs |= {"verbose": verbose, "steps": steps, "callbacks": callbacks}
        if not self._takes_texts(x):
            return super().predict(x, batch_size, **kwargs)
        with error_of_input():
            if is_stream(x):
                data = Converter(self, self.needs_fixed_length, False).converted(x, batch_size)
                return _dense(super().predict(data, **kwargs))
            examples, size = self.examples(x), _size(batch_size)
            order = np.arange(len(examples))
            if not (callbacks or steps):
                order = np.argsort(sizes_of(examples.columns), kind="stable")
                examples = examples.rows(order)
            if self.preprocessor.uses_windows:
                columns = self.preprocessor.columns(examples.columns)
                data = tf.data.Dataset.from_tensor_slices(columns).batch(size)
            else:
                examples = Examples(examples.columns)
                data = Reader(self, examples).in_order(size, self.needs_fixed_length)
                data = data.map(lambda *batch: batch[0])
            found = _dense(super().predict(data, **kwargs))
        places = np.argsort(order)  # of the first `steps` batches, if only these were computed
        return tf.nest.map_structure(lambda values: values[places[: len(values)]], found)

    def answer(self, x: Any, batch_size: int = 64) -> list[Any]:
        """Answers texts in memory: a list with one named tuple per example, such as `ClassAnswer`.

        Args:
            x: As in `fit`.
            batch_size: Examples per device and call.
        """
        return self.answers(self.examples(x).columns, batch_size)

    def answers(
        self, columns: Mapping[str, Sequence[Any]], batch_size: int = 64, ids: Any = None
    ) -> list[Any]:
        """Returns the answers to texts by name, see `TextPreprocessor.fields`, in their order.

        Args:
            columns: Lists, equally long; "options" may differ in their number.
            batch_size: Rows per device and call.
            ids: list of str. Of the examples; None is their numbers.

        Raises:
            InputError: If an output of the model is not finite.
        """
        if self._predictor is None or self._predictor.batch_size != batch_size:
            self._predictor = RowPredictor.of_model(self, batch_size)
        count = len(next(iter(columns.values())))
        ids = list(ids or map(str, range(count)))
        found: list[Any] = [None] * count
        for numbers in alike(columns):
            some = {name: [values[at] for at in numbers] for name, values in columns.items()}
            rows = TextRows(self.preprocessor, some)
            outputs = self._predictor.predict(rows)
            answers = rows.answers(self, outputs, [ids[at] for at in numbers])
            for at, answer in zip(numbers, answers, strict=True):
                found[at] = answer
        return found

    def train_on_batch(  # type: ignore[override]
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Mapping[Any, float] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Makes one update, as in Keras; arguments as in `fit`."""
        self._compile_if_needed()
        batch = self._one_batch(x, y, sample_weight, learns=True)
        class_weight = None if class_weight is None else self.class_weights(class_weight)
        return super().train_on_batch(*batch, class_weight, *args, **kwargs)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Scores one batch, as in Keras; arguments as in `fit`."""
        self._compile_if_needed()
        return super().test_on_batch(*self._one_batch(x, y, sample_weight), *args, **kwargs)

    def predict_on_batch(self, x: Any) -> Any:
        """Returns the predictions for one batch, as in Keras."""
        if not self._takes_texts(x):
            return super().predict_on_batch(x)
        columns = self.preprocessor.columns(self.examples(x).columns)
        return _dense(self(columns, training=False))

    def as_losses_read(self, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Returns labels, predictions and weights of a batch as losses and metrics of Keras read
        them."""
        return y, y_pred, sample_weight

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        return super().compute_loss(x, *self.as_losses_read(y, y_pred, sample_weight), **kwargs)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return super().compute_metrics(x, *self.as_losses_read(y, y_pred, sample_weight))

    def train_step(self, *args: Any) -> Any:
        with self._kernels(is_on_cpu() or has_gpu()):
            return super().train_step(*args)

    def test_step(self, *args: Any) -> Any:
        with self._kernels(has_gpu()):  # on a CPU, TensorFlow joins the operations of inference
            return super().test_step(*args)

    def predict_step(self, *args: Any) -> Any:
        with self._kernels(has_gpu()):
            return super().predict_step(*args)

    @contextlib.contextmanager
    def _kernels(self, wanted: bool) -> Iterator[None]:
        """Context in which kernels are compiled, if `compile` left it open and it pays."""
        part = compiled_part_of(self._compiled_with.get("jit_compile"))
        with compiled_kernels(part == "kernels" or (wanted and part == "auto")):
            yield

    # === Texts → features, labels and weights

    def _compile_if_needed(self):
        if not is_compiled(self):
            self.compile()

    def _takes_texts(self, x):
        """Returns whether inputs must be converted: texts, or features with names of labels."""
        if is_features(x):
            spec = getattr(x, "element_spec", None)
            y = spec[1] if isinstance(spec, tuple) and len(spec) > 1 else None
            return isinstance(y, tf.TensorSpec) and y.dtype == tf.string
        if self.preprocessor is None:
            raise ValueError(
                "A model without a preprocessor takes features, a dict with `input_ids`. "
                f"Received: {type(x).__name__}."
            )
        return True

    def _scored(self, batch, batch_size):
        """Returns examples to be scored, (x, y, weights): a data set, or features as given."""
        x, y, sample_weight = batch
        if not self._takes_texts(x):
            return x if is_stream(x) else (x, self.named_targets(y), sample_weight)
        is_fixed = self.needs_fixed_length
        if is_stream(x):
            _check_stream(y, sample_weight)
            return Converter(self, is_fixed, True).converted(x, batch_size)
        examples = self.examples(x, y, sample_weight, has_targets=True)
        return Reader(self, examples).in_order(_size(batch_size), is_fixed)

    def _one_batch(self, x, y, sample_weight, learns=False):
        """Returns examples in memory as one batch of features, labels and weights."""
        if not self._takes_texts(x):
            return x, self.named_targets(y), sample_weight
        examples = self.examples(x, y, sample_weight, has_targets=True, learns=learns)
        if learns:
            self.learn_labels(examples)
        return Reader(self, examples).arrays(is_fixed=False)

    def named_targets(self, y: Any) -> Any:
        """Returns labels beside features: names become numbers, others stay as they are."""
        values = None if isinstance(y, str | Mapping) else plain(y)
        names = tf.nest.flatten(values) if isinstance(values, list) else ()
        if not names or not all(isinstance(name, str) for name in names):
            return y
        return self.targets(values, {})

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
        self.preprocessor.check_names(examples.columns)
        if has_targets and examples.labels is None and self.needs_labels:
            raise InputError("There must be a label for each example. Received: none.")
        self.note_inputs(examples.columns, learns)
        return examples

    def learn_labels(self, examples: Examples) -> None:
        """Initializes the output bias by the labels of the first examples of a training.

        They are those in memory, or the first batch of a stream; see `initialize_output_bias`.
        """
        if examples.labels is not None:
            self.initialize_output_bias(self.targets(examples.labels, examples.columns))


def _size(batch_size):
    """Returns the examples of a batch; InputError unless that is a positive number or None."""
    if batch_size is not None and batch_size < 1:
        raise InputError(f"`batch_size` must be at least 1. Received: {batch_size}.")
    return batch_size or BATCH_SIZE


def _check_stream(labels, weights, validation_split=0.0):
    """Raises InputError for arguments that only go with examples in memory."""
    given = {"y": labels, "sample_weight": weights, "validation_split": validation_split or None}
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"`{name}` must not be given with a data set or a generator, whose elements have "
                "the labels and weights of their examples."
            )


def _dense(found):
    """Returns predictions as arrays; what differs in length is padded with zeros."""
    return tf.nest.map_structure(
        lambda one: np.asarray(one.to_tensor() if isinstance(one, tf.RaggedTensor) else one), found
    )
