"""The vocabulary of a model, or one that a user names, wherever it is. No TensorFlow."""

from pathlib import Path
from typing import NamedTuple

from albert_keras.formats.detection import CONFIG, Place, find
from albert_keras.formats.foreign_vocabulary import BESIDE, PIECES, ForeignVocabulary
from albert_keras.formats.sentence_transformers import encoder_folder, needs_small
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import MAX_VOCABULARY_BYTES, read_json, read_limited
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.byte_bpe import PIECES_FILE
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Google's releases have `30k-clean.model`, `vocab_chinese.txt` and `vocab.txt`.
_VOCABULARIES = ("*.model", "vocab*.txt")
#: Where a preset of KerasNLP has its SentencePiece model.
KERAS_NLP_FILE = "assets/tokenizer/vocabulary.spm"
#: All files that may be a vocabulary or belong to one.
_FILES = (*_VOCABULARIES, "*.spm", PIECES, PIECES_FILE, *BESIDE)


class Vocabulary(NamedTuple):
    """A vocabulary with its text normalization."""

    tokenizer: Tokenizer
    source: str  #: Where it was read.
    notes: tuple[str, ...] = ()  #: Differences from the code it comes from, for people.


def load_tokenizer(path: str | Path | Tokenizer) -> Tokenizer:
    """Loads a tokenizer, or the tokenizer of a model.

    Args:
        path: str or Path. A tokenizer, see `read_vocabulary`; or a model, as for `open_weights`. A
            Tokenizer is returned as it is.

    Raises:
        InputError: If there is no tokenizer, or it is damaged.

    Example:
        load_tokenizer("albert-mini-en").encode("The ship sailed.")
    """
    return path if isinstance(path, Tokenizer) else vocabulary_at(path).tokenizer


def vocabulary_at(path: str | Path) -> Vocabulary:
    """Returns the vocabulary that `load_tokenizer` loads."""
    folder = find_model(path)
    place = find(folder)
    vocabulary = read_vocabulary(folder) if place is None else stored_vocabulary(place)
    if vocabulary is None:
        raise InputError(f"`{path}` has no tokenizer.", Mistake.NO_TOKENIZER)
    return vocabulary


def stored_vocabulary(place: Place) -> Vocabulary | None:
    """Reads the vocabulary that is stored with the weights of a place; None if there is none.

    Weights are not read, and TensorFlow is only needed for a vocabulary inside a `.keras` file.
    InputError as `read_vocabulary`.
    """
    if place.format == "hugging-face":
        vocabulary = _of_transformers(place.path)
    elif place.format == "keras-nlp":
        path = place.path / KERAS_NLP_FILE
        vocabulary = read_vocabulary(path) if path.is_file() else None
    else:
        vocabulary = _beside(place)
    return vocabulary


def check_digest(name: str, vocabulary: Vocabulary, digest: str | None) -> None:
    """Raises InputError unless the tokenizer of a model has a digest, if that is known."""
    if digest not in (None, vocabulary.tokenizer.digest):
        source = f" ({vocabulary.source})" if vocabulary.source else ""
        raise InputError(
            f"The digest of the tokenizer for `{name}` must be {digest}, as in its "
            f"training. Received: {vocabulary.tokenizer.digest}{source}."
        )


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Reads the vocabulary that a user names.

    It is a tokenizer folder of ours, or one with the files of another format; or one file:
    `*.model`, `*.spm`, `tokenizer.json`, `vocab.txt`. InputError if it is not a vocabulary, or
    cannot be expressed.
    """
    path = Path(path)
    if path.suffix == ".json" and path.is_file():
        return vocabulary_of({path.name: read_limited(path, MAX_VOCABULARY_BYTES)}, path)
    files = _read_files(path)
    if files.keys() <= set(BESIDE):
        return Vocabulary(Tokenizer.load(path), str(path))
    return vocabulary_of(files, path)


def _read_files(folder):
    """Returns the files of a folder that belong to a vocabulary: dict of name -> content."""
    paths = (path for pattern in _FILES for path in folder.glob(pattern) if path.is_file())
    return {path.name: read_limited(path, MAX_VOCABULARY_BYTES) for path in paths}


def _of_transformers(path):
    """Reads the vocabulary of a folder of Hugging Face or of sentence-transformers."""
    folder = encoder_folder(path)
    files, usual = _read_files(folder), read_json(folder / CONFIG).get("tokenizer_class")
    vocabulary = vocabulary_of(files, path, usual or "None") if files else None
    if vocabulary and not vocabulary.tokenizer.config.lower_case and needs_small(path):
        raise InputError(
            f"`do_lower_case` of sentence-transformers in `{path}` must be false for a vocabulary "
            "with capitals. Received: true. Set it to false, and write texts in small letters."
        )
    return vocabulary


def _beside(place):
    """Reads the vocabulary beside weights with our names, in the nearest folder that has one."""
    for folder in place.folders:
        if (folder / TOKENIZER_FOLDER).is_dir():
            return read_vocabulary(folder / TOKENIZER_FOLDER)
        paths = sorted(path for pattern in _VOCABULARIES for path in folder.glob(pattern))
        if len(paths) > 1:
            listing = ", ".join(path.name for path in paths)
            raise InputError(
                f"`{folder}` contains several tokenizers. Give one of them: {listing}."
            )
        if paths:
            return read_vocabulary(paths[0])
    if place.kind == "keras":
        from albert_keras.formats.keras_file import KerasFile

        tokenizer = KerasFile(place.path).tokenizer()
        return None if tokenizer is None else Vocabulary(tokenizer, str(place.path))
    return None


def vocabulary_of(
    files: dict[str, bytes],
    source: str | Path,
    usual_class: str | None = None,
) -> Vocabulary:
    """Reads the vocabulary among files by name; arguments and errors as of `ForeignVocabulary`."""
    foreign = ForeignVocabulary(files, str(source), usual_class)
    tokenizer = foreign.read()
    return Vocabulary(tokenizer, foreign.origin, foreign.notes)
