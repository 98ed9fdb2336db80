"""The model that is pre-trained: encoder, masked-LM head, sentence-order head."""

from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.heads import MaskedLMHead, SentenceOrderHead


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForPretraining(keras.Model):
    """Predicts masked pieces and the order of two segments.

    Args:
        config: AlbertConfig.
        sentence_head: bool. Whether there is a sentence-order (or next-sentence) head.
        seed: int. Decides the initial weights, together with each weight's name.
        dtype: str or policy. As in `AlbertEncoder`.
        recompute: bool. As in `AlbertEncoder`.
        name: str. Name of the Keras model.

    Call arguments:
        inputs: dict. The encoder's inputs and "masked_lm_positions", int [B, P]. Other keys, such
            as labels, are ignored.

    Returns:
        dict. "masked_lm_logits" float32 [B, P, V], "sentence_order_logits" float32 [B, 2] (with the
        head), "sequence_output" [B, S, H], "pooled_output" [B, H].

    Source:
        google-research/albert, `run_pretraining.py`.
    """

    def __init__(
        self,
        config,
        sentence_head=True,
        seed=0,
        dtype=None,
        recompute=False,
        name="albert_for_pretraining",
        **kwargs,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config
        self.seed = seed
        shared = {"seed": seed, "dtype": self.dtype_policy}
        self.encoder = AlbertEncoder(config, recompute=recompute, **shared)
        self.masked_lm_head = MaskedLMHead(config, self.encoder.embeddings, **shared)
        self.sentence_order_head = SentenceOrderHead(config, **shared) if sentence_head else None
        self.built = True

    def build(self, input_shape=None):
        """Does nothing: the weights exist already."""

    def call(self, inputs, training=None, draw=None):
        outputs = self.encoder(inputs, training=training, draw=draw)
        outputs["masked_lm_logits"] = self.masked_lm_head(
            outputs["sequence_output"], inputs["masked_lm_positions"]
        )
        if self.sentence_order_head is not None:
            outputs["sentence_order_logits"] = self.sentence_order_head(outputs["pooled_output"])
        return outputs

    def get_config(self):
        return {
            "config": self.config.to_dict(),
            "sentence_head": self.sentence_order_head is not None,
            "seed": self.seed,
            "dtype": self.dtype_policy.name,
            "recompute": self.encoder.recompute,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config | {"config": AlbertConfig.from_dict(config["config"])})
