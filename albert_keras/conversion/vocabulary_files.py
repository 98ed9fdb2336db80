"""The files of a vocabulary, from one format into another.

SentencePiece models travel byte for byte. A `tokenizer.json` alone is turned into the file that it
was made from.
"""

import json
import tempfile
from pathlib import Path
from typing import NamedTuple

from albert_keras.conversion.tokenizer_json import read_tokenizer_json
from albert_keras.conversion.vocabulary_identity import (
    VocabularyIdentity,
    identify,
    identify_pieces,
)
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import CONFIG_FILE

_JSON, _WORD_PIECES = "tokenizer.json", "vocab.txt"
_MODELS = (".model", ".spm")


class Vocabulary(NamedTuple):
    """A vocabulary and the clean-up that belongs to it.

    Attributes:
        tokenizer: Tokenizer. Of SentencePiece or of word pieces.
        source: str. Where it was read.
        identity: VocabularyIdentity.
        notes: tuple of str. What is done otherwise here, for people.
    """

    tokenizer: Tokenizer
    source: str
    identity: VocabularyIdentity
    notes: tuple[str, ...] = ()


def read_vocabulary(path) -> Vocabulary:
    """Reads the vocabulary that a user names.

    Args:
        path: str or Path. Our folder of a tokenizer, or one with the files of another format; or
            one of them: `*.model`, `*.spm`, `tokenizer.json`, `vocab.txt`.

    Raises:
        InputError: If there is nothing of the kind, or it cannot be expressed.
    """
    path = Path(path)
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.is_file()]
        return vocabulary_of({file.name: file.read_bytes() for file in files}, path)
    try:
        return vocabulary_of({path.name: path.read_bytes()}, path)
    except OSError as error:
        raise InputError(
            f"A vocabulary should be a folder or a file. Received: {path} ({error.strerror})."
        ) from error


def vocabulary_of(files, source) -> Vocabulary | None:
    """Finds the vocabulary among the files that came along with weights.

    Args:
        files: dict of file name -> bytes.
        source: str or Path. What the user calls it.

    Returns:
        Vocabulary; None if there are no files.

    Raises:
        InputError: If there are several, none among the files, or it is damaged.
    """
    if not files:
        return None
    models = sorted(name for name in files if name.endswith(_MODELS))
    if len({files[name] for name in models}) > 1:
        listing = ", ".join(models)
        raise InputError(f"`{source}` holds several vocabularies. Give one: {listing}.")
    if CONFIG_FILE in files and "sha256" in _json(files[CONFIG_FILE], CONFIG_FILE):
        return _loaded(files, None, source, {})
    settings = _settings(files)
    if models:
        return _loaded(files, models[0], f"{source}: {models[0]}", settings)
    lists = sorted(name for name in files if name.startswith("vocab") and name.endswith(".txt"))
    if lists:
        return _loaded(files, lists[0], f"{source}: {lists[0]}", settings)
    jsons = [name for name in files if name.endswith(".json") and name != CONFIG_FILE]
    if len(jsons) == 1:
        read = read_tokenizer_json(files[jsons[0]], jsons[0])
        settings = {"lower_case": read.lower_case, "strip_accents": read.strip_accents}
        files = {read.file_name: read.content}
        found = _loaded(files, read.file_name, f"{source}: {jsons[0]}", settings)
        return found._replace(notes=read.notes)
    raise InputError(
        f"`{source}` should hold a vocabulary: a SentencePiece model (*.model), {_WORD_PIECES} or "
        f"{_JSON}. It holds: {', '.join(sorted(files))}."
    )


def check_size(vocabulary, config):
    """Raises InputError if a vocabulary has another number of pieces than the model."""
    size = vocabulary.tokenizer.vocab_size
    if size != config.vocab_size:
        raise InputError(
            f"The vocabulary in `{vocabulary.source}` should have {config.vocab_size:,} pieces, "
            f"`vocab_size` of the model. Received: {size:,}."
        )


def is_sentence_piece(tokenizer):
    """Tells whether a tokenizer is one of SentencePiece (bool), not of word pieces."""
    return tokenizer.config.kind == "unigram"


def _loaded(files, name, source, settings):
    """Loads a tokenizer from the contents of files; `name` is None for a folder of ours."""
    with tempfile.TemporaryDirectory() as folder:
        for file_name, content in files.items():
            if name in (None, file_name):
                Path(folder, Path(file_name).name).write_bytes(content)
        try:
            tokenizer = Tokenizer.load(Path(folder, name or ""), **settings)
        except InputError as error:
            raise InputError(str(error).replace(folder, str(source))) from error
    if is_sentence_piece(tokenizer):
        identity = identify(tokenizer.model_bytes)
    else:
        pieces = [tokenizer.piece_of(id) for id in range(tokenizer.vocab_size)]
        identity = identify_pieces(pieces)
    return Vocabulary(tokenizer, str(source), identity)


def _settings(files):
    """Reads the clean-up from Hugging Face's `tokenizer_config.json`, if there is one: dict."""
    config = _json(files[CONFIG_FILE], CONFIG_FILE) if CONFIG_FILE in files else {}
    settings = {"lower_case": config.get("do_lower_case")}
    if config.get("keep_accents") is not None:
        settings["strip_accents"] = not config["keep_accents"]
    elif config.get("strip_accents") is not None:
        settings["strip_accents"] = config["strip_accents"]
    return {name: value for name, value in settings.items() if isinstance(value, bool)}


def _json(content, name):
    try:
        return dict(json.loads(content))
    except (ValueError, TypeError) as error:
        raise InputError(f"`{name}` should hold a JSON object. Received: {error}.") from error
