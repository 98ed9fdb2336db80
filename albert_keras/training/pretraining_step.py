"""The training step of pre-training: masked tokens and the order of sentences."""

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.loop.step import (
    TrainingStep,
    compile_step,
    model_settings,
    step_settings,
)
from albert_keras.training.losses import masked_lm_sums, row_sums, sentence_order_sums


class PretrainingStep(TrainingStep):
    """Trains a model on masked tokens and sentence order.

    Subclasses have `further_objectives`, whose sums and counts follow the values for these two.
    """

    def __init__(
        self,
        model: AlbertForPretraining,
        sentence_order_weight: float = 1.0,
        masked_lm_weight: float = 1.0,
        further_objectives: dict[str, float] | None = None,
        **kwargs,
    ):
        objectives = {"masked_lm": masked_lm_weight}
        if model.sentence_order_head is not None and sentence_order_weight > 0:
            objectives["sentence_order"] = sentence_order_weight
        super().__init__(model, objectives | (further_objectives or {}), **kwargs)
        self.sentence_order_weight = sentence_order_weight
        self._num_hidden_layers = model.config.num_hidden_layers

    @property
    def num_hidden_layers(self) -> int:
        """How many depths of the encoder run, counted from the first; all unless it is set."""
        return self._num_hidden_layers

    @num_hidden_layers.setter
    def num_hidden_layers(self, depth: int):
        if depth != self._num_hidden_layers:
            self._num_hidden_layers = depth
            self.forget_graphs()

    @property
    def trained_weights(self):
        """list of variables. Weights that the loss depends on; no pooler without sentence head."""
        weights = [weight for weight in self.saved_weights if weight.trainable]
        if self.model.sentence_order_head is not None or self.model.encoder.pooler is None:
            return weights
        return _without(weights, [self.model.encoder.pooler])

    @property
    def saved_weights(self):
        """list of variables. The weights of the encoder with its current depth, and of the heads.

        A checkpoint of a stage with a smaller depth is therefore a checkpoint of a smaller model.
        """
        encoder = self.model.encoder
        used = {id(block) for pair in encoder.blocks_at(self.num_hidden_layers) for block in pair}
        blocks = [*encoder.attention_blocks, *encoder.feed_forward_blocks]
        return _without(self.model.weights, [block for block in blocks if id(block) not in used])

    def take_over(self, state):
        if "stages" in state:
            self.num_hidden_layers = int(state["stages"]["num_hidden_layers"])

    def counts(self, features):
        examples = features["example_weights"]  # [B]
        counts = [tf.reduce_sum(features["masked_lm_weights"] * examples[:, None])]
        if "sentence_order" in self.objectives:
            counts.append(tf.reduce_sum(examples))
        return counts

    def sums(self, features, training, dropout_seed=None):
        return self.sums_of(self.run_model(features, training, dropout_seed), features)

    def row_sums(self, features):
        # Without the objectives of a teacher: hard means hard for this model.
        outputs, examples = self.run_model(features, training=False), features["example_weights"]
        sums = [
            row_sums(
                outputs["masked_lm_scores"],
                features["masked_lm_ids"],
                features["masked_lm_weights"] * examples[:, None],
                self.model.masked_lm_head.output_bias,
            )
        ]
        if "sentence_order" in self.objectives:
            labels = features["sentence_order_labels"]
            sums.append(row_sums(outputs["sentence_order_logits"], labels, examples))
        return tf.stack(sums)

    def run_model(self, features, training, dropout_seed=None):
        """Runs the model on features, at the predicted positions only."""
        return self.model(
            features,
            training=training,
            dropout_seed=dropout_seed,
            only_predictions=True,
            num_hidden_layers=self.num_hidden_layers,
        )

    def sums_of(self, outputs, features):
        """Returns the sums of masked tokens and sentence order for the outputs of `run_model`."""
        examples = features["example_weights"]  # [B]
        sums = [
            masked_lm_sums(
                outputs["masked_lm_scores"],
                features["masked_lm_ids"],
                features["masked_lm_weights"] * examples[:, None],
                self.model.masked_lm_head.output_bias,
            )
        ]
        if "sentence_order" in self.objectives:
            sums.append(
                sentence_order_sums(
                    outputs["sentence_order_logits"], features["sentence_order_labels"], examples
                )
            )
        return sums


def _without(weights, layers):
    left_out = {id(weight) for layer in layers for weight in layer.weights}
    return [weight for weight in weights if id(weight) not in left_out]


def build_step(config: PretrainingConfig, albert_config: AlbertConfig, skips_padding=False):
    """Builds the compiled PretrainingStep of a resolved configuration, moments included.

    Call it in the strategy's scope.
    """
    training = config.training
    model = AlbertForPretraining(
        albert_config,
        sentence_head=training.sentence_order_weight > 0,
        **model_settings(training, skips_padding),
    )
    step = PretrainingStep(
        model,
        training.sentence_order_weight,
        hard_examples=training.hard_examples,
        **step_settings(config),
    )
    compile_step(step, config)
    return step
