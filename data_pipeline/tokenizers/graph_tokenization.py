"""The tokenizer as part of a TensorFlow graph, so that an exported model accepts raw text.

Importing this loads TensorFlow and tensorflow-text; `tokenization` does not.
"""

import unicodedata

import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow_text.python.ops import sentencepiece_tokenizer
from tensorflow_text.python.ops.sentencepiece_tokenizer import gen_sentencepiece_tokenizer

from data_pipeline.errors import InputError
from data_pipeline.tokenizers import wordpiece
from data_pipeline.tokenizers.byte_bpe_graph import ByteBPEGraphTokenizer, to_utf8
from data_pipeline.tokenizers.cleanup import character_class, character_ranges, class_of
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import SPACE
from data_pipeline.tokenizers.wordpiece import CONTINUATION, FINAL_SIGMA, UNKNOWN

#: `tf.strings.lower` ends the text at a NUL. This character is unknown to any vocabulary, too.
_INSTEAD_OF_NUL = "\U0010ffff"

#: Letters whose lower case depends on the locale of the process in `tf.strings.lower`: with
#: LANG=tr_TR it turns `I` into `ı`, and Lithuanian adds dots under accents. All but the first have
#: accents themselves.
_LOCALE_LETTERS = tuple((capital, capital.lower()) for capital in "IİJĮÌÍĨ")


def graph_tokenizer(
    tokenizer: Tokenizer,
) -> "GraphTokenizer | WordPieceGraphTokenizer | ByteBPEGraphTokenizer":
    """Rebuilds a tokenizer of any kind for a graph.

    Its tables belong to no graph, so that it may be built while one is traced, and used in others.
    """
    classes = {
        "unigram": GraphTokenizer,
        "wordpiece": WordPieceGraphTokenizer,
        "bpe": ByteBPEGraphTokenizer,
    }
    with tf.init_scope():
        return classes[tokenizer.config.kind](tokenizer)


class GraphTokenizer(tf.Module):
    """Computes the ids of `Tokenizer.encode` for a SentencePiece vocabulary inside a graph.

    If the clean-up is in the model, both call the same model and agree on everything. The
    reference's clean-up is rebuilt here on TensorFlow's tables of characters, which are older
    than Python's: with tensorflow 2.15 and Python 3.11 the cleaned text differs for 161 characters
    new in Unicode 13 and 14. For the released English vocabulary, which has no pieces for most of
    them, the ids differ for 14 (U+A7F2 to A7F4, U+107A5, U+1FBF0 to 1FBF9).

    Where two splits of a text are equally likely (`00 000` and `000 00`), tensorflow-text chooses
    as sentencepiece up to version 0.2.1 does; from 0.2.2 on, sentencepiece chooses the other one.

    It can be saved as a part of any `tf.Module`; loading needs tensorflow and tensorflow-text
    only.

    Call arguments:
        texts: string [B]. Any bytes.

    Returns:
        RaggedTensor int32 [B, None]. Ids, without [CLS] and [SEP].

    Attributes:
        pieces: string [V]. The piece of every id.
    """

    def __init__(self, tokenizer: Tokenizer, name="tokenizer"):
        super().__init__(name=name)
        config = tokenizer.config
        self._cleans_up = config.cleanup == "reference"
        self._lower_case = config.lower_case
        self._strip_accents = config.strip_accents
        self._continuation_prefix = tokenizer.model.continuation_prefix
        space_id = tokenizer.id_of(SPACE)
        self._space_id = space_id if tokenizer.piece_of(space_id) == SPACE else None
        self._sentencepiece = sentencepiece_operations(tokenizer.model_bytes, tokenizer.digest)
        self.pieces = tf.constant(tokenizer.model.vocabulary)
        # The id of every piece itself, except for the few that end in digit and comma.
        self._replacements = None
        if digit_comma := tokenizer.model.digit_comma:
            rows = [digit_comma.get(id, [id]) for id in range(tokenizer.vocab_size)]
            self._replacements = tf.ragged.constant(rows, tf.int32)  # [V, None]

    def __call__(self, texts):
        texts = to_utf8(texts)
        if self._cleans_up:
            texts = self._clean_up(texts)
        ids = self._sentencepiece.tokenize(texts)  # [B, None]
        if self._replacements is None:
            return ids
        split = tf.gather(self._replacements, ids.flat_values)  # [pieces, None]
        return ids.with_flat_values(split).merge_dims(1, 2)

    def continuation(self, texts):
        """Returns the ids of `Tokenizer.continuation_ids`: of text without a space before it."""
        if self._continuation_prefix:
            return self(tf.strings.join(["(", texts]))[:, self._continuation_prefix :]
        ids = self(texts)
        if self._space_id is None:
            return ids
        first = ids[:, :1].to_tensor(default_value=-1, shape=[None, 1])[:, 0]  # [B]
        skipped = tf.cast(first == self._space_id, ids.row_splits.dtype)
        return tf.gather(ids, tf.ragged.range(skipped, ids.row_lengths()), batch_dims=1)

    def before_mask(self, texts):
        """Returns the texts unchanged: a piece has no space at its beginning."""
        return texts

    def without_marks(self, pieces):
        """Returns pieces as written in a text: string tensor of any shape, without `▁`."""
        return tf.strings.regex_replace(pieces, SPACE, "")

    def _clean_up(self, texts):
        """Does what `cleanup.clean_up` does, with its character classes instead of RE2's own."""
        texts = tf.strings.regex_replace(texts, f"{class_of(str.isspace)}+", " ")
        texts = tf.strings.strip(texts)
        texts = tf.strings.regex_replace(texts, r"\x{0}", _INSTEAD_OF_NUL)
        if self._strip_accents:
            texts = tf_text.normalize_utf8(texts, "NFKD")
            texts = tf.strings.regex_replace(texts, f"{class_of(unicodedata.combining)}+", "")
        else:
            texts = tf_text.normalize_utf8(texts, "NFKC")
        return _lower(texts, has_accents=not self._strip_accents) if self._lower_case else texts


def sentencepiece_operations(model: bytes, name: str) -> tf_text.SentencepieceTokenizer:
    """Returns the operations of a SentencePiece model, whose resource has this name."""
    operations = tf_text.SentencepieceTokenizer(model=model, out_type=tf.int32)
    operations._model_resource = _SharedModel(model, name)
    return operations


class _SharedModel(sentencepiece_tokenizer._SentencepieceModelResource):
    """The resource of a SentencePiece model, shared by name.

    A resource without a name belongs to the operation that made it: `tf.random.set_seed` discards
    all operations that ran eagerly, and in a loaded export several models would be one.
    """

    def _create_resource(self):
        name = f"sentencepiece_{self._name}"
        return gen_sentencepiece_tokenizer.sentencepiece_op(model=self._model, shared_name=name)


class WordPieceGraphTokenizer(tf.Module):
    """Computes the ids of `Tokenizer.encode` for a WordPiece vocabulary inside a graph.

    The classes of characters are Python's. Letters are lower-cased and decomposed by TensorFlow's
    tables, which are older: with tensorflow 2.15 and Python 3.11, characters new in Unicode 14
    differ (see `test_graph_tokenization`). tensorflow-text's `BertTokenizer` is not used
    because it folds case (`ß` to `ss`) and turns controls into spaces, while the original deletes
    them.

    It is called and saved as `GraphTokenizer` is, and has the same `pieces`.
    """

    def __init__(self, tokenizer: Tokenizer, name="tokenizer"):
        super().__init__(name=name)
        config = tokenizer.config
        self._lower_case, self._strip_accents = config.lower_case, config.strip_accents
        self._by_character = config.program == "tokenizers"
        self._max_characters = config.max_word_characters
        pieces = tokenizer.model.vocabulary
        self.pieces = tf.constant(pieces)
        try:
            self._wordpiece = tf_text.FastWordpieceTokenizer(
                list(pieces),
                suffix_indicator=CONTINUATION,
                max_bytes_per_word=4 * self._max_characters,  # in UTF-8
                token_out_type=tf.int32,
                unknown_token=UNKNOWN,
                no_pretokenization=True,
            )
        except RuntimeError as error:
            raise InputError(f"tensorflow-text cannot use this vocabulary: {error}.") from error

    def __call__(self, texts):
        words, known = self._known_words(texts)
        return words.with_flat_values(self._wordpiece.tokenize(known)).merge_dims(1, 2)

    def _known_words(self, texts):
        """Returns words [B, None], and the same with long ones replaced, flat."""
        words = self.words(texts)
        # The operation counts bytes. The unknown piece itself is sure to be encoded as unknown.
        is_long = tf.strings.length(words.flat_values, "UTF8_CHAR") > self._max_characters
        return words, tf.where(is_long, UNKNOWN, words.flat_values)

    def continuation(self, texts):
        """Returns the ids of `Tokenizer.continuation_ids`: a space before a text has no effect."""
        return self(texts)

    def before_mask(self, texts):
        """Returns the texts unchanged: a piece has no space at its beginning."""
        return texts

    def without_marks(self, pieces):
        """Returns pieces as written in a text: string tensor of any shape, without `##`."""
        return tf.strings.regex_replace(pieces, f"^{CONTINUATION}(.)", r"\1")

    def words(self, texts):
        """Returns the words of `BasicTokenizer.words`, string [B] to ragged string [B, None]."""
        dropped = wordpiece.is_dropped_or_private if self._by_character else wordpiece.is_dropped
        texts = tf.strings.regex_replace(to_utf8(texts), class_of(dropped), "")
        if self._lower_case and self._by_character:
            texts = tf.strings.regex_replace(texts, *FINAL_SIGMA)
        if self._lower_case:
            texts = _lower(texts)
        if self._strip_accents:
            texts = tf_text.normalize_utf8(texts, "NFD")
            texts = tf.strings.regex_replace(texts, class_of(wordpiece.is_mark), "")
        texts = tf.strings.regex_replace(texts, class_of(wordpiece.is_space), " ")
        punctuation = character_ranges(wordpiece.is_punctuation)
        single = character_class((*punctuation, *wordpiece.IDEOGRAPHS))
        return tf.strings.split(tf.strings.regex_replace(texts, f"({single})", r" \1 "))


def _lower(texts, has_accents=True):
    """Lower-cases texts, UTF-8 without NUL, as `str.lower` does in any locale of the process."""
    for capital, letter in _LOCALE_LETTERS[: None if has_accents else 1]:
        texts = tf.strings.regex_replace(texts, capital, letter)
    return tf.strings.lower(texts, encoding="utf-8")
