"""How one call of the encoder runs: which positions, which casts, what is computed again.

The encoder says what is computed. Nothing here changes a result; it saves time and memory:
padding is skipped, a weight used at many depths is cast once, a block may be computed again for
its gradient, and the last block is computed only at the requested positions.
"""

import collections

import tensorflow as tf

from albert_keras.layers.recomputed import recomputed
from albert_keras.layers.rows import Rows, lengthened, shortened, token_mask
from albert_keras.layers.uses import BlockWeights


class Execution:
    """One call of an `AlbertEncoder`.

    Args:
        encoder: AlbertEncoder.
        blocks: list of (SelfAttentionBlock, FeedForwardBlock) to run, one after the other.
        inputs: dict. The inputs of the encoder.
        training, dropout_seed, positions, return_attention: As in `AlbertEncoder`.

    Attributes:
        input_ids, segment_ids, input_mask: int [B, S], or shorter where no sequence of the batch
            reaches S.
        rows: Rows. The order of the N rows that the blocks work on.
        attention: list of [B, heads, S, S], one per block run so far, if it was requested.
    """

    def __init__(
        self, encoder, blocks, inputs, training, dropout_seed, positions, return_attention
    ):
        self._training, self._dropout_seed = training, dropout_seed
        self._positions, self._return_attention = positions, return_attention
        self._recomputes = encoder.recompute and training and not return_attention
        self._skips_padding = encoder.skips_padding and training
        self.input_ids = tf.convert_to_tensor(inputs["input_ids"])
        input_mask, segment_ids = token_mask(inputs), inputs.get("segment_ids")
        self.segment_ids = tf.zeros_like(self.input_ids) if segment_ids is None else segment_ids
        self._length = encoder.embeddings.checked_length(self.input_ids)
        # Dropout samples whole sequences, so that its masks do not depend on the other sequences.
        if self._skips_padding and not encoder.has_dropout:
            batch = [self.input_ids, self.segment_ids, input_mask]
            self.input_ids, self.segment_ids, input_mask = shortened(batch, input_mask)
        self.input_mask = input_mask
        self.rows = Rows(input_mask, self._skips_padding)
        self.attention = []
        self._depth, self._last_depth = 0, len(blocks) - 1
        uses = collections.Counter(block for pair in blocks for block in pair)
        self._weights = {block: iter(block.for_each_use(count)) for block, count in uses.items()}

    def run(self, attention, feed_forward, hidden):
        """Runs the two blocks of the next depth.

        Args:
            attention: SelfAttentionBlock.
            feed_forward: FeedForwardBlock.
            hidden: float [N, H].

        Returns:
            [N, H]; of the last depth [B * Q, H] if positions were requested.
        """
        positions = self._positions if self._depth == self._last_depth else None
        seed = self._dropout_seed and self._dropout_seed.at_depth(self._depth)
        shared = {"dropout_seed": seed, "training": self._training}
        self._depth += 1

        # `recomputed` returns gradients only for arguments that are tensors: weights come singly.
        def both(hidden, *weights):
            count = len(BlockWeights._fields)
            hidden = attention(
                hidden,
                self.rows,
                weights=BlockWeights(*weights[:count]),
                positions=positions,
                return_attention=self._return_attention,
                **shared,
            )
            hidden, *probs = hidden if self._return_attention else (hidden,)
            rows = self.rows if positions is None else Rows.of_positions(positions)
            weights = BlockWeights(*weights[count:])
            return (feed_forward(hidden, rows, weights=weights, **shared), *probs)

        weights = (*next(self._weights[attention]), *next(self._weights[feed_forward]))
        if self._recomputes:
            return recomputed(lambda *tensors: both(*tensors)[0])(hidden, *weights)
        hidden, *probs = both(hidden, *weights)
        self.attention += probs
        return hidden

    def to_batch(self, hidden):
        """Converts what a block returned, [N, H], to [B, S, H]; zeros where padding was skipped."""
        batch = self.rows.to_batch(hidden)
        return lengthened(batch, self._length) if self._skips_padding else batch

    def through_batch(self, hidden):
        """Returns what a block returned, [N, H], as [B, S, H], and as [N, H] that is made of this.

        What is computed of the latter has a gradient with respect to the former.
        """
        batch = self.to_batch(hidden)
        return batch, self.rows.from_batch(batch[:, : tf.shape(self.input_ids)[1]])

    def output(self, hidden):
        """Converts what the last block returned to [B, S, H], or [B, Q, H] for Q positions."""
        if self._positions is None:
            return self.to_batch(hidden)
        return Rows.of_positions(self._positions).to_batch(hidden)
