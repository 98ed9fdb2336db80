"""The pre-training model: encoder, masked-LM head and sentence-order head, and its objectives."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.cross_entropy import sparse_cross_entropy
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.layers.kernels import inference
from albert_keras.layers.weights import loaded_afterwards, seed_of_model
from albert_keras.models.encoder import AlbertEncoder, ConfiguredModel
from albert_keras.models.encoder_inputs import check_names, encoder_inputs
from albert_keras.models.heads import MaskedLMHead, SentenceOrderHead
from albert_keras.models.objective import Objective
from albert_keras.models.objective_model import ObjectiveModel

#: Prefixes of the names of the heads' weights.
_HEADS = ("cls/predictions/", "cls/seq_relationship/")
#: What the objectives read from a batch.
_TARGETS = ("masked_lm_ids", "masked_lm_weights", "sentence_order_labels", "example_weights")


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForPretraining(ConfiguredModel, ObjectiveModel):
    """Predicts masked tokens and the order of two segments.

    `fit` and `evaluate` take batches of `training_dataset` and `evaluation_dataset` as they are.
    They report `loss`, and `masked_lm_loss`, `masked_lm_accuracy`, `sentence_order_loss` and
    `sentence_order_accuracy`; in training also `gradient_norm`, before clipping.

    Args:
        config: AlbertConfig.
        sentence_head: bool. Whether the model has a sentence-order (or next-sentence) head.
        seed: int or None. As in `AlbertEncoder`.
        dtype: str or policy. As in `AlbertEncoder`.
        recompute, skips_padding: bool. As in `AlbertEncoder`.
        name: str. Name of the Keras model.

    Call arguments:
        inputs: dict. The encoder's inputs and "masked_lm_positions", int [B, P]. Other keys, such
            as labels, are ignored.
        only_predictions: bool. Whether to compute the last block only at the positions the heads
            read, which saves most of its work. The logits are then omitted, and "masked_output"
            [B, P, H] replaces "sequence_output": it has the outputs at the predicted positions.
        num_hidden_layers, return_all_layers: As in `AlbertEncoder`.

    Returns:
        dict. "masked_lm_logits" float32 [B, P, V], "sentence_order_logits" float32 [B, 2] (with the
        head), "sequence_output" [B, S, H], "pooled_output" [B, H]; and "masked_lm_scores", the
        logits before their bias in the compute dtype, [B, P, V], from which the loss is computed.

    Example:
        records = RecordFiles("records/")
        model = AlbertForPretraining(AlbertConfig.from_name("albert-tiny", records=records))
        model.compile(Lamb(WarmupPolynomialDecay(1e-3, num_steps=100, warmup_steps=10)))
        model.fit(training_dataset(records, batch_size=32, seed=1), steps_per_epoch=100)

    Source:
        google-research/albert, `run_pretraining.py`.
    """

    def __init__(
        self,
        config: AlbertConfig,
        sentence_head: bool = True,
        seed: int | None = None,
        dtype: Any = None,
        recompute: bool = False,
        skips_padding: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config
        self.seed = seed_of_model(seed)
        shared = {"seed": self.seed, "dtype": self.dtype_policy}
        self.encoder = AlbertEncoder(
            config,
            recompute=recompute,
            skips_padding=skips_padding,
            pooler=config.pooler == "always" or sentence_head,
            name="bert",
            is_part=True,
            **shared,
        )
        self.masked_lm_head = MaskedLMHead(config, self.encoder.embeddings, **shared)
        self.sentence_order_head = SentenceOrderHead(config, **shared) if sentence_head else None
        self.built = True

    @classmethod
    def from_preset(
        cls,
        source: Any,
        load_weights: bool = True,
        step: int | str | None = None,
        **kwargs: Any,
    ) -> "AlbertForPretraining":
        """Returns a pre-trained model with those heads that its weights have.

        Args:
            source, load_weights, step: As in `AlbertEncoder.from_preset`; the source may also be an
                OpenedModel.
            **kwargs: As in `AlbertForPretraining`.

        Raises:
            InputError: If there is no such model, or it is damaged.
        """
        from albert_keras.formats.open_weights import open_weights

        preset = open_weights(source, step)
        kwargs = {"sentence_head": "sentence_order" in preset.heads} | kwargs
        with loaded_afterwards(preset.encoder_names if load_weights else ()):
            model = cls(preset.albert_config, **kwargs)
        if load_weights:
            preset.load(model, heads=_HEADS)
        return model

    def compile(  # type: ignore[override]
        self,
        optimizer: Any = "lamb",
        sentence_order_weight: float = 1.0,
        clip_norm: float | str | None = "auto",
        accumulation_steps: int = 1,
        masked_lm_weight: float = 1.0,
        objective_weights: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures the training; call it in the scope of the strategy that the model is made in.

        Args:
            sentence_order_weight: float. Weight of the sentence-order loss; 0 trains masked tokens
                alone, as for records without sentence-order labels.
            masked_lm_weight: float. Weight of the masked-LM loss.
            objective_weights: dict of str to float. Weights of the objectives that a subclass adds.
            **kwargs: `optimizer`, `clip_norm`, `accumulation_steps` and others are as in
                `ObjectiveModel.compile`.
        """
        weights = {"masked_lm": masked_lm_weight}
        if self.sentence_order_head is not None and sentence_order_weight > 0:
            weights["sentence_order"] = sentence_order_weight
        super().compile(
            optimizer,
            weights | dict(objective_weights or {}),
            clip_norm,
            accumulation_steps,
            **kwargs,
        )

    @property
    def trained_weights(self) -> list[tf.Variable]:
        """list of variables. What the loss depends on: without the pooler if no head reads it."""
        pooler = self.encoder.pooler if self.sentence_order_head is None else None
        unused = set() if pooler is None else {id(weight) for weight in pooler.weights}
        return [weight for weight in self.trainable_variables if id(weight) not in unused]

    @property
    def has_fixed_shapes(self) -> bool:
        return not self.encoder.skips_padding

    def objectives(self, features: dict[str, tf.Tensor]) -> dict[str, Objective]:
        missing = [name for name in _TARGETS if name not in features]
        if missing:
            raise ValueError(
                "`fit` and `evaluate` of AlbertForPretraining take batches of `training_dataset` "
                f"or `evaluation_dataset`. Received batches without {', '.join(missing)}."
            )
        examples = features["example_weights"]  # [B]

        def masked_lm(outputs):
            scores = outputs["masked_lm_scores"]  # [B, P, V]
            rows = tf.reshape(scores, [-1, scores.shape[-1]])
            ids = tf.reshape(features["masked_lm_ids"], [-1])
            return sparse_cross_entropy(rows, self.masked_lm_head.output_bias, ids)

        def sentence_order(outputs):
            labels = features["sentence_order_labels"]
            return sparse_cross_entropy(outputs["sentence_order_logits"], tf.zeros([2]), labels)

        return {
            "masked_lm": Objective(features["masked_lm_weights"] * examples[:, None], masked_lm),
            "sentence_order": Objective(examples, sentence_order),
        }

    def outputs_of(
        self,
        features: dict[str, tf.Tensor],
        training: bool,
        dropout_seed: DropoutSeed | None = None,
        **how: Any,
    ) -> dict[str, tf.Tensor]:
        return self(
            features,
            training=training,
            dropout_seed=dropout_seed,
            only_predictions=True,
            **how,
        )

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        dropout_seed: DropoutSeed | None = None,
        only_predictions: bool = False,
        num_hidden_layers: int | None = None,
        return_all_layers: bool = False,
    ) -> dict[str, Any]:
        if inputs.get("masked_lm_positions") is None:
            raise ValueError(
                "The inputs of AlbertForPretraining must have `masked_lm_positions`, int [B, P]. "
                f"Received: {', '.join(inputs)}."
            )
        check_names(inputs)
        positions = tf.convert_to_tensor(inputs["masked_lm_positions"])  # [B, P]
        with inference(not training):
            computed = None
            if only_predictions:  # with [CLS]
                computed = tf.concat([tf.zeros_like(positions[:, :1]), positions], axis=1)
            outputs = self.encoder(
                encoder_inputs(inputs),
                training=training,
                return_all_layers=return_all_layers,
                dropout_seed=dropout_seed,
                positions=computed,
                num_hidden_layers=num_hidden_layers,
            )
            if only_predictions:
                masked = outputs["masked_output"] = outputs.pop("sequence_output")[:, 1:]
            else:
                masked = tf.gather(outputs["sequence_output"], positions, batch_dims=1)
            scores = outputs["masked_lm_scores"] = self.masked_lm_head.scores(masked)  # [B, P, V]
            if not only_predictions:
                outputs["masked_lm_logits"] = self.masked_lm_head.logits(scores)
            if (order_head := self.sentence_order_head) is not None:
                outputs["sentence_order_logits"] = order_head(outputs["pooled_output"])
        return outputs

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"sentence_head": self.sentence_order_head is not None}
