"""Turns text into ids of a SentencePiece vocabulary and back, clean-up included.

`graph_tokenization` does the same inside a TensorFlow graph. Text cannot produce the ids of
[CLS], [SEP], [MASK] or padding, whatever it says: control symbols are added by id, elsewhere.
"""

import hashlib
import itertools
import re
from pathlib import Path

import numpy as np
import sentencepiece
from google.protobuf.message import DecodeError

from data_pipeline.cleanup import clean_up
from data_pipeline.errors import InputError
from data_pipeline.unigram import UnigramEncoder, is_supported
from data_pipeline.vocabulary import (
    CONFIG_FILE,
    CONTROL_SYMBOLS,
    MODEL_FILE,
    TokenizerConfig,
    read_model,
    write_tokenizer_files,
)
from data_pipeline.word_starts import RULES, SPACE

# Types of pieces in `sentencepiece_model.proto`; the others are byte and unknown.
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4

_SURROGATES = re.compile("[\ud800-\udfff]")


class Tokenizer:
    """A vocabulary together with the clean-up its text needs.

    Attributes:
        config: TokenizerConfig. How text is cleaned up, and by whom.
        model_bytes: bytes. The SentencePiece model.
        vocab_size: int. Number of pieces, V.
        digest: str. Hash of model and clean-up settings, in hexadecimal: equal digests, equal ids.
        pad_id, unk_id, cls_id, sep_id, mask_id: int. Ids of the special pieces.
        ordinary_ids: int32 array. Ids that may stand in for others at random: neither control
            symbols nor unknown, unused or byte pieces.
        digit_comma: dict of int to list of int. A piece that ends in digit and comma, and the
            pieces put in its place, as in the original: number and comma apart.
        continuation_prefix: int. How many pieces `encode("(")` gives, or 0 where `(` is an
            ordinary piece that might melt into its neighbours.

    Source:
        `FullTokenizer` and `encode_pieces` in google-research/albert, `tokenization.py`.
    """

    def __init__(self, model_bytes: bytes, config: TokenizerConfig):
        """Use `Tokenizer.load`, which checks both."""
        self.model_bytes = model_bytes
        self.config = config
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

    def __reduce__(self):
        return type(self), (self.model_bytes, self.config)

    @classmethod
    def load(cls, path, lower_case=None, strip_accents=None, compat_py3=None):
        """Loads a tokenizer folder, or a bare SentencePiece model such as the released ones.

        Args:
            path: path. A folder written by `train_vocabulary` or `save`, or a `.model` file.
            lower_case: bool or None. As in `clean_up`. None is what the folder says, and true for
                a bare model that does not clean up by itself.
            strip_accents: bool or None. As in `clean_up`; None likewise.
            compat_py3: bool or None. Whether a piece inside a word, such as `12,`, keeps the
                spurious `▁` that the original leaves before it when run under Python 3. None is
                what the folder says, and false for a bare model.

        Returns:
            Tokenizer.

        Raises:
            InputError: If there is no such file or folder, it holds no SentencePiece model or
                not the one it should, special pieces are missing, or a clean-up is asked for
                that differs from the one inside the model.
        """
        path = Path(path)
        given = {
            name: value
            for name, value in (("lower_case", lower_case), ("strip_accents", strip_accents))
            if value is not None
        }
        if path.is_dir():
            model_bytes = _read(path / MODEL_FILE)
            config = _read_config(path / CONFIG_FILE)
            if hashlib.sha256(model_bytes).hexdigest() != config.sha256:
                raise InputError(
                    f"`{MODEL_FILE}` should be the file that {CONFIG_FILE} describes, but its "
                    f"sha256 is another. Received: {path}. Copy or train the folder anew."
                )
            vocab_size = len(_parse(model_bytes, path / MODEL_FILE).pieces)
            if vocab_size != config.vocab_size:
                raise InputError(
                    f"`vocab_size` in {path / CONFIG_FILE} should be {vocab_size}, the number of "
                    f"pieces of the model. Received: {config.vocab_size}."
                )
        else:
            model_bytes = _read(path)
            config = _config_of_bare_model(model_bytes, path)
        if config.cleanup == "model":
            for name, value in given.items():
                if value != getattr(config, name):
                    raise InputError(
                        f"`{name}` is part of this model and cannot be changed. "
                        f"Received: {value}. Leave it out or train another vocabulary."
                    )
        if compat_py3 is not None:
            given["compat_py3"] = compat_py3
        try:
            return cls(model_bytes, config.replace(**given))
        except InputError as error:
            raise InputError(f"{error} Received: {path}.") from error

    def save(self, folder) -> None:
        """Writes model, pieces and configuration into a folder, made if it does not exist."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        write_tokenizer_files(folder, self.model_bytes, self.config)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without [CLS] and [SEP]."""
        return self._split_digit_comma(self._processor.encode(self._prepare(text)))

    def encode_batch(self, texts, num_threads: int = 1) -> list[np.ndarray]:
        """Returns the ids of many texts; faster than one by one.

        Args:
            texts: iterable of str.
            num_threads: int. For SentencePiece; the ids do not depend on it.

        Returns:
            list of int32 arrays, one per text.
        """
        encoded = self._processor.encode(
            [self._prepare(text) for text in texts], num_threads=num_threads
        )
        return [np.array(self._split_digit_comma(ids), np.int32) for ids in encoded]

    def encode_sentences(self, texts) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of many sentences; the fastest way.

        Args:
            texts: iterable of str.

        Returns:
            int32 array [T], all ids end to end; int64 array [N], how many each text has.
        """
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

    def pieces(self, text: str) -> list[str]:
        """Returns the pieces of a text; an unknown one as it stands in the text."""
        text = self._prepare(text)
        pieces = []
        surfaces = self._processor.encode(text, out_type=str)
        for id, surface in zip(self._processor.encode(text), surfaces, strict=True):
            if id in self.digit_comma:
                pieces += map(self.piece_of, self.digit_comma[id])
            else:
                pieces.append(surface)
        return pieces

    def continuation_ids(self, text: str) -> list[int]:
        """Returns the ids of text that goes on right after a symbol, with no space before it.

        SentencePiece puts a space before every text. Behind `(`, which is always a piece of its
        own, there is none; so the text is encoded there. The tail of `[MASK]s and` begins with
        `s`, not with `▁s`.
        """
        if self.continuation_prefix:
            return self.encode("(" + text)[self.continuation_prefix :]
        ids = self.encode(text)
        return ids[1:] if ids and self._pieces[ids[0]] == SPACE else ids

    def decode(self, ids) -> str:
        """Returns the text of ids (any sequence of int); control symbols vanish."""
        return self._processor.decode([int(id) for id in ids])

    def id_of(self, piece: str) -> int:
        """Returns the id of a piece, `unk_id` if there is no such piece."""
        return self._processor.piece_to_id(piece)

    def piece_of(self, id: int) -> str:
        """Returns the piece of an id."""
        return self._pieces[id]

    def word_starts(self, rule: str = "unicode") -> np.ndarray:
        """Tells for every piece whether it starts a word.

        Args:
            rule: str. "unicode": pieces of letters continue a word in every script, except
                Chinese and Japanese, where each piece is a word. "reference": the original's,
                where only pieces of a-z continue, so that other scripts have no words.

        Returns:
            bool array [V]. The same under both rules for pieces of plain English.

        Source:
            `_is_start_piece_sp` in google-research/albert, `create_pretraining_data.py`. The
            unicode rule is ours; see google-research/albert#161.
        """
        if rule not in RULES:
            raise ValueError(f"`rule` should be one of {sorted(RULES)}. Received: rule={rule!r}.")
        starts = np.array([RULES[rule](piece) for piece in self._pieces])
        if rule == "unicode":
            # Their names are letters, but they are not part of any word.
            starts |= (self._types != _NORMAL) & (self._types != _USER_DEFINED)
        return starts

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


def _read(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"A tokenizer should be a folder with {CONFIG_FILE} or a SentencePiece model. "
            f"Received: {path} ({error.strerror})."
        ) from error


def _read_config(path):
    content = _read(path)
    try:
        return TokenizerConfig.model_validate_json(content)
    except ValueError as error:
        raise InputError(f"{path} should describe a tokenizer. {error}") from error


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
