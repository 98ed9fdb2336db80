"""The tokenizer: converts text to the ids of a vocabulary and back, clean-up included.

`Tokenizer` is the public class. The work is done by the model for the kind of the vocabulary:
`SentencePieceModel`, `WordPieceModel` or `ByteBPEModel`. Text can never produce the ids of [CLS],
[SEP], [MASK] or padding: callers add them by id.
"""

import base64
import hashlib
import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import MAX_VOCABULARY_BYTES, parse_json, read_limited
from data_pipeline.tokenizers.byte_bpe import ByteBPEConfig, ByteBPEModel
from data_pipeline.tokenizers.sentencepiece_model import RULES, SentencePieceModel
from data_pipeline.tokenizers.vocabulary_files import (
    CONFIG_FILE,
    FILES,
    TokenizerConfig,
    tokenizer_files,
    write_tokenizer_files,
)
from data_pipeline.tokenizers.wordpiece import WordPieceConfig, WordPieceModel

#: Kind of vocabulary, as stored in a tokenizer folder -> its model.
MODELS: dict[str, Any] = {
    "unigram": SentencePieceModel,
    "wordpiece": WordPieceModel,
    "bpe": ByteBPEModel,
}
#: End of the name of a bare vocabulary file -> its kind; all others are SentencePiece models.
_KIND_OF_FILE = {".txt": "wordpiece", ".json": "bpe"}


class Tokenizer:
    """A vocabulary together with the clean-up that its text needs.

    It is called on one text or on several, and returns ids without [CLS] and [SEP]: list of int for
    a str; a list of these for a list, array or column of texts; for a string tensor [B], also in a
    graph, a RaggedTensor int32 [B, None].

    Example:
        tokenizer = load_tokenizer("albert-mini-en")
        tokenizer.decode(tokenizer("The ship sailed."))  # the ship sailed.

    Attributes:
        config: TokenizerConfig, WordPieceConfig or ByteBPEConfig. How text is cleaned up.
        model_bytes: bytes. The vocabulary file: a SentencePiece model, a list of pieces, or pieces
            and merges as JSON.
        model: SentencePieceModel, WordPieceModel or ByteBPEModel.
        vocab_size: int. Number of pieces, V.
        digest: str. Hash of model and clean-up settings, in hexadecimal: equal digests, equal ids.
        pad_id, unk_id, cls_id, sep_id, mask_id: int. Ids of the special pieces.
        pair_separators: int. Number of [SEP] between the texts of a pair: 1, or 2 as in RoBERTa.
        ordinary_ids: int32 array. Ids that may replace others at random: all but control symbols
            and unknown, unused and byte pieces.
    """

    def __init__(
        self, model_bytes: bytes, config: TokenizerConfig | WordPieceConfig | ByteBPEConfig
    ):
        """Creates a tokenizer from its parts; `Tokenizer.load` reads and checks both."""
        self.model_bytes = model_bytes
        self.config = config
        self.model = MODELS[config.kind](model_bytes, config)
        self._graph_tokenizer: Any = None  # built when a tensor is tokenized
        self.vocab_size = len(self.model.vocabulary)
        self.digest = self.model.digest
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self.model.special_ids
        self.ordinary_ids = self.model.ordinary_ids
        self.pair_separators = getattr(config, "pair_separators", 1)

    def get_config(self) -> dict[str, Any]:
        """Returns the tokenizer as plain JSON, as it is saved with a model."""
        config = {"kind": self.config.kind} | self.config.model_dump(mode="json")
        return {"config": config, "model": base64.b64encode(self.model_bytes).decode()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Tokenizer":
        """Returns the tokenizer of `get_config`."""
        settings = MODELS[config["config"]["kind"]].config_class(**config["config"])
        return cls(base64.b64decode(config["model"]), settings)

    @property
    def num_special(self) -> int:
        """int. Special tokens of a pair: [CLS], the separators, and the last [SEP]."""
        return self.pair_separators + 2

    def __call__(self, texts: Any) -> Any:
        if isinstance(texts, str):
            return self.encode(texts)
        if not hasattr(texts, "get_shape"):  # no tensor
            return [ids.tolist() for ids in self.encode_batch(list(texts))]
        if self._graph_tokenizer is None:
            # By name, as that module is above this one; it loads TensorFlow.
            module = importlib.import_module("data_pipeline.tokenizers.graph_tokenization")
            self._graph_tokenizer = module.graph_tokenizer(self)
        return self._graph_tokenizer(texts)

    def __repr__(self) -> str:
        kind = type(self.model).__name__.removesuffix("Model")
        case = ", lower case" if getattr(self.config, "lower_case", False) else ""
        return f"<Tokenizer {kind}, {self.vocab_size:,} pieces{case}, {self.digest[:8]}>"

    def __reduce__(self):
        return type(self), (self.model_bytes, self.config)

    @classmethod
    def load(
        cls,
        path: str | Path,
        lower_case: bool | None = None,
        strip_accents: bool | None = None,
    ) -> "Tokenizer":
        """Loads a tokenizer folder, or a bare vocabulary file such as the released ones.

        Args:
            path: path. A folder written by `train_vocabulary` or `save`, a SentencePiece `.model`,
                a `.txt` file of WordPiece pieces, one per line, or a `tokenizer.json` of byte-level
                BPE, which has no clean-up.
            lower_case: bool or None. As in `clean_up`. None uses the setting of the folder. For a
                bare vocabulary it means true, except for a SentencePiece model with a clean-up of
                its own and for pieces with capital letters, which count as cased.
            strip_accents: bool or None. As in `clean_up`. None uses the setting of the folder; for
                a bare model it means true unless cased, for a bare WordPiece file `lower_case`.

        Raises:
            InputError: If the file or folder does not exist, or as `of_bytes`.
        """
        path = Path(path)
        files = _read_folder(path) if path.is_dir() else {path.name: _read(path)}
        return cls.of_bytes(files, lower_case, strip_accents, source=path)

    @classmethod
    def of_bytes(
        cls,
        files: Mapping[str, bytes],
        lower_case: bool | None = None,
        strip_accents: bool | None = None,
        source: str | Path = "",
    ) -> "Tokenizer":
        """Creates a tokenizer from the content of its files.

        Args:
            files: dict of str to bytes. The files of a tokenizer folder by name, as `files` returns
                them, of which others than its own are ignored; or one bare vocabulary file, whose
                name says its kind as in `load`.
            lower_case: bool or None. As in `load`.
            strip_accents: bool or None. As in `load`.
            source: str or Path. Where the files are from, which messages say.

        Raises:
            InputError: If there is no vocabulary or another one than the configuration describes,
                if special pieces are missing, or if a requested setting differs from the clean-up
                inside the model.

        Example:
            Tokenizer.of_bytes({"spiece.model": content})
        """
        given = {"lower_case": lower_case, "strip_accents": strip_accents}
        settings = {name: value for name, value in given.items() if value is not None}
        try:
            config, model_bytes = _parts_of(files, settings)
            config = MODELS[config.kind].with_settings(config, settings)
            tokenizer = cls(model_bytes, config)
            if tokenizer.vocab_size != config.vocab_size:
                raise InputError(
                    f"`vocab_size` in {CONFIG_FILE} must be {tokenizer.vocab_size}, the number of "
                    f"pieces in the vocabulary, but is {config.vocab_size}."
                )
        except InputError as error:
            raise InputError(f"{error} Received: {source}." if source else str(error)) from error
        return tokenizer

    def files(self) -> dict[str, bytes]:
        """Returns the files of a tokenizer folder by name: vocabulary and configuration."""
        return tokenizer_files(self.model_bytes, self.config)

    def save(self, folder: str | Path) -> None:
        """Writes vocabulary and configuration into a folder, which is created if needed."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        write_tokenizer_files(Path(folder), self.model_bytes, self.config)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without [CLS] and [SEP]."""
        return self.model.encode(text)

    def encode_batch(self, texts: Iterable[str]) -> list[np.ndarray]:
        """Returns the ids of many texts, an int32 array for each; faster than one by one."""
        return self.model.encode_batch(texts)

    def encode_sentences(self, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of many sentences in one array.

        Returns:
            int32 array [T], the ids of all texts in order; int64 array [N], the number of ids of
            each text.
        """
        encoded = self.model.encode_batch(texts)
        lengths = np.array([len(ids) for ids in encoded], np.int64)
        return np.concatenate([np.zeros(0, np.int32), *encoded]), lengths

    def pieces(self, text: str) -> list[str]:
        """Returns the pieces of a text."""
        return [self.piece_of(id) for id in self.encode(text)]

    def continuation_ids(self, text: str) -> list[int]:
        """Returns the ids of a text that follows a symbol without a space in between."""
        return self.model.continuation_ids(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids (any sequence of int), without control symbols."""
        return self.model.decode([int(id) for id in ids])

    def id_of(self, piece: str) -> int:
        """Returns the id of a piece, or `unk_id` if the vocabulary does not contain it."""
        return self.model.id_of(piece)

    def piece_of(self, id: int) -> str:
        """Returns the piece of an id."""
        return self.model.vocabulary[id]

    def word_starts(self, rule: str = "unicode") -> np.ndarray:
        """Returns for every piece whether it starts a word.

        Args:
            rule: str. For SentencePiece vocabularies; WordPiece marks the pieces that continue a
                word, so both rules agree. "unicode": pieces of letters continue a word in every
                script, except Chinese and Japanese, where each piece is a word. "reference": the
                rule of the original, where only pieces of a-z continue a word, so that other
                scripts have no words. "piece": every piece, also of WordPiece, is a word.

        Returns:
            bool array [V]. The same under the first two rules for pieces of plain English.

        Source:
            `_is_start_piece_sp` and `_is_start_piece_bert` in google-research/albert,
            `create_pretraining_data.py`. The unicode rule is ours; see google-research/albert#161.
        """
        if rule == "piece":
            return np.ones(self.vocab_size, bool)
        if rule not in RULES:
            rules = sorted([*RULES, "piece"])
            raise ValueError(f"`rule` must be one of {rules}. Received: rule={rule!r}.")
        return self.model.word_starts(rule)


def _parts_of(files, settings):
    """Returns the configuration of a tokenizer and its vocabulary file, after comparing them.

    `settings` are those that a user gives, dict; they decide about a vocabulary without a
    configuration.
    """
    if CONFIG_FILE not in files:
        if len(files) != 1:
            raise InputError(
                f"A tokenizer must be {CONFIG_FILE} with a vocabulary, or one file: a "
                f"SentencePiece model, a WordPiece vocab.txt or a {FILES['bpe']}. "
                f"Received the files: {', '.join(sorted(files)) or 'none'}.",
                Mistake.NO_TOKENIZER,
            )
        [(name, content)] = files.items()
        kind = _KIND_OF_FILE.get(Path(name).suffix.lower(), "unigram")
        return MODELS[kind].config_of_file(content, name, settings), content
    try:
        values = parse_json(files[CONFIG_FILE])
        if not isinstance(values, dict):
            raise ValueError("It must be a JSON object.")
        kind = str(values.get("kind", "unigram"))
        if kind not in MODELS:
            raise InputError(f"`kind` must be one of {sorted(MODELS)}. Received: {kind!r}.")
        config = MODELS[kind].config_class(**values)
    except ValueError as error:
        raise InputError(f"`{CONFIG_FILE}` does not describe a tokenizer. {error}") from error
    name = FILES[kind]
    if name not in files:
        raise InputError(
            f"The vocabulary `{name}`, which {CONFIG_FILE} describes, is missing.",
            Mistake.NO_TOKENIZER,
        )
    if hashlib.sha256(files[name]).hexdigest() != config.sha256:
        raise InputError(
            f"`{name}` is not the file that {CONFIG_FILE} describes: its sha256 differs. "
            "Copy the folder again, or train the vocabulary again."
        )
    return config, files[name]


def _read_folder(path):
    """Returns those files of a tokenizer folder that exist, by name."""
    vocabularies = [name for name in FILES.values() if (path / name).exists()]
    return {name: _read(path / name) for name in (CONFIG_FILE, *vocabularies)}


def _read(path):
    try:
        return read_limited(path, MAX_VOCABULARY_BYTES)
    except OSError as error:
        raise InputError(
            f"A tokenizer must be a folder with {CONFIG_FILE}, a SentencePiece model or a "
            f"WordPiece vocab.txt. Received: {path} ({error.strerror}).",
            Mistake.NO_TOKENIZER,
        ) from error
