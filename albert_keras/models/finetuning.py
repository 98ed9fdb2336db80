"""Models for tasks: the encoder and the head of a task.

Source: `classifier_utils.py`, `race_utils.py` and `squad_utils.py` in google-research/albert.
"""

import tensorflow as tf
from tensorflow import keras

from albert_keras.layers.rows import shape_of, token_mask
from albert_keras.models.early_exit import classify_until_confident
from albert_keras.models.pair_encoding import (
    COMPARISON_WIDTHS,
    PAIR_ENCODINGS,
    comparison,
    separate_texts,
)
from albert_keras.models.pooling import Pooling, mean_over_tokens
from albert_keras.models.task_heads import LinearHead, SpansHead, SpansOrNoneHead
from albert_keras.models.task_model import AlbertForTask
from data_pipeline.errors import InputError


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
        of_texts = dropout_seed and dropout_seed.of_sequences(2)
        hidden = self._sequence(texts, training, of_texts)
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
        texts, dropout_seed, options = _sequences_of_rows(inputs, dropout_seed)
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
        texts, dropout_seed, _ = _sequences_of_rows(inputs, dropout_seed)
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
        return tf.math.l2_normalize(self.head(outputs, token_mask(texts)), axis=-1)

    def get_config(self):
        return super().get_config() | {"pooling": self.head.pooling}


def _sequences_of_rows(inputs, dropout_seed):
    """Makes the sequences of rows, [B, C, S], the rows of a batch, [B C, S].

    Returns:
        dict of int [B C, S]; DropoutSeed or None for them; C.
    """
    _, count, length = shape_of(tf.convert_to_tensor(inputs["input_ids"]))
    names = [name for name in ("input_ids", "input_mask", "segment_ids") if name in inputs]
    texts = {name: tf.reshape(inputs[name], (-1, length)) for name in names}
    return texts, dropout_seed and dropout_seed.of_sequences(count), count


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
