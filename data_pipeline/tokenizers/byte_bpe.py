"""Text and ids of a byte-level BPE vocabulary, as in RoBERTa.

Text is split into words, words into bytes, and pairs of neighbouring pieces are merged in the order
in which the merges were learned. Nothing is cleaned up, and nothing is unknown. The library
tokenizers does the work; `byte_bpe_graph` does the same inside a TensorFlow graph.
"""

import hashlib
import json
from typing import Any, Literal, NamedTuple

import numpy as np

from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import parse_json
from data_pipeline.settings import Settings
from data_pipeline.tokenizers.sentencepiece_model import RULES, replace_surrogates
from data_pipeline.tokenizers.vocabulary_files import FILES

PIECES_FILE = FILES["bpe"]
#: In the order of `special_ids`; the names are RoBERTa's.
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
#: Keys of the model in the file, and the values other than null that give the BPE of GPT-2.
_PLAIN = {
    "dropout": (0, 0.0),
    "unk_token": ("<unk>",),
    "continuing_subword_prefix": ("",),
    "end_of_word_suffix": ("",),
    "fuse_unk": (False,),
    "byte_fallback": (False,),
    "ignore_merges": (False,),
}


class ByteBPEConfig(Settings):
    """The content of `tokenizer_config.json`, which describes the `tokenizer.json` beside it.

    With `add_prefix_space`, a text starts with a space, so that its first word has the pieces that
    it has elsewhere. `pair_separators` is the number of `</s>` between the texts of a pair: 2, as
    in RoBERTa.
    """

    kind: Literal["bpe"] = "bpe"
    lower_case: Literal[False] = False
    strip_accents: Literal[False] = False
    add_prefix_space: bool
    pair_separators: Literal[1, 2] = 1
    vocab_size: int
    sha256: str  # of the file, in hexadecimal
    version: Literal[1] = 1  # of this format


class BytePieces(NamedTuple):
    """The content of a file of byte-level BPE."""

    pieces: list[str]  # of every id, with a character for each byte, see `BYTE_CHARACTERS`
    merges: list[tuple[str, str]]  # the pairs to merge, the first learned one first
    add_prefix_space: bool
    pair_separators: int  # 1 or 2, see `ByteBPEConfig`


class ByteBPEModel:
    """A byte-level BPE vocabulary, with the attributes and methods of `SentencePieceModel`.

    Source: `GPT2Tokenizer` in openai/gpt-2, `encoder.py`. RoBERTa uses GPT-2's vocabulary.
    """

    config_class = ByteBPEConfig

    def __init__(self, model_bytes: bytes, config: ByteBPEConfig):
        self._config = config
        content = read_bpe(model_bytes)
        self.vocabulary, self.merges = content.pieces, content.merges
        self._ids = {piece: id for id, piece in enumerate(self.vocabulary)}
        self.special_ids = [self._ids[piece] for piece in SPECIAL_PIECES]
        products = (first + second for first, second in self.merges)
        ordinary = {self._ids[piece] for piece in (*BYTE_CHARACTERS, *products)}
        self.ordinary_ids = np.array(sorted(ordinary), np.int32)
        settings = config.model_dump_json(include={"kind", "add_prefix_space", "pair_separators"})
        content_text = "\n".join([*self.vocabulary, *map(" ".join, self.merges), settings])
        self.digest = hashlib.sha256(content_text.encode()).hexdigest()
        self._plain = _encoder(self._ids, self.merges, False)
        self._encoder = _encoder(self._ids, self.merges, config.add_prefix_space)

    @classmethod
    def config_of_file(cls, model_bytes, path, settings) -> ByteBPEConfig:
        """Returns the configuration of a bare file; `path` and `settings` (dict) are unused."""
        content = read_bpe(model_bytes)
        return ByteBPEConfig(
            add_prefix_space=content.add_prefix_space,
            pair_separators=content.pair_separators,
            vocab_size=len(content.pieces),
            sha256=hashlib.sha256(model_bytes).hexdigest(),
        )

    @classmethod
    def with_settings(cls, config, settings) -> ByteBPEConfig:
        """Returns the configuration; settings (dict) that would change text are an InputError."""
        for name, value in settings.items():
            if value:
                raise InputError(
                    f"`{name}` must not be used: byte-level BPE does not change text. Omit it."
                )
        return config

    def encode(self, text):
        return self._encoder.encode(replace_surrogates(text)).ids

    def encode_batch(self, texts):
        encoded = self._encoder.encode_batch([replace_surrogates(text) for text in texts])
        return [np.array(one.ids, np.int32) for one in encoded]

    def continuation_ids(self, text):
        """Returns the ids of a text that follows a symbol: no space is added before it."""
        return self._plain.encode(replace_surrogates(text)).ids

    def decode(self, ids):
        special = set(self.special_ids)
        content = b"".join(bytes_of(self.vocabulary[id]) for id in ids if id not in special)
        text = content.decode(errors="replace")
        return text.removeprefix(" ") if self._config.add_prefix_space else text

    def id_of(self, piece):
        return self._ids.get(piece, self.special_ids[1])

    def word_starts(self, rule):
        return np.array([self._starts_word(id, RULES[rule]) for id in range(len(self.vocabulary))])

    def _starts_word(self, id, starts_word):
        content = bytes_of(self.vocabulary[id])
        if id in self.special_ids or content.startswith(b" "):
            return True
        if 0x80 <= content[0] < 0xC0:  # inside of a character
            return False
        text = content.decode(errors="ignore")
        return starts_word(text) if text else True


def load_tokenizers() -> Any:
    """Returns the library tokenizers of Hugging Face; InputError if it is not installed."""
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError as error:
        raise InputError(
            "WordPiece vocabularies are trained, and byte-level BPE is read, with the library "
            "`tokenizers`, which is not installed. Install it with "
            "`pip install 'albert-keras[tokenizers]'`.",
            Mistake.EXTRA_MISSING,
        ) from error
    return tokenizers


def read_bpe(content: bytes) -> BytePieces:
    """Reads a `tokenizer.json` of the library tokenizers with byte-level BPE as in RoBERTa.

    Raises:
        InputError: If it contains something else, no piece for a byte or for a special token, or a
            merge of pieces that are not known.
    """
    try:
        values = parse_json(content)
        model = values["model"]
        splitter = values["pre_tokenizer"]
        kind = model["type"]
        ids = dict(model["vocab"])
        merges = [
            tuple(merge.split(" ") if isinstance(merge, str) else merge)
            for merge in model["merges"]
        ]
        splits = splitter["type"], splitter.get("use_regex", True)
        add_prefix_space = bool(splitter["add_prefix_space"])
        pair_separators = _pair_separators(values.get("post_processor"))
        if not all(isinstance(part, str) for merge in merges for part in merge):
            raise TypeError("merges must be pairs of strings")
        pieces = sorted(ids, key=ids.__getitem__)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _not_bpe(f"{type(error).__name__}: {error}") from error
    plain = all(model.get(key) in (None, *allowed) for key, allowed in _PLAIN.items())
    if kind != "BPE" or splits != ("ByteLevel", True) or not plain or values.get("normalizer"):
        raise _not_bpe(f"a model of type {kind} with the pre-tokenizer {splits[0]}")
    if [ids[piece] for piece in pieces] != list(range(len(ids))):
        raise _not_bpe("ids that are not numbered from 0")
    if missing := [piece for piece in (*SPECIAL_PIECES, *BYTE_CHARACTERS) if piece not in ids]:
        raise _not_bpe(f"a vocabulary without the pieces {' '.join(missing[:8])}")
    for merge in merges:
        product = "".join(merge)
        # A special token that could be merged from text would break the promise of `Tokenizer`.
        is_known = len(merge) == 2 and ids.keys() >= {*merge, product}
        if not is_known or product in SPECIAL_PIECES:
            raise _not_bpe(f"the merge {' '.join(map(repr, merge))}, whose parts are not known")
    return BytePieces(pieces, merges, add_prefix_space, pair_separators)


def write_bpe(content: BytePieces) -> bytes:
    """Returns the file of a vocabulary, which transformers and the library tokenizers read."""
    pieces, merges, add_prefix_space, pair_separators = content
    cls, sep = (["<s>", pieces.index("<s>")], ["</s>", pieces.index("</s>")])
    post_processor: dict[str, Any] = {"type": "BertProcessing", "sep": sep, "cls": cls}
    if pair_separators == 2:
        post_processor |= {"type": "RobertaProcessing", "trim_offsets": True}
        post_processor["add_prefix_space"] = add_prefix_space
    special = [
        {"id": id, "content": piece, "single_word": False, "lstrip": piece == "<mask>"}
        | {"rstrip": False, "normalized": False, "special": True}
        for id, piece in enumerate(pieces)
        if piece in SPECIAL_PIECES
    ]
    splitter = {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True}
    values: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": splitter | {"use_regex": True},
        "post_processor": post_processor,
        "decoder": splitter | {"use_regex": True},
        "model": {
            "type": "BPE",
            "vocab": {piece: id for id, piece in enumerate(pieces)},
            "merges": [list(merge) for merge in merges],
        },
    }
    return (json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode()


def _pair_separators(post_processor):
    """Returns how many `</s>` the step after tokenization puts between two texts: 1 or 2.

    Without a step that joins pairs it is 2, as in RoBERTa. Other numbers are a ValueError.
    """
    for step in (post_processor or {}).get("processors", [post_processor or {}]):
        if step.get("type") == "BertProcessing":
            return 1
        if step.get("type") == "TemplateProcessing":
            parts = [value["id"] for part in step["pair"] for value in part.values()]
            count = parts.index("B") - parts.index("A") - 1
            if count not in (1, 2):
                raise ValueError(f"{count} special tokens between the texts of a pair")
            return count
    return 2


def bytes_of(piece: str) -> bytes:
    """Returns the bytes of a piece, or its UTF-8 if it has characters that stand for no byte."""
    try:
        return bytes(_BYTE_OF[character] for character in piece)
    except KeyError:
        return piece.encode()


def _byte_characters():
    """Returns the character that stands for each byte: itself if it is visible.

    Source: `bytes_to_unicode` in openai/gpt-2, `encoder.py`.
    """
    visible = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)}
    visible |= set(range(ord("®"), ord("ÿ") + 1))
    others = iter(range(256, 512))
    return tuple(chr(byte if byte in visible else next(others)) for byte in range(256))


BYTE_CHARACTERS = _byte_characters()
_BYTE_OF = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}


def _encoder(ids, merges, add_prefix_space):
    """Returns an encoder of the library without special tokens, which text could contain."""
    library = load_tokenizers()
    encoder = library.Tokenizer(library.models.BPE(vocab=ids, merges=merges))
    encoder.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    return encoder


def _not_bpe(received):
    return InputError(
        f"`{PIECES_FILE}` must contain byte-level BPE with the special tokens "
        f"{' '.join(SPECIAL_PIECES)}, as in RoBERTa. Received: {received}. Other tokenizers of "
        "transformers are converted with their model by `albert-keras convert`."
    )
