"""The models of all kinds of tasks: an encoder, a head and a loss each.

Source: `classifier_utils.py`, `race_utils.py` and `squad_utils.py` in google-research/albert.
"""

from typing import Any

import numpy as np
import scipy.special
import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.layers.rows import shape_of, token_mask
from albert_keras.models.encoder_inputs import encoder_inputs
from albert_keras.models.pooling import Pooling, mean_over_tokens
from albert_keras.tasks.base_model import AlbertTaskModel, Losses, Tensors
from albert_keras.tasks.classification.pair_encoding import (
    COMPARISON_WIDTHS,
    PAIR_ENCODINGS,
    comparison,
    separate_texts,
)
from albert_keras.tasks.heads import LinearHead, SpansHead, SpansOrNoneHead
from albert_keras.tasks.task import Features

#: Divides cosines, as in SimCSE; CoSENT's scale of 20 is the same.
TEMPERATURE = 0.05
#: In place of a difference that does not count: its exponential is 0.
_NO_PAIR = -1e30


class _LabelsModel(AlbertTaskModel):
    """A model whose head has an output for each label: a class, a number or a tag."""

    needs_labels = True

    def __init__(self, config: AlbertConfig, num_labels: int, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.num_labels = num_labels
        self.head = LinearHead(config, num_labels, self.head_dropout, **self._of_head)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"num_labels": self.num_labels}


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForClassification(_LabelsModel):
    """Sorts texts or pairs of texts into classes.

    Args:
        config: AlbertConfig.
        num_labels: int. C, number of classes.
        pair_encoding: str. "joint" classifies the pooled output of `[CLS] a [SEP] b [SEP]`;
            "separate" takes the same inputs, but encodes each text as a sequence of its own, and
            classifies the comparison of their means over the real tokens, see `comparison`.
        **kwargs: As in `AlbertTaskModel`.

    Call arguments:
        inputs: dict. "input_ids" int [B, S]; "input_mask" int [B, S], 1 for a real token (all by
            default); "segment_ids" int [B, S], 1 for the second text (0 by default).

    Returns:
        dict. "logits" float32 [B, C], of a softmax over classes.

    Example:
        model = AlbertForClassification.from_preset("albert-mini-en", labels=["neg", "pos"])
        model.fit(["a gripping film", "a dull film"], ["pos", "neg"])
        model.predict(["a film"])[0].label
    """

    preset_task = {"name": "classification", "text": "text", "label": "label"}

    def __init__(
        self, config: AlbertConfig, num_labels: int, pair_encoding: str = "joint", **kwargs: Any
    ):
        if pair_encoding not in PAIR_ENCODINGS:
            raise ValueError(
                f"`pair_encoding` must be one of {PAIR_ENCODINGS}. Received: {pair_encoding!r}."
            )
        self._reads_pooler = pair_encoding == "joint"  # before the encoder is built
        self.pair_encoding = pair_encoding
        super().__init__(config, num_labels, **kwargs)

    @property
    def _of_head(self):
        of_head = super()._of_head
        if self.pair_encoding == "separate":
            # A name of its own: the classifier of other formats reads the pooled output.
            size = COMPARISON_WIDTHS * (of_head["size"] or self.config.hidden_size)
            of_head |= {"size": size, "scope": "comparison"}
        return of_head

    def _call(self, inputs, training, dropout_seed):
        if self.pair_encoding == "separate":
            texts = separate_texts(inputs)
            of_texts = dropout_seed and dropout_seed.of_sequences(2)
            hidden = self._sequence(texts, training, of_texts)
            text = comparison(mean_over_tokens(hidden, texts["input_mask"]))
        else:
            text = self._pooled(inputs, training, dropout_seed)
        return {"logits": self.head(text, dropout_seed, training=training)}

    def losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the cross-entropy of the class, and 1 where it is right."""
        return _of_classes(outputs["logits"], features["labels"])

    def get_config(self) -> dict[str, Any]:
        of_pairs = {"pair_encoding": self.pair_encoding} if self.pair_encoding != "joint" else {}
        return super().get_config() | of_pairs


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForRegression(AlbertForClassification):
    """Predicts one or several numbers for texts or pairs of texts; see `AlbertForClassification`.

    Returns:
        dict. "logits" float32 [B, C], the numbers.

    Example:
        model = AlbertForRegression.from_preset("albert-mini-en")
        model.fit(["a gripping film", "a dull film"], [4.5, 1.0])
        model.predict(["a film"])[0]
    """

    has_accuracy = False
    needs_labels = False

    @classmethod
    def usual_task(cls, labels: tuple[str, ...] | None, **kwargs: Any) -> dict[str, Any]:
        return {"name": "regression", "text": "text", "label": labels or "label"}

    def losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the mean of the squared errors of the numbers; none is counted as right."""
        logits, labels = _float32(outputs["logits"]), _float32(features["labels"])
        labels = labels if labels.shape.rank == 2 else labels[:, None]
        logits.shape.assert_is_compatible_with(labels.shape)
        losses = tf.reduce_mean(tf.square(logits - labels), axis=-1)
        return losses, tf.zeros_like(losses)


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForMultiLabel(AlbertForClassification):
    """Finds which of several labels apply to texts or pairs; see `AlbertForClassification`.

    Returns:
        dict. "logits" float32 [B, C], of a sigmoid for each label.

    Example:
        model = AlbertForMultiLabel.from_preset("albert-mini-en", labels=["funny", "sad"])
        model.fit(["a film to laugh and cry", "a dull film"], [["funny", "sad"], []])
        model.predict(["a film"])[0]
    """

    preset_task = AlbertForClassification.preset_task | {"label_separator": "|"}

    def initialize_output_bias(self, features: Features) -> None:
        applies = features.targets.reshape(-1, self.num_labels)
        shares = (applies.sum(axis=0) + 1) / (len(applies) + 2)
        _initialize(self.head.output_bias, scipy.special.logit(shares))

    def losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the mean of the binary cross-entropies, and 1 where all labels are right."""
        logits, labels = _float32(outputs["logits"]), _float32(features["labels"])
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
        is_right = tf.reduce_all(tf.equal(logits >= 0, labels > 0), axis=-1)
        return tf.reduce_mean(losses, axis=-1), _float32(is_right)


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForTagging(_LabelsModel):
    """Predicts a tag for each token.

    Args:
        config: AlbertConfig.
        num_labels: int. T, number of tags.
        **kwargs: As in `AlbertTaskModel`.

    Call arguments:
        inputs: dict. "input_ids", "input_mask" and "segment_ids", int [B, S], as in
            `AlbertForClassification`.

    Returns:
        dict. "logits" float32 [B, S, T].

    Example:
        model = AlbertForTagging.from_preset("albert-mini-en", labels=["O", "PLACE"])
        model.fit([["from", "Lisbon"], ["by", "ferry"]], [["O", "PLACE"], ["O", "O"]])
        model.predict([["to", "Porto"]])[0]
    """

    preset_task = {"name": "tagging"}

    def initialize_output_bias(self, features: Features) -> None:
        counts = 1 + np.bincount(features.targets, minlength=self.num_labels)
        _initialize(self.head.output_bias, np.log(counts / counts.sum()))

    def _call(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        return {"logits": self.head(hidden, dropout_seed, training=training)}

    def losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the cross-entropies of the tags of all positions, and 1 where they are right."""
        # Positions that are not scored have weight 0 and receive any valid tag.
        return _of_classes(outputs["logits"], tf.maximum(features["tag_ids"], 0))

    def weights_of(self, features: Tensors) -> tf.Tensor:
        """Returns 1 at the first token of each word that is scored, float32 [B, S]."""
        is_scored = tf.convert_to_tensor(features["tag_ids"]) >= 0
        return super().weights_of(features)[:, None] * _float32(is_scored)


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForMultipleChoice(AlbertTaskModel):
    """Chooses one of several texts.

    Args:
        config: AlbertConfig.
        **kwargs: As in `AlbertTaskModel`.

    Call arguments:
        inputs: dict. "input_ids" int [B, options, S], one sequence for each option; "input_mask"
            and "segment_ids" of the same shape, as in `AlbertForClassification`.

    Returns:
        dict. "logits" float32 [B, options].

    Example:
        model = AlbertForMultipleChoice.from_preset("albert-mini-en", sequence_length=64)
        passages, questions = ["The ferry left at noon."], ["When did it leave?"]
        model.fit((passages, questions, [["at noon", "at night"]]), [0])
        model.predict((passages, questions, [["at noon", "at night"]]))[0]
    """

    preset_task = {"name": "race"}
    _reads_pooler = True

    def __init__(self, config: AlbertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.head = LinearHead(config, 1, self.head_dropout, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        texts, dropout_seed, options = _sequences_of_rows(inputs, dropout_seed)
        pooled = self._pooled(texts, training, dropout_seed)  # [B * options, H]
        logits = self.head(pooled, dropout_seed, training=training)
        return {"logits": tf.reshape(logits, (-1, options))}

    def losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the cross-entropy of the right option, and 1 where it is chosen."""
        return _of_classes(outputs["logits"], features["labels"])


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForSpans(AlbertTaskModel):
    """Finds where an answer starts and ends, and whether there is one.

    Args:
        config: AlbertConfig.
        can_be_none: bool. Whether a question may have no answer, as in SQuAD 2.0.
        **kwargs: As in `AlbertTaskModel`; `head_dropout` is used only for `can_be_none`.

    Call arguments:
        inputs: dict. "input_ids", "input_mask" and "segment_ids", int [B, S], as in
            `AlbertForClassification`; for `can_be_none` also "p_mask" int [B, S] and, in training,
            "start_positions" int [B], see `SpansOrNoneHead`.

    Returns:
        dict. "start_logits" and "end_logits", float32 [B, S], as of `SpansHead`, which deviates
        from google-research/albert; for `can_be_none` the outputs of `SpansOrNoneHead`, which
        differ in training.

    Example:
        model = AlbertForSpans.from_preset("albert-mini-en", sequence_length=64)
        passages, questions = ["The ferry left at noon."], ["When did it leave?"]
        model.fit((passages, questions), ["at noon"])
        model.predict((passages, questions))[0]
    """

    has_loss_of_outputs = False

    def __init__(self, config: AlbertConfig, can_be_none: bool = False, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.can_be_none = can_be_none
        if can_be_none:
            self.head = SpansOrNoneHead(config, self.head_dropout, **self._of_head)
        else:
            self.head = SpansHead(config, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        return self.head(hidden, inputs, dropout_seed, training=training)

    @classmethod
    def usual_task(
        cls,
        labels: tuple[str, ...] | None,
        can_be_none: bool = False,
        longest: int = 384,
        **kwargs: Any,
    ) -> dict[str, Any]:
        name = "squad2" if can_be_none else "squad1"
        return {"name": name, "max_query_length": min(64, longest // 3)}

    def losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the mean of the cross-entropies of start and end, and 1 where both are right.

        With `can_be_none` it is half the sum of the cross-entropies of start, end (after the right
        start) and "no answer".
        """
        # Log-probabilities are logits too, their sum of exponentials being 1.
        scores = "log_probs" if self.can_be_none else "logits"
        starts, starts_right = _of_classes(outputs[f"start_{scores}"], features["start_positions"])
        ends, ends_right = _of_classes(outputs[f"end_{scores}"], features["end_positions"])
        losses, is_right = (starts + ends) / 2, starts_right * ends_right
        if self.can_be_none:
            labels, logits = _float32(features["is_impossible"]), _float32(outputs["null_logits"])
            losses += tf.nn.sigmoid_cross_entropy_with_logits(labels, logits) / 2
        return losses, is_right

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"can_be_none": self.can_be_none}


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForSimilarity(AlbertTaskModel):
    """Compares two texts by the cosine of their vectors.

    The two texts of a row are separate sequences, so that a vector depends on its text alone. The
    encoder's weights are the only weights of the model; `head_dropout` is not used.

    Args:
        config: AlbertConfig.
        pooling: str. See `Pooling`.
        **kwargs: As in `AlbertTaskModel`.

    Call arguments:
        inputs: dict. "input_ids" int [B, 2, S], one sequence for each text; "input_mask" and
            "segment_ids" of the same shape, as in `AlbertForClassification`.

    Returns:
        dict. "cosine" float32 [B], from -1 to 1; in training "vectors" float32
        [B, 2, H] instead, of length 1.

    Example:
        model = AlbertForSimilarity.from_preset("albert-mini-en")
        pairs = ["a fine film", "a fine film"], ["a good movie", "the ferry left"]
        model.fit(pairs, [5.0, 0.0])
        model.predict(pairs)[0]
    """

    preset_task = {"name": "similarity", "text": "text", "pair": "pair", "label": "label"}
    has_accuracy = has_loss_of_outputs = False

    def __init__(self, config: AlbertConfig, pooling: str = "mean", **kwargs: Any):
        self._reads_pooler = pooling == "pooler"  # before the encoder is built
        super().__init__(config, **kwargs)
        self.head = Pooling(pooling, dtype=self.dtype_policy)

    def _call(self, inputs, training, dropout_seed):
        texts, dropout_seed, _ = _sequences_of_rows(inputs, dropout_seed)
        vectors = self.vectors(texts, training, dropout_seed)  # [2 B, H]
        vectors = tf.reshape(vectors, (-1, 2, self.config.hidden_size))
        if training:
            return {"vectors": vectors}
        return {"cosine": tf.reduce_sum(vectors[:, 0] * vectors[:, 1], axis=-1)}

    def vectors(
        self, texts: Tensors, training: bool | None = None, dropout_seed: Any = None
    ) -> tf.Tensor:
        """Returns the vectors of texts, float32 [N, H], of length 1.

        Args:
            texts: The inputs of the encoder, int [N, S].
            training: Whether dropout is applied.
            dropout_seed: DropoutSeed or None, as in the call of the model.
        """
        ids = tf.convert_to_tensor(texts["input_ids"])
        outputs = self.encoder(
            encoder_inputs(texts),
            training=training,
            dropout_seed=dropout_seed,
            positions=tf.zeros_like(ids[:, :1]) if self.head.reads_cls_only else None,
        )
        return tf.math.l2_normalize(self.head(outputs, token_mask(texts)), axis=-1)

    def losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Compares the pairs of a batch, or of a replica's part of it, with each other.

        With scores, the loss is CoSENT (Su, 2022, https://kexue.fm/archives/8847): the logarithm
        of 1 + the sum of exp((cos_j - cos_i) / temperature) over all i, j where i has the higher
        score. It needs only the order of the scores. Each row gets the loss of the whole batch.

        Without scores, the loss is the cross-entropy of finding the second text of a pair among the
        second texts of all pairs (Gao et al., 2021, "SimCSE", https://arxiv.org/abs/2104.08821,
        equation 1).
        """
        first, second = tf.unstack(_float32(outputs["vectors"]), axis=1)  # [B, H] each, of length 1
        # The others fill up the batch.
        is_row = tf.convert_to_tensor(features["example_weights"]) > 0
        if "labels" not in features:
            logits = tf.matmul(first, second, transpose_b=True) / TEMPERATURE
            logits = tf.where(is_row[None, :], logits, _NO_PAIR)
            losses, _ = _of_classes(logits, tf.range(tf.shape(logits)[0]))
            return losses, tf.zeros_like(losses)
        cosines = tf.reduce_sum(first * second, axis=-1) / TEMPERATURE  # [B]
        labels = _float32(features["labels"])
        differences = cosines[None, :] - cosines[:, None]  # [i, j]
        is_pair = (labels[:, None] > labels[None, :]) & is_row[:, None] & is_row[None, :]
        differences = tf.where(is_pair, differences, _NO_PAIR)
        loss = tf.reduce_logsumexp(tf.pad(tf.reshape(differences, [-1]), [[1, 0]]))
        return tf.zeros_like(cosines) + loss, tf.zeros_like(cosines)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"pooling": self.head.pooling}


def _initialize(bias, values) -> None:
    """Assigns values to a bias, unless it was trained, so that it is not zero any more."""
    if not bias.numpy().any():
        bias.assign(values)


def _of_classes(logits, labels) -> Losses:
    """Compares [..., C] with int [...]; returns cross-entropies and 1 where right, float32."""
    labels, logits = tf.convert_to_tensor(labels), _float32(logits)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    is_right = tf.equal(tf.argmax(logits, -1, labels.dtype), labels)
    return losses, _float32(is_right)


def _float32(tensor) -> tf.Tensor:
    """Returns a tensor as float32."""
    return tf.cast(tensor, tf.float32)


def _sequences_of_rows(inputs, dropout_seed):
    """Makes the sequences of rows, [B, C, S], the rows of a batch, [B C, S].

    Returns:
        dict of int [B C, S]; DropoutSeed or None for them; C.
    """
    _, count, length = shape_of(tf.convert_to_tensor(inputs["input_ids"]))
    names = [name for name in ("input_ids", "input_mask", "segment_ids") if name in inputs]
    texts = {name: tf.reshape(inputs[name], (-1, length)) for name in names}
    return texts, dropout_seed and dropout_seed.of_sequences(count), count
