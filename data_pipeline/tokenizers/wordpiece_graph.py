"""The WordPiece tokenizer as part of a TensorFlow graph."""

import tensorflow as tf
import tensorflow_text as tf_text

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.basic_words import (
    IDEOGRAPHS,
    dropped_ranges,
    mark_ranges,
    punctuation_ranges,
    space_ranges,
)
from data_pipeline.tokenizers.graph_text import character_class, lower, to_utf8
from data_pipeline.tokenizers.word_starts import CONTINUATION
from data_pipeline.tokenizers.wordpiece import MAX_WORD_CHARACTERS, UNKNOWN

#: Of a word in UTF-8; longer ones have too many characters, too.
_MAX_WORD_BYTES = 4 * MAX_WORD_CHARACTERS


class WordPieceGraphTokenizer(tf.Module):
    """Gives the ids of `WordPieceTokenizer.encode` inside a graph.

    The classes of characters are Python's. Letters are lowered and decomposed by TensorFlow's
    tables, which are older: with tensorflow 2.15 and Python 3.11, characters new in Unicode 14
    differ, see `test_wordpiece_graph`. tensorflow-text's `BertTokenizer` would do otherwise: it
    folds case (`ß` to `ss`) and makes spaces of controls, which the original deletes.

    It can be saved as a part of any `tf.Module`; loading needs tensorflow and tensorflow-text
    only.

    Args:
        tokenizer: WordPieceTokenizer. What to rebuild.

    Call arguments:
        texts: string [B]. Any bytes.

    Returns:
        RaggedTensor int32 [B, None]. Ids, without [CLS] and [SEP].

    Attributes:
        pieces: string [V]. The piece of every id.
    """

    def __init__(self, tokenizer, name="tokenizer"):
        super().__init__(name=name)
        self._lower_case = tokenizer.config.lower_case
        self._strip_accents = tokenizer.config.strip_accents
        pieces = [tokenizer.piece_of(id) for id in range(tokenizer.vocab_size)]
        self.pieces = tf.constant(pieces)
        try:
            self._wordpiece = tf_text.FastWordpieceTokenizer(
                pieces,
                suffix_indicator=CONTINUATION,
                max_bytes_per_word=_MAX_WORD_BYTES,
                token_out_type=tf.int32,
                unknown_token=UNKNOWN,
                no_pretokenization=True,
            )
        except RuntimeError as error:
            raise InputError(f"tensorflow-text cannot take this vocabulary: {error}.") from error

    def __call__(self, texts):
        words = self.words(texts)  # [B, None]
        # The operation counts bytes. The piece itself is the one word sure to give its id.
        is_long = tf.strings.length(words.flat_values, "UTF8_CHAR") > MAX_WORD_CHARACTERS
        known = tf.where(is_long, UNKNOWN, words.flat_values)
        return words.with_flat_values(self._wordpiece.tokenize(known)).merge_dims(1, 2)

    def continuation(self, texts):
        """Returns the ids of `continuation_ids`, which are those of any text."""
        return self(texts)

    def without_marks(self, pieces):
        """Returns pieces as they stand in a text: string tensor of any shape, without `##`."""
        return tf.strings.regex_replace(pieces, f"^{CONTINUATION}(.)", r"\1")

    def words(self, texts):
        """Returns the words of `BasicTokenizer.words`, string [B] to ragged string [B, None]."""
        texts = tf.strings.regex_replace(to_utf8(texts), character_class(dropped_ranges()), "")
        if self._lower_case:
            texts = lower(texts)
        if self._strip_accents:
            texts = tf_text.normalize_utf8(texts, "NFD")
            texts = tf.strings.regex_replace(texts, character_class(mark_ranges()), "")
        texts = tf.strings.regex_replace(texts, character_class(space_ranges()), " ")
        alone = character_class((*punctuation_ranges(), *IDEOGRAPHS))
        return tf.strings.split(tf.strings.regex_replace(texts, f"({alone})", r" \1 "))
