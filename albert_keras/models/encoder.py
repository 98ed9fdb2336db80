"""The encoder: embeddings, the blocks of the plan, the pooler."""

import functools

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.layers.attention import SelfAttentionBlock, additive_mask
from albert_keras.layers.embeddings import FactorizedEmbedding
from albert_keras.layers.feed_forward import FeedForwardBlock
from albert_keras.layers.recompute import recomputed
from albert_keras.layers.weights import NamedDense
from albert_keras.models.sharing import layer_plan


@keras.saving.register_keras_serializable("albert_keras")
class AlbertEncoder(keras.Model):
    """Turns piece ids into vectors. All weights exist after construction.

    Weights are called as in the reference's checkpoints ("bert/encoder/..."), whatever `name` is.

    Args:
        config: AlbertConfig.
        seed: int. Decides the initial weights, together with each weight's name.
        dtype: str or policy. "float32", "mixed_bfloat16" (float32 weights, normalisation and
            softmax; bfloat16 products and outputs); None for Keras' policy at this moment.
        recompute: bool. Whether training keeps only what goes into each block and computes the rest
            again for its gradient: about a third more work for a fraction of the memory.
        name: str. Name of the Keras layer.

    Call arguments:
        inputs: dict. "input_ids" int [B, S]; "input_mask" int [B, S], 1 for a real piece (all by
            default); "segment_ids" int [B, S] (zeros by default). Other keys are ignored.
        return_all_layers: bool. Whether to return what each block gave.
        draw: Draw or None. Makes dropout a pure function of the seed and of this, see
            `layers/dropout.py`.

    Returns:
        dict. "sequence_output" [B, S, H], "pooled_output" [B, H] and, if asked for,
        "layer_outputs", tuple of `num_hidden_layers * inner_group_num` [B, S, H].

    Raises:
        ValueError: If S exceeds `max_position_embeddings`.

    Example:
        encoder = AlbertEncoder(AlbertConfig.from_name("albert-tiny"))
        encoder({"input_ids": [[2, 48, 25, 3]]})["pooled_output"]  # [1, 128]

    Source:
        `AlbertModel` in google-research/albert, `modeling.py`.
    """

    def __init__(self, config, seed=0, dtype=None, recompute=False, name="bert", **kwargs):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config
        self.seed = seed
        self.recompute = recompute
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

    def call(self, inputs, training=None, return_all_layers=False, draw=None):
        input_ids = tf.convert_to_tensor(inputs["input_ids"])
        input_mask = inputs.get("input_mask")
        segment_ids = inputs.get("segment_ids")
        attention_mask = additive_mask(
            tf.ones_like(input_ids) if input_mask is None else input_mask
        )
        segment_ids = tf.zeros_like(input_ids) if segment_ids is None else segment_ids
        hidden = self.embeddings(input_ids, segment_ids, draw, training=training)  # [B, S, H]
        layer_outputs = []
        for depth, (attention, feed_forward) in enumerate(self._runs):
            run = functools.partial(
                self._run_blocks,
                self.attention_blocks[attention],
                self.feed_forward_blocks[feed_forward],
                attention_mask,
                None if draw is None else draw._replace(depth=depth),
                training,
            )
            hidden = (recomputed(run) if self.recompute and training else run)(hidden)
            layer_outputs.append(hidden)
        outputs = {
            "sequence_output": hidden,
            "pooled_output": tf.tanh(self.pooler(hidden[:, 0])),  # [B, H]
        }
        return outputs | ({"layer_outputs": tuple(layer_outputs)} if return_all_layers else {})

    @staticmethod
    def _run_blocks(attention, feed_forward, attention_mask, draw, training, hidden):
        hidden = attention(hidden, attention_mask, draw, training=training)
        return feed_forward(hidden, draw, training=training)

    def get_config(self):
        return {
            "config": self.config.to_dict(),
            "seed": self.seed,
            "dtype": self.dtype_policy.name,
            "recompute": self.recompute,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config | {"config": AlbertConfig.from_dict(config["config"])})


def _scope(block):
    return f"bert/encoder/transformer/{block.scope}"
