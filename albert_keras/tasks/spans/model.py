"""The model that finds spans of a passage.

Source: `squad_utils.py` in google-research/albert.
"""

import tensorflow as tf
from tensorflow import keras

from albert_keras.tasks.heads import SpansHead, SpansOrNoneHead
from albert_keras.tasks.task_model import AlbertTaskModel, float32, of_classes


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForSpans(AlbertTaskModel):
    """Finds where an answer starts and ends, and whether there is one.

    Args:
        config: AlbertConfig.
        can_be_none: bool. Whether a question may have no answer, as in SQuAD 2.0.
        **kwargs: As in `AlbertForTask`; `head_dropout` is used only for `can_be_none`.

    Call arguments:
        inputs: dict. As in `AlbertForTask`; for `can_be_none` also "p_mask" and, in training,
            "start_positions", see `SpansOrNoneHead`.

    Returns:
        dict. As `SpansHead`, which deviates from google-research/albert, or `SpansOrNoneHead`,
        whose outputs in training differ.
    """

    has_loss_of_outputs = False

    def __init__(self, config, can_be_none=False, name="albert_for_spans", **kwargs):
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
    def usual_task(cls, labels, can_be_none=False, longest=384, **kwargs):
        name = "squad2" if can_be_none else "squad1"
        return {"name": name, "max_query_length": min(64, longest // 3)}

    def losses(self, outputs, features):
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

    def get_config(self):
        return super().get_config() | {"can_be_none": self.can_be_none}
