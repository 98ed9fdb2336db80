"""The tokenizer of a model, or one that a user names, wherever it is. No TensorFlow."""

from pathlib import Path

from albert_keras.formats.detection import Place, find
from albert_keras.formats.sentence_transformers import encoder_folder
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import MAX_VOCABULARY_BYTES, read_limited
from data_pipeline.tokenizers.byte_bpe import PIECES_FILE
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import CONFIG_FILE, TOKENIZER_FOLDER

#: Google's releases have `30k-clean.model`, `vocab_chinese.txt` and `vocab.txt`.
_VOCABULARIES = ("*.model", "vocab*.txt")
#: Where a preset of KerasNLP has its SentencePiece model.
KERAS_NLP_FILE = "assets/tokenizer/vocabulary.spm"
#: Files that belong to a vocabulary and are none.
_BESIDE = (CONFIG_FILE, "added_tokens.json")
#: All files that may be a vocabulary or belong to one.
_FILES = (*_VOCABULARIES, "*.spm", PIECES_FILE, *_BESIDE)


def load_tokenizer(path: str | Path | Tokenizer) -> Tokenizer:
    """Loads a tokenizer, or the tokenizer of a model.

    Args:
        path: str or Path. A tokenizer: a folder of ours, or one with the files of another format;
            or one file, `*.model`, `*.spm`, `tokenizer.json`, `vocab.txt`. Or a model, as for
            `open_weights`. A Tokenizer is returned as it is.

    Raises:
        InputError: If there is no tokenizer, it is damaged, or it cannot be expressed.

    Example:
        load_tokenizer("albert-mini-en").encode("The ship sailed.")
    """
    if isinstance(path, Tokenizer):
        return path
    folder = find_model(path)
    place = find(folder)
    tokenizer = _at(folder) if place is None else stored_tokenizer(place)
    if tokenizer is None:
        raise InputError(f"`{path}` has no tokenizer.", Mistake.NO_TOKENIZER)
    return tokenizer


def stored_tokenizer(place: Place) -> Tokenizer | None:
    """Reads the tokenizer that is stored with the weights of a place; None if there is none.

    Weights are not read, and TensorFlow is only needed for a vocabulary inside a `.keras` file.
    InputError as `load_tokenizer`.
    """
    if place.format == "hugging-face":
        files = _read_files(encoder_folder(place.path))
        return _of_others(files, place.path, is_theirs=True) if files else None
    if place.format == "keras-nlp":
        path = place.path / KERAS_NLP_FILE
        return _at(path) if path.is_file() else None
    for folder in place.folders:
        if (folder / TOKENIZER_FOLDER).is_dir():
            return Tokenizer.load(folder / TOKENIZER_FOLDER)
        paths = sorted(path for pattern in _VOCABULARIES for path in folder.glob(pattern))
        if len(paths) > 1:
            listing = ", ".join(path.name for path in paths)
            raise InputError(
                f"`{folder}` contains several tokenizers. Give one of them: {listing}."
            )
        if paths:
            return Tokenizer.load(paths[0])
    if place.kind == "keras":
        from albert_keras.formats.keras_file import KerasFile

        return KerasFile(place.path).tokenizer()
    return None


def _at(path):
    """Reads the tokenizer that a user names."""
    if path.suffix == ".json" and path.is_file():
        return _of_others({path.name: read_limited(path, MAX_VOCABULARY_BYTES)}, path)
    files = _read_files(path)
    return Tokenizer.load(path) if files.keys() <= set(_BESIDE) else _of_others(files, path)


def _of_others(files, path, is_theirs=False):
    from albert_keras.formats.foreign_vocabulary import tokenizer_of  # not for models of ours

    return tokenizer_of(files, path, is_theirs)


def _read_files(folder):
    """Returns the files of a folder that belong to a vocabulary: dict of name -> content."""
    paths = (path for pattern in _FILES for path in folder.glob(pattern) if path.is_file())
    return {path.name: read_limited(path, MAX_VOCABULARY_BYTES) for path in paths}
