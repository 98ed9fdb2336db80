"""A model that answers questions with a span of a passage.

Source: `squad_utils.py` in google-research/albert.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.text_packing import num_tokens_of, readable, row_slices
from albert_keras.models.answers import span_answers, with_dropped
from albert_keras.models.labels import answer_edges
from albert_keras.models.preprocessor import Packed, TextPreprocessor
from albert_keras.models.span_search import SpanSearch, Windows, answer_mask
from albert_keras.models.task_heads import NUM_ENDS, NUM_STARTS, SpansHead, SpansOrNoneHead
from albert_keras.models.text_classifiers import accuracy
from albert_keras.models.text_model import (
    AlbertForTexts,
    Losses,
    Tensors,
    of_classes,
)
from albert_keras.models.windows import lay_out_windows
from data_pipeline.errors import InputError
from data_pipeline.limits import LONG_TEXT_FACTOR
from data_pipeline.tokenizers.offsets import aligning_tokenizer

#: What the rows of examples with answers have besides the features.
_TARGETS = ("start_positions", "end_positions", "is_impossible")


@keras.saving.register_keras_serializable("albert_keras")
def null_crossentropy(is_impossible: tf.Tensor, null_logits: tf.Tensor) -> tf.Tensor:
    """Returns the cross-entropy of "no answer", float32 [W]."""
    labels, logits = (tf.cast(each, tf.float32) for each in (is_impossible, null_logits))
    return tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)


def check_room(max_seq_length: int, max_query_length: int, num_special: int) -> None:
    """Raises InputError if a question could leave no room for the passage.

    `num_special` is `Tokenizer.num_special`.
    """
    if max_seq_length <= max_query_length + num_special:
        raise InputError(
            f"`max_seq_length` must be more than `max_query_length` + {num_special}, the special "
            f"tokens of this vocabulary. Received: max_seq_length={max_seq_length}, "
            f"max_query_length={max_query_length}."
        )


@keras.saving.register_keras_serializable("albert_keras")
class AlbertQuestionAnsweringPreprocessor(TextPreprocessor):
    """Packs questions with windows of their passages, for `AlbertForQuestionAnswering`.

    Args:
        max_query_length: int or None. Tokens after which a question is truncated; None is 64, or
            a third of `sequence_length` if that is less.
        doc_stride: int. Tokens between the starts of two windows of a passage. A passage that is
            too long takes several windows, which overlap.
        **kwargs: `tokenizer`, `sequence_length`, `padding` and others; see `AlbertPreprocessor`.

    Call arguments:
        inputs: A tuple of "context" and "question", string [B]; or a dict of these.

    Returns:
        dict of int32 [W, S], W the number of windows: "input_ids", "input_mask", "segment_ids" and
        "p_mask", 1 where an answer can neither start nor end, 0 at [CLS].
    """

    fields = ("context", "question")
    uses_windows = True
    _make_tokenizer = staticmethod(aligning_tokenizer)

    def __init__(
        self,
        tokenizer: Any,
        sequence_length: int = 384,
        padding: str = "sequence_length",
        max_query_length: int | None = None,
        doc_stride: int = 128,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length, padding, **kwargs)
        self.max_query_length = max_query_length or min(64, sequence_length // 3)
        self.doc_stride = doc_stride
        check_room(sequence_length, self.max_query_length, self.tokenizer.num_special)

    def packed(
        self, columns: Mapping[str, Any], is_fixed: bool, targets: Mapping[str, Any] | None = None
    ) -> Packed:
        """Builds the windows of questions, with the Windows as "windows" of `origin`.

        In training, a window that does not contain the whole answer has [CLS] as its answer.

        Raises:
            InputError: If nothing of an answer remains after clean-up.
        """
        windows, packed = self.windows(columns["context"], columns["question"], is_fixed)
        packed |= {"p_mask": answer_mask(packed)}
        targets = dict(targets or {})
        if "sample_weight" in targets:
            packed["sample_weight"] = tf.gather(targets["sample_weight"], windows.rows)
        if "begin" in targets:
            begin, end = (tf.cast(targets[edge], tf.int64) for edge in ("begin", "end"))
            packed |= windows.positions_of(begin, end)
        dropped = tf.cast(windows.dropped, tf.int32)
        return Packed(packed, {"windows": windows, "dropped_tokens": dropped})

    def windows(
        self, context: Any, question: Any, is_fixed: bool = False
    ) -> tuple[Windows, dict[str, tf.Tensor]]:
        """Returns the Windows of passages and questions, string [B], and their rows."""
        packer = self._packers[is_fixed]
        context_bytes = LONG_TEXT_FACTOR * packer.max_bytes
        whole_context, context = context, readable(context, context_bytes)
        aligned = self.graph_tokenizer.align(context)
        whole_query = self.ids(question)
        query = whole_query[:, : self.max_query_length]
        dropped = num_tokens_of(question, whole_query, packer.max_bytes) - query.row_lengths()
        dropped += num_tokens_of(whole_context, aligned.ids, context_bytes)
        dropped -= aligned.ids.row_lengths()
        budget = packer.max_seq_length - packer.num_special - query.row_lengths()
        totals = aligned.ids.row_lengths()
        rows, offsets, lengths = lay_out_windows(totals, budget, self.doc_stride)
        query_lengths = tf.gather(query.row_lengths(), rows)
        packed = packer.join(
            row_slices(query, 0, query_lengths, rows),
            row_slices(aligned.ids, offsets, lengths, rows),
        )
        begins = query_lengths + 1 + packer.pair_separators
        return Windows(context, aligned, rows, offsets, lengths, begins, dropped), packed

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "max_query_length": self.max_query_length,
            "doc_stride": self.doc_stride,
        }


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForQuestionAnswering(AlbertForTexts):
    """Finds where an answer starts and ends, and whether there is one.

    Args:
        config: AlbertConfig.
        can_be_none: bool. Whether a question may have no answer, as in SQuAD 2.0.
        n_best: int. Number of candidates for an answer.
        max_answer_length: int. Largest number of tokens of an answer.
        **kwargs: As in `AlbertForTexts`; `head_dropout` is used only for `can_be_none`. The
            `thresholds` may have "null_threshold", the `null_score` from which a question is left
            unanswered, 0 by default. `finetune` fits it to development examples.

    Call arguments:
        inputs: A tuple of contexts and questions, string [B]; a dict of "context" and "question";
            or the features of `AlbertQuestionAnsweringPreprocessor`, int [W, S].

    Returns:
        For texts a dict, see `SpanSearch.answers`; for features the same as `outputs_of`:
        "start_logits" and "end_logits", float32 [W, S], as of `SpansHead`, which deviates from
        google-research/albert; for `can_be_none` the outputs of `SpansOrNoneHead`.

    Example:
        model = AlbertForQuestionAnswering.from_preset("albert-mini-en", sequence_length=64)
        passages, questions = ["The ferry left at noon."], ["When did it leave?"]
        model.fit((passages, questions), ["at noon"])
        model.answer((passages, questions))[0].text
    """

    preprocessor_class = AlbertQuestionAnsweringPreprocessor
    signature = "question_answering", {"question": "question", "context": "context"}
    usual_length = 384

    def __init__(
        self,
        config: AlbertConfig,
        can_be_none: bool = False,
        n_best: int = 20,
        max_answer_length: int = 30,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        self.can_be_none = can_be_none
        #: Names of the scores of an edge in `outputs_of`, before which there is its name.
        self._scores = "log_probs" if can_be_none else "logits"
        self.n_best, self.max_answer_length = n_best, max_answer_length
        if can_be_none:
            self.head = SpansOrNoneHead(config, self.head_dropout, **self._of_head)
        else:
            self.head = SpansHead(config, **self._of_head)

    def _outputs(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        if self.can_be_none and "p_mask" not in inputs:
            inputs = {**inputs, "p_mask": answer_mask(inputs)}
        return self.head(hidden, inputs, dropout_seed, training=training)

    def predictions(self, outputs: Tensors) -> Any:
        return outputs

    def output_specs(self) -> dict[str, tf.TensorSpec]:
        if not self.can_be_none:
            logits = tf.TensorSpec([None, None], tf.float32)
            return {"start_logits": logits, "end_logits": logits}
        starts, ends = NUM_STARTS, NUM_STARTS * NUM_ENDS
        return {
            "null_logits": tf.TensorSpec([None], tf.float32),
            "start_log_probs": tf.TensorSpec([None, starts], tf.float32),
            "start_indices": tf.TensorSpec([None, starts], tf.int32),
            "end_log_probs": tf.TensorSpec([None, ends], tf.float32),
            "end_indices": tf.TensorSpec([None, ends], tf.int32),
        }

    def predictions_of_texts(self, columns: Mapping[str, Any], training: bool) -> Any:
        return self.read_out(*self.outputs_of_texts(columns, training))

    def task_settings(self) -> dict[str, Any] | None:
        of_model = {name: getattr(self, name) for name in ("n_best", "max_answer_length")}
        names = ("max_query_length", "doc_stride")
        of_rows = {name: getattr(self.preprocessor, name) for name in names}
        return {"name": "squad2" if self.can_be_none else "squad1"} | of_model | of_rows

    def read_out(self, outputs: Tensors, origin: Any) -> dict[str, tf.Tensor]:
        """Returns the answers, see `SpanSearch.answers`."""
        search = SpanSearch(self.can_be_none, self.n_best, self.max_answer_length)
        threshold = self.thresholds.get("null_threshold", 0.0)
        return search.answers(origin["windows"], outputs, threshold)

    @classmethod
    def answers_of(cls, arrays: Mapping[str, np.ndarray], columns: Mapping[str, list]) -> list[Any]:
        answers = span_answers(columns["id"], columns["context"], arrays)
        return with_dropped(answers, arrays)

    def compute_losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the mean of the cross-entropies of start and end, and 1 where both are right.

        With `can_be_none` it is half the sum of the cross-entropies of start, end (after the right
        start) and "no answer".
        """
        # Log-probabilities are logits too, their sum of exponentials being 1.
        start, end = (f"{edge}_{self._scores}" for edge in ("start", "end"))
        starts, starts_right = of_classes(outputs[start], features["start_positions"])
        ends, ends_right = of_classes(outputs[end], features["end_positions"])
        losses, is_right = (starts + ends) / 2, starts_right * ends_right
        if self.can_be_none:
            labels = tf.cast(features["is_impossible"], tf.float32)
            logits = tf.cast(outputs["null_logits"], tf.float32)
            losses += tf.nn.sigmoid_cross_entropy_with_logits(labels, logits) / 2
        return losses, is_right

    def targets(self, labels: list[Any], columns: Mapping[str, list]) -> Any:
        targets = super().targets(labels, columns)
        if not self.can_be_none and not all(targets["end"]):
            at = int(np.argmin(targets["end"]))
            raise InputError(
                f"Label {at + 1} of {len(labels)}: every question must have an answer. Received: "
                "none."
            )
        return targets

    @classmethod
    def targets_of(
        cls, labels: Any, columns: Mapping[str, Any], names: Any = (), are_shares: bool = True
    ) -> dict[str, np.ndarray]:
        edges = [
            _edges_of(context, answer, f"Label {at + 1} of {len(labels)}")
            for at, (context, answer) in enumerate(zip(columns["context"], labels, strict=False))
        ]
        begin, end = np.array(edges, np.int64).reshape(-1, 2).T
        return {"begin": begin, "end": end}

    def features_and_targets(self, rows: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        targets = {name: rows.pop(name) for name in _TARGETS if name in rows}
        if not targets:
            return rows, None
        if self.can_be_none:  # the head scores ends after the right start
            rows["start_positions"] = targets["start_positions"]
        labels = {
            f"{edge}_{self._scores}": targets[f"{edge}_positions"] for edge in ("start", "end")
        }
        return rows, labels | (
            {"null_logits": targets["is_impossible"]} if self.can_be_none else {}
        )

    @property
    def usual_loss(self) -> dict[str, Any]:
        """dict. The loss of each output; their mean, or half their sum, is that of the model."""
        of_edge = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        losses = {f"{edge}_{self._scores}": of_edge for edge in ("start", "end")}
        return losses | ({"null_logits": null_crossentropy} if self.can_be_none else {})

    @property
    def usual_loss_weights(self) -> dict[str, float]:
        """dict. The weight of each loss."""
        return dict.fromkeys(self.usual_loss, 0.5)

    @property
    def usual_metrics(self) -> dict[str, Any]:
        """dict. How often the likeliest start, and the likeliest end, is right."""
        return {f"{edge}_{self._scores}": [accuracy] for edge in ("start", "end")}

    def get_config(self) -> dict[str, Any]:
        usual = {"n_best": 20, "max_answer_length": 30}
        changed = {
            name: getattr(self, name) for name, at in usual.items() if getattr(self, name) != at
        }
        return super().get_config() | {"can_be_none": self.can_be_none} | changed


def _edges_of(context, answer, where):
    """Returns the first character of an answer and one more than its last; 0, 0 for none.

    An answer is a text, a dict as in SQuAD, or None; or a list of these, of which the first counts.
    """
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    try:
        return answer_edges(answer, context) or (0, 0)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
