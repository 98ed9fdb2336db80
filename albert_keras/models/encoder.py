"""The encoder: embeddings, the blocks that the plan shares, the pooler."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import (
    any_inputs,
    compile_as_stored,
    name_of,
    take_any_inputs,
    track,
)
from albert_keras.layers.activations import ACTIVATIONS
from albert_keras.layers.attention import SelfAttentionBlock
from albert_keras.layers.dropout import DropoutSeed, DropoutSteps
from albert_keras.layers.embeddings import FactorizedEmbedding
from albert_keras.layers.feed_forward import FeedForwardBlock
from albert_keras.layers.kernels import inference
from albert_keras.layers.weights import (
    NamedDense,
    StoredOnce,
    key_of,
    loaded_afterwards,
    seed_of_model,
)
from albert_keras.models.encoder_inputs import checked_inputs
from albert_keras.models.execution import Execution
from albert_keras.shape import count_weights
from albert_keras.sharing import layer_plan
from data_pipeline.limits import check_memory

_BYTES_PER_WEIGHT = 4  # variables are float32 in every precision
#: Arguments that users of Keras expect, and what says the same here.
_OTHER_WAYS = {
    "activation": "`predict` returns probabilities, and heads compute logits",
    "backbone": "give the shape as `config`, or load an encoder by `from_preset`",
    "encoder": "copy weights, `model.encoder.set_weights(other.encoder.get_weights())`; several "
    "heads on one encoder are a `keras.Model` of yours",
    "dropout": "give `head_dropout`, and rates within the encoder in `config`",
    "num_classes": "give `labels`, their names or their number",
}


class ConfiguredModel(StoredOnce):
    """What the Keras models with an AlbertConfig share: their weights exist after construction."""

    config: AlbertConfig
    seed: int
    dtype_policy: Any
    name: str
    trainable: bool
    layers: list[keras.layers.Layer]
    _sample_shape: tuple[int, ...] = (1, 4)  # of the ids of an example

    def __init__(self, is_part: bool = False, **kwargs: Any):
        self.is_part = is_part
        for name in kwargs.keys() & _OTHER_WAYS.keys():
            problem = f"{type(self).__name__} has no argument `{name}`: {_OTHER_WAYS[name]}."
            raise TypeError(problem)
        super().__init__(**kwargs)
        take_any_inputs(self)
        if getattr(self.dtype_policy, "quantization_mode", None):
            self._refuse_quantization(self.dtype_policy.name)

    def quantize(self, mode: Any = None, *_: Any, **__: Any) -> None:
        """Raises ValueError: weights are quantized by exports alone."""
        self._refuse_quantization(mode)

    def _refuse_quantization(self, mode):
        raise ValueError(
            f"{type(self).__name__} cannot be quantized in Keras. Received: {mode}. Train it with "
            'float32 weights, and export it by `albert_keras.export(..., precision="int8")`.'
        )

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(any_inputs(inputs), *args, **kwargs)  # type: ignore[misc]

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: all weights exist already."""

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()  # type: ignore[misc]
        return config and config | {"keras": keras.__version__}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        self._build_foreign_layers()
        compile_as_stored(self, config, super().compile_from_config)  # type: ignore[misc]

    def save_own_variables(self, store: Any) -> None:
        """Stores all weights by their names, so that a file is the same for each Keras."""
        if not self.is_above(store):
            for key, weight in self._weights_by_key().items():
                store[key] = weight.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Loads what `save_own_variables` stored."""
        if self.is_above(store):
            return
        self._build_foreign_layers()
        weights = self._weights_by_key()
        if missing := sorted(weights.keys() - store.keys()):
            raise ValueError(f"The file has no weight {', '.join(missing)[:200]}.")
        other = [key for key in weights if tuple(store[key].shape) != tuple(weights[key].shape)]
        for key in weights.keys() - set(other):
            weights[key].assign(store[key])
        if other:
            raise ValueError(f"The file has weights of other shapes: {', '.join(other)[:200]}.")

    def _build_foreign_layers(self):
        """Calls the model if Keras layers of a subclass, which are built by a call, are not yet."""
        layers = self._flatten_layers(include_self=False)
        own, preprocessor = StoredOnce, getattr(self, "preprocessor", None)
        if not all(isinstance(one, own) or one is preprocessor or one.built for one in layers):
            features = {"input_ids": tf.zeros(self._sample_shape, tf.int32)}
            self(features if preprocessor is None else self.sample_inputs())

    def _weights_by_key(self):
        """Returns the weights that the model stores, by name, instead of its layers.

        There are none if two have the same name, as of two encoders in a model of a user, whose
        layers store theirs themselves.
        """
        layers = [*self._flatten_layers(include_self=False)]
        own = [layer for layer in layers if isinstance(layer, StoredOnce)]
        apart = {id(weight) for layer in set(layers) - set(own) for weight in layer.weights}
        apart -= {id(weight) for layer in own for weight in layer.weights}
        weights = [weight for weight in self.weights if id(weight) not in apart]
        found = {key_of(name_of(weight)): weight for weight in weights}
        return found if len(found) == len(weights) else {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.config.summary()}>"

    def get_config(self) -> dict[str, Any]:
        encoder: Any = getattr(self, "encoder", self)
        config = {
            "config": self.config.to_dict(),
            "seed": self.seed,
            "dtype": self.dtype_policy.name,
            "recompute": encoder.recompute,
            "skips_padding": encoder.skips_padding,
            "name": self.name,
        }
        config |= {} if self.trainable else {"trainable": False}
        trains = {
            name: layer.trainable
            for name, layer, around in _parts_of(self)
            if layer.trainable != around.trainable
        }
        if not getattr(self, "_reads_pooler", True):
            trains.pop("bert/pooler", None)  # the model freezes it
        return config | ({"trainable_parts": trains} if trains else {})

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        config = config | {"config": AlbertConfig.from_dict(config["config"])}
        is_trainable, trains = config.pop("trainable", True), config.pop("trainable_parts", {})
        model = cls(**config)
        if not is_trainable:
            model.trainable = False
        for name, layer, _ in _parts_of(model):
            if name in trains:
                layer.trainable = trains[name]
        return model


def _parts_of(layer, scope=""):
    """Returns the layers within a layer, outer ones first: name, layer, and the layer around."""
    parts = []
    for number, part in enumerate(layer._flatten_layers(recursive=False, include_self=False)):
        # Keras numbers the names of its own layers, in each model further.
        name = scope + (part.name if isinstance(part, StoredOnce) else str(number))
        parts += [(name, part, layer), *_parts_of(part, f"{name}/")]
    return parts


@keras.saving.register_keras_serializable("albert_keras")
class AlbertEncoder(ConfiguredModel, keras.Model):
    """Transformer encoder whose depths share weights by calling the same layer objects again.

    All weights exist after construction, under the names of the reference's checkpoints
    ("bert/encoder/..."), whatever `name` is.

    Args:
        config: AlbertConfig.
        seed: int or None. Determines the initial weights, together with the name of each weight.
            None draws one, as `keras.utils.set_random_seed` says.
        dtype: str or policy. "float32" or "mixed_bfloat16" (float32 weights and normalization,
            bfloat16 products and outputs; in training a float32 softmax). None uses the global
            Keras policy at the time of construction.
        recompute: bool. Whether training stores only the input of each block and computes the
            block again for its gradient: about a third more work for a fraction of the memory.
        skips_padding: bool. Whether training does (almost) no work on padding. Shapes then depend
            on the batch, which TPUs do not allow.
        pooler: bool or None. Whether there is a pooler. None means: if `config.pooler` is "always".
        name: str. Name of the Keras layer.

    Call arguments:
        inputs: dict. "input_ids" int [B, S]; "input_mask" int or bool [B, S], 1 for a real token
            (default: all); "segment_ids" int [B, S] (default: zeros).
        return_all_layers: bool. Whether to return the output of every block, and of the embeddings.
        positions: int [B, Q] or None. Positions whose output is needed; the last block is computed
            only there. The first one of each sequence must be 0, [CLS]; none may be padding if
            padding is skipped.
        return_attention: bool. Whether to return the attention probabilities.
        dropout_seed: DropoutSeed or None. Makes dropout a pure function of the model's seed and of
            this seed, see `layers/dropout.py`. None counts the calls in training.
        num_hidden_layers: int or None. Number of depths to run, at most the number in the
            configuration; None runs all. The result is the same as from a shallower encoder with
            the same weights.

    Returns:
        dict. "sequence_output" [B, S, H] ([B, Q, H] for `positions`), "pooled_output" [B, H], which
        without a pooler is the output at [CLS], and, on request, tuples over the
        `num_hidden_layers * inner_group_num` blocks: "layer_outputs",
        each [B, S, H], with "embedding_output" [B, S, H], the input of the first; and "attention",
        each [B, heads, S, S], whose last axis sums to 1.

    Raises:
        TypeError, ValueError: For inputs with other names, types or shapes; and if S exceeds
            `max_position_embeddings` and positions are not rotary.

    Example:
        encoder = AlbertEncoder(AlbertConfig.from_name("albert-tiny"))
        encoder({"input_ids": [[2, 48, 25, 3]]})["pooled_output"]  # [1, 128]

    Source:
        `AlbertModel` in google-research/albert, `modeling.py`.
    """

    def __init__(
        self,
        config: AlbertConfig,
        seed: int | None = None,
        dtype: Any = None,
        recompute: bool = False,
        skips_padding: bool = False,
        pooler: bool | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        # Before any of them is created: a foreign configuration may state any size.
        count = count_weights(config, masked_lm_head=False, sentence_head=False).total
        check_memory(_BYTES_PER_WEIGHT * count, "The weights of the model")
        super().__init__(name=name, dtype=dtype, **kwargs)
        if self.dtype_policy.variable_dtype != "float32":
            raise ValueError(
                "`dtype` must keep weights in float32, as float32 and mixed_bfloat16 do. Received: "
                f"{self.dtype_policy.name}."
            )
        self.config, self.seed = config, (seed := seed_of_model(seed))
        self.recompute, self.skips_padding = recompute, skips_padding
        self.dropout_steps = DropoutSteps()
        shared = {"seed": seed, "dtype": self.dtype_policy}

        # === Layers: one object for each name in the plan ===
        plan = layer_plan(config)
        attention_calls = Counter(use.attention for use in plan)
        feed_forward_calls = Counter(use.feed_forward for use in plan)
        self.embeddings = FactorizedEmbedding(config, **shared)
        self.attention_blocks = [
            SelfAttentionBlock(config, _scope(block), name=name, **shared)
            for block, name in _layer_names("attention", attention_calls).items()
        ]
        self.feed_forward_blocks = [
            FeedForwardBlock(config, _scope(block), name=name, **shared)
            for block, name in _layer_names("feed_forward", feed_forward_calls).items()
        ]
        self.pooler = None
        if pooler or (pooler is None and config.pooler == "always"):
            size, stddev = config.hidden_size, config.initializer_range
            self.pooler = NamedDense(
                "bert/pooler/dense", size, size, **shared | {"name": "pooler", "stddev": stddev}
            )
        track(self, "attention_blocks", "feed_forward_blocks")
        self.built = True

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        return_all_layers: bool = False,
        dropout_seed: DropoutSeed | None = None,
        positions: Any = None,
        return_attention: bool = False,
        num_hidden_layers: int | None = None,
    ) -> dict[str, Any]:
        inputs, full = checked_inputs(inputs), self.config.num_hidden_layers
        depth = full if num_hidden_layers is None else num_hidden_layers
        if not 1 <= depth <= full:
            raise ValueError(
                f"`num_hidden_layers` must be from 1 to {full}, the depth of the encoder. "
                f"Received: {depth}."
            )
        if training and dropout_seed is None and self.has_dropout:
            dropout_seed = self.dropout_steps.next_seed(tf.shape(inputs["input_ids"])[0])
        with inference(not training):
            blocks = self.blocks_at(depth)
            execution = Execution(
                self, blocks, inputs, training, dropout_seed, positions, return_attention
            )

            # === Embeddings ===
            hidden = self.embeddings(
                execution.input_ids,
                execution.segment_ids,
                execution.input_mask,
                execution.rows,
                dropout_seed,
                training=training,
            )  # [N, H]

            # === Blocks: depths that share weights call the same two objects ===
            block_inputs = []
            for attention, feed_forward in blocks:
                if return_all_layers:
                    batch, hidden = execution.through_batch(hidden)
                    block_inputs.append(batch)
                hidden = execution.run(attention, feed_forward, hidden)

            # === Outputs ===
            sequence_output = execution.output(hidden)  # [B, S or Q, H]
            outputs = {
                "sequence_output": sequence_output,
                "pooled_output": self.pooled(sequence_output[:, 0]),  # [B, H]
            }
            if return_all_layers:
                outputs["embedding_output"], *layer_outputs = block_inputs
                outputs["layer_outputs"] = (*layer_outputs, sequence_output)
            if return_attention:
                outputs["attention"] = tuple(execution.attention)
            return outputs

    @property
    def input(self) -> Any:
        """Inputs of the encoder in a functional model; AttributeError before it is in one."""
        try:
            return super().input
        except AttributeError as error:
            raise AttributeError(
                "An encoder has no inputs before a functional model calls it. Make them by "
                '`keras.Input((None,), dtype="int32", name="input_ids")`, and call the encoder '
                'with `{"input_ids": ...}`.'
            ) from error

    def pooled(self, first: Any) -> Any:
        """Returns the pooled output of states at [CLS], [B, H]; the states without a pooler."""
        if self.pooler is None:
            return first
        return ACTIVATIONS[self.config.pooler_activation](self.pooler(first))

    @property
    def blocks(self) -> list[tuple[SelfAttentionBlock, FeedForwardBlock]]:
        """list of (SelfAttentionBlock, FeedForwardBlock) in the order in which they run.

        Depths that share weights have the same objects here.
        """
        return self.blocks_at(self.config.num_hidden_layers)

    def blocks_at(
        self, num_hidden_layers: int
    ) -> list[tuple[SelfAttentionBlock, FeedForwardBlock]]:
        """Returns the `blocks` of the encoder with this depth, from 1 to its full depth."""
        full = layer_plan(self.config)
        attention, feed_forward = (
            dict(zip(dict.fromkeys(names), layers, strict=True))
            for names, layers in (
                ([use.attention for use in full], self.attention_blocks),
                ([use.feed_forward for use in full], self.feed_forward_blocks),
            )
        )
        return [
            (attention[use.attention], feed_forward[use.feed_forward])
            for use in layer_plan(self.config, num_hidden_layers)
        ]

    @property
    def has_dropout(self) -> bool:
        """bool. Whether training drops anything out."""
        config = self.config
        return config.hidden_dropout_prob > 0 or config.attention_probs_dropout_prob > 0

    @classmethod
    def from_preset(
        cls,
        source: str | Path,
        load_weights: bool = True,
        step: int | str | None = None,
        **kwargs: Any,
    ) -> "AlbertEncoder":
        """Returns the encoder of a trained model.

        Args:
            source: str or Path. The name of a shipped model, or, as `hf://OWNER/NAME`, of one of
                the hub of Hugging Face; a run, a checkpoint, an export, a `.keras` file, or a model
                of Hugging Face, google-research/albert or KerasNLP.
            load_weights: bool. Whether to load the trained weights; if not, they are random.
            step: int, "best" or None. Checkpoint of a run; None means the newest valid one.
            **kwargs: As in `AlbertEncoder`: `dtype`, `recompute`, `name`, ...

        Raises:
            InputError: If there is no such model, or it is damaged.

        Example:
            encoder = AlbertEncoder.from_preset("albert-mini-en")
            encoder({"input_ids": [[2, 48, 25, 3]]})["pooled_output"].shape  # [1, 256]
        """
        from albert_keras.formats.open_weights import open_weights

        preset = open_weights(source, step)
        if "pooler" not in kwargs and preset.albert_config.pooler == "on_demand":
            has_pooler = any(name.startswith("bert/pooler/") for name in preset.tensors.shapes)
            kwargs["pooler"] = has_pooler
        with loaded_afterwards(preset.encoder_names if load_weights else ()):
            encoder = cls(preset.albert_config, **kwargs)
        if load_weights:
            preset.load(encoder)
        return encoder

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"pooler": self.pooler is not None}


def _layer_names(kind, calls):
    """Names the layer of each block for `summary`: how often it is called shows the sharing."""
    return {
        block: f"{kind}_{block.group}_{block.inner}" + (f"_called_{count}x" if count > 1 else "")
        for block, count in calls.items()
    }


def _scope(block):
    return f"bert/encoder/transformer/{block.scope}"
