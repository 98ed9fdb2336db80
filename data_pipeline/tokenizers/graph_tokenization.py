"""The tokenizer as part of a TensorFlow graph, so that an exported model takes raw text.

Importing this loads TensorFlow and tensorflow-text; `tokenization` does not.
"""

import tensorflow as tf
import tensorflow_text as tf_text

from data_pipeline.tokenizers.cleanup import combining_ranges, white_space_ranges
from data_pipeline.tokenizers.graph_text import character_class, lower, to_utf8
from data_pipeline.tokenizers.word_starts import SPACE
from data_pipeline.tokenizers.wordpiece_graph import WordPieceGraphTokenizer

#: `tf.strings.lower` ends the text at a NUL. This is unknown to any vocabulary, too.
_INSTEAD_OF_NUL = "\U0010ffff"


def graph_tokenizer(tokenizer):
    """Rebuilds a tokenizer for a graph.

    Args:
        tokenizer: Tokenizer. Of either kind.

    Returns:
        GraphTokenizer or WordPieceGraphTokenizer, by the kind of the vocabulary.
    """
    classes = {"unigram": GraphTokenizer, "wordpiece": WordPieceGraphTokenizer}
    return classes[tokenizer.config.kind](tokenizer)


class GraphTokenizer(tf.Module):
    """Gives the ids of `UnigramTokenizer.encode` inside a graph.

    Where the clean-up is in the model, both call the same model and agree on everything. Where it
    is the reference's, it is rebuilt here on TensorFlow's tables of characters, which are older
    than Python's: with tensorflow 2.15 and Python 3.11 the cleaned text differs for 161 characters
    new in Unicode 13 and 14; in the ids of the released English vocabulary, which has no pieces for
    most of them, 14 are seen (U+A7F2 to A7F4, U+107A5, U+1FBF0 to 1FBF9).

    Where two ways to cut a text are equally likely (`00 000` and `000 00`), tensorflow-text takes
    the one that sentencepiece takes up to version 0.2.1; from 0.2.2 on that takes another.

    It can be saved as a part of any `tf.Module`; loading needs tensorflow and tensorflow-text
    only. `tf.random.set_seed` destroys the resource of an eager SentencePiece tokenizer, so set
    seeds before building one.

    Args:
        tokenizer: UnigramTokenizer. What to rebuild.

    Call arguments:
        texts: string [B]. Any bytes.

    Returns:
        RaggedTensor int32 [B, None]. Ids, without [CLS] and [SEP].

    Attributes:
        pieces: string [V]. The piece of every id.
    """

    def __init__(self, tokenizer, name="tokenizer"):
        super().__init__(name=name)
        config = tokenizer.config
        self._cleans_up = config.cleanup == "reference"
        self._lower_case = config.lower_case
        self._strip_accents = config.strip_accents
        self._continuation_prefix = tokenizer.model.continuation_prefix
        space_id = tokenizer.id_of(SPACE)
        self._space_id = space_id if tokenizer.piece_of(space_id) == SPACE else None
        self._sentencepiece = tf_text.SentencepieceTokenizer(
            model=tokenizer.model_bytes, out_type=tf.int32
        )
        self.pieces = tf.constant([tokenizer.piece_of(id) for id in range(tokenizer.vocab_size)])
        # Every piece's own id, but for the few that end in digit and comma.
        self._replacements = None
        if tokenizer.model.digit_comma:
            rows = [tokenizer.model.digit_comma.get(id, [id]) for id in range(tokenizer.vocab_size)]
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
        """Returns the ids of `continuation_ids`: of text with no space before it."""
        if self._continuation_prefix:
            return self(tf.strings.join(["(", texts]))[:, self._continuation_prefix :]
        ids = self(texts)
        if self._space_id is None:
            return ids
        first = ids[:, :1].to_tensor(default_value=-1, shape=[None, 1])[:, 0]  # [B]
        skipped = tf.cast(first == self._space_id, ids.row_splits.dtype)
        return tf.gather(ids, tf.ragged.range(skipped, ids.row_lengths()), batch_dims=1)

    def without_marks(self, pieces):
        """Returns pieces as they stand in a text: string tensor of any shape, without `▁`."""
        return tf.strings.regex_replace(pieces, SPACE, "")

    def _clean_up(self, texts):
        """`cleanup.clean_up`, with its classes of characters in place of RE2's own."""
        texts = tf.strings.regex_replace(texts, f"{character_class(white_space_ranges())}+", " ")
        texts = tf.strings.strip(texts)
        texts = tf.strings.regex_replace(texts, r"\x{0}", _INSTEAD_OF_NUL)
        if self._strip_accents:
            texts = tf_text.normalize_utf8(texts, "NFKD")
            texts = tf.strings.regex_replace(texts, f"{character_class(combining_ranges())}+", "")
        else:
            texts = tf_text.normalize_utf8(texts, "NFKC")
        if not self._lower_case:
            return texts
        return lower(texts, has_accents=not self._strip_accents)
