"""Fine-tuned models that take plain strings, one class for each kind of task.

All of what a row is made of is as in the Python path (`Task.features`), and so are the answers
(`Task.answers`), as long as texts are not cut at `TextPacker.max_bytes`.
"""

import tensorflow as tf

from albert_keras.serving.graph.aligning_tokenizer import AligningTokenizer
from albert_keras.serving.graph.span_answers import SpanReader
from albert_keras.serving.graph.string_model import StringModel, string_function
from albert_keras.serving.graph.text_packing import (
    BYTES_PER_PLACE,
    WHITE_SPACE,
    first_values,
    pieces_from,
    ragged_cumsum,
    readable,
    texts_of_examples,
)
from albert_keras.tasks.glue_tasks import GLUE_TASKS
from data_pipeline.errors import InputError

# What is a blank of a question, as in `tasks/choice_features.py`.
_BLANK = "_"
_OTHER_BLANKS = "[\ufe33\ufe34\ufe4d-\ufe4f\uff3f]"
_SPACE = f"{WHITE_SPACE}+"


class TaskModel(StringModel):
    """Base of the fine-tuned models. `predict_tokens` gives the outputs of the head, see `KINDS`.

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
        self._null_threshold = None
        if task.kind == "spans_or_none":
            self._null_threshold = (tuned or {}).get("null_threshold", 0.0)
        graph = self._tokenizer_class(tokenizer) if self._tokenizer_class else None
        super().__init__(model, tokenizer, task.max_seq_length, precision, layers, graph)

    def _predict_tokens(self, packed):
        return self.stored.outputs(packed)

    def _likeliest(self, logits):
        """Returns names and probabilities of the likeliest: [..., C] → string, float32 [...]."""
        names = tf.gather(self._labels, tf.argmax(logits, axis=-1))
        return names, tf.reduce_max(tf.nn.softmax(logits), axis=-1)


class TextTaskModel(TaskModel):
    """Texts, or pairs of them.

    serving_default  `text` string [B], the two texts of a pair parted by the first tab
    text_pair        of pairs: `first`, `second` string [B]
    classify, or regress for numbers  `inputs` string [B], serialized tf.Examples with the features
        `text` and, of pairs, `pair` → `classes` string and `scores` float32 [B, C], or `outputs`
        float32 [B]; what is missing is ""
    """

    #: Name of the signature over tf.Examples.
    _example_name = None

    def _functions(self):
        functions = {
            "serving_default": string_function(self._answer_text, "text"),
            self._example_name: string_function(self._answer_examples, "inputs"),
        }
        if self._has_pair:
            functions["text_pair"] = string_function(self._answer_pair, "first", "second")
        return functions

    @property
    def _has_pair(self):
        glue = GLUE_TASKS.get(self._config.name)
        return glue.unlabelled.second if glue else self._config.pair is not None

    def _packed(self, text):
        if self._has_pair:
            return self._packed_pair(*_at_tab(text))
        return super()._packed(text)

    def _packed_pair(self, first, second):
        return self.packer.pack(self.ids(first), self.ids(second), drops_empty=True)

    def _answer_text(self, text):
        return self._answer(self._packed(text))

    def _answer_pair(self, first, second):
        return self._answer(self._packed_pair(first, second))

    def _answer_examples(self, inputs):
        names = ("text", "pair") if self._has_pair else ("text",)
        texts = [texts_of_examples(inputs, name) for name in names]
        pack = self._packed_pair if self._has_pair else super()._packed
        return self._as_protocol(self._answer(pack(*texts)))


class ClassificationModel(TextTaskModel):
    """Classes: `label` string and `probability` float32 [B], of the likeliest; `labels` string and
    `probabilities` float32 [B, C], of all."""

    _example_name = "classify"

    def _answer(self, packed):
        logits = self.stored.outputs(packed)["logits"]
        label, probability = self._likeliest(logits)
        labels = tf.repeat(self._labels[None], tf.shape(logits)[0], axis=0)
        return {
            "label": label,
            "probability": probability,
            "labels": labels,
            "probabilities": tf.nn.softmax(logits),
        }

    def _as_protocol(self, answer):
        return {"classes": answer["labels"], "scores": answer["probabilities"]}


class RegressionModel(TextTaskModel):
    """Numbers: `score` float32 [B]."""

    _example_name = "regress"

    def _answer(self, packed):
        return {"score": self.stored.outputs(packed)["logits"][:, 0]}

    def _as_protocol(self, answer):
        return {"outputs": answer["score"]}


class TaggingModel(TaskModel):
    """Tags of words.

    tags, also serving_default  `text` string [B], words parted by white space → `words`, `tags`
                                string and `probability` float32 [B, W]; "" and 0 fill up

    A text is one row: words that do not fit into it have the tag "" and the probability 0, and
    those beyond `TextPacker.max_bytes` are not among `words`.
    """

    def _functions(self):
        tags = string_function(self._tags, "text")
        return {"serving_default": tags, "tags": tags}

    def _packed(self, text):
        return self._sentences(text)[0]

    def _sentences(self, text):
        """Returns rows, words (ragged string [B, None]), and the place of each, 0 for none."""
        text = tf.strings.regex_replace(readable(text, self.packer.max_bytes), _SPACE, " ")
        words = tf.strings.split(text)
        pieces = self.tokenizer(words.flat_values)  # [all words, None]
        unknown = tf.fill([pieces.nrows(), 1], self._unk_id)
        is_nothing = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.RaggedTensor.from_tensor(unknown, lengths=is_nothing)
        room = self.packer.max_seq_length - 2
        pieces = tf.concat([pieces, unknown], axis=1)[:, :room]
        lengths = words.with_flat_values(pieces.row_lengths())
        ends = ragged_cumsum(lengths)
        fits = ends <= room
        used = tf.reduce_sum(tf.where(fits, lengths, tf.zeros_like(lengths)), axis=1)
        rows = words.with_flat_values(pieces).merge_dims(1, 2)
        packed = self.packer.lay_out(pieces_from(rows, 0, used))
        places = tf.where(fits, 1 + ends - lengths, tf.zeros_like(lengths))
        return packed, words, places.to_tensor(0)

    def _tags(self, text):
        packed, words, places = self._sentences(text)
        logits = self.stored.outputs(packed)["logits"]
        tags, probability = self._likeliest(tf.gather(logits, places, batch_dims=1))
        return {
            "words": words.to_tensor(""),
            "tags": tf.where(places > 0, tags, ""),
            "probability": tf.where(places > 0, probability, 0.0),
        }


class ChoiceModel(TaskModel):
    """Options to choose from.

    multiple_choice, also serving_default  `context`, `question` string [B], `options` string
        [B, C] → `choice` int32 [B], its number from 0; `option` string [B]; `probabilities`
        float32 [B, C]

    Of question and options the last bytes are read, of the context the first ones.
    """

    _ids_shape = (None, None, None)

    def _functions(self):
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in ("context", "question")]
        specs.append(tf.TensorSpec([None, None], tf.string, name="options"))
        choose = tf.function(self._choose, input_signature=specs, autograph=False)
        return {"serving_default": choose, "multiple_choice": choose}

    @property
    def _max_qa_length(self):
        return self._config.max_qa_length or min(128, self.packer.max_seq_length // 4)

    def _choose(self, context, question, options):
        shape = tf.shape(options)
        rows = tf.repeat(tf.range(shape[0], dtype=tf.int64), shape[1])
        option = tf.reshape(options, [-1])
        asked = self._filled(tf.gather(question, rows), option)
        asked = readable(asked, BYTES_PER_PLACE * self._max_qa_length, from_end=True)
        asked = self.tokenizer(asked)
        surplus = tf.maximum(asked.row_lengths() - self._max_qa_length, 0)
        second = pieces_from(asked, surplus, asked.row_lengths() - surplus)
        first = self.ids(context)
        room = self.packer.max_seq_length - 3 - second.row_lengths()
        lengths = tf.minimum(tf.gather(first.row_lengths(), rows), room)
        packed = self.packer.lay_out(pieces_from(first, 0, lengths, rows), second, drops_empty=True)
        packed = {
            name: tf.reshape(ids, [shape[0], shape[1], tf.shape(ids)[1]])
            for name, ids in packed.items()
        }
        probabilities = tf.nn.softmax(self.stored.outputs(packed)["logits"])
        choice = tf.argmax(probabilities, axis=1, output_type=tf.int32)
        chosen = readable(tf.gather(options, choice, batch_dims=1), None)
        return {"choice": choice, "option": chosen, "probabilities": probabilities}

    def _filled(self, question, option):
        """Does as `choice_text` of `tasks/choice_features.py`; no more than the end of long ones.

        Only as many of the last blanks are filled as it takes to exceed what is read of a text.
        """
        most = self.packer.max_bytes
        question, option = (_stripped(readable(one, most, True)) for one in (question, option))
        question = tf.strings.regex_replace(question, _OTHER_BLANKS, _BLANK)
        parts = tf.strings.split(question, _BLANK)
        lengths = tf.cast(tf.maximum(tf.strings.length(option), 1), tf.int64)
        left = tf.minimum(parts.row_lengths(), 2 + most // lengths)
        parts = pieces_from(parts, parts.row_lengths() - left, left)
        rest = parts[:, 1:]
        repeated = tf.gather(option, rest.value_rowids())
        rest = rest.with_flat_values(tf.strings.join([repeated, rest.flat_values]))
        filled = tf.strings.join([first_values(parts), tf.strings.reduce_join(rest, axis=1)])
        unfilled = tf.strings.join([question, " ", option])
        return tf.where(rest.row_lengths() > 0, filled, unfilled)


class SpanModel(TaskModel):
    """Answers that are stretches of a context.

    question_answering  `question`, `context` string [B] → see `SpanReader.answers`
    serving_default     `text` string [B], question and context parted by the first tab

    `encode` and `explain_tokens` take the same text, and show the first window.
    """

    _tokenizer_class = AligningTokenizer

    def _functions(self):
        self._reader = SpanReader(
            self.tokenizer, self.stored, self.packer, self._config, self._null_threshold
        )
        ask = self._reader.answers
        return {
            "serving_default": string_function(lambda text: ask(*_at_tab(text)), "text"),
            "question_answering": string_function(ask, "question", "context"),
        }

    def _packed(self, text):
        question, context = (self.ids(one) for one in _at_tab(text))
        question = question[:, : self._config.max_query_length]
        room = self.packer.max_seq_length - 3 - question.row_lengths()
        lengths = tf.minimum(context.row_lengths(), room)
        return self.packer.lay_out(question, pieces_from(context, 0, lengths))

    def _predict_tokens(self, packed):
        return self._reader.outputs(packed)


_CLASSES = {
    "classification": ClassificationModel,
    "regression": RegressionModel,
    "tagging": TaggingModel,
    "choice": ChoiceModel,
    "spans": SpanModel,
    "spans_or_none": SpanModel,
}


def build_task_model(model, tokenizer, task, *args, **kwargs):
    """Returns the TaskModel of a task's kind; arguments and errors as of `TaskModel`."""
    return _CLASSES[task.kind](model, tokenizer, task, *args, **kwargs)


def _at_tab(text):
    """Parts texts at their first tab, string [B] → two string [B]."""
    parts = tf.strings.split(text, "\t", maxsplit=1)
    return first_values(parts), first_values(parts[:, 1:])


def _stripped(text):
    return tf.strings.regex_replace(text, f"^{_SPACE}|{_SPACE}$", "")
