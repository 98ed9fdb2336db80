"""The base class of models for tasks: they learn from texts, answer texts, and know their loss.

A model may be used in two ways. With a task and a tokenizer, as from `from_preset`, it takes texts,
words or questions as they are. Without them, or if it is given dicts of features, it is a Keras
model of token ids.
"""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import kind_of_run
from albert_keras.formats.open_model import open_model
from albert_keras.models.encoder_with_head import AlbertForTask
from albert_keras.models.objective_model import Objective, ObjectiveModel, with_autograph
from albert_keras.models.preprocessor import restored_tokenizer, tokenizer_config
from albert_keras.runs.run import Run
from albert_keras.tasks.example_source import ExampleSource
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.given import columns_of, examples_of
from albert_keras.tasks.kinds import build_task, load_class
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.score_dev import score_splits
from albert_keras.tasks.tagging.words import with_word_split
from albert_keras.tasks.task import Features
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.training.build import compile_step
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Rows whose loss is computed at a time in an evaluation.
_ROWS_AT_ONCE = 256
#: Outputs of a model, or features of a batch, by name.
Tensors = Mapping[str, Any]
#: The loss of each row, and 1 where its answer is right, float32 [B].
Losses = tuple[tf.Tensor, tf.Tensor]


class AlbertTaskModel(AlbertForTask, ObjectiveModel):
    """An encoder, a head and a loss; further arguments as in `AlbertForTask`.

    Args:
        config: AlbertConfig.
        task: TaskConfig, its values by name, or None. What the answers are: labels, length.
        tokenizer: Tokenizer, what `tokenizer_config` returned for one, or None.
        tuned: dict of str to float. What `Task.tuned_answers` found, such as the threshold of "no
            answer".

    Attributes:
        task: Task or None.
        tokenizer: Tokenizer or None.
    """

    #: Whether an answer is simply right or wrong.
    has_accuracy = True
    #: Whether the rows and outputs outside of training have a loss, too.
    has_loss_of_outputs = True
    #: Weights of the `objectives` in the loss.
    objective_weights_of_task: Mapping[str, float] = {"answer": 1.0}
    #: Settings of the task that `from_preset` builds a model for, and whether it must have labels.
    preset_task: Mapping[str, Any] = {}
    needs_labels = False

    def __init__(
        self,
        config: AlbertConfig,
        task: TaskConfig | Mapping[str, Any] | None = None,
        tokenizer: Tokenizer | Mapping[str, Any] | None = None,
        tuned: Mapping[str, float] | None = None,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", re.sub("(?<=.)(?=[A-Z])", "_", type(self).__name__).lower())
        super().__init__(config, **kwargs)
        task = TaskConfig(**task) if isinstance(task, Mapping) else task
        self.task: Any = None if task is None else build_task(task)
        given = dict(tokenizer) if isinstance(tokenizer, Mapping) else tokenizer
        self.tokenizer: Any = None if given is None else restored_tokenizer(given)
        self.tuned = dict(tuned or {})
        self._row_predictor: RowPredictor | None = None
        self._compile_settings: dict[str, Any] | None = None

    @classmethod
    def usual_task(cls, labels: tuple[str, ...] | None, **kwargs: Any) -> dict[str, Any]:
        """Returns the settings of the task that `from_preset` builds a model for."""
        if not cls.needs_labels:
            return dict(cls.preset_task)
        if not labels:
            raise InputError(
                '`labels` must be the names of the labels, such as ["neg", "pos"]. Received: none.'
            )
        return {**cls.preset_task, "labels": labels}

    @classmethod
    def from_preset(
        cls,
        source: str | Path,
        labels: Sequence[str] | None = None,
        sequence_length: int | None = None,
        load_weights: bool = True,
        step: int | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Builds a model on a trained encoder, or opens a model that was fine-tuned.

        Args:
            source: The name of a shipped model, a run, a checkpoint, an export, a `.keras` file, or
                a model of Hugging Face, of google-research/albert or of KerasNLP. The folder of a
                fine-tuning of this kind, if no other labels are given, has its head as well.
            labels: Names of the classes, tags or labels, in the order of their numbers.
            sequence_length: Tokens to which longer texts are truncated; None is the usual length of
                the task, as in `finetune`.
            load_weights: Whether to load the trained weights; if not, they are random.
            step: Checkpoint of a run, or "best"; None means the newest, of a fine-tuning the best.
            **kwargs: As in the class: `head_dropout`, `seed`, `dtype`, `features`, ...

        Raises:
            InputError: If there is no such model, or it is damaged, or labels are missing.

        Example:
            model = AlbertForClassification.from_preset("albert-mini-en", labels=["neg", "pos"])
            model.fit(["a gripping film", "a dull film"], ["pos", "neg"])
            model.predict(["a film"])[0].label
        """
        from albert_keras.tasks.finetuned import find_run, open_finetuned, task_of

        if load_weights and kind_of_run(Path(source)) == "finetuning":
            source = find_run(source)
            task = task_of(Run.open(source))
            is_same = load_class(task.kind.model_class) is cls
            if is_same and (labels is None or list(labels) == list(task.labels)):
                if others := sorted(kwargs.keys() - {"dtype"}):
                    raise InputError(
                        f"`{others[0]}` must not be given: `{source}` is fine-tuned, and the model "
                        "has the settings of its training."
                    )
                model = open_finetuned(source, step or "best", kwargs.get("dtype"))
                longest = model.config.max_position_embeddings
                length = min(sequence_length or task.max_seq_length, longest)
                model.task = build_task(model.task.config.replace(max_seq_length=length))
                return model
        weights = open_model(source, step)
        names = None if labels is None else tuple(map(str, labels))
        longest = min(sequence_length or sys.maxsize, weights.albert_config.max_position_embeddings)
        config = TaskConfig(**cls.usual_task(names, longest=longest, **kwargs))
        length = min(sequence_length or build_task(config).usual_length, longest)
        task = build_task(config.replace(max_seq_length=length))
        model = task.build_model(
            weights.albert_config, task=task.config, tokenizer=weights.tokenizer, **kwargs
        )
        if load_weights:
            weights.load(model)
        return model

    # What is trained

    def losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the loss of each row and 1 where the answer is right, float32 [B].

        Override it for an objective of your own.

        Args:
            outputs: The outputs of the model in training.
            features: The targets of `Features.batch`.
        """
        raise NotImplementedError

    def initialize_output_bias(self, features: Features) -> None:
        """Initializes the bias of an untrained head with the frequencies of tags or labels.

        Most words have the tag `O`, and most labels do not apply. The first updates would otherwise
        learn this, with large gradients that are the same at all texts and tokens: of a small
        encoder they destroy what it knows. A bias that is not zero was trained, and stays. Other
        models do nothing: with two classes of MRPC, zeros are better (docs/measured.md).

        Args:
            features: The training examples, with their targets.
        """

    def weights_of(self, features: Tensors) -> tf.Tensor:
        """Returns the weight of each loss: 1 for a real row, 0 for one that fills up the batch."""
        if "example_weights" not in features:
            return tf.ones(tf.shape(features["input_ids"])[:1])
        return tf.cast(features["example_weights"], tf.float32)

    def objectives(self, features):
        weights = self.weights_of(features)
        losses = with_autograph(self.losses)
        return {"answer": Objective(weights, lambda outputs: losses(outputs, features))}

    def _results(self):
        return {
            name: value
            for name, value in super()._results().items()
            if self.has_accuracy or not name.endswith("_accuracy")
        }

    # How Keras users train, ask and save it

    def compile(  # type: ignore[override]
        self,
        optimizer: str | keras.optimizers.Optimizer = "adamw",
        learning_rate: float | str = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures the training; without it, `fit` uses the defaults of `finetune`.

        Args:
            optimizer: "adamw", "lamb" or "muon", with a tenth of the updates as warm-up and a
                linear decay over the rest; or any optimizer of Keras.
            learning_rate: Peak learning rate of a named optimizer; "auto" depends on the hidden
                size, as in `finetune`.
            **kwargs: `clip_norm`, the largest global norm of the gradients (1.0 by default, None
                for none); `accumulation_steps` and `skip_spikes`, see `LoopConfig`; and arguments
                of `keras.Model.compile` except losses and metrics, which the task determines.
        """
        for name in ("loss", "metrics", "loss_weights", "weighted_metrics"):
            if kwargs.pop(name, None):
                raise InputError(
                    f"`{name}` must not be given: the task determines losses and scores. Override "
                    "`losses` for an objective of your own."
                )
        own = ("clip_norm", "accumulation_steps", "skip_spikes")
        given = {name: kwargs.pop(name) for name in own if name in kwargs}
        if isinstance(optimizer, str):
            self._compile_settings = given | {"name": optimizer, "lr": learning_rate} | kwargs
            return
        self._compile_settings = None
        super().compile(optimizer, self.objective_weights_of_task, **given, **kwargs)

    def compile_for(self, config: FinetuneConfig) -> None:
        """Compiles the model for a resolved configuration; call it in the strategy's scope."""
        compile_step(self, config)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        verbose: Any = "auto",
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        validation_split: float = 0.0,
        validation_data: tuple[Any, Any] | Any = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the model.

        Args:
            x: The inputs of N examples, see `examples_of`; or dicts of features, as in Keras, such
                as `input_ids` and `input_mask`, which may have the targets (`labels` of classes)
                and weights of rows (`example_weights`), too.
            y: Their labels; None if `x` has them.
            batch_size: Examples per update; by default that of `finetune`.
            epochs: Passes over the examples; by default those of `finetune`.
            validation_split: Fraction of the examples, the last ones, that is scored after each
                epoch and not trained on.
            validation_data: Instead: other inputs and labels, or a dataset of both.
            **kwargs: `initial_epoch`; for features also the others of `keras.Model.fit`.

        Returns:
            History of `loss`, `accuracy` and, of the validation, `val_loss` and the task's scores,
            such as `val_accuracy`.

        Raises:
            InputError: If inputs and labels do not suit the task.
        """
        if self._takes_features(x):
            if not hasattr(self, "guard") or self._compile_settings is not None:
                raise InputError(
                    "A model that is given features must be compiled with an optimizer of Keras."
                )
            return super().fit(
                x, y, batch_size, epochs or 1, verbose, callbacks,
                validation_split, validation_data, **kwargs,
            )  # fmt: skip
        for name in kwargs.keys() - {"initial_epoch"}:
            raise InputError(
                f"`{name}` must not be given with texts, whose order depends only on the seed, and "
                "each of which counts once. Give dicts of features to train otherwise."
            )
        examples = self._examples(x, y)
        config = with_word_split(self.task.config, examples)
        if config != self.task.config:
            self.task = build_task(config)
        held_out = []
        if validation_split:
            split = math.floor(len(examples) * (1 - validation_split))
            examples, held_out = examples[:split], examples[split:]
        if validation_data is not None:
            pair = validation_data if isinstance(validation_data, tuple) else (validation_data,)
            if len(pair) > 2:
                raise InputError(
                    "`validation_data` of texts must be inputs and labels, without weights. "
                    f"Received: {len(pair)} parts."
                )
            held_out = self._examples(*pair)
        task, tokenizer = self.task, self.tokenizer
        features = task.features(examples, tokenizer, training=True)
        config = self._fit_config(len(features), batch_size, epochs)
        training = config.training
        if self._compile_settings is not None or not hasattr(self, "guard"):
            with self.distribute_strategy.scope():
                self.compile_for(config)
        elif self._has_ended():
            raise InputError(
                "The schedule of the learning rate has ended: it is 0. Call `compile` before you "
                "train the model further."
            )
        first = kwargs.get("initial_epoch", 0)
        every = math.ceil(len(features) / training.batch_size)
        self.initialize_output_bias(features)
        source = ExampleSource(features, tokenizer, training, {})

        def add_scores(epoch, logs):
            """Scores held-out examples after each epoch, for the callbacks that follow."""
            scores, self.tuned = self._scored(held_out, tunes=True)
            logs.update({f"val_{name}": value for name, value in scores.items()})

        own = [keras.callbacks.LambdaCallback(on_epoch_end=add_scores)] if held_out else []
        return super().fit(
            source.batches(self.distribute_strategy, first * every),
            epochs=math.ceil(training.epochs),
            steps_per_epoch=every,
            verbose=verbose,
            callbacks=[*own, *(callbacks or ())],
            **kwargs,
        )

    def evaluate(self, x: Any = None, y: Any = None, batch_size: int = 64, **kwargs: Any) -> Any:
        """Scores the model: returns a dict of its loss and the scores of the task.

        Args:
            x, y: As in `fit`.
            batch_size: Examples per device and call.
        """
        if self._takes_features(x):
            return super().evaluate(x, y, batch_size, **kwargs)
        return self._scored(self._examples(x, y), batch_size)[0]

    def predict(self, x: Any, batch_size: int = 64, **kwargs: Any) -> Any:
        """Answers inputs.

        Args:
            x: As in `fit`.
            batch_size: Examples per device and call.

        Returns:
            A list with one named tuple per input, such as `ClassAnswer`; for features what Keras
            returns.
        """
        if self._takes_features(x):
            return super().predict(x, batch_size, **kwargs)
        return self.answers(self._examples(x), batch_size)

    def examples(self, inputs: list[dict[str, Any] | str]) -> list[Any]:
        """Returns examples made from a user's inputs, see `Task.typed_examples`."""
        return self.task.typed_examples(inputs)

    def answers(self, examples: list[Any], batch_size: int = 64) -> list[Any]:
        """Answers examples: list of named tuples, see `Task.answers`."""
        features, outputs = self.compute_outputs(examples, batch_size)
        return self.task.answers(examples, features, outputs, self.tuned or None)

    def compute_outputs(
        self, examples: list[Any], batch_size: int = 64
    ) -> tuple[Features, dict[str, np.ndarray]]:
        """Returns the features of examples, and the outputs of `call` for them."""
        task, tokenizer = self.task, self.tokenizer
        features = task.features(examples, tokenizer)
        if self._row_predictor is None or self._row_predictor.batch_size != batch_size:
            self._row_predictor = RowPredictor(
                self.distribute_strategy, self, batch_size, task.kind.per_position
            )
        return features, self._row_predictor.predict(features)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        if self.task is not None:
            config["task"] = self.task.config.model_dump(mode="json", exclude_defaults=True)
        if self.tokenizer is not None:
            config["tokenizer"] = tokenizer_config(self.tokenizer)
        return config | ({"tuned": self.tuned} if self.tuned else {})

    def _has_ended(self):
        """Returns whether the learning rate of the next update is 0."""
        # Keras' `learning_rate` is the rate of the last update.
        rate = getattr(self.optimizer, "_learning_rate", self.optimizer.learning_rate)
        return float(rate(self.optimizer.iterations) if callable(rate) else rate) == 0

    def train_step(self, features):
        results = super().train_step(_with_targets(features))
        return results if self.has_full_logs else _shown(results)

    def test_step(self, features):
        return _shown(super().test_step(_with_targets(features)))

    def _takes_features(self, x):
        """Returns whether inputs are dicts of token ids, so that Keras itself handles them."""
        if self.task is None or self.tokenizer is None:
            return True
        spec = getattr(x, "element_spec", x)
        spec = spec[0] if isinstance(spec, tuple) and isinstance(spec[0], Mapping) else spec
        return isinstance(spec, Mapping) and "input_ids" in spec

    def _examples(self, x, y=None):
        columns, truths = columns_of(self.task, x, y)
        if "pair" in columns and "pair" not in self.task.fields:
            self.task = build_task(self.task.config.replace(pair="pair"))
        return examples_of(self.task, columns, truths)

    def _fit_config(self, num_rows, batch_size, epochs):
        """Returns the resolved FinetuneConfig of a `fit`; None takes the default."""
        given = dict(self._compile_settings or {})
        training = {"seed": self.seed, "precision": self.dtype_policy.name}
        training |= {"batch_size": batch_size} if batch_size else {}
        training |= {"epochs": epochs} if epochs else {}
        of_loop = ("accumulation_steps", "skip_spikes", "steps_per_execution")
        training |= {name: given.pop(name) for name in of_loop if name in given}
        config = FinetuneConfig(
            task=self.task.config, training=training, optimizer=given, model=self.feature_settings
        )
        rows = config.training.batch_size * math.ceil(num_rows / config.training.batch_size)
        return config.resolved(self.task, self.config.hidden_size, rows, self.dtype_policy.name)

    def _scored(self, examples, batch_size=64, tunes=False):
        """Returns loss and scores, and what was tuned if `tunes`."""
        features, outputs = self.compute_outputs(examples, batch_size)
        tuned = None if tunes else self.tuned
        scored = score_splits(self.task, {"": (examples, features)}, lambda _: outputs, tuned)
        return self._loss_of_outputs(features, outputs) | scored.scores[""], scored.tuned

    def _loss_of_outputs(self, features, outputs):
        """Returns the mean loss of rows; {} for kinds whose outputs differ in training."""
        if not self.has_loss_of_outputs:
            return {}
        loss = weight = 0.0
        for begin in range(0, len(features), _ROWS_AT_ONCE):
            rows = np.arange(begin, min(begin + _ROWS_AT_ONCE, len(features)))
            batch = features.batch(rows) | {"example_weights": np.ones(len(rows), np.float32)}
            part = {name: tf.constant(values[rows]) for name, values in outputs.items()}
            sums = self.objectives(batch)["answer"].sums(part)
            loss, weight = loss + float(sums.loss), weight + float(sums.weight)
        return {"loss": loss / max(weight, 1.0)}


def _with_targets(batch):
    """Returns the features of a batch of Keras, to which labels and weights are added."""
    if not isinstance(batch, tuple):
        return batch
    features, labels, weights = keras.utils.unpack_x_y_sample_weight(batch)
    if labels is not None:
        features = features | (labels if isinstance(labels, Mapping) else {"labels": labels})
    return features if weights is None else features | {"example_weights": weights}


def _shown(results):
    """Returns what Keras shows of the results of a step."""
    names = {"loss": "loss", "answer_accuracy": "accuracy"}
    return {name: results[key] for key, name in names.items() if key in results}
