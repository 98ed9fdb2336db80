"""The factorized embedding: narrow tables, then a projection to the hidden size."""

import tensorflow as tf

from albert_keras.layers.kernels import differentiable
from albert_keras.layers.weights import NamedDense, NamedLayer, NamedLayerNorm


class FactorizedEmbedding(NamedLayer):
    """Embeds tokens, segments and positions in narrow tables and projects them to the hidden size.

    BERT's V x H table becomes V x E followed by E x H. Where E = H there is no projection,
    unless `embedding_projection` is "always". Rotary positions have no table, see `rotary.py`.

    Args:
        config: AlbertConfig.
        scope, seed, **kwargs: As in `NamedLayer`.

    Call arguments:
        input_ids: int [B, S]. Token ids. Padding is embedded too; `input_mask` hides it later.
        segment_ids: int [B, S]. 0 first, 1 second segment; ignored unless there are several types.
        input_mask: int [B, S]. 1 for a real token; read only if positions have an offset.
        rows: Rows. The order of the positions in the result.
        dropout_seed: DropoutSeed or None. Makes dropout reproducible, see `layers/dropout.py`.

    Returns:
        [N, H] in the compute dtype, one row per position.

    Raises:
        ValueError: If there is a table of positions and S exceeds `max_position_embeddings`.

    Source:
        ALBERT, section 3.1 (https://arxiv.org/abs/1909.11942); order of normalisation, dropout and
        projection: google-research/albert, `modeling.py`.
    """

    def __init__(self, config, scope="bert", seed=0, **kwargs):
        kwargs.setdefault("name", "embeddings")
        super().__init__(scope, seed, config.initializer_range, **kwargs)
        size = config.embedding_size
        shared = {"seed": seed, "stddev": self.stddev, "dtype": self.dtype_policy}
        self.max_length = config.max_position_embeddings
        self.position_offset = config.position_offset
        self.word_embeddings = self.named_weight(
            "embeddings/word_embeddings", (config.vocab_size, size)
        )
        self.token_type_embeddings = None
        if config.type_vocab_size:
            self.token_type_embeddings = self.named_weight(
                "embeddings/token_type_embeddings", (config.type_vocab_size, size)
            )
        self.position_embeddings = None
        if config.position_rows:
            self.position_embeddings = self.named_weight(
                "embeddings/position_embeddings", (config.position_rows, size)
            )
        self.normalization = NamedLayerNorm(
            f"{scope}/embeddings/LayerNorm", size, config.layer_norm_epsilon, **shared
        )
        self.hidden_dropout = self.dropout(config.hidden_dropout_prob, "embeddings/dropout")
        self.projection = None
        if config.projects_embeddings:
            self.projection = NamedDense(
                f"{scope}/encoder/embedding_hidden_mapping_in", size, config.hidden_size, **shared
            )

    def call(self, input_ids, segment_ids, input_mask, rows, dropout_seed=None, training=None):
        vectors = look_up(tf.convert_to_tensor(self.word_embeddings), rows.from_batch(input_ids))
        if self.token_type_embeddings is not None:
            types = tf.convert_to_tensor(self.token_type_embeddings)
            if types.shape[0] == 1:
                vectors += types
            else:
                vectors += look_up(types, rows.from_batch(segment_ids))
        if self.position_embeddings is not None:
            vectors += self._positions(input_ids, input_mask, rows)  # [N, E]
        vectors = self.normalization(vectors)
        if training and self.hidden_dropout.rate:
            # Random numbers are sampled for whole sequences, whichever rows are computed.
            vectors = self.hidden_dropout(rows.to_batch(vectors), dropout_seed, training=training)
            vectors = rows.from_batch(vectors)
        return vectors if self.projection is None else self.projection(vectors)  # [N, H]

    def _positions(self, input_ids, input_mask, rows):
        """Returns the embedding of the position of every row, [N, E]."""
        length = self.checked_length(input_ids)
        if not self.position_offset:
            positions = self.position_embeddings[:length]  # [S, E]
            shape = tf.concat([tf.shape(input_ids), positions.shape[1:]], 0)
            return rows.from_batch(tf.broadcast_to(positions, shape))
        # Source: `make_positions` in facebookresearch/fairseq, `utils.py`.
        is_real = tf.cast(input_mask, tf.int32)
        numbers = tf.cumsum(is_real, axis=1) * is_real + (self.position_offset - 1)  # [B, S]
        return look_up(tf.convert_to_tensor(self.position_embeddings), rows.from_batch(numbers))

    def checked_length(self, input_ids):
        """Returns S: int if it is static, else an int32 scalar Tensor."""
        message = (
            "The length of `input_ids` must not exceed `max_position_embeddings`. "
            f"Received: {{}} and {self.max_length}. Shorten the sequences or enlarge the model."
        )
        length = input_ids.shape[1]
        if length is not None:
            if length > self.max_length:
                raise ValueError(message.format(length))
            return length
        length = tf.shape(input_ids)[1]
        check = tf.debugging.assert_less_equal(
            length, self.max_length, message=message.format("a longer sequence")
        )
        # Users of the length wait for the check; otherwise an addition may fail first, with an
        # obscure message.
        with tf.control_dependencies([check] if check is not None else []):
            return tf.identity(length)


@differentiable
def look_up(table, ids):
    """Returns rows of `table` ([N, E] and int [...] -> [..., E]), with a dense gradient.

    TensorFlow's own gradient is a list of rows. The tied output layer's is a whole table, and
    adding the two makes a list of all N rows and more, which costs more than the zeros avoided.
    """

    def gradient(upstream):
        rows = tf.reshape(upstream, (-1, table.shape[1]))
        size = table.shape[0] or tf.shape(table)[0]
        return tf.math.unsorted_segment_sum(rows, tf.reshape(ids, (-1,)), size), None

    return tf.gather(table, ids), gradient
