"""Turns text into ids of a vocabulary and back, clean-up included.

Two kinds of vocabularies have one face: SentencePiece (`unigram_tokenizer`) and WordPiece
(`wordpiece`). Whatever text says, it cannot produce the ids of [CLS], [SEP], [MASK] or padding:
these are added by id, elsewhere.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.vocabulary import CONFIG_FILE


class Tokenizer:
    """A vocabulary together with the clean-up its text needs.

    `Tokenizer(...)` and `Tokenizer.load(...)` give the class for the kind of the vocabulary, as
    `pathlib.Path(...)` gives the one for the system.

    Attributes:
        config: TokenizerConfig or WordPieceConfig. How text is cleaned up.
        model_bytes: bytes. The file of the vocabulary: a SentencePiece model or a list of pieces.
        vocab_size: int. Number of pieces, V.
        digest: str. Hash of model and clean-up settings, in hexadecimal: equal digests, equal ids.
        pad_id, unk_id, cls_id, sep_id, mask_id: int. Ids of the special pieces.
        ordinary_ids: int32 array. Ids that may stand in for others at random: neither control
            symbols nor unknown, unused or byte pieces.
    """

    def __new__(cls, model_bytes, config):
        return super().__new__(_kinds()[config.kind] if cls is Tokenizer else cls)

    def __init__(self, model_bytes: bytes, config):
        """Use `Tokenizer.load`, which checks both."""
        self.model_bytes = model_bytes
        self.config = config

    def __reduce__(self):
        return type(self), (self.model_bytes, self.config)

    @classmethod
    def load(cls, path, lower_case=None, strip_accents=None, compat_py3=None):
        """Loads a tokenizer folder, or a bare vocabulary such as the released ones.

        Args:
            path: path. A folder written by `train_vocabulary` or `save`, a SentencePiece `.model`,
                or a `.txt` file of WordPiece pieces, one per line.
            lower_case: bool or None. As in `clean_up`. None is what the folder says, and true for
                a bare vocabulary, except a SentencePiece model that cleans up by itself and a
                WordPiece file that holds capital letters, which is taken for a cased one.
            strip_accents: bool or None. As in `clean_up`. None is what the folder says; for a bare
                model true, for a bare WordPiece file `lower_case`.
            compat_py3: bool or None. Of SentencePiece vocabularies: whether a piece inside a word,
                such as `12,`, keeps the spurious `▁` that the original leaves before it when run
                under Python 3. None is what the folder says, and false for a bare model.

        Returns:
            Tokenizer.

        Raises:
            InputError: If there is no such file or folder, it holds no vocabulary or not the one
                it should, special pieces are missing, or a clean-up is asked for that differs
                from the one inside the model.
        """
        path = Path(path)
        given = {
            "lower_case": lower_case,
            "strip_accents": strip_accents,
            "compat_py3": compat_py3,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if path.is_dir():
            model_bytes, config = _read_folder(path)
        else:
            kind = _kinds()["wordpiece" if path.suffix.lower() == ".txt" else "unigram"]
            model_bytes = _read(path)
            config = kind.config_of_file(model_bytes, path, given)
        kind = _kinds()[config.kind]
        try:
            return kind(model_bytes, kind.with_settings(config, given))
        except InputError as error:
            raise InputError(f"{error} Received: {path}.") from error

    def save(self, folder) -> None:
        """Writes vocabulary and configuration into a folder, made if it does not exist."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._write_files(Path(folder))

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without [CLS] and [SEP]."""
        raise NotImplementedError

    def encode_batch(self, texts, num_threads: int = 1) -> list[np.ndarray]:
        """Returns the ids of many texts; faster than one by one.

        Args:
            texts: iterable of str.
            num_threads: int. For SentencePiece; the ids do not depend on it.

        Returns:
            list of int32 arrays, one per text.
        """
        raise NotImplementedError

    def encode_sentences(self, texts) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of many sentences; the fastest way.

        Args:
            texts: iterable of str.

        Returns:
            int32 array [T], all ids end to end; int64 array [N], how many each text has.
        """
        return self._encode_sentences(texts)

    def pieces(self, text: str) -> list[str]:
        """Returns the pieces of a text; an unknown one as it stands in the text."""
        raise NotImplementedError

    def continuation_ids(self, text: str) -> list[int]:
        """Returns the ids of text that goes on right after a symbol, with no space before it."""
        raise NotImplementedError

    def decode(self, ids) -> str:
        """Returns the text of ids (any sequence of int); control symbols vanish."""
        raise NotImplementedError

    def id_of(self, piece: str) -> int:
        """Returns the id of a piece, `unk_id` if there is no such piece."""
        raise NotImplementedError

    def piece_of(self, id: int) -> str:
        """Returns the piece of an id."""
        return self._pieces[id]

    def shown(self, id: int) -> tuple[bool, str]:
        """Tells how the piece of an id stands in a text.

        Args:
            id: int.

        Returns:
            bool, whether there is a space before it; str, the piece without marks of the
            vocabulary, `▁` or `##`.
        """
        raise NotImplementedError

    def word_starts(self, rule: str = "unicode") -> np.ndarray:
        """Tells for every piece whether it starts a word.

        Args:
            rule: str. Of SentencePiece vocabularies; those of WordPiece mark what goes on with a
                word, under both rules. "unicode": pieces of letters continue a word in every
                script, except Chinese and Japanese, where each piece is a word. "reference": the
                original's, where only pieces of a-z continue, so that other scripts have no words.

        Returns:
            bool array [V]. The same under both rules for pieces of plain English.

        Source:
            `_is_start_piece_sp` and `_is_start_piece_bert` in google-research/albert,
            `create_pretraining_data.py`. The unicode rule is ours; see google-research/albert#161.
        """
        raise NotImplementedError


def _kinds():
    """Returns the class of each kind of vocabulary, by the name that stands in the folder."""
    from data_pipeline.tokenizers.unigram_tokenizer import (
        UnigramTokenizer,  # which derives from the above
    )
    from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

    return {"unigram": UnigramTokenizer, "wordpiece": WordPieceTokenizer}


def _read_folder(path):
    """Returns the vocabulary file of a folder and the configuration, which has to describe it."""
    content = _read(path / CONFIG_FILE)
    try:
        values = json.loads(content)
        name = str(values.get("kind", "unigram")) if isinstance(values, dict) else "unigram"
        if name not in _kinds():
            raise InputError(f"`kind` should be one of {sorted(_kinds())}. Received: {name!r}.")
        kind = _kinds()[name]
        config = kind.config_class.model_validate_json(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path / CONFIG_FILE} should describe a tokenizer. {error}") from error
    file = path / kind.file_name
    model_bytes = _read(file)
    if hashlib.sha256(model_bytes).hexdigest() != config.sha256:
        raise InputError(
            f"`{file.name}` should be the file that {CONFIG_FILE} describes, but its "
            f"sha256 is another. Received: {path}. Copy or train the folder anew."
        )
    vocab_size = kind.size_of_file(model_bytes, file)
    if vocab_size != config.vocab_size:
        raise InputError(
            f"`vocab_size` in {path / CONFIG_FILE} should be {vocab_size}, the number of "
            f"pieces of the model. Received: {config.vocab_size}."
        )
    return model_bytes, config


def _read(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"A tokenizer should be a folder with {CONFIG_FILE}, a SentencePiece model or a "
            f"vocab.txt of WordPiece. Received: {path} ({error.strerror})."
        ) from error
