"""Fine-tuned models that take plain strings, one class for each kind of task; here all but
spans and tagging.

Sequences are built as in Python (`Task.features`), and answers are the same as in Python
(`Task.answers`), as long as no text exceeds `TextPacker.max_bytes`.
"""

import tensorflow as tf

from albert_keras.layers.text_packing import (
    first_values,
    readable,
)
from albert_keras.models.encoder_with_head import AlbertForTask
from albert_keras.models.multiple_choice import AlbertMultipleChoicePreprocessor
from albert_keras.serving.graph.string_model import StringModel, string_function
from albert_keras.tasks.choice.task import EQUALLY_LIKELY
from albert_keras.tasks.task import Task
from data_pipeline.tokenizers.tokenization import Tokenizer


class TaskModel(StringModel):
    """Base of the fine-tuned models. `predict_tokens` returns what the model does.

    Args:
        model: float32, of the kind of the task.
        precision: See `StringModel`.
        tuned: As `Task.tuned_answers` returns it: for squad2 `null_threshold`, for several labels
            the threshold of each.
    """

    def __init__(
        self,
        model: AlbertForTask,
        tokenizer: Tokenizer,
        task: Task,
        precision: str = "float32",
        tuned: dict[str, float] | None = None,
    ):
        self._config, self._labels = task.config, tf.constant(task.labels, tf.string)
        self._takes_pair = task.takes_pair
        is_joint = task.config.pair_encoding != "separate" and task.texts_per_row == 1
        self._encodes_pair = task.takes_pair and is_joint
        self._null_threshold = None
        if task.kind == "spans_or_none":
            self._null_threshold = (tuned or {}).get("null_threshold", 0.0)
        if task.kind == "multi_label":
            self._thresholds = tf.constant(task.thresholds(tuned), tf.float32)
        super().__init__(
            model, tokenizer, task.max_seq_length, precision, **task.preprocessor_settings
        )

    def _predict_tokens(self, packed):
        return self.outputs(packed)

    def _split_at_tab(self, text):
        """Splits texts, string [B], at their first tab into two string [B]."""
        parts = tf.strings.split(text, "\t", maxsplit=1)
        return first_values(parts), first_values(parts[:, 1:])


class TextTaskModel(TaskModel):
    """Base of the models that classify or score texts, or pairs of them.

    serving_default  `text` string [B], the two texts of a pair separated by the first tab
    text_pair        for pairs: `first`, `second` string [B]; both return `dropped_tokens` as well
    encode, explain_tokens, attention  take what the encoder reads: a text, or the two texts of a
        pair, separated by the first tab, unless they are encoded separately
    classify, or regress for numbers  `inputs` string [B], serialized tf.Examples with the features
        `text` and, for pairs, `pair` → `classes` string and `scores` float32 [B, C], or `outputs`
        float32 [B]; a missing text is ""
    """

    #: Name of the signature over tf.Examples, if there is one.
    _example_name = None

    def _functions(self):
        functions = {"serving_default": string_function(self._answer_text, "text")}
        if self._example_name is not None:
            functions[self._example_name] = string_function(self._answer_examples, "inputs")
        if self._takes_pair:
            functions["text_pair"] = string_function(self._answer_pair, "first", "second")
        return functions

    def _sequences(self, text):
        if self._encodes_pair:
            return self._pairs(*self._split_at_tab(text))
        return super()._sequences(text)

    def _pairs(self, first, second):
        """Builds the sequences of pairs, string [B] each; returns as `_sequences`."""
        return self.sequences_of(first, second, drops_empty=True)

    def _answer_text(self, text):
        return self._answer_texts(*(self._split_at_tab(text) if self._takes_pair else [text]))

    def _answer_pair(self, first, second):  # inputs have the names of their signature
        return self._answer_texts(first, second)

    def _answer_texts(self, *texts):
        packed, dropped = (self._pairs if self._takes_pair else self._sequences)(*texts)
        return self._answer(packed) | {"dropped_tokens": dropped}

    def _answer_examples(self, inputs):
        names = ("text", "pair") if self._takes_pair else ("text",)
        features = {name: tf.io.RaggedFeature(tf.string) for name in names}
        parsed = tf.io.parse_example(inputs, features)
        answer = self._answer_texts(*(first_values(parsed[name]) for name in names))
        if self._example_name == "regress":
            return {"outputs": answer["score"]}
        return {"classes": answer["labels"], "scores": answer["probabilities"]}

    def _answer(self, packed):
        """Returns the answers to sequences; each row has all labels and what they have."""
        logits = self.outputs(packed)["logits"]
        return {"labels": self._in_each_row(self._labels, logits)} | self._of_labels(logits)

    def _in_each_row(self, values, logits):
        """Repeats values of the labels, [C], for each row of logits, [B, C]."""
        return tf.repeat(values[None], tf.shape(logits)[0], axis=0)


class ClassificationModel(TextTaskModel):
    """Classes: `label` string and `probability` float32 [B] of the most likely one, or of two
    classes of the second one if it reaches the threshold of the task; `labels` string and
    `probabilities` float32 [B, C] of all."""

    _example_name = "classify"

    def _of_labels(self, logits):
        probabilities, threshold = tf.nn.softmax(logits), self._config.threshold
        if threshold is None:
            best = tf.argmax(logits, axis=-1)
        else:
            best = tf.cast(probabilities[:, 1] >= threshold, tf.int64)
        return {
            "label": tf.gather(self._labels, best),
            "probability": tf.gather(probabilities, best, batch_dims=1),
            "probabilities": probabilities,
        }


class RegressionModel(TextTaskModel):
    """Numbers: `score` float32 [B]."""

    _example_name = "regress"

    def _answer(self, packed):
        return {"score": self.outputs(packed)["logits"][:, 0]}


class MultiLabelModel(TextTaskModel):
    """Any of C labels: `labels` string, `probabilities` and `thresholds` float32 [B, C] of all of
    them. Labels whose probability is at least their threshold apply."""

    _example_name = "classify"

    def _of_labels(self, logits):
        thresholds = self._in_each_row(self._thresholds, logits)
        return {"probabilities": tf.sigmoid(logits), "thresholds": thresholds}


class MultiRegressionModel(TextTaskModel):
    """Several numbers: `labels` string and `scores` float32 [B, C]; there is no `regress`, which
    returns one number."""

    def _of_labels(self, logits):
        return {"scores": logits}


class SimilarityModel(TextTaskModel):
    """Similarity of two texts: `score` float32 [B], the cosine of their vectors, from -1 to 1.

    `encode`, `embed`, `explain_tokens` and `attention` take a text alone; `embed` returns the
    vector that is compared.
    """

    _example_name = "regress"
    ids_shape = (None, 2, None)

    def _pairs(self, first, second):
        packed, dropped = self._sequences(tf.reshape(tf.stack([first, second], axis=1), [-1]))
        packed = {name: tf.reshape(ids, [-1, 2, tf.shape(ids)[1]]) for name, ids in packed.items()}
        return packed, tf.reduce_sum(tf.reshape(dropped, [-1, 2]), axis=1)

    def _answer(self, packed):
        return {"score": self.outputs(packed)["cosine"]}


class ChoiceModel(TaskModel):
    """Options to choose from.

    multiple_choice, also serving_default  `context`, `question` string [B], `options` string
        [B, C] → `choice` int32 [B], the number of the option from 0; `option` string [B];
        `probabilities` float32 [B, C]; `dropped_tokens` int32 [B], of the option with most of them

    The last bytes of questions and options are read, and the first bytes of contexts; `option` is
    truncated at the end.
    """

    ids_shape = (None, None, None)
    preprocessor_class = AlbertMultipleChoicePreprocessor

    def _functions(self):
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in ("context", "question")]
        specs.append(tf.TensorSpec([None, None], tf.string, name="options"))
        choose = tf.function(self._choose, input_signature=specs, autograph=False)
        return {"serving_default": choose, "multiple_choice": choose}

    def _choose(self, context, question, options):
        columns = {"context": context, "question": question, "options": options}
        packed, dropped = self.rows.sequences(columns, self.packer.is_fixed)
        probabilities = tf.nn.softmax(self.outputs(packed)["logits"])
        # The first of equally likely options, whatever the rounding in another batch.
        best = tf.reduce_max(probabilities, axis=1, keepdims=True)
        choice = tf.argmax(probabilities >= best - EQUALLY_LIKELY, axis=1, output_type=tf.int32)
        chosen = readable(tf.gather(options, choice, batch_dims=1), self.packer.max_bytes)
        return {
            "choice": choice,
            "option": chosen,
            "probabilities": probabilities,
            "dropped_tokens": tf.maximum(tf.reduce_max(dropped, axis=1), 0),
        }
