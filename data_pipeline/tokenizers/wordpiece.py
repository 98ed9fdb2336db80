"""Text and ids of a WordPiece vocabulary, as of BERT and of the Chinese ALBERT models.

`wordpiece_graph` does the same inside a TensorFlow graph.
"""

import collections
import hashlib
import logging
import re
import unicodedata
from typing import Literal

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.settings import Settings
from data_pipeline.tokenizers.basic_words import IDEOGRAPHS, BasicTokenizer
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import CONFIG_FILE
from data_pipeline.tokenizers.word_starts import CONTINUATION, RULES

logger = logging.getLogger(__name__)

PIECES_FILE = "vocab.txt"
UNKNOWN = "[UNK]"
#: Longer words are unknown.
MAX_WORD_CHARACTERS = 200

_SPECIAL = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")
#: Pieces no text gives, as brackets are cut off: those above, `[unused1]`, `<S>`.
_SYMBOL = re.compile(r"\[.+\]|<.+>")
#: Words whose ids are kept; more would take much memory for rare ones.
_MAX_KEPT_CHUNKS = 1 << 18


class WordPieceConfig(Settings):
    """What `tokenizer_config.json` says about the `vocab.txt` beside it.

    Attributes:
        kind: str. "wordpiece".
        lower_case: bool. As in `BasicTokenizer`.
        strip_accents: bool. As in `BasicTokenizer`.
        vocab_size: int. Number of pieces, V.
        sha256: str. Hash of the file, in hexadecimal.
        version: int. Of this format.
    """

    kind: Literal["wordpiece"] = "wordpiece"
    lower_case: bool
    strip_accents: bool
    vocab_size: int
    sha256: str
    version: Literal[1] = 1


class WordPieceTokenizer(Tokenizer):
    """A WordPiece vocabulary: words are cut greedily, and `##` marks what goes on with one.

    Source:
        `FullTokenizer` in google-research/albert, `tokenization.py`.
    """

    config_class = WordPieceConfig
    file_name = PIECES_FILE

    def __init__(self, model_bytes: bytes, config: WordPieceConfig):
        super().__init__(model_bytes, config)
        self._pieces = read_pieces(model_bytes)
        self._id_of = {piece: id for id, piece in enumerate(self._pieces)}
        self.vocab_size = len(self._pieces)
        if missing := [piece for piece in _SPECIAL if piece not in self._id_of]:
            raise InputError(
                "A WordPiece vocabulary should have the pieces "
                f"{', '.join(_SPECIAL)}, one per line. Missing: {', '.join(missing)}."
            )
        specials = (self._id_of[piece] for piece in _SPECIAL)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = specials
        is_ordinary = [piece != " " and not _SYMBOL.fullmatch(piece) for piece in self._pieces]
        self.ordinary_ids = np.flatnonzero(is_ordinary).astype(np.int32)
        settings = config.model_dump_json(include={"kind", "lower_case", "strip_accents"})
        # Of the pieces, not of the file: line ends do not matter.
        content = "\n".join([*self._pieces, settings])
        self.digest = hashlib.sha256(content.encode()).hexdigest()
        self._basic = BasicTokenizer(config.lower_case, config.strip_accents)
        self._ids_of_chunk = _IdsOfChunk(self._basic, self._id_of, self.unk_id)

    def encode(self, text):
        return np.frombuffer(self._encoded(text), np.int32).tolist()

    def encode_batch(self, texts, num_threads=1):
        return [np.frombuffer(self._encoded(text), np.int32).copy() for text in texts]

    def _encode_sentences(self, texts):
        encoded = [self._encoded(text) for text in texts]
        sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return np.frombuffer(b"".join(encoded), np.int32).copy(), sizes // np.int32().itemsize

    def pieces(self, text):
        pieces = []
        for word in self._basic.words(text):
            ids = np.frombuffer(self._ids_of_chunk[word], np.int32).tolist()
            pieces += [word] if ids == [self.unk_id] else [self._pieces[id] for id in ids]
        return pieces

    def continuation_ids(self, text):
        """Returns the ids of text that goes on right after a symbol.

        They are those of any text: as with the original, a word begins behind a symbol.
        """
        return self.encode(text)

    def decode(self, ids):
        """Returns the text of ids: words with spaces between them, and none at ideographs."""
        control = {self.pad_id, self.cls_id, self.sep_id, self.mask_id}
        parts = []
        goes_on = True
        for id in map(int, ids):
            if id not in control:
                has_space, text = self.shown(id)
                parts.append(text if goes_on or not has_space else f" {text}")
                goes_on = _needs_no_space(text)
        return "".join(parts)

    def id_of(self, piece):
        return self._id_of.get(piece, self.unk_id)

    def shown(self, id):
        piece = self._pieces[id]
        if _goes_on(piece):
            return False, piece.removeprefix(CONTINUATION)
        return not _needs_no_space(piece), piece

    def word_starts(self, rule="unicode"):
        if rule not in RULES:
            raise ValueError(f"`rule` should be one of {sorted(RULES)}. Received: rule={rule!r}.")
        return np.array([not _goes_on(piece) for piece in self._pieces])

    @classmethod
    def config_of_file(cls, model_bytes, path, given):
        """Returns the WordPieceConfig of a bare list of pieces, with the settings in `given`."""
        pieces = _read_pieces_of(model_bytes, path)
        lower_case = given.get("lower_case")
        if lower_case is None:
            capitals = [piece for piece in pieces if _is_cased(piece)]
            lower_case = not capitals
            if capitals:
                logger.warning(
                    "`%s` holds capital letters (%s pieces, such as %s), so text keeps its own, "
                    "too. Load it with `lower_case=True` if its texts were lowered.",
                    path, f"{len(capitals):,}", capitals[0],
                )  # fmt: skip
        return WordPieceConfig(
            lower_case=lower_case,
            strip_accents=given.get("strip_accents", lower_case),
            vocab_size=len(pieces),
            sha256=hashlib.sha256(model_bytes).hexdigest(),
        )

    @classmethod
    def size_of_file(cls, model_bytes, path):
        """Returns how many pieces a file has; `path` is for the error if it cannot be read."""
        return len(_read_pieces_of(model_bytes, path))

    @classmethod
    def with_settings(cls, config, given):
        """Returns the WordPieceConfig with other settings (dict)."""
        if "compat_py3" in given:
            raise InputError("`compat_py3` is for SentencePiece vocabularies. Leave it out.")
        return config.replace(**given)

    def _write_files(self, folder):
        (folder / PIECES_FILE).write_bytes(self.model_bytes)
        described = self.config.model_dump_json(indent=2)
        (folder / CONFIG_FILE).write_text(described + "\n", encoding="utf-8")

    def _encoded(self, text):
        """Returns the ids of a text as bytes, which are quicker to put together than numbers."""
        return b"".join(map(self._ids_of_chunk.__getitem__, self._basic.chunks(text)))


class _IdsOfChunk(dict):
    """Chunk of `BasicTokenizer` -> ids of its pieces, int32, as bytes; cut when it is first met."""

    def __init__(self, basic, id_of, unk_id):
        self._basic, self._id_of, self._unk_id = basic, id_of, unk_id
        self._longest = max(len(piece.removeprefix(CONTINUATION)) for piece in id_of)

    def __missing__(self, chunk):
        ids = []
        for word in self._basic.words_of_chunk(chunk):
            ids += self._cut(word) or [self._unk_id]
        ids = np.array(ids, np.int32).tobytes()
        if len(chunk) <= MAX_WORD_CHARACTERS and len(self) < _MAX_KEPT_CHUNKS:
            self[chunk] = ids
        return ids

    def _cut(self, word):
        """Returns the ids of the longest piece, the longest after that, and so on; or None."""
        if len(word) > MAX_WORD_CHARACTERS:
            return None
        ids, start = [], 0
        while start < len(word):
            mark = CONTINUATION if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                id = self._id_of.get(mark + word[start:end])
                if id is not None:
                    break
            else:
                return None
            ids.append(id)
            start = end
        return ids


def read_pieces(content: bytes) -> list[str]:
    """Reads the pieces of a vocabulary file.

    Args:
        content: bytes. UTF-8, a piece per line; what comes after white space is no part of it. A
            blank line is the piece " ".

    Returns:
        list of str. The piece of every id.

    Raises:
        InputError: If it is not UTF-8, or a piece is there twice: then google-research/albert
            gives what follows other ids than google-research/bert does.

    Source:
        `load_vocab` in google-research/albert, `tokenization.py`.
    """
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"A WordPiece vocabulary should be UTF-8 text. {error}.") from error
    if not lines[-1]:
        lines.pop()
    pieces = [next(iter(line.split()), " ") for line in lines]
    piece, count = next(iter(collections.Counter(pieces).most_common(1)), ("", 0))
    if count > 1:
        places = [str(number) for number, other in enumerate(pieces, 1) if other == piece]
        raise InputError(
            "A WordPiece vocabulary should have each piece once. "
            f"Received: {piece!r} in lines {', '.join(places[:3])}."
        )
    return pieces


def _read_pieces_of(content, path):
    try:
        return read_pieces(content)
    except InputError as error:
        raise InputError(f"{error} Received: {path}.") from error


def _goes_on(piece):
    return piece.startswith(CONTINUATION) and piece != CONTINUATION


def _needs_no_space(text):
    """Tells whether a piece is an ideograph or a mark as wide as one, such as `。`."""
    if len(text) != 1:
        return False
    is_mark = unicodedata.category(text).startswith("P")
    is_wide = unicodedata.east_asian_width(text) in ("W", "F")
    return (is_mark and is_wide) or any(first <= ord(text) <= last for first, last in IDEOGRAPHS)


def _is_cased(piece):
    return re.search("[A-Z]", piece) is not None and not _SYMBOL.fullmatch(piece)
