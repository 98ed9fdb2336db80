"""What fine-tuned models over plain strings have in common, whatever their task."""

import tensorflow as tf

from albert_keras.serving.graph.string_model import StringModel
from albert_keras.serving.graph.text_packing import LONGEST_CHARACTER, first_values
from albert_keras.tasks.kinds import SPANS_OR_NONE
from data_pipeline.errors import InputError


class TaskModel(StringModel):
    """Base of the fine-tuned models. `predict_tokens` gives the outputs of the head.

    Args:
        model: AlbertForTask, float32, of the task's kind.
        tokenizer: Tokenizer.
        task: Task.
        precision: str. See `StoredModel`.
        tuned: dict of str to float, or None. As from `Task.tune`; of squad2 `null_threshold`.
        layers: sequence of int. See `StringModel`.

    Raises:
        InputError: If rows of the task are longer than the model takes.
    """

    _tokenizer_class = None

    def __init__(self, model, tokenizer, task, precision="float32", tuned=None, layers=()):
        longest = model.config.max_position_embeddings
        if task.max_seq_length > longest:
            raise InputError(
                f"`max_seq_length` should be at most `max_position_embeddings`, {longest}. "
                f"Received: {task.max_seq_length}."
            )
        self._config, self._labels = task.config, tf.constant(task.labels, tf.string)
        self._takes_pair = task.takes_pair
        self._null_threshold = None
        if task.kind is SPANS_OR_NONE:
            self._null_threshold = (tuned or {}).get("null_threshold", 0.0)
        graph = self._tokenizer_class(tokenizer) if self._tokenizer_class else None
        super().__init__(model, tokenizer, task.max_seq_length, precision, layers, graph)

    def _predict_tokens(self, packed):
        return self.stored.outputs(packed)

    def _likeliest(self, logits):
        """Returns names and probabilities of the likeliest: [..., C] → string, float32 [...]."""
        names = tf.gather(self._labels, tf.argmax(logits, axis=-1))
        return names, tf.reduce_max(tf.nn.softmax(logits), axis=-1)


def at_tab(text, max_bytes):
    """Parts texts at their first tab.

    Args:
        text: string [B].
        max_bytes: int. What is read of each part; a few more remain, to see where to cut.

    Returns:
        tuple of two string [B].
    """
    parts = tf.strings.split(text, "\t", maxsplit=1)
    read = tf.strings.substr(parts.flat_values, 0, max_bytes + LONGEST_CHARACTER)
    parts = parts.with_flat_values(read)
    return first_values(parts), first_values(parts[:, 1:])
