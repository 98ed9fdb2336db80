"""A model that compares two texts by their vectors."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.rows import token_mask
from albert_keras.models.answers import scores_answers, with_dropped
from albert_keras.models.encoder_inputs import encoder_inputs
from albert_keras.models.labels import numbers_of
from albert_keras.models.pooling import Pooling
from albert_keras.models.preprocessor import Packed, TextPreprocessor
from albert_keras.models.text_model import (
    AlbertForTexts,
    Losses,
    Tensors,
    of_classes,
    sequences_of_rows,
)

#: Divides cosines, as in SimCSE; CoSENT's scale of 20 is the same.
TEMPERATURE = 0.05
#: In place of a difference that does not count: its exponential is 0.
_NO_PAIR = -1e30


@keras.saving.register_keras_serializable("albert_keras")
class AlbertSimilarityPreprocessor(TextPreprocessor):
    """Packs each of two texts into a sequence of its own, for `AlbertForSimilarity`.

    Arguments are those of `AlbertPreprocessor`.

    Call arguments:
        texts: A tuple of two columns of texts, string [B], or a dict of "text" and "pair".

    Returns:
        dict of int32 [B, 2, S]: "input_ids", "input_mask", "segment_ids".
    """

    fields = ("text", "pair")

    def packed(
        self, columns: Mapping[str, Any], is_fixed: bool, targets: Mapping[str, Any] | None = None
    ) -> Packed:
        both = tf.reshape(tf.stack([columns["text"], columns["pair"]], axis=1), [-1])
        packed, origin = self.sequences({"text": both}, is_fixed)
        dropped = tf.reduce_sum(tf.reshape(origin["dropped_tokens"], [-1, 2]), axis=1)
        rows = {name: tf.reshape(ids, [-1, 2, tf.shape(ids)[1]]) for name, ids in packed.items()}
        return Packed(rows, {"dropped_tokens": dropped})


@keras.saving.register_keras_serializable("albert_keras")
def pair_loss(scores: tf.Tensor, cosines: tf.Tensor) -> tf.Tensor:
    """Compares the pairs of a batch, over all replicas, with each other.

    With scores, the loss is CoSENT (Su, 2022, https://kexue.fm/archives/8847): the logarithm of
    1 + the sum of exp((cos_j - cos_i) / temperature) over all i, j where i has the higher score. It
    needs only the order of the scores. Each row gets the loss of the whole batch.

    Without scores, the loss is the cross-entropy of finding the second text of a pair among the
    second texts of all pairs (Gao et al., 2021, "SimCSE", https://arxiv.org/abs/2104.08821,
    equation 1).

    Pairs of weight 0 are compared with none.

    Args:
        scores: float [B, 1], NaN for pairs without scores.
        cosines: float [B, 1]. What `AlbertForSimilarity` returned for a batch.

    Returns:
        float32 [B].
    """
    vectors, scores = cosines._vectors, tf.reshape(scores, [-1])
    weights = getattr(cosines, "_weights", None)
    weights = tf.reshape(tf.ones_like(cosines) if weights is None else weights, [-1])
    context = tf.distribute.get_replica_context()
    begin, count = 0, tf.shape(vectors)[0]
    if context is not None and context.num_replicas_in_sync > 1:
        counts = context.all_gather(count[None], axis=0)
        begin = tf.reduce_sum(counts[: context.replica_id_in_sync_group])
        vectors, scores, weights = (
            context.all_gather(each, axis=0) for each in (vectors, scores, weights)
        )
    found = tf.where(
        tf.reduce_all(tf.math.is_nan(scores)),
        _losses_of_pairs(vectors, None, weights > 0),
        _losses_of_pairs(vectors, scores, weights > 0),
    )
    return found[begin : begin + count]


def _column(values, weights=None):
    """Returns values [B] as [B, 1], with the vectors and weights that belong to them."""
    if values is None or values.ndim != 1:  # of a tensor or an array
        return values
    column = values[:, None]
    if hasattr(values, "_vectors"):
        column._vectors, column._weights = values._vectors, weights
    return column


def _losses_of_pairs(vectors, scores, is_row=None):
    """Returns the loss of each pair; vectors float [B, 2, H] of length 1, scores float [B] or None.

    `is_row` is False for pairs that do not count, bool [B].
    """
    vectors = tf.cast(vectors, tf.float32)  # of several replicas without a static shape
    first, second = vectors[:, 0], vectors[:, 1]  # [B, H]
    is_row = tf.ones(tf.shape(first)[:1], tf.bool) if is_row is None else is_row
    if scores is None:
        logits = tf.matmul(first, second, transpose_b=True) / TEMPERATURE
        logits = tf.where(is_row[None, :], logits, _NO_PAIR)
        return of_classes(logits, tf.range(tf.shape(logits)[0]))[0]
    cosines = tf.reduce_sum(first * second, axis=-1) / TEMPERATURE  # [B]
    scores = tf.cast(scores, tf.float32)
    differences = cosines[None, :] - cosines[:, None]  # [i, j]
    is_pair = (scores[:, None] > scores[None, :]) & is_row[:, None] & is_row[None, :]
    differences = tf.where(is_pair, differences, _NO_PAIR)
    loss = tf.reduce_logsumexp(tf.pad(tf.reshape(differences, [-1]), [[1, 0]]))
    return tf.zeros_like(cosines) + loss


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForSimilarity(AlbertForTexts):
    """Compares two texts by the cosine of their vectors.

    The two texts of a row are separate sequences, so that a vector depends on its text alone. The
    encoder's weights are the only weights of the model; `head_dropout` is not used.

    Args:
        config: AlbertConfig.
        pooling: str. See `Pooling`.
        **kwargs: As in `AlbertForTexts`.

    Call arguments:
        inputs: A tuple of two columns of texts, string [B]; or the features of
            `AlbertSimilarityPreprocessor`, int [B, 2, S], one sequence for each text.

    Returns:
        float32 [B]. Cosines, from -1 to 1. `outputs_of` returns the "vectors" float32 [B, 2, H], of
        length 1, as well as the "cosine".

    Example:
        model = AlbertForSimilarity.from_preset("albert-mini-en")
        pairs = ["a fine film", "a fine film"], ["a good movie", "the ferry left"]
        model.fit(pairs, [5.0, 0.0])
        model.predict(pairs)  # NumPy array [2]
    """

    preprocessor_class = AlbertSimilarityPreprocessor
    signature = "text_pair", {"first": "text", "second": "pair"}
    ids_shape = (None, 2, None)
    has_accuracy = needs_labels = False
    usual_loss = staticmethod(pair_loss)
    usual_metrics = None
    _sample_shape = (1, 2, 4)

    def __init__(self, config: AlbertConfig, pooling: str = "mean", **kwargs: Any):
        self._reads_pooler = pooling == "pooler"  # before the encoder is built
        super().__init__(config, **kwargs)
        self.head = Pooling(pooling, dtype=self.dtype_policy)

    def _outputs(self, inputs, training, dropout_seed):
        texts, dropout_seed, _ = sequences_of_rows(inputs, dropout_seed)
        vectors = self.vectors(texts, training, dropout_seed)  # [2 B, H]
        vectors = tf.reshape(vectors, (-1, 2, self.config.hidden_size))
        return {
            "cosine": tf.reduce_sum(vectors[:, 0] * vectors[:, 1], axis=-1),
            "vectors": vectors,
        }

    def predictions(self, outputs: Tensors) -> Any:
        cosine = outputs["cosine"]
        cosine._vectors = outputs["vectors"]  # for `pair_loss`, as Keras keeps logits
        return cosine

    # A loss of Keras takes the mean over the last axis, which must not be that of the batch.

    def as_losses_read(self, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        return _column(y), _column(y_pred, sample_weight), sample_weight

    @property
    def has_symbolic_loss(self) -> bool:
        """bool. Of `pair_loss` no: without values there are no vectors."""
        return not self.has_usual_loss

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

    def compute_losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Compares the pairs of a batch, or of a replica's part of it, as `pair_loss` does."""
        is_row = self.weights_of(features) > 0  # the others fill up the batch
        losses = _losses_of_pairs(outputs["vectors"], features.get("labels"), is_row)
        return losses, tf.zeros_like(losses)

    def sample_inputs(self) -> dict[str, Any]:
        return {name: tf.constant(["text"]) for name in self.text_names}

    def task_settings(self) -> dict[str, Any] | None:
        columns = {name: name for name in ("text", "pair", "label")}
        return columns | {"name": "similarity", "pooling": self.head.pooling}

    def read_out(self, outputs: Tensors, origin: Any) -> dict[str, tf.Tensor]:
        """Returns `score` float32 [B], the cosine, and `dropped_tokens` int32 [B] of both texts."""
        return {"score": tf.cast(outputs["cosine"], tf.float32), **origin}

    @classmethod
    def answers_of(cls, arrays: Mapping[str, np.ndarray], columns: Mapping[str, list]) -> list[Any]:
        answers = scores_answers(columns["id"], (), arrays["score"][:, None])
        return with_dropped(answers, arrays)

    @classmethod
    def targets_of(
        cls, labels: Any, columns: Mapping[str, Any], names: Any = (), are_shares: bool = True
    ) -> np.ndarray:
        return numbers_of(labels, 1)

    def no_targets(self, count: int) -> np.ndarray:
        return np.full(count, np.nan, np.float32)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"pooling": self.head.pooling}
