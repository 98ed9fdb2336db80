"""The base class of the models that learn from texts and answer texts: Keras models.

A model is an encoder, a head and a loss; a preprocessor in front of it makes its features of texts.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.layers.rows import shape_of
from albert_keras.models.encoder_with_head import AlbertForTask
from albert_keras.models.keras_losses import LossOfKeras, MetricsOfKeras
from albert_keras.models.objective_model import Objective, ObjectiveModel, with_autograph
from albert_keras.models.preprocessor import TextPreprocessor
from albert_keras.models.presets import answers_of, open_text_model
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
#: The loss of each row, and 1 where its answer is right, float32 [B].
Losses = tuple[tf.Tensor, tf.Tensor]


class AlbertForTexts(AlbertForTask, ObjectiveModel):
    """Base of the models of texts: encoder, head and loss, with a preprocessor in front.

    `fit`, `evaluate`, `predict`, `train_on_batch` and the call take texts, see
    `text_inputs.examples_of`, in memory, in data sets and from generators; or the features of the
    preprocessor. Without `compile`, `fit` uses the defaults of `finetune`.

    Args:
        config: AlbertConfig.
        preprocessor: TextPreprocessor, or None for a model that is only given features.
        labels: list of str or int. Names of the labels in the order of their numbers, or how many
            they are.
        pairs: bool or None. Whether an example is a pair of texts, where that is not fixed; None
            is decided by the first inputs of `fit`.
        thresholds: dict of str to float. What `answer` compares probabilities with.
        **kwargs: As in `AlbertForTask`: `head_dropout`, `seed`, `dtype`, `features`, ...
    """

    #: Whether an answer is simply right or wrong.
    has_accuracy = True
    #: Whether examples must have labels to be learned from.
    needs_labels = True
    #: Whether `compile` takes a loss and metrics of Keras.
    takes_losses = True
    #: Weights of the `objectives` in the loss.
    usual_objective_weights: Mapping[str, float] = {"answer": 1.0}
    #: Whether `labels` may name the outputs of the head.
    has_labels = False
    #: Tokens of a row, unless another number is given.
    usual_length = 128
    preprocessor_class: type[TextPreprocessor]

    def __init__(
        self,
        config: AlbertConfig,
        preprocessor: TextPreprocessor | None = None,
        labels: Sequence[str] = (),
        pairs: bool | None = None,
        thresholds: Mapping[str, float] | None = None,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", re.sub("(?<=.)(?=[A-Z])", "_", type(self).__name__).lower())
        super().__init__(config, **kwargs)
        self.preprocessor: Any = preprocessor
        self.labels, self.pairs = tuple(labels), pairs
        self.thresholds = dict(thresholds or {})
        self._own_loss: LossOfKeras | None = None
        self._own_metrics: MetricsOfKeras | None = None
        self._shows_accuracy = self.has_accuracy

    @classmethod
    def from_preset(
        cls,
        source: str | Path,
        labels: Sequence[str] | int | None = None,
        sequence_length: int | None = None,
        load_weights: bool = True,
        step: int | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Builds a model on a trained encoder, or opens a model that was trained before.

        Args:
            source: The name of a shipped model, a run, a checkpoint, an export, a `.keras` file, or
                a model of Hugging Face, of google-research/albert or of KerasNLP. The folder of a
                fine-tuning and a `.keras` file of this class, if no other labels are given, have
                their heads as well.
            labels: Names of the classes, tags or labels, in the order of their numbers; or how many
                they are.
            sequence_length: Tokens to which longer texts are truncated; None is the usual length of
                the class, as in `finetune`.
            load_weights: Whether to load the trained weights; if not, they are random.
            step: Checkpoint of a run, or "best"; None means the newest, of a fine-tuning the best.
            **kwargs: As in the class and its preprocessor: `head_dropout`, `seed`, `dtype`, ...

        Raises:
            InputError: If there is no such model, or it is damaged; or labels are missing.

        Example:
            model = AlbertForClassification.from_preset("albert-mini-en", labels=["neg", "pos"])
            model.fit(["a gripping film", "a dull film"], ["pos", "neg"])
            model.answer(["a film"])[0].label
        """
        return open_text_model(cls, source, labels, sequence_length, load_weights, step, **kwargs)

    # === What a subclass defines

    def predictions(self, outputs: Tensors) -> Any:
        """Returns what the call of the model returns, from its outputs."""
        raise NotImplementedError

    def predictions_of_texts(self, columns: Mapping[str, Any], training: bool) -> Any:
        """Returns the predictions for texts that take several rows, string [B] by name."""
        rows = self.preprocessor.rows(columns, self.needs_fixed_length)
        return self.predictions(self.outputs_of(rows, training))

    def compute_losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the loss of each row and 1 where the answer is right, float32 [B].

        Override it for an objective of your own.

        Args:
            outputs: What `outputs_of` returns.
            features: With the targets of the rows, such as "labels".
        """
        raise NotImplementedError

    def targets(self, labels: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the labels of a user as arrays, [N, ...] by name; InputError if one is wrong."""
        raise NotImplementedError

    def initial_output_bias(self, targets: np.ndarray) -> np.ndarray | None:
        """Returns the bias of an untrained head, see `initialize_output_bias`; None is zeros."""
        return None

    # === The model

    @property
    def tokenizer(self) -> Any:
        """Tokenizer of the preprocessor; None without one."""
        return None if self.preprocessor is None else self.preprocessor.tokenizer

    def call(
        self,
        inputs: Any,
        training: bool | None = None,
        dropout_seed: DropoutSeed | None = None,
    ) -> Any:
        if is_features(inputs):
            return self.predictions(self.outputs_of(inputs, training, dropout_seed))
        if self.preprocessor is None:
            raise ValueError(
                "A model without a preprocessor takes features, a dict with `input_ids`. "
                f"Received: {type(inputs).__name__}."
            )
        columns = self.preprocessor.columns(inputs)
        self.note_inputs(columns)
        return self.predictions_of_texts(columns, bool(training))

    @property
    def needs_fixed_length(self) -> bool:
        """Whether outputs depend on the padding, so that all rows must have the full length."""
        return self.config.is_sparse_at(self.preprocessor.sequence_length)

    @property
    def text_names(self) -> tuple[str, ...]:
        """Names of the texts of an example, in the order in which a tuple has them."""
        return self.preprocessor.fields + self.preprocessor.optional_fields

    def note_inputs(self, columns: Mapping[str, Any], learns: bool = False) -> None:
        """Checks that examples are pairs of texts if, and only if, those of the training were.

        Args:
            columns: By the names of the texts.
            learns: Whether the examples of a new model say what it takes.

        Raises:
            InputError: If they are not.
        """
        if "pair" not in self.preprocessor.optional_fields:
            return
        has_pairs = "pair" in columns
        if self.pairs is None and learns:
            self.pairs = has_pairs
        if self.pairs is not None and self.pairs != has_pairs:
            wanted, given = ("pairs of texts", "single texts")[:: 1 if self.pairs else -1]
            raise InputError(f"This model was made for {wanted}. Received: {given}.")

    def weights_of(self, features: Tensors) -> tf.Tensor:
        """Returns the weight of each loss: 1 for a real row, 0 for one that fills up the batch."""
        if "example_weights" not in features:
            return tf.ones(tf.shape(features["input_ids"])[:1])
        return tf.cast(features["example_weights"], tf.float32)

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
            if self._own_loss is not None or (self._own_metrics and self._own_metrics.all):
                labels, predictions = self._compared(outputs, features)
                if self._own_loss is not None:
                    found = tf.reshape(self._own_loss(labels, predictions), tf.shape(weights))
                if self._own_metrics:
                    self._own_metrics.update(labels, predictions, weights, given)
            return (found if given is None else found * given), is_right

        return {"answer": Objective(weights, of_rows)}

    def initialize_output_bias(self, targets: np.ndarray) -> None:
        """Initializes the bias of an untrained head with the frequencies of tags or labels.

        Most words have the tag `O`, and most labels do not apply. The first updates would otherwise
        learn this, with large gradients that are the same at all texts and tokens: of a small
        encoder they destroy what it knows. A bias that is not zero was trained, and stays. Other
        models do nothing: with two classes of MRPC, zeros are better (docs/measured.md).

        Args:
            targets: The "labels" of all rows, or the numbers of all tags.
        """
        values = None if targets is None else self.initial_output_bias(targets)
        if values is not None and not self.head.output_bias.numpy().any():
            self.head.output_bias.assign(values)

    # === Training

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
            texts = tf.data.Dataset.from_tensor_slices(
                self.preprocessor.columns(examples.rows(order).columns)
            )
            found = _dense(super().predict(texts.batch(batch_size or BATCH_SIZE), **further))
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
        if not isinstance(x, tf.data.Dataset):
            raise InputError(
                "`class_weight` requires texts, in memory or in a data set. "
                f"Received: {type(x).__name__}. Give `sample_weight` instead."
            )
        return x.map(self._weighted(class_weight))

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

    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Saves the model as Keras does: a `.keras` file, or a folder if there is no suffix."""
        if self.preprocessor is not None and self.save_spec() is None:
            self(self.sample_inputs())  # a folder has the call of the model, for texts
        super().save(filepath, *args, **kwargs)

    def sample_inputs(self) -> dict[str, Any]:
        """Returns an example of the texts that the model takes, as tensors by their names."""
        names = [name for name in self.text_names if name != "pair" or self.pairs]
        return {name: tf.constant(["text"]) for name in names}

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        if self.preprocessor is not None:
            config["preprocessor"] = self.preprocessor.get_config()
        known = {"labels": list(self.labels), "pairs": self.pairs, "thresholds": self.thresholds}
        return config | {
            name: value for name, value in known.items() if value not in (None, [], {})
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        config = config_of_earlier_versions(config)
        if isinstance(config.get("preprocessor"), Mapping):
            config["preprocessor"] = cls.preprocessor_class.from_config(config["preprocessor"])
        return super().from_config(config)

    def __repr__(self) -> str:
        labels = f", labels {', '.join(self.labels)}" if self.labels else ""
        of_texts = "" if self.preprocessor is None else f", {self.preprocessor!r}"
        return f"<{type(self).__name__} {self.config.summary()}{labels}{of_texts}>"


def config_of_earlier_versions(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration of a model; earlier versions saved a task and a tokenizer."""
    config = dict(config)
    task, tokenizer = config.pop("task", None), config.pop("tokenizer", None)
    thresholds = config.pop("tuned", None)
    if task is None and tokenizer is None:
        return config
    task = task or {}
    config |= {"labels": task["labels"]} if task.get("labels") else {}
    config["thresholds"] = thresholds or {}
    if task.get("name") in ("classification", "pair", "regression"):
        config["pairs"] = task.get("pair") is not None
    if task.get("threshold") is not None and not config["thresholds"]:
        config["threshold"] = task["threshold"]
    config |= {name: task[name] for name in ("n_best", "max_answer_length") if name in task}
    if tokenizer is not None:
        of_rows = ("word_split", "max_qa_length", "max_query_length", "doc_stride")
        config["preprocessor"] = {
            "tokenizer": tokenizer,
            **({"sequence_length": task["max_seq_length"]} if "max_seq_length" in task else {}),
            **{name: task[name] for name in of_rows if name in task},
        }
    return config


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
        return values.to_tensor().numpy() if isinstance(values, tf.RaggedTensor) else values

    return tf.nest.map_structure(dense, found)


def of_classes(logits: Any, labels: Any) -> Losses:
    """Compares [..., C] with int [...]; returns cross-entropies and 1 where right, float32."""
    labels, logits = tf.convert_to_tensor(labels), tf.cast(logits, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    is_right = tf.equal(tf.argmax(logits, -1, labels.dtype), labels)
    return losses, tf.cast(is_right, tf.float32)


def sequences_of_rows(inputs: Tensors, dropout_seed: Any) -> tuple[dict[str, Any], Any, Any]:
    """Makes the sequences of rows, [B, C, S], the rows of a batch, [B C, S].

    Returns:
        dict of int [B C, S]; DropoutSeed or None for them; C.
    """
    _, count, length = shape_of(tf.convert_to_tensor(inputs["input_ids"]))
    names = [name for name in ("input_ids", "input_mask", "segment_ids") if name in inputs]
    texts = {name: tf.reshape(inputs[name], (-1, length)) for name in names}
    return texts, dropout_seed and dropout_seed.of_sequences(count), count
