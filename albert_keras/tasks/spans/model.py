"""The model that finds spans of a passage.

Source: `squad_utils.py` in google-research/albert.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.tasks.heads import SpansHead, SpansOrNoneHead
from albert_keras.tasks.model import AlbertTaskModel, float32, of_classes


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForSpans(AlbertTaskModel):
    """Finds where an answer starts and ends, and whether there is one.

    Args:
        config: AlbertConfig.
        can_be_none: bool. Whether a question may have no answer, as in SQuAD 2.0.
        **kwargs: As in `AlbertTaskModel`; `head_dropout` is used only for `can_be_none`.

    Call arguments:
        inputs: dict. "input_ids", "input_mask" and "segment_ids", int [B, S], as in
            `AlbertForClassification`; for `can_be_none` also "p_mask" int [B, S] and, in training,
            "start_positions" int [B], see `SpansOrNoneHead`.
        dropout_seed: DropoutSeed or None. See `layers/dropout.py`.

    Returns:
        dict. "start_logits" and "end_logits", float32 [B, S], as of `SpansHead`, which deviates
        from google-research/albert; for `can_be_none` the outputs of `SpansOrNoneHead`, which
        differ in training.

    Example:
        model = AlbertForSpans.from_preset("albert-mini-en", sequence_length=64)
        passages, questions = ["The ferry left at noon."], ["When did it leave?"]
        model.fit((passages, questions), ["at noon"])
        model.predict((passages, questions))[0]
    """

    has_loss_of_outputs = False

    def __init__(
        self,
        config: AlbertConfig,
        can_be_none: bool = False,
        name: str = "albert_for_spans",
        **kwargs: Any,
    ):
        super().__init__(config, name=name, **kwargs)
        self.can_be_none = can_be_none
        if can_be_none:
            self.head = SpansOrNoneHead(config, self.head_dropout, **self._of_head)
        else:
            self.head = SpansHead(config, **self._of_head)

    def _call(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        return self.head(hidden, inputs, dropout_seed, training=training)

    @classmethod
    def usual_task(
        cls,
        labels: tuple[str, ...] | None,
        can_be_none: bool = False,
        longest: int = 384,
        **kwargs: Any,
    ) -> dict[str, Any]:
        name = "squad2" if can_be_none else "squad1"
        return {"name": name, "max_query_length": min(64, longest // 3)}

    def losses(
        self, outputs: Mapping[str, tf.Tensor], features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the mean of the cross-entropies of start and end, and 1 where both are right.

        With `can_be_none` it is half the sum of the cross-entropies of start, end (after the right
        start) and "no answer".
        """
        # Log-probabilities are logits too, their sum of exponentials being 1.
        scores = "log_probs" if self.can_be_none else "logits"
        starts, starts_right = of_classes(outputs[f"start_{scores}"], features["start_positions"])
        ends, ends_right = of_classes(outputs[f"end_{scores}"], features["end_positions"])
        losses, is_right = (starts + ends) / 2, starts_right * ends_right
        if self.can_be_none:
            labels, logits = float32(features["is_impossible"]), float32(outputs["null_logits"])
            losses += tf.nn.sigmoid_cross_entropy_with_logits(labels, logits) / 2
        return losses, is_right

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"can_be_none": self.can_be_none}
