"""The pre-training model: encoder, masked-LM head and sentence-order head."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.layers.kernels import inference
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.heads import MaskedLMHead, SentenceOrderHead


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForPretraining(keras.Model):
    """Predicts masked tokens and the order of two segments.

    Args:
        config: AlbertConfig.
        sentence_head: bool. Whether the model has a sentence-order (or next-sentence) head.
        seed: int. Determines the initial weights, together with the name of each weight.
        dtype: str or policy. As in `AlbertEncoder`.
        recompute, skips_padding: bool. As in `AlbertEncoder`.
        name: str. Name of the Keras model.

    Call arguments:
        inputs: dict. The encoder's inputs and "masked_lm_positions", int [B, P]. Other keys, such
            as labels, are ignored.
        only_predictions: bool. Whether to compute the last block only at the positions the heads
            read, which saves most of its work. The logits are then omitted, and "masked_output"
            [B, P, H] replaces "sequence_output": it has the outputs at the predicted positions.
        num_hidden_layers: int or None. Depths to run, as in `AlbertEncoder`.

    Returns:
        dict. "masked_lm_logits" float32 [B, P, V], "sentence_order_logits" float32 [B, 2] (with the
        head), "sequence_output" [B, S, H], "pooled_output" [B, H]; and "masked_lm_scores", the
        logits before their bias in the compute dtype, [B, P, V], from which the loss is computed.

    Source:
        google-research/albert, `run_pretraining.py`.
    """

    def __init__(
        self,
        config: AlbertConfig,
        sentence_head: bool = True,
        seed: int = 0,
        dtype: Any = None,
        recompute: bool = False,
        skips_padding: bool = False,
        name: str = "albert_for_pretraining",
        **kwargs: Any,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config
        self.seed = seed
        shared = {"seed": seed, "dtype": self.dtype_policy}
        self.encoder = AlbertEncoder(
            config,
            recompute=recompute,
            skips_padding=skips_padding,
            pooler=config.pooler == "always" or sentence_head,
            **shared,
        )
        self.masked_lm_head = MaskedLMHead(config, self.encoder.embeddings, **shared)
        self.sentence_order_head = SentenceOrderHead(config, **shared) if sentence_head else None
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: all weights exist already."""

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        dropout_seed: DropoutSeed | None = None,
        only_predictions: bool = False,
        num_hidden_layers: int | None = None,
    ) -> dict[str, Any]:
        with inference(not training):
            how = {
                "training": training,
                "dropout_seed": dropout_seed,
                "num_hidden_layers": num_hidden_layers,
            }
            return self._call(inputs, only_predictions, how)

    def _call(self, inputs, only_predictions, how):
        positions = tf.convert_to_tensor(inputs["masked_lm_positions"])  # [B, P]
        if only_predictions:
            positions = tf.concat([tf.zeros_like(positions[:, :1]), positions], axis=1)
            outputs = self.encoder(inputs, positions=positions, **how)
            masked = outputs["masked_output"] = outputs.pop("sequence_output")[:, 1:]  # [B, P, H]
        else:
            outputs = self.encoder(inputs, **how)
            masked = tf.gather(outputs["sequence_output"], positions, batch_dims=1)
        scores = outputs["masked_lm_scores"] = self.masked_lm_head.scores(masked)
        if not only_predictions:
            outputs["masked_lm_logits"] = self.masked_lm_head.logits(scores)
        if self.sentence_order_head is not None:
            outputs["sentence_order_logits"] = self.sentence_order_head(outputs["pooled_output"])
        return outputs

    def get_config(self) -> dict[str, Any]:
        return {
            "config": self.config.to_dict(),
            "sentence_head": self.sentence_order_head is not None,
            "seed": self.seed,
            "dtype": self.dtype_policy.name,
            "recompute": self.encoder.recompute,
            "skips_padding": self.encoder.skips_padding,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AlbertForPretraining":
        return cls(**config | {"config": AlbertConfig.from_dict(config["config"])})
