"""The encoder: embeddings, the blocks of the plan, the pooler."""

import collections
import functools

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.layers.attention import AttentionWeights, SelfAttentionBlock
from albert_keras.layers.embeddings import FactorizedEmbedding
from albert_keras.layers.feed_forward import FeedForwardBlock, FeedForwardWeights
from albert_keras.layers.kernels import inference
from albert_keras.layers.recompute import recomputed
from albert_keras.layers.rows import Rows, lengthened, shortened
from albert_keras.layers.weights import NamedDense
from albert_keras.models.sharing import layer_plan


@keras.saving.register_keras_serializable("albert_keras")
class AlbertEncoder(keras.Model):
    """Turns piece ids into vectors. All weights exist after construction.

    Weights are called as in the reference's checkpoints ("bert/encoder/..."), whatever `name` is.

    Args:
        config: AlbertConfig.
        seed: int. Decides the initial weights, together with each weight's name.
        dtype: str or policy. "float32", "mixed_bfloat16" (float32 weights and normalisation,
            bfloat16 products and outputs; softmax in float32 in training); None for Keras' policy
            at this moment.
        recompute: bool. Whether training keeps only what goes into each block and computes the rest
            again for its gradient: about a third more work for a fraction of the memory.
        skips_padding: bool. Whether training spends (almost) no work on padding. The shapes then
            depend on the batch: not on TPUs.
        name: str. Name of the Keras layer.

    Call arguments:
        inputs: dict. "input_ids" int [B, S]; "input_mask" int [B, S], 1 for a real piece (all by
            default); "segment_ids" int [B, S] (zeros by default). Other keys are ignored.
        return_all_layers: bool. Whether to return what each block gave.
        positions: int [B, Q] or None. Where the output is wanted; the first of each sequence has to
            be 0, [CLS], and none may be padding if that is skipped. The last block is computed
            there alone.
        return_attention: bool. Whether to return how much each position took of each other.
        dropout_seed: DropoutSeed or None. Makes dropout a pure function of the model's seed and of
            this, see `layers/dropout.py`.

    Returns:
        dict. "sequence_output" [B, S, H] ([B, Q, H] for `positions`), "pooled_output" [B, H] and,
        if asked for, tuples over `num_hidden_layers * inner_group_num` blocks: "layer_outputs",
        [B, S, H], and "attention", [B, heads, S, S], whose last axis sums to 1.

    Raises:
        ValueError: If S exceeds `max_position_embeddings`.

    Example:
        encoder = AlbertEncoder(AlbertConfig.from_name("albert-tiny"))
        encoder({"input_ids": [[2, 48, 25, 3]]})["pooled_output"]  # [1, 128]

    Source:
        `AlbertModel` in google-research/albert, `modeling.py`.
    """

    def __init__(
        self,
        config,
        seed=0,
        dtype=None,
        recompute=False,
        skips_padding=False,
        name="bert",
        **kwargs,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config
        self.seed = seed
        self.recompute = recompute
        self.skips_padding = skips_padding
        self._drops_out = config.hidden_dropout_prob > 0 or config.attention_probs_dropout_prob > 0
        shared = {"seed": seed, "dtype": self.dtype_policy}
        size = config.hidden_size
        plan = layer_plan(
            config.num_hidden_layers,
            config.sharing,
            config.num_hidden_groups,
            config.inner_group_num,
        )
        attention_names = list(dict.fromkeys(use.attention for use in plan))
        feed_forward_names = list(dict.fromkeys(use.feed_forward for use in plan))
        self._runs = [
            (attention_names.index(use.attention), feed_forward_names.index(use.feed_forward))
            for use in plan
        ]
        self.embeddings = FactorizedEmbedding(config, **shared)
        self.attention_blocks = [
            SelfAttentionBlock(
                config, _scope(block), name=f"attention_{block.group}_{block.inner}", **shared
            )
            for block in attention_names
        ]
        self.feed_forward_blocks = [
            FeedForwardBlock(
                config, _scope(block), name=f"feed_forward_{block.group}_{block.inner}", **shared
            )
            for block in feed_forward_names
        ]
        self.pooler = NamedDense(
            "bert/pooler/dense",
            size,
            size,
            stddev=config.initializer_range,
            **shared | {"name": "pooler"},
        )
        self.built = True

    def build(self, input_shape=None):
        """Does nothing: the weights exist already."""

    def call(
        self,
        inputs,
        training=None,
        return_all_layers=False,
        dropout_seed=None,
        positions=None,
        return_attention=False,
    ):
        with inference(not training):
            return self._call(
                inputs, training, return_all_layers, dropout_seed, positions, return_attention
            )

    def _call(self, inputs, training, return_all_layers, dropout_seed, positions, return_attention):
        input_ids = tf.convert_to_tensor(inputs["input_ids"])
        input_mask = inputs.get("input_mask")
        segment_ids = inputs.get("segment_ids")
        input_mask = tf.ones_like(input_ids) if input_mask is None else input_mask
        segment_ids = tf.zeros_like(input_ids) if segment_ids is None else segment_ids
        input_mask = tf.convert_to_tensor(input_mask)
        length = self.embeddings.checked_length(input_ids)
        skips_padding = self.skips_padding and training
        # Dropout draws for whole sequences, so that its masks do not depend on the others' lengths.
        if skips_padding and not self._drops_out:
            batches = [input_ids, segment_ids, input_mask]
            input_ids, segment_ids, input_mask = shortened(batches, input_mask)
        rows = Rows(input_mask, skips_padding)
        hidden = self.embeddings(
            input_ids, segment_ids, rows, dropout_seed, training=training
        )  # [N, H]
        attention_weights, feed_forward_weights = self._weights_of_uses()
        layer_outputs, attention_probs = [], []
        for depth, (attention, feed_forward) in enumerate(self._runs):
            run = functools.partial(
                self._run_blocks,
                self.attention_blocks[attention],
                self.feed_forward_blocks[feed_forward],
                rows,
                None if dropout_seed is None else dropout_seed._replace(depth=depth),
                training,
                positions if depth == len(self._runs) - 1 else None,
                return_attention,
            )
            recomputes = self.recompute and training and not return_attention
            run = recomputed(run) if recomputes else run
            weights = (
                *next(attention_weights[attention]),
                *next(feed_forward_weights[feed_forward]),
            )
            if return_attention:
                hidden, probs = run(hidden, *weights)
                attention_probs.append(probs)
            else:
                hidden = run(hidden, *weights)
            if return_all_layers:
                layer_outputs.append(hidden)
        last_rows = rows if positions is None else Rows.of_positions(positions)
        layer_outputs = [rows.to_batch(layer) for layer in layer_outputs[:-1]]
        hidden = last_rows.to_batch(hidden)  # [B, S or Q, H]
        if skips_padding:
            layer_outputs = [lengthened(layer, length) for layer in layer_outputs]
            hidden = lengthened(hidden, length) if positions is None else hidden
        layer_outputs.append(hidden)
        outputs = {
            "sequence_output": hidden,
            "pooled_output": tf.tanh(self.pooler(hidden[:, 0])),  # [B, H]
        }
        if return_all_layers:
            outputs["layer_outputs"] = tuple(layer_outputs)
        if return_attention:
            outputs["attention"] = tuple(attention_probs)
        return outputs

    def _weights_of_uses(self):
        """Returns for each block an iterator over the weights of its uses."""
        kinds = (self.attention_blocks, self.feed_forward_blocks)
        uses = [collections.Counter(numbers) for numbers in zip(*self._runs, strict=True)]
        return [
            [iter(block.for_each_use(counts[number])) for number, block in enumerate(blocks)]
            for blocks, counts in zip(kinds, uses, strict=True)
        ]

    @staticmethod
    def _run_blocks(
        attention,
        feed_forward,
        rows,
        dropout_seed,
        training,
        positions,
        return_attention,
        hidden,
        *weights,
    ):
        # Weights come one by one: `recomputed` gives a gradient to arguments that are tensors.
        number = len(AttentionWeights._fields)
        for_attention = AttentionWeights(*weights[:number])
        for_feed_forward = FeedForwardWeights(*weights[number:])
        shared = {"dropout_seed": dropout_seed, "training": training}
        hidden = attention(
            hidden,
            rows,
            weights=for_attention,
            positions=positions,
            return_attention=return_attention,
            **shared,
        )
        hidden, *probs = hidden if return_attention else (hidden,)
        rows = rows if positions is None else Rows.of_positions(positions)
        hidden = feed_forward(hidden, rows, weights=for_feed_forward, **shared)
        return (hidden, *probs) if return_attention else hidden

    def get_config(self):
        return {
            "config": self.config.to_dict(),
            "seed": self.seed,
            "dtype": self.dtype_policy.name,
            "recompute": self.recompute,
            "skips_padding": self.skips_padding,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config | {"config": AlbertConfig.from_dict(config["config"])})


def _scope(block):
    return f"bert/encoder/transformer/{block.scope}"
