"""Models for tasks: the encoder and the head of a task.

Source: `classifier_utils.py`, `race_utils.py` and `squad_utils.py` in google-research/albert.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.layers.kernels import inference
from albert_keras.models.early_exit import classify_until_confident
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.feature_settings import FeatureSettings
from albert_keras.models.frozen_features import FrozenFeatures
from albert_keras.models.pair_encoding import (
    COMPARISON_WIDTHS,
    PAIR_ENCODINGS,
    comparison,
    separate_texts,
)
from albert_keras.models.pooling import Pooling, mean_over_tokens
from albert_keras.models.task_heads import LinearHead, SpansHead, SpansOrNoneHead
from data_pipeline.errors import InputError


class AlbertForTask(keras.Model):
    """Base class of models for tasks: an encoder and a head. All weights exist after construction.

    Args:
        config: AlbertConfig.
        head_dropout: float. Rate of the head's dropout in training.
        seed: int. Determines the initial weights, together with the name of each weight.
        dtype, recompute, skips_padding: As in `AlbertEncoder`.
        features: FeatureSettings, their values by name, or None. If they freeze the encoder, it has
            no dropout, its weights are not trainable, and the head reads `FrozenFeatures`; a head
            for whole texts then reads their mean over the real tokens, not the pooler.

    Call arguments:
        inputs: dict. The encoder's inputs, any B and S. Other keys, such as labels, are ignored.
        dropout_seed: DropoutSeed or None. See `layers/dropout.py`.

    Attributes:
        encoder: AlbertEncoder.
        features: FrozenFeatures or None.
        head: NamedLayer.
    """

    _reads_pooler = False

    def __init__(
        self,
        config: AlbertConfig,
        head_dropout: float = 0.1,
        seed: int = 0,
        dtype: Any = None,
        recompute: bool = False,
        skips_padding: bool = False,
        features: FeatureSettings | Mapping[str, Any] | None = None,
        name: str = "albert_for_task",
        **kwargs: Any,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config
        self.head_dropout = head_dropout
        self.seed = seed
        self.recompute = recompute
        self.feature_settings = FeatureSettings.part_of(dict(features or {}))
        is_frozen = self.feature_settings.freeze_encoder
        self._reads_pooler = self._reads_pooler and not is_frozen
        self.encoder = AlbertEncoder(
            _without_dropout(config) if is_frozen else config,
            recompute=recompute and not is_frozen,
            skips_padding=skips_padding,
            pooler=config.pooler == "always" or self._reads_pooler,
            **self._shared,
        )
        self.encoder.trainable = not is_frozen
        self.features: FrozenFeatures | None = None
        if is_frozen:
            self.features = FrozenFeatures(config, self.feature_settings, **self._shared)
        self.built = True

    @property
    def _shared(self):
        return {"seed": self.seed, "dtype": self.dtype_policy}

    @property
    def _of_head(self):
        """Arguments of every head."""
        return self._shared | {"size": self.features and self.features.size}

    @property
    def trained_weights(self):
        """list of variables. Those the loss depends on: without the pooler if no head reads it."""
        if self._reads_pooler or self.encoder.pooler is None:
            return self.trainable_variables
        unused = {id(weight) for weight in self.encoder.pooler.weights}
        return [weight for weight in self.trainable_variables if id(weight) not in unused]

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the weights already exist."""

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        dropout_seed: DropoutSeed | None = None,
    ) -> dict[str, Any]:
        with inference(not training):
            return self._call(inputs, training, dropout_seed)

    def _call(self, inputs, training, dropout_seed):
        raise NotImplementedError

    def _sequence(self, inputs, training, dropout_seed):
        """Returns the output for every position, [B, S, H]; of a frozen encoder its features."""
        if self.features is not None:
            outputs = self.encoder(inputs, training=training, return_all_layers=True)
            skips_padding = bool(training) and self.encoder.skips_padding
            return self.features(outputs, _input_mask(inputs), skips_padding=skips_padding)
        outputs = self.encoder(inputs, training=training, dropout_seed=dropout_seed)
        return outputs["sequence_output"]

    def _pooled(self, inputs, training, dropout_seed):
        """Returns the pooled output, [B, H]; the last block is computed only at [CLS].

        Of a frozen encoder it is the mean of the features: its [CLS] was not trained for a task.
        """
        if self.features is not None:
            hidden = self._sequence(inputs, training, dropout_seed)
            return mean_over_tokens(hidden, _input_mask(inputs))
        positions = tf.zeros_like(tf.convert_to_tensor(inputs["input_ids"])[:, :1])
        outputs = self.encoder(
            inputs, training=training, dropout_seed=dropout_seed, positions=positions
        )
        return outputs["pooled_output"]

    def get_config(self) -> dict[str, Any]:
        config = {
            "config": self.config.to_dict(),
            "head_dropout": self.head_dropout,
            "seed": self.seed,
            "dtype": self.dtype_policy.name,
            "recompute": self.recompute,
            "skips_padding": self.encoder.skips_padding,
            "name": self.name,
        }
        if self.features is not None:
            config["features"] = self.feature_settings.model_dump()
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AlbertForTask":
        return cls(**config | {"config": AlbertConfig.from_dict(config["config"])})


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForClassification(AlbertForTask):
    """Classifies texts or pairs of texts, or predicts numbers for them.

    Args:
        config: AlbertConfig.
        num_labels: int. C; 1 is regression.
        exit_heads: bool. Whether there is a classifier after every layer, each with the one pooler.
        exit_at_confidence: float or None. With `exit_heads`, the probability of the most likely
            class at which a row needs no further layer; outside of training only. It may be
            changed later.
        pair_encoding: str. "joint" classifies the pooled output of `[CLS] a [SEP] b [SEP]`;
            "separate" takes the same inputs, but encodes each text as a sequence of its own, and
            classifies the comparison of their means over the real tokens, see `comparison`.
        **kwargs: As in `AlbertForTask`.

    Returns:
        dict. "logits" float32 [B, C], of a softmax over classes or, if several labels may apply, of
        a sigmoid for each; for regression the numbers themselves. With `exit_heads`, in training
        also "exit_logits" float32 [B, L - 1, C] of the layers before the last one; with
        `exit_at_confidence`, otherwise also "layers" int32 [B], the layers that a row took.

    Source:
        `exit_heads`: Zhou et al. (2020): BERT loses patience (https://arxiv.org/abs/2006.04152).
    """

    _reads_pooler = True

    def __init__(
        self,
        config,
        num_labels,
        exit_heads=False,
        exit_at_confidence=None,
        pair_encoding="joint",
        name="albert_for_classification",
        **kwargs,
    ):
        if pair_encoding not in PAIR_ENCODINGS or (pair_encoding != "joint" and exit_heads):
            raise ValueError(
                f"`pair_encoding` must be one of {PAIR_ENCODINGS}, and joint with `exit_heads`. "
                f"Received: {pair_encoding!r}."
            )
        self._reads_pooler = pair_encoding == "joint"  # before the encoder is built
        super().__init__(config, name=name, **kwargs)
        self.num_labels = num_labels
        self.exit_at_confidence = exit_at_confidence
        self.pair_encoding = pair_encoding
        of_head = self._of_head
        if pair_encoding == "separate":
            # A name of its own: the classifier of other formats reads the pooled output.
            size = COMPARISON_WIDTHS * (of_head["size"] or config.hidden_size)
            of_head |= {"size": size, "scope": "comparison"}
        self.head = LinearHead(config, num_labels, self.head_dropout, **of_head)
        self.exit_heads = [
            LinearHead(
                config,
                num_labels,
                self.head_dropout,
                scope=f"exits/layer_{number}",
                name=f"exit_{number}",
                **self._shared,
            )
            for number in range(1, config.num_hidden_layers if exit_heads else 1)
        ]

    def _call(self, inputs, training, dropout_seed):
        if training and self.exit_heads:
            logits = self.logits_of_layers(inputs, training, dropout_seed)
            return {"logits": logits[:, -1], "exit_logits": logits[:, :-1]}
        if self.exit_heads and self.exit_at_confidence is not None:
            heads = [*self.exit_heads, self.head]
            return classify_until_confident(self.encoder, heads, inputs, self.exit_at_confidence)
        if self.pair_encoding == "separate":
            text = self._compared(inputs, training, dropout_seed)
        else:
            text = self._pooled(inputs, training, dropout_seed)
        return {"logits": self.head(text, dropout_seed, training=training)}

    def _compared(self, inputs, training, dropout_seed):
        """Encodes the two texts of each pair separately; returns their comparison."""
        texts = separate_texts(inputs)
        if dropout_seed is not None:  # which counts texts in the encoder, two in each row
            dropout_seed = dropout_seed._replace(row=dropout_seed.row * 2)
        hidden = self._sequence(texts, training, dropout_seed)
        return comparison(mean_over_tokens(hidden, texts["input_mask"]))

    def logits_of_layers(self, inputs, training=None, dropout_seed=None):
        """Returns what the classifier after each layer answers, float32 [B, L, C]."""
        layers = self.encoder(
            inputs, training=training, dropout_seed=dropout_seed, return_all_layers=True
        )["layer_outputs"][self.config.inner_group_num - 1 :: self.config.inner_group_num]
        heads = [*self.exit_heads, self.head]
        logits = [
            head(self.encoder.pooled(layer[:, 0]), dropout_seed, training=training)
            for head, layer in zip(heads, layers, strict=True)
        ]
        return tf.stack(logits, axis=1)

    def get_config(self):
        config = super().get_config() | {"num_labels": self.num_labels}
        if self.exit_heads:
            config |= {"exit_heads": True, "exit_at_confidence": self.exit_at_confidence}
        if self.pair_encoding != "joint":
            config["pair_encoding"] = self.pair_encoding
        return config


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForMultipleChoice(AlbertForTask):
    """Chooses one of several texts; inputs are [B, options, S].

    Args:
        config: AlbertConfig.
        **kwargs: As in `AlbertForTask`.

    Returns:
        dict. "logits" float32 [B, options].
    """

    _reads_pooler = True

    def __init__(self, config, name="albert_for_multiple_choice", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.head = LinearHead(config, 1, self.head_dropout, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        shape = tf.convert_to_tensor(inputs["input_ids"]).shape
        dynamic = tf.shape(inputs["input_ids"])
        options, length = (shape[axis] or dynamic[axis] for axis in (1, 2))
        names = [name for name in ("input_ids", "input_mask", "segment_ids") if name in inputs]
        texts = {name: tf.reshape(inputs[name], (-1, length)) for name in names}
        if dropout_seed is not None:  # which counts texts, not examples, from here on
            dropout_seed = dropout_seed._replace(row=dropout_seed.row * tf.cast(options, tf.int64))
        pooled = self._pooled(texts, training, dropout_seed)  # [B * options, H]
        logits = self.head(pooled, dropout_seed, training=training)
        return {"logits": tf.reshape(logits, (-1, options))}


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForTagging(AlbertForTask):
    """Predicts a tag for each token.

    Args:
        config: AlbertConfig.
        num_labels: int. T, number of tags.
        **kwargs: As in `AlbertForTask`.

    Returns:
        dict. "logits" float32 [B, S, T].
    """

    def __init__(self, config, num_labels, name="albert_for_tagging", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.num_labels = num_labels
        self.head = LinearHead(config, num_labels, self.head_dropout, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        return {"logits": self.head(hidden, dropout_seed, training=training)}

    def get_config(self):
        return super().get_config() | {"num_labels": self.num_labels}


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForSpans(AlbertForTask):
    """Finds where an answer starts and ends, and whether there is one.

    Args:
        config: AlbertConfig.
        can_be_none: bool. Whether a question may have no answer, as in SQuAD 2.0.
        **kwargs: As in `AlbertForTask`; `head_dropout` is used only for `can_be_none`.

    Call arguments:
        inputs: dict. As in `AlbertForTask`; for `can_be_none` also "p_mask" and, in training,
            "start_positions", see `SpansOrNoneHead`.

    Returns:
        dict. As `SpansHead`, which deviates from google-research/albert, or `SpansOrNoneHead`,
        whose outputs in training differ.
    """

    def __init__(self, config, can_be_none=False, name="albert_for_spans", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.can_be_none = can_be_none
        if can_be_none:
            self.head = SpansOrNoneHead(config, self.head_dropout, **self._of_head)
        else:
            self.head = SpansHead(config, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        return self.head(hidden, inputs, dropout_seed, training=training)

    def get_config(self):
        return super().get_config() | {"can_be_none": self.can_be_none}


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForSimilarity(AlbertForTask):
    """Compares two texts by the cosine of their vectors; inputs are [B, 2, S].

    The two texts of a row are separate sequences, so that a vector depends on its text alone. The
    encoder's weights are the only weights of the model; `head_dropout` is not used.

    Args:
        config: AlbertConfig.
        pooling: str. See `Pooling`.
        **kwargs: As in `AlbertForTask`.

    Returns:
        dict. "cosine" float32 [B], from -1 to 1; in training "vectors" float32
        [B, 2, H] instead, of length 1.
    """

    def __init__(self, config, pooling="mean", name="albert_for_similarity", **kwargs):
        self._reads_pooler = pooling == "pooler"  # before the encoder is built
        super().__init__(config, name=name, **kwargs)
        self.head = Pooling(pooling, dtype=self.dtype_policy)

    def _call(self, inputs, training, dropout_seed):
        length = tf.convert_to_tensor(inputs["input_ids"]).shape[2]
        length = length or tf.shape(inputs["input_ids"])[2]
        names = [name for name in ("input_ids", "input_mask", "segment_ids") if name in inputs]
        texts = {name: tf.reshape(inputs[name], (-1, length)) for name in names}
        if dropout_seed is not None:  # which counts texts from here on, two in each row
            dropout_seed = dropout_seed._replace(row=dropout_seed.row * 2)
        vectors = self.vectors(texts, training, dropout_seed)  # [2 B, H]
        vectors = tf.reshape(vectors, (-1, 2, self.config.hidden_size))
        if training:
            return {"vectors": vectors}
        return {"cosine": tf.reduce_sum(vectors[:, 0] * vectors[:, 1], axis=-1)}

    def vectors(self, texts, training=None, dropout_seed=None):
        """Returns the vectors of texts, inputs of the encoder [N, S]: float32 [N, H], length 1."""
        ids = tf.convert_to_tensor(texts["input_ids"])
        outputs = self.encoder(
            texts,
            training=training,
            dropout_seed=dropout_seed,
            positions=tf.zeros_like(ids[:, :1]) if self.head.reads_cls_only else None,
        )
        return tf.math.l2_normalize(self.head(outputs, _input_mask(texts)), axis=-1)

    def get_config(self):
        return super().get_config() | {"pooling": self.head.pooling}


def _input_mask(inputs):
    input_mask = inputs.get("input_mask")
    if input_mask is None:
        return tf.ones_like(inputs["input_ids"])
    return tf.convert_to_tensor(input_mask)


def _without_dropout(config):
    return config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


_MODELS = {
    "classification": AlbertForClassification,
    "regression": lambda config, _, **kwargs: AlbertForClassification(config, 1, **kwargs),
    "choice": lambda config, _, **kwargs: AlbertForMultipleChoice(config, **kwargs),
    "tagging": AlbertForTagging,
    "spans": lambda config, _, **kwargs: AlbertForSpans(config, **kwargs),
    "spans_or_none": lambda config, _, **kwargs: AlbertForSpans(config, True, **kwargs),
    "multi_label": AlbertForClassification,
    "multi_regression": AlbertForClassification,
    "similarity": lambda config, _, **kwargs: AlbertForSimilarity(config, **kwargs),
}


def build_model(kind, config, num_outputs, **kwargs):
    """Builds the model of a kind of task.

    Args:
        kind: str. Name of one of the `KINDS` in `tasks/kinds.py`.
        config: AlbertConfig.
        num_outputs: int. Number of classes, labels or tags; ignored for other kinds.
        **kwargs: As in `AlbertForTask`.

    Returns:
        AlbertForTask.

    Raises:
        InputError: If the kind is unknown.

    Example:
        model = build_model("classification", AlbertConfig.from_name("albert-tiny"), 3)
        model({"input_ids": [[2, 48, 25, 3]]})["logits"]  # [1, 3]
    """
    if kind not in _MODELS:
        kinds = ", ".join(_MODELS)
        raise InputError(f"The kind of a task must be one of {kinds}. Received: {kind}.")
    return _MODELS[kind](config, num_outputs, **kwargs)
