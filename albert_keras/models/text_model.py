"""The base class of the models that learn from texts and answer texts: Keras models.

A model is an encoder, a head and a loss; a preprocessor in front of it makes its features of texts.
"""

import functools
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import lacks_call
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.layers.rows import shape_of
from albert_keras.layers.weights import loaded_afterwards
from albert_keras.models.encoder_with_head import AlbertForTask
from albert_keras.models.preprocessor import TextPreprocessor
from albert_keras.models.text_training import Tensors, TextTraining
from albert_keras.models.windows import compute_in_parts
from albert_keras.runs.model_record import check_length
from data_pipeline.errors import InputError

#: The loss of each row, and 1 where its answer is right, float32 [B].
Losses = tuple[tf.Tensor, tf.Tensor]


class AlbertForTexts(AlbertForTask, TextTraining):
    """Base of the models of texts: encoder, head and loss, with a preprocessor in front.

    `fit`, `evaluate`, `predict`, `train_on_batch` and the call take texts, see
    `text_inputs.examples_of`, in memory, in data sets and from generators; or the features of the
    preprocessor. Without `compile`, `fit` uses the defaults of `finetune`. For another loss give
    `compile` one, or override `compute_loss` or `train_step`, as of any model of Keras; a step of
    one's own that does not call `compute_metrics` needs `compile(metrics=None)`.

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

    #: Whether `labels` may name the outputs of the head.
    has_labels = False
    #: Name of the signature of an export over all texts of an example, and these by the names of
    #: its inputs.
    signature: tuple[str, Mapping[str, str]] = ("predict", {"text": "text"})
    #: Shape of the ids of rows, of which None is free.
    ids_shape: tuple[int | None, ...] = (None, None)
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
        super().__init__(config, **kwargs)
        if preprocessor is not None:
            check_length(preprocessor.sequence_length, config.max_position_embeddings)
        self.preprocessor: Any = preprocessor
        self.labels, self.pairs = tuple(labels), pairs
        self.thresholds = dict(thresholds or {})

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
            source: The name of a shipped model, or, as `hf://OWNER/NAME`, of one of the hub of
                Hugging Face; a run, a checkpoint, an export, a `.keras` file, or a model of Hugging
                Face, of google-research/albert or of KerasNLP. The folder of a
                fine-tuning and a `.keras` file of this class have their heads as well; if other
                labels are given, the part of those of the same name.
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
        if labels is not None and not cls.has_labels:
            raise InputError(f"`labels` must not be given: {cls.__name__} has none.")
        if "preprocessor" in kwargs:
            raise TypeError(
                "`preprocessor` must not be given to `from_preset`, which makes the one of the "
                "source. Give its arguments, such as `sequence_length`."
            )
        # Here, as a model that is made of nothing needs no readers of files.
        from albert_keras.formats.open_weights import open_weights

        opened = open_weights(source, step)
        if load_weights and cls._is_stored_in(opened, labels):
            if others := sorted(kwargs.keys() - {"dtype"}):
                raise InputError(
                    f"`{others[0]}` must not be given: `{source}` is trained for this, and the "
                    "model has the settings of its training."
                )
            return opened.build(kwargs.get("dtype"), sequence_length)
        longest = opened.albert_config.max_position_embeddings
        known = inspect.signature(cls.preprocessor_class.__init__).parameters
        own = kwargs.keys() & known.keys() - {"kwargs", "name", "dtype"}
        preprocessor = cls.preprocessor_class(
            opened.tokenizer,
            sequence_length or min(cls.usual_length, longest),
            **{name: kwargs.pop(name) for name in own},
        )
        named: dict[str, Any] = {"labels": labels} if cls.has_labels else {}
        with loaded_afterwards(opened.encoder_names if load_weights else ()):
            model = cls(opened.albert_config, preprocessor=preprocessor, **named, **kwargs)
        if load_weights:
            opened.load(model, with_head=True)
        return model

    @classmethod
    def _is_stored_in(cls, opened, labels):
        """Returns whether a file has a model of this class, with the labels that were given."""
        record = opened.record
        if record is None or record.model_class is not cls or record.preprocessor is None:
            return False
        stored = record.config.get("labels", [])
        if isinstance(labels, int):
            return len(stored) == labels
        return labels is None or [*map(str, labels)] == stored

    # === What a subclass defines

    def predictions(self, outputs: Tensors) -> Any:
        """Returns what the call of the model returns: by default probabilities of classes."""
        logits = tf.cast(outputs["logits"], tf.float32)
        return with_logits(tf.nn.softmax(logits), logits)

    def predictions_of_texts(self, columns: Mapping[str, Any], training: bool) -> Any:
        """Returns what the call of the model returns for texts, string [B] by name."""
        return self.predictions(self.outputs_of_texts(columns, training)[0])

    def output_specs(self) -> dict[str, tf.TensorSpec]:
        """Returns the types of what `outputs_of` returns for W windows; see `compute_in_parts`."""
        raise NotImplementedError

    def read_out(self, outputs: Tensors, origin: Any) -> dict[str, tf.Tensor]:
        """Returns the answers to B examples as tensors [B, ...] by name, as a server does.

        By default they are the `predictions`, by the name "probabilities".

        Args:
            outputs: What `outputs_of` returns for all rows of the examples.
            origin: Of `Packed`, what belongs to the examples.
        """
        return {"probabilities": self.predictions(outputs), **origin}

    @classmethod
    def answers_of(cls, arrays: Mapping[str, np.ndarray], columns: Mapping[str, list]) -> list[Any]:
        """Returns the answers to N examples: a named tuple for each, which begins with its `id`.

        Args:
            arrays: What `read_out` returned, arrays [N, ...] by name, strings as bytes.
            columns: The texts of the examples by name, and "id", list of str.
        """
        raise NotImplementedError

    def compute_losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the loss of each row in `finetune`, and 1 where its answer is right, float32 [B].

        The loss is `usual_loss`, as in `fit`.

        Args:
            outputs: What `outputs_of` returns.
            features: With the targets of the rows, see `targets_in`.
        """
        labels, predictions = self.targets_in(features), self.predictions(outputs)
        return self.usual_loss(labels, predictions), self.is_right(labels, predictions)

    def targets_in(self, features: Tensors) -> Any:
        """Returns what the rows of a batch are to learn, as `usual_loss` reads it."""
        return tf.convert_to_tensor(features["labels"])

    def is_right(self, labels: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
        """Returns 1 where an answer is right, float32: where the likeliest class is the label."""
        return are_likeliest(labels, predictions)

    def targets(self, labels: list[Any], columns: Mapping[str, list]) -> Any:
        """Returns labels of `Examples` as losses of Keras read them, see `targets_of`."""
        return self.targets_of(labels, columns, self.label_names, are_shares=self.has_usual_loss)

    @classmethod
    def targets_of(
        cls, labels: Any, columns: Mapping[str, Any], names: Any = (), are_shares: bool = True
    ) -> Any:
        """Returns labels as losses read them, an array [N, ...].

        For a preprocessor with windows they are what its `packed` takes, by name.

        Args:
            labels: Of N examples, as a user has them.
            columns: The texts of the examples, lists by name.
            names: Of the labels, in the order of their numbers; () if there are none.
            are_shares: Whether values for all classes must be shares, whose sum is 1.

        Raises:
            InputError: If a label is wrong.
        """
        raise NotImplementedError

    def task_settings(self) -> dict[str, Any] | None:
        """Returns settings of a TaskConfig that reads files for the model; None if none does."""
        return None

    def no_targets(self, count: int) -> Any:
        """Returns what a loss reads in place of the labels of `count` examples that have none."""
        return None

    def features_and_targets(self, rows: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Divides rows of a preprocessor with windows into features, and labels for Keras."""
        return rows, None

    def class_weights(self, class_weight: Mapping[Any, float]) -> Any:
        """Returns the weight of each class by its number, as Keras takes them.

        Raises:
            InputError: If the model has no classes, or a class is unknown.
        """
        raise InputError(
            f"`class_weight` must not be given: {type(self).__name__} has no classes. Weight "
            "examples by `sample_weight`."
        )

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
        if not self._takes_texts(inputs):
            return self.predictions(self.outputs_of(inputs, training, dropout_seed))
        columns = self.preprocessor.columns(inputs)
        self.note_inputs(columns)
        return self.predictions_of_texts(columns, bool(training))

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels; () if there are none."""
        return self.labels

    @property
    def signature_inputs(self) -> dict[str, str]:
        """dict. The texts of an example by the names that inputs of a signature have."""
        if "pair" in self.preprocessor.optional_fields and not self.pairs:
            return {"text": "text"}
        return dict(self.signature[1])

    def outputs_of_texts(
        self, columns: Mapping[str, Any], training: bool = False, outputs_of: Any = None
    ) -> tuple[Tensors, Any]:
        """Returns the outputs for all rows of texts, and the `origin` of the rows, see `Packed`.

        Args:
            columns: string [B] by name, as the preprocessor returns them.
            training: Whether dropout is applied.
            outputs_of: Instead of the method of this name: a function of rows.
        """
        packed = self.preprocessor.packed(columns, self.needs_fixed_length)
        compute = outputs_of or functools.partial(self.outputs_of, training=training)
        if not self.preprocessor.uses_windows:
            return compute(packed.rows), packed.origin
        specs = self.output_specs()

        def compute_some(rows):
            outputs = compute(rows)
            return [outputs[name] for name in specs]

        found = compute_in_parts(compute_some, [*specs.values()], packed.rows)
        return dict(zip(specs, found, strict=True)), packed.origin

    @property
    def per_position(self) -> bool:
        """Whether an output has a value for each position of a row."""
        specs = self.output_specs().values() if self.preprocessor.uses_windows else ()
        return any(spec.shape.rank > 1 and spec.shape[1] is None for spec in specs)

    @property
    def needs_fixed_length(self) -> bool:
        """Whether all rows must have the full length: outputs depend on the padding, or a TPU needs
        static shapes."""
        on_tpu = isinstance(self.distribute_strategy, tf.distribute.TPUStrategy)
        return on_tpu or self.config.is_sparse_at(self.preprocessor.sequence_length)

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
            names = {True: "pairs of texts", False: "single texts"}
            raise InputError(
                f"This model was made for {names[self.pairs]}. Received: {names[has_pairs]}."
            )

    def weights_of(self, features: Tensors) -> tf.Tensor:
        """Returns the weight of each loss: 1 for a real row, 0 for one that fills up the batch."""
        if "example_weights" not in features:
            return tf.ones(tf.shape(features["input_ids"])[:1])
        return tf.cast(features["example_weights"], tf.float32)

    def initialize_output_bias(self, targets: np.ndarray) -> None:
        """Initializes the bias of an untrained head with the frequencies of tags or labels.

        Most words have the tag `O`, and most labels do not apply. The first updates would otherwise
        learn this, with large gradients that are the same at all texts and tokens: of a small
        encoder they destroy what it knows. What is not zero was trained, and stays. Other
        models do nothing: with two classes of MRPC, zeros are better (docs/measured.md).

        Args:
            targets: The labels of all rows, or the numbers of all tags.
        """
        values = None if targets is None else self.initial_output_bias(targets)
        if values is not None:
            trained = self.head.output_bias.numpy()
            self.head.output_bias.assign(np.where(trained == 0, values, trained))

    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Saves the model as Keras does: a `.keras` file, or a folder if there is no suffix."""
        if self.preprocessor is not None and lacks_call(self):
            self(self.sample_inputs())  # a folder has the call of the model, for texts
        super().save(filepath, *args, **kwargs)

    def export(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Exports the call as a SavedModel over texts, as Keras does: its endpoint is `serve`.

        `albert_keras.export` makes one for servers, with named answers. Further arguments are those
        of Keras, for a model of features or in another format.
        """
        is_other = kwargs.get("format", "tf_saved_model") != "tf_saved_model"
        if self.preprocessor is None or args or is_other or kwargs.keys() - {"format", "verbose"}:
            super().export(filepath, *args, **kwargs)
            return
        inputs = tf.nest.map_structure(
            lambda one: tf.TensorSpec([None, *one.shape[1:]], one.dtype), self.sample_inputs()
        )
        archive = keras.export.ExportArchive()
        archive.track(self)
        only = next(iter(inputs.values()))
        spec = inputs if len(inputs) > 1 else only
        archive.add_endpoint("serve", lambda texts: self(texts, training=False), [spec])
        kwargs.pop("format", None)
        archive.write_out(filepath, **kwargs)

    def sample_inputs(self) -> dict[str, Any]:
        """Returns an example of the texts that the model takes, as tensors by their names."""
        names = [name for name in self.text_names if name != "pair" or self.pairs]
        return {name: tf.constant(["text"]) for name in names}

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        if self.preprocessor is not None:
            config["preprocessor"] = self.preprocessor.get_config()
        thresholds = dict(self.thresholds)  # which Keras wraps
        known = {"labels": list(self.labels), "pairs": self.pairs, "thresholds": thresholds}
        return config | {
            name: value for name, value in known.items() if value not in (None, [], {})
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        config = dict(config)
        if isinstance(config.get("preprocessor"), Mapping):
            config["preprocessor"] = cls.preprocessor_class.from_config(config["preprocessor"])
        return super().from_config(config)

    def __repr__(self) -> str:
        labels = f", labels {', '.join(self.labels)}" if self.labels else ""
        of_texts = "" if self.preprocessor is None else f", {self.preprocessor!r}"
        return f"<{type(self).__name__} {self.config.summary()}{labels}{of_texts}>"


def with_logits(probabilities: Any, logits: Any) -> Any:
    """Returns probabilities from which a loss of Keras takes the logits, exact if saturated.

    In a graph Keras finds them by itself, in eager mode by this attribute.
    """
    probabilities._keras_logits = tf.convert_to_tensor(logits)
    return probabilities


def of_classes(logits: Any, labels: Any) -> Losses:
    """Compares [..., C] with int [...]; returns cross-entropies and 1 where right, float32."""
    labels, logits = tf.convert_to_tensor(labels), tf.cast(logits, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return losses, are_likeliest(labels, logits)


def are_likeliest(labels: Any, scores: Any) -> tf.Tensor:
    """Returns 1 where the class with the largest of scores, [..., C], is the label, float32."""
    labels = tf.convert_to_tensor(labels)
    return tf.cast(tf.equal(tf.argmax(scores, -1, labels.dtype), labels), tf.float32)


def sequences_of_rows(inputs: Tensors, dropout_seed: Any) -> tuple[dict[str, Any], Any, Any]:
    """Makes the sequences of rows, [B, C, S], the rows of a batch, [B C, S].

    Returns:
        dict of int [B C, S]; DropoutSeed or None for them; C.
    """
    _, count, length = shape_of(tf.convert_to_tensor(inputs["input_ids"]))
    names = [name for name in ("input_ids", "input_mask", "segment_ids") if name in inputs]
    texts = {name: tf.reshape(inputs[name], (-1, length)) for name in names}
    return texts, dropout_seed and dropout_seed.of_sequences(count), count
