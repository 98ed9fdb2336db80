"""A model that assigns a tag to each word of a text."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.layers.text_packing import (
    WHITE_SPACE,
    readable,
    row_slices,
    unread,
)
from albert_keras.models.answers import TagAnswer
from albert_keras.models.labels import label_ids
from albert_keras.models.preprocessor import Packed, TextPreprocessor, strings_of
from albert_keras.models.text_classifiers import LabelsModel, accuracy
from albert_keras.models.text_model import Tensors
from albert_keras.models.windows import lay_out_windows, max_context
from data_pipeline.config import WordSplit
from data_pipeline.errors import InputError
from data_pipeline.limits import LONG_TEXT_FACTOR
from data_pipeline.tokenizers.words import GIVEN_WORDS, word_steps

#: In place of a tag where nothing is scored: [CLS], [SEP], padding, and all tokens of a word but
#: the first.
NOT_SCORED = -1


@keras.saving.register_keras_serializable("albert_keras")
class AlbertTokenClassificationPreprocessor(TextPreprocessor):
    """Splits texts into words and packs their tokens, for `AlbertForTokenClassification`.

    Args:
        word_split: str. How a text becomes words: "characters"; "punctuation", at white
            space with punctuation and Chinese characters apart; with "elisions" or "contractions"
            apart as well; or "white_space" alone.
        **kwargs: `tokenizer`, `sequence_length`, `padding` and others; see `AlbertPreprocessor`. A
            text longer than `sequence_length` takes several windows, which overlap.

    Call arguments:
        inputs: Texts, string [B]; or their words, ragged string [B, None] or a list of lists.

    Returns:
        dict of int32 [W, S], W the number of windows: "input_ids", "input_mask", "segment_ids", and
        "word_mask", 1 at the first token of each word.
    """

    fields = ()
    optional_fields = ("text", "words")
    uses_windows = True

    def __init__(
        self,
        tokenizer: Any,
        sequence_length: int = 128,
        padding: str = "sequence_length",
        word_split: WordSplit = "punctuation",
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length, padding, **kwargs)
        self.word_split = word_split
        self._unk_id = self.tokenizer.unk_id

    @property
    def max_bytes(self) -> int:
        """Bytes of a text that are read."""
        return LONG_TEXT_FACTOR * super().max_bytes

    def columns(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping) and len(inputs) == 1 and {*inputs} <= {"text", "words"}:
            [inputs] = inputs.values()
        elif isinstance(inputs, Mapping):
            raise ValueError(
                "A sentence must have either `text` or `words`, not both or neither. "
                f"Received: {', '.join(inputs) or 'nothing'}."
            )
        texts = strings_of(inputs)
        if isinstance(texts, tf.RaggedTensor) or texts.shape.rank == 2:
            return {"words": words_of(texts)}
        return {"text": texts}

    def packed(
        self, columns: Mapping[str, Any], is_fixed: bool, targets: Mapping[str, Any] | None = None
    ) -> Packed:
        words, word_ids = self.words(columns)
        packed, places, examples = self.windows(word_ids, is_fixed)
        word_mask = tf.zeros(tf.shape(packed["input_ids"], tf.int64), tf.int32)
        firsts = tf.ones_like(places[:, 0], tf.int32)
        packed["word_mask"] = tf.tensor_scatter_nd_update(word_mask, places, firsts)
        dropped = tf.zeros(tf.shape(words)[:1], tf.int32)
        if "text" in columns:
            dropped = self.num_dropped_words(columns["text"])
        origin = {"words": words, "places": places, "dropped_words": dropped}
        targets = dict(targets or {})
        if "sample_weight" in targets:
            packed["sample_weight"] = tf.gather(targets["sample_weight"], examples)
        if "tag_ids" in targets:
            tags = targets["tag_ids"]  # ragged int32 [B, words]
            tf.debugging.assert_equal(
                tags.row_lengths(),
                words.row_lengths(),
                "There must be a tag for each word of a text.",
            )
            tag_ids = tf.fill(tf.shape(packed["input_ids"], tf.int64), NOT_SCORED)
            packed["tag_ids"] = tf.tensor_scatter_nd_update(tag_ids, places, tags.flat_values)
        return Packed(packed, origin)

    def words(self, columns: Mapping[str, Any]) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Returns the words of texts, ragged string [B, None], and their ids [B, None, None].

        A word without tokens has the id of the unknown one.
        """
        words = columns.get("words")
        if words is None:
            text = readable(columns["text"], self.max_bytes)
            words = self.split(text, text)
        ids = self.graph_tokenizer(words.flat_values)  # [all words, None]
        unknown = tf.fill([ids.nrows(), 1], self._unk_id)
        is_empty = tf.cast(ids.row_lengths() == 0, tf.int64)
        unknown = tf.RaggedTensor.from_tensor(unknown, lengths=is_empty)
        return words, words.with_flat_values(tf.concat([ids, unknown], axis=1))

    def split(self, part: tf.Tensor, text: tf.Tensor) -> tf.RaggedTensor:
        """Splits parts of texts into words, as the whole texts: ragged string [B, None]."""
        is_given = tf.strings.substr(text, 0, len(GIVEN_WORDS)) == GIVEN_WORDS
        apart = part
        for expression, replacement in word_steps(self.word_split):
            apart = tf.strings.regex_replace(apart, expression, replacement)
        part = tf.where(is_given, part, apart)
        return tf.strings.split(tf.strings.regex_replace(part, f"{WHITE_SPACE}+", " "))

    def windows(
        self, word_ids: tf.RaggedTensor, is_fixed: bool
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Lays out the ids of words in windows.

        Returns:
            The rows, W of them; of each word, in order, the row and position of its first token,
            in the window that shows most of its context, int64 [words, 2]; and the text of each
            row, int64 [W].
        """
        packer = self._packers[is_fixed]
        ids = word_ids.merge_dims(1, 2)
        room = packer.max_seq_length - 2
        rows, offsets, lengths = lay_out_windows(ids.row_lengths(), room, window_stride(room))
        packed = packer.join(row_slices(ids, offsets, lengths, rows))
        # Tokens are in the order of the texts, as windows are, and each is best in one window.
        width = tf.shape(packed["input_ids"], tf.int64)[1]
        positions = tf.range(width) - tf.ones_like(rows)[:, None]
        firsts = tf.gather(ids.row_starts(), rows) + offsets
        best = tf.where(max_context(positions, lengths, firsts))  # [tokens, 2]
        first_tokens = tf.cumsum(word_ids.values.row_lengths(), exclusive=True)
        return packed, tf.gather(best, first_tokens), rows

    def num_dropped_words(self, text: tf.Tensor) -> tf.Tensor:
        """Counts the words after the part of texts, string [B], that is read: int32 [B]."""
        read, rest = readable(text, self.max_bytes), unread(text, self.max_bytes)
        stripped = tf.strings.regex_replace(read, f"{WHITE_SPACE}$", "")
        # The rest of a word that was read in part is not a word.
        is_inside = (tf.strings.length(stripped) == tf.strings.length(read)) & (read != "")
        last = tf.strings.regex_replace(read, "(?s)^.*(.)$", r"\1")
        rest = self.split(tf.strings.join([tf.where(is_inside, last, ""), rest]), text)
        return tf.cast(rest.row_lengths(), tf.int32) - tf.cast(is_inside, tf.int32)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"word_split": self.word_split}


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForTokenClassification(LabelsModel):
    """Predicts a tag for each word.

    Args:
        config: AlbertConfig.
        num_labels: int or None. T, number of tags; None takes that of `labels`.
        **kwargs: As in `AlbertForTexts`.

    Call arguments:
        inputs: Texts, string [B]; their words, ragged string [B, None] or a list of lists; or the
            features of `AlbertTokenClassificationPreprocessor`, int [W, S].

    Returns:
        For texts a ragged float32 [B, None, T], the probabilities of the tags of each word, of
        which `predict` makes an array, with zeros where a text has fewer words than the longest;
        for features float32 [W, S, T]. `outputs_of` returns "logits" of features.

    Example:
        model = AlbertForTokenClassification.from_preset("albert-mini-en", labels=["O", "PLACE"])
        model.fit([["from", "Lisbon"], ["by", "ferry"]], [["O", "PLACE"], ["O", "O"]])
        model.answer([["to", "Porto"]])[0].tags
    """

    preprocessor_class = AlbertTokenClassificationPreprocessor
    signature = "tags", {"text": "text"}
    usual_loss = staticmethod(keras.losses.sparse_categorical_crossentropy)
    usual_metrics = [accuracy]

    def _outputs(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        outputs = {"logits": self.head(hidden, dropout_seed, training=training)}
        return outputs | {name: inputs[name] for name in ("word_mask",) if name in inputs}

    def predictions(self, outputs: Tensors) -> Any:
        probabilities = super().predictions(outputs)
        if "word_mask" in outputs:  # by which losses and metrics of Keras leave out the others
            probabilities._keras_mask = tf.cast(outputs["word_mask"], tf.bool)
        return probabilities

    # Keras 3 multiplies weights by the mask, and needs as many axes.

    def as_losses_read(self, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        return y, y_pred, _of_positions(sample_weight)

    def predictions_of_texts(self, columns: Mapping[str, Any], training: bool) -> Any:
        outputs, origin = self.outputs_of_texts(columns, training)
        probabilities = super().predictions(outputs)
        return origin["words"].with_flat_values(tf.gather_nd(probabilities, origin["places"]))

    def output_specs(self) -> dict[str, tf.TensorSpec]:
        return {"logits": tf.TensorSpec([None, None, self.num_labels], tf.float32)}

    def task_settings(self) -> dict[str, Any] | None:
        split = self.preprocessor.word_split
        return {"name": "tagging", "word_split": split, "labels": self.label_names}

    def read_out(self, outputs: Tensors, origin: Any) -> dict[str, tf.Tensor]:
        """Returns the answers.

        They are `words` and `tags` string and `probability` float32 [B, W], padded with "" and 0,
        and `dropped_words` int32 [B], the words beyond the part of a text that is read, which are
        missing in `words`. A word has the tag of the window that shows most context around its
        first token; only the part that is read of a word at the end is tagged.
        """
        words = origin["words"]
        of_words = tf.gather_nd(super().predictions(outputs), origin["places"])  # [all words, T]
        names = tf.gather(tf.constant(self.label_names), tf.argmax(of_words, axis=-1))
        probability = words.with_flat_values(tf.reduce_max(of_words, axis=-1))
        return {
            "words": words.to_tensor(""),
            "tags": words.with_flat_values(names).to_tensor(""),
            "probability": probability.to_tensor(0.0),
            "dropped_words": origin["dropped_words"],
        }

    @classmethod
    def answers_of(cls, arrays: Mapping[str, np.ndarray], columns: Mapping[str, list]) -> list[Any]:
        """Returns a TagAnswer for each text; words that were given are in it as they were given."""
        answers = []
        given = columns.get("words") or [None] * len(columns["id"])
        for at, (id, words) in enumerate(zip(columns["id"], given, strict=True)):
            tags = [tag.decode() for tag in arrays["tags"][at] if tag]
            if words is None:
                found = arrays["words"][at][: len(tags)]
                words = [word.decode("utf-8", "replace") for word in found]
            answers.append(
                TagAnswer(
                    id,
                    tuple(words[: len(tags)]),
                    tuple(tags),
                    tuple(arrays["probability"][at][: len(tags)].tolist()),
                    int(arrays["dropped_words"][at]),
                )
            )
        return answers

    def targets_in(self, features: Tensors) -> tf.Tensor:
        # Positions that are not scored have weight 0 and receive any valid tag.
        return tf.maximum(tf.convert_to_tensor(features["tag_ids"]), 0)

    def weights_of(self, features: Tensors) -> tf.Tensor:
        """Returns 1 at the first token of each word that is scored, float32 [B, S]."""
        is_scored = tf.convert_to_tensor(features["tag_ids"]) >= 0
        return super().weights_of(features)[:, None] * tf.cast(is_scored, tf.float32)

    @classmethod
    def targets_of(
        cls, labels: Any, columns: Mapping[str, Any], names: Any = (), are_shares: bool = True
    ) -> dict[str, Any]:
        ids = []
        for at, tags in enumerate(labels):
            if not isinstance(tags, list):
                raise InputError(
                    f"Label {at + 1} of {len(labels)}: it must be a list with a tag for each "
                    f"word. Received: {tags!r}."
                )
            tags = [tag for tag in tags if tag != ""]  # a padded row of a batch
            try:
                ids.append(label_ids(tags, names).tolist())
            except InputError as error:
                raise InputError(f"Label {at + 1} of {len(labels)}: {error}") from error
        _check_words(columns, ids)
        return {"tag_ids": ids}

    def features_and_targets(self, rows: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        tags = rows.pop("tag_ids", None)
        return rows, None if tags is None else np.maximum(tags, 0)

    def sample_inputs(self) -> dict[str, Any]:
        return {"text": tf.constant(["text"])}

    def initialize_output_bias(self, targets: Any) -> None:
        if isinstance(targets, dict):  # of sentences
            targets = np.concatenate(targets["tag_ids"]).astype(np.int64)
        super().initialize_output_bias(targets)

    def initial_output_bias(self, targets: np.ndarray) -> np.ndarray:
        counts = 1 + np.bincount(targets, minlength=self.num_labels)
        return np.log(counts / counts.sum())


def _check_words(columns, ids):
    """Raises InputError unless there is a tag for each word."""
    for at, words in enumerate(columns.get("words", ())):
        words = [word for word in words if word != ""]
        if len(words) != len(ids[at]):
            raise InputError(
                f"Label {at + 1} of {len(ids)}: there must be a tag for each of {len(words)} "
                f"words. Received: {len(ids[at])}."
            )


def _of_positions(weights):
    """Returns weights of rows, [W], as [W, 1]; those of positions as they are."""
    return weights if weights is None or weights.shape.rank != 1 else weights[:, None]


def window_stride(room: int) -> int:
    """Returns the number of tokens between the starts of two windows of up to `room` tokens."""
    return max(1, room // 2)


def words_of(words: Any) -> tf.RaggedTensor:
    """Returns words as a ragged tensor; of a padded one, string [B, W], without the empty words."""
    if isinstance(words, tf.RaggedTensor):
        return words
    return tf.ragged.boolean_mask(words, words != "")
