"""Text and ids of a SentencePiece vocabulary, clean-up included.

`graph_tokenization` does the same inside a TensorFlow graph.
"""

import hashlib
import re
import unicodedata

import numpy as np
import sentencepiece
from google.protobuf.message import DecodeError

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.cleanup import clean_up
from data_pipeline.tokenizers.vocabulary_files import (
    CONTROL_SYMBOLS,
    SPACE,
    Piece,
    TokenizerConfig,
    read_model,
)
from data_pipeline.tokenizers.wordpiece import has_capitals

#: SentencePiece trains pieces of at most 16 characters; users may define longer ones.
_MAX_PIECE_LENGTH = 1_000

#: What shows whether the rules of a model fold case and accents.
_NORMALISED = "Aaée"
_SURROGATES = re.compile("[\ud800-\udfff]")

#: The marks that are words of their own in google-research/albert, `create_pretraining_data.py`.
#: Apostrophe, <, = and > are not among them: like digits, they make any piece a start.
_REFERENCE_MARKS = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_CJK = ("CJK ", "HIRAGANA ", "KATAKANA", "IDEOGRAPHIC ", "HALFWIDTH KATAKANA")


class SentencePieceModel:
    """A SentencePiece vocabulary, as in all ALBERT models but the Chinese ones.

    Methods that `Tokenizer` has too are documented there.

    Attributes:
        vocabulary: list of str. The piece of every id.
        special_ids: list of int. The ids of padding, unknown, [CLS], [SEP] and [MASK].
        digit_comma: dict of int to list of int. Each piece that ends in digit and comma, and the
            pieces that replace it, as in the original: number and comma apart.
        continuation_prefix: int. Number of pieces of `encode("(")`, or 0 where `(` is an ordinary
            piece, which may be merged with its neighbours.

    Source:
        `FullTokenizer` and `encode_pieces` in google-research/albert, `tokenization.py`.
    """

    config_class = TokenizerConfig

    def __init__(self, model_bytes: bytes, config: TokenizerConfig):
        self._config = config
        model, self.processor = _parse(model_bytes)
        pieces = model.pieces
        self._types = np.array([piece.type for piece in pieces])  # [V]
        self.vocabulary = [piece.piece for piece in pieces]
        control_ids = map(self._control_id, CONTROL_SYMBOLS)
        self.special_ids = [self.processor.pad_id(), self.processor.unk_id(), *control_ids]
        if self.processor.pad_id() < 0:
            raise InputError("The vocabulary has no padding piece. Train it with `pad_id=0`.")
        is_ordinary = (self._types == Piece.NORMAL) | (self._types == Piece.USER_DEFINED)
        self.ordinary_ids = np.flatnonzero(is_ordinary).astype(np.int32)
        settings = config.model_dump_json(include={"lower_case", "strip_accents", "compat_py3"})
        self.digest = hashlib.sha256(model_bytes + settings.encode()).hexdigest()
        self.digit_comma = {
            id: self._without_digit_comma(piece)
            for id, piece in enumerate(self.vocabulary)
            if piece[-1:] == "," and piece[-2:-1].isdigit() and is_ordinary[id]
        }
        self.continuation_prefix = 0
        if self._types[self.id_of("(")] == Piece.USER_DEFINED:
            self.continuation_prefix = len(self.encode("("))

    @classmethod
    def config_of_file(cls, model_bytes, path, settings) -> TokenizerConfig:
        """Returns the configuration of a bare model, whose pieces show whether case is kept."""
        model, processor = _parse(model_bytes)
        words = (piece.piece for piece in model.pieces if piece.type == Piece.NORMAL)
        # A vocabulary of ours without its folder: its behaviour shows how it was trained.
        is_ours = model.normalizer_spec.name == "user_defined"
        normalize = processor.normalize
        is_cased = not is_ours and "lower_case" not in settings and has_capitals(words, path)
        return TokenizerConfig(
            cleanup="model" if is_ours else "reference",
            lower_case=normalize("A") == normalize("a") if is_ours else not is_cased,
            strip_accents=normalize("é") == normalize("e") if is_ours else not is_cased,
            vocab_size=len(model.pieces),
            sha256=hashlib.sha256(model_bytes).hexdigest(),
        )

    @classmethod
    def with_settings(cls, config, settings) -> TokenizerConfig:
        """Returns a configuration with other settings (dict), if the model allows them."""
        if config.cleanup == "model":
            for name, value in settings.items():
                if value != getattr(config, name):
                    raise InputError(
                        f"`{name}` is part of this model and cannot be changed to {value}. "
                        "Omit it, or train another vocabulary."
                    )
        return config.replace(**settings)

    def encode(self, text):
        return self._split_digit_comma(self.processor.encode(self._prepare(text)))

    def encode_batch(self, texts):
        prepared = [self._prepare(text) for text in texts]
        encoded = self.processor.encode(prepared, num_threads=1)
        return [np.array(self._split_digit_comma(ids), np.int32) for ids in encoded]

    def continuation_ids(self, text):
        """Returns the ids of a text that follows a symbol without a space in between.

        SentencePiece adds a space before every text, but not after `(`, which is always a piece
        of its own. So the text is encoded behind a bracket: the end of `[MASK]s and` starts with
        `s`, not with `▁s`.
        """
        if self.continuation_prefix:
            return self.encode("(" + text)[self.continuation_prefix :]
        ids = self.encode(text)
        return ids[1:] if ids and self.vocabulary[ids[0]] == SPACE else ids

    def decode(self, ids):
        return self.processor.decode(ids)

    def id_of(self, piece):
        return self.processor.piece_to_id(piece)

    def word_starts(self, rule):
        starts = np.array([RULES[rule](piece) for piece in self.vocabulary])
        if rule == "unicode":
            # The names of special pieces are letters, but not part of any word.
            starts |= (self._types != Piece.NORMAL) & (self._types != Piece.USER_DEFINED)
        return starts

    def _prepare(self, text):
        if not text.isascii():
            text = replace_surrogates(text)
        if self._config.cleanup == "reference":
            return clean_up(text, self._config.lower_case, self._config.strip_accents)
        return text

    def _split_digit_comma(self, ids):
        if self.digit_comma.keys().isdisjoint(ids):
            return ids
        return [part for id in ids for part in self.digit_comma.get(id, (id,))]

    def _without_digit_comma(self, piece):
        number = piece[:-1].replace(SPACE, "")
        pieces = self.processor.encode(number, out_type=str)
        if not piece.startswith(SPACE) and not self._config.compat_py3:
            # The original intends this, but under Python 3 it compares text with bytes.
            pieces[0] = pieces[0].removeprefix(SPACE)
        return [self.id_of(piece) for piece in [*pieces, ","] if piece]

    def _control_id(self, symbol):
        id = self.id_of(symbol)
        if self.vocabulary[id] != symbol or self._types[id] != Piece.CONTROL:
            raise InputError(f"The vocabulary must contain `{symbol}` as a control symbol.")
        return id


def _starts_word(piece):
    if piece.startswith(SPACE):
        return True
    categories = {unicodedata.category(character)[0] for character in piece}
    return (
        categories <= {"P", "S"}
        or "N" in categories
        or "'" in piece
        or "’" in piece
        or any(unicodedata.name(character, "").startswith(_CJK) for character in piece)
    )


def _starts_word_in_reference(piece):
    plain = _REFERENCE_MARKS.union("abcdefghijklmnopqrstuvwxyz")
    return (
        piece.startswith((SPACE, "<"))
        or piece in _REFERENCE_MARKS
        or not plain.issuperset(piece.lower())
    )


#: Rule -> function that takes a piece and returns whether it starts a word.
RULES = {"unicode": _starts_word, "reference": _starts_word_in_reference}


def replace_surrogates(text: str) -> str:
    """Replaces halves of characters, which are not UTF-8 and make SentencePiece raise."""
    return _SURROGATES.sub("\ufffd", text)


def _parse(model_bytes):
    try:
        model = read_model(model_bytes)
        if not model.pieces:  # an empty file is a valid protocol buffer
            raise InputError("The file is not a SentencePiece model: it contains no pieces.")
        for id, piece in enumerate(model.pieces):
            if not isinstance(piece.piece, str):  # protobuf gives other bytes than UTF-8 as bytes
                raise InputError(f"The file is damaged: piece {id} is not UTF-8: {piece.piece!r}.")
            # The library ends the process for an empty text, and recurses over the characters.
            if not 0 < len(piece.piece) <= _MAX_PIECE_LENGTH or "\0" in piece.piece:
                raise InputError(
                    "The file is damaged: every piece of a SentencePiece model must have 1 to "
                    f"{_MAX_PIECE_LENGTH:,} characters, none of them NUL. Received: piece {id} "
                    f"with {len(piece.piece):,} characters."
                )
        processor = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
        processor.normalize(_NORMALISED)  # fails if the rules are damaged
        return model, processor
    except (DecodeError, RuntimeError, UnicodeDecodeError) as error:
        raise InputError(
            "The file is not a SentencePiece model. Give a folder written by `albert-keras vocab`, "
            "a SentencePiece model or a WordPiece vocab.txt."
        ) from error
