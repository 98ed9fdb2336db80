"""Answers of an export as those of the run it was made of.

Rows are laid out in Python, as in fine-tuning, and computed by the signature `predict_tokens`. So
there is all that a task answers, the n best texts of a question with their probabilities, too, and
long sentences are tagged to their end. The signatures over strings do not give that.
"""

import tensorflow as tf

from albert_keras.finetuning.predicting import RowPredictor

#: Rows that are computed at a time, and of a choice, whose rows are several sequences each.
_ROWS, _CHOICES = 32, 8
#: Examples that are laid out at a time: memory has a bound, their number has none.
_EXAMPLES = 1024


class TaskPredictor:
    """Answers examples of a task.

    Args:
        task: Task.
        tokenizer: Tokenizer. The one the graph has.
        predict_tokens: callable. Takes `input_ids`, `input_mask` and `segment_ids`, int32, by name;
            gives what `TaskKind.outputs` says, a dict of tensors.
        tuned: dict of str to float, or None. As from `Task.tune`.
    """

    def __init__(self, task, tokenizer, predict_tokens, tuned=None):
        self._task, self._tokenizer, self._tuned = task, tokenizer, tuned

        def model(inputs, training):
            names = ("input_ids", "input_mask", "segment_ids")
            return predict_tokens(**{name: inputs[name] for name in names})

        rows = _CHOICES if task.kind.has_options else _ROWS
        self._predictor = RowPredictor(tf.distribute.get_strategy(), model, task.kind, rows)

    def answers(self, examples):
        """Answers examples: list of named tuples, see `Task.answers`.

        Raises:
            InputError: As of `Task.features` and `Task.answers`.
        """
        answers = []
        for begin in range(0, len(examples), _EXAMPLES):
            part = examples[begin : begin + _EXAMPLES]
            features = self._task.features(part, self._tokenizer)
            result = self._predictor.predict(features)
            answers += self._task.answers(part, features, [result], self._tuned or None)
        return answers
