"""Text and ids of a SentencePiece vocabulary, clean-up included.

`graph_tokenization` does the same inside a TensorFlow graph.
"""

import hashlib
import itertools
import re

import numpy as np
import sentencepiece
from google.protobuf.message import DecodeError

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.cleanup import clean_up
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.unigram import UnigramEncoder, is_supported
from data_pipeline.tokenizers.vocabulary import (
    CONTROL_SYMBOLS,
    MODEL_FILE,
    TokenizerConfig,
    read_model,
    write_tokenizer_files,
)
from data_pipeline.tokenizers.word_starts import RULES, SPACE

# Types of pieces in `sentencepiece_model.proto`; the others are byte and unknown.
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4

_SURROGATES = re.compile("[\ud800-\udfff]")


class UnigramTokenizer(Tokenizer):
    """A SentencePiece vocabulary, as of all ALBERT models but the Chinese ones.

    Attributes:
        digit_comma: dict of int to list of int. A piece that ends in digit and comma, and the
            pieces put in its place, as in the original: number and comma apart.
        continuation_prefix: int. How many pieces `encode("(")` gives, or 0 where `(` is an
            ordinary piece that might melt into its neighbours.

    Source:
        `FullTokenizer` and `encode_pieces` in google-research/albert, `tokenization.py`.
    """

    config_class = TokenizerConfig
    file_name = MODEL_FILE

    def __init__(self, model_bytes: bytes, config: TokenizerConfig):
        super().__init__(model_bytes, config)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
        self._encode_all = None
        pieces = read_model(model_bytes).pieces
        self._pieces = [piece.piece for piece in pieces]
        self._types = np.array([piece.type or _NORMAL for piece in pieces])  # [V]
        self.vocab_size = len(self._pieces)
        self.pad_id = self._processor.pad_id()
        self.unk_id = self._processor.unk_id()
        self.cls_id, self.sep_id, self.mask_id = map(self._control_id, CONTROL_SYMBOLS)
        if self.pad_id < 0:
            raise InputError("The vocabulary should have a padding piece. Train with `pad_id=0`.")
        ordinary = (self._types == _NORMAL) | (self._types == _USER_DEFINED)
        self.ordinary_ids = np.flatnonzero(ordinary).astype(np.int32)
        settings = config.model_dump_json(include={"lower_case", "strip_accents", "compat_py3"})
        self.digest = hashlib.sha256(model_bytes + settings.encode()).hexdigest()
        self.digit_comma = {
            id: self._without_digit_comma(piece)
            for id, piece in enumerate(self._pieces)
            if piece[-1:] == "," and piece[-2:-1].isdigit() and ordinary[id]
        }
        self._is_digit_comma = np.isin(np.arange(self.vocab_size), list(self.digit_comma))
        bracket = self.id_of("(")
        self.continuation_prefix = 0
        if self._types[bracket] == _USER_DEFINED:
            self.continuation_prefix = len(self.encode("("))

    def encode(self, text):
        return self._split_digit_comma(self._processor.encode(self._prepare(text)))

    def encode_batch(self, texts, num_threads=1):
        encoded = self._processor.encode(
            [self._prepare(text) for text in texts], num_threads=num_threads
        )
        return [np.array(self._split_digit_comma(ids), np.int32) for ids in encoded]

    def _encode_sentences(self, texts):
        if self._encode_all is None:  # at first use, as it takes a moment
            if is_supported(self.model_bytes):
                self._encode_all = UnigramEncoder(self._processor, self.model_bytes).encode
            else:
                self._encode_all = self._encode_plainly
        ids, lengths = self._encode_all([self._prepare(text) for text in texts])
        places = np.flatnonzero(self._is_digit_comma[ids])
        if not len(places):
            return ids, lengths
        splits = [self.digit_comma[id] for id in ids[places].tolist()]
        counts = np.ones(len(ids), np.int64)
        counts[places] = [len(split) for split in splits]
        texts_of_places = np.searchsorted(lengths.cumsum(), places, side="right")
        np.add.at(lengths, texts_of_places, counts[places] - 1)
        is_split = np.repeat(self._is_digit_comma[ids], counts)
        ids = np.repeat(ids, counts)
        ids[is_split] = list(itertools.chain.from_iterable(splits))
        return ids, lengths

    def pieces(self, text):
        text = self._prepare(text)
        pieces = []
        surfaces = self._processor.encode(text, out_type=str)
        for id, surface in zip(self._processor.encode(text), surfaces, strict=True):
            if id in self.digit_comma:
                pieces += map(self.piece_of, self.digit_comma[id])
            else:
                pieces.append(surface)
        return pieces

    def continuation_ids(self, text):
        """See `Tokenizer.continuation_ids`.

        SentencePiece puts a space before every text. Behind `(`, which is always a piece of its
        own, there is none; so the text is encoded there. The tail of `[MASK]s and` begins with
        `s`, not with `▁s`.
        """
        if self.continuation_prefix:
            return self.encode("(" + text)[self.continuation_prefix :]
        ids = self.encode(text)
        return ids[1:] if ids and self._pieces[ids[0]] == SPACE else ids

    def decode(self, ids):
        return self._processor.decode([int(id) for id in ids])

    def id_of(self, piece):
        return self._processor.piece_to_id(piece)

    def shown(self, id):
        piece = self._pieces[id]
        return piece.startswith(SPACE), piece.removeprefix(SPACE)

    def word_starts(self, rule="unicode"):
        if rule not in RULES:
            raise ValueError(f"`rule` should be one of {sorted(RULES)}. Received: rule={rule!r}.")
        starts = np.array([RULES[rule](piece) for piece in self._pieces])
        if rule == "unicode":
            # Their names are letters, but they are not part of any word.
            starts |= (self._types != _NORMAL) & (self._types != _USER_DEFINED)
        return starts

    @classmethod
    def config_of_file(cls, model_bytes, path, given):
        """Returns the TokenizerConfig of a bare model; `given` is not needed."""
        return _config_of_bare_model(model_bytes, path)

    @classmethod
    def size_of_file(cls, model_bytes, path):
        """Returns how many pieces a model has; `path` is for the error if it is none."""
        return len(_parse(model_bytes, path).pieces)

    @classmethod
    def with_settings(cls, config, given):
        """Returns the TokenizerConfig with other settings (dict), if they can be others."""
        if config.cleanup == "model":
            for name, value in given.items():
                if name != "compat_py3" and value != getattr(config, name):
                    raise InputError(
                        f"`{name}` is part of this model and cannot be changed to {value}. "
                        "Leave it out or train another vocabulary."
                    )
        return config.replace(**given)

    def _write_files(self, folder):
        write_tokenizer_files(folder, self.model_bytes, self.config)

    def _prepare(self, text):
        if not text.isascii():
            text = _SURROGATES.sub("\ufffd", text)  # not UTF-8; SentencePiece would raise
        if self.config.cleanup == "reference":
            return clean_up(text, self.config.lower_case, self.config.strip_accents)
        return text

    def _encode_plainly(self, texts):
        encoded = self._processor.encode(texts, num_threads=1)
        ids = np.array(list(itertools.chain.from_iterable(encoded)), np.int32)
        return ids, np.array([len(one) for one in encoded], np.int64)

    def _split_digit_comma(self, ids):
        if self.digit_comma.keys().isdisjoint(ids):
            return ids
        split = []
        for id in ids:
            split += self.digit_comma.get(id, (id,))
        return split

    def _without_digit_comma(self, piece):
        number = piece[:-1].replace(SPACE, "")
        pieces = self._processor.encode(number, out_type=str)
        if not piece.startswith(SPACE) and not self.config.compat_py3:
            # The original means to do this, but under Python 3 compares text with bytes.
            pieces[0] = pieces[0].removeprefix(SPACE)
        return [self.id_of(piece) for piece in [*pieces, ","] if piece]

    def _control_id(self, symbol):
        id = self.id_of(symbol)
        if self._pieces[id] != symbol or self._types[id] != _CONTROL:
            raise InputError(f"The vocabulary should have `{symbol}` as a control symbol.")
        return id


def _config_of_bare_model(model_bytes, path):
    model = _parse(model_bytes, path)
    settings = {
        "vocab_size": len(model.pieces),
        "sha256": hashlib.sha256(model_bytes).hexdigest(),
    }
    if model.normalizer_spec.name != "user_defined":
        return TokenizerConfig(cleanup="reference", lower_case=True, strip_accents=True, **settings)
    # A vocabulary of ours without its folder: what it does shows how it was trained.
    normalize = sentencepiece.SentencePieceProcessor(model_proto=model_bytes).normalize
    return TokenizerConfig(
        cleanup="model",
        lower_case=normalize("A") == normalize("a"),
        strip_accents=normalize("é") == normalize("e"),
        **settings,
    )


def _parse(model_bytes, path):
    """Reads a model, and refuses a file that is none."""
    try:
        model = read_model(model_bytes)
        if model.pieces:
            sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
    except (DecodeError, RuntimeError) as error:
        raise InputError(f"{path} should be a SentencePiece model, but is not.") from error
    if not model.pieces:  # an empty file is a valid protocol buffer
        raise InputError(f"{path} should be a SentencePiece model, but is empty.")
    return model
