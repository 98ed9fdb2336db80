"""Vocabularies as other programs store them, read into tokenizers of ours.

SentencePiece models are read byte for byte. A `tokenizer.json` is converted into the file that it
was made from.
"""

from typing import Any

from albert_keras.formats.tokenizer_check import (
    check_class,
    check_ids,
    check_settings,
    check_side,
)
from albert_keras.formats.tokenizer_json import USUAL_LONGEST, read_tokenizer_json
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json
from data_pipeline.tokenizers.byte_bpe import PIECES_FILE, read_bpe, write_bpe
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import CONFIG_FILE

_MODELS = (".model", ".spm")
_ADDED = "added_tokens.json"
PREFIX = "add_prefix_space"


def tokenizer_of(files: dict[str, bytes], source: object, is_theirs: bool = False) -> Tokenizer:
    """Reads the vocabulary among the files that are stored beside weights, or named by a user.

    Args:
        files: Name -> content. One file of a user may have any name.
        source: Where they are, for messages.
        is_theirs: Whether transformers reads them even if they are a `vocab.txt` alone.

    Raises:
        InputError: If there are several vocabularies or none among the files, it is damaged, or its
            program does what ours cannot.
    """
    alone = next(iter(files)) if len(files) == 1 else ""
    if alone.endswith(".json") and alone != CONFIG_FILE:  # a user may call it anything
        files = {PIECES_FILE: files[alone]}
    settings = _object(files, CONFIG_FILE, source)
    if "sha256" in settings:  # a tokenizer folder of ours
        return Tokenizer.of_bytes(files, source=str(source))
    models = sorted(name for name in files if name.endswith(_MODELS))
    lists = sorted(n for n in files if n.startswith("vocab") and n.endswith(".txt"))
    if len({files[name] for name in models}) > 1:
        raise InputError(
            f"`{source}` contains several vocabularies. Pass one: {', '.join(models)}."
        )
    if PIECES_FILE in files and not models:
        tokenizer = _of_json(files[PIECES_FILE], settings, source)
    elif models or lists:
        name = (models or lists)[0]
        # Their programs lower-case text unless their settings say otherwise.
        normalization = _normalization({"do_lower_case": True} | settings) if settings else {}
        if not models:
            check_settings(settings, source)
        tokenizer = Tokenizer.of_bytes(
            {name: files[name]}, **normalization, source=f"{source}: {name}"
        )
        check_class(settings.get("tokenizer_class"), tokenizer.config.kind, source)
        if lists and not models and (settings or is_theirs):
            tokenizer = _with_limits(tokenizer, USUAL_LONGEST)
    else:
        raise InputError(
            f"`{source}` does not contain a vocabulary: a SentencePiece model (*.model), vocab.txt "
            f"or tokenizer.json. It contains: {', '.join(sorted(files))}. Of vocab.json and "
            "merges.txt, `save_pretrained` of a fast tokenizer in transformers makes one."
        )
    pieces = _object(files, PIECES_FILE, source)
    check_side(settings, pieces, source)
    _check_added(tokenizer, pieces, files, settings, source)
    if PIECES_FILE in files and not models:
        check_ids(tokenizer, files[PIECES_FILE], source)
    return tokenizer


def _of_json(content, settings, source):
    """Reads a `tokenizer.json`, which says by itself how text is split."""
    if _model_type(content) == "BPE":
        pieces = read_bpe(content)
        theirs, ours = settings.get(PREFIX), {PREFIX: pieces.add_prefix_space}
        theirs = {} if theirs is None else {PREFIX: bool(theirs)}
        tokenizer = Tokenizer.of_bytes({PIECES_FILE: _written(pieces, source)}, source=str(source))
    else:
        found = read_tokenizer_json(content)
        ours = {"lower_case": found.lower_case, "strip_accents": found.strip_accents}
        theirs = {}
        tokenizer = Tokenizer.of_bytes(
            {found.file_name: found.content}, **ours, source=f"{source}: {PIECES_FILE}"
        )
        if tokenizer.config.kind == "wordpiece":
            check_settings(settings, source)
            theirs = _normalization(settings)
            tokenizer = _with_limits(tokenizer, found.max_word_characters)
    for name, value in theirs.items():
        if value != ours[name]:
            raise InputError(
                f"tokenizer.json and tokenizer_config.json of `{source}` must agree. Received: "
                f"`{name}` {ours[name]!r} in the first, {value!r} in the second. Load the "
                "tokenizer in transformers, and save it with `save_pretrained`."
            )
    return tokenizer


def _model_type(content):
    """Returns the type of the model in a `tokenizer.json`; None if it is damaged."""
    try:
        return parse_json(content)["model"]["type"]
    except (LookupError, ValueError, TypeError):
        return None


def _written(pieces, source):
    try:
        return write_bpe(pieces)
    except UnicodeError as error:
        raise InputError(f"The pieces of `{source}` must be text: {error}.") from error


def _with_limits(tokenizer, longest):
    """Returns a tokenizer of word pieces with the limits of the library tokenizers."""
    limits = {"program": "tokenizers", "max_word_characters": longest}
    return Tokenizer(tokenizer.model_bytes, tokenizer.config.replace(**limits))


def _check_added(tokenizer, pieces, files, settings, source):
    """Raises InputError if tokens were added to a vocabulary.

    They are in `added_tokens.json`, `tokenizer.json` or `tokenizer_config.json`.
    """
    try:
        tokens = pieces.get("added_tokens") or ()
        ids = {str(token["content"]): int(token["id"]) for token in tokens}
        decoder = settings.get("added_tokens_decoder") or {}
        ids |= {str(token["content"]): int(id) for id, token in decoder.items()}
        ids |= {piece: int(id) for piece, id in _object(files, _ADDED, source).items()}
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise InputError(f"The added tokens of `{source}` are damaged: {error!r}.") from error
    size = tokenizer.vocab_size
    added = [
        token for token, id in ids.items() if not 0 <= id < size or tokenizer.piece_of(id) != token
    ]
    if added:
        raise InputError(
            f"The vocabulary of `{source}` must have no added tokens. Received: "
            f"{', '.join(added)}. In transformers, `resize_token_embeddings({size})` drops their "
            "rows; save the model and its vocabulary without them."
        )


def _object(files, name, source) -> dict[str, Any]:
    """Returns the object in a JSON file; an empty one if there is no such file."""
    try:
        return dict(parse_json(files.get(name, b"{}")))
    except (ValueError, TypeError) as error:
        raise InputError(f"`{name}` of `{source}` must contain a JSON object: {error}.") from error


def _normalization(settings):
    """Returns the settings of Hugging Face's `tokenizer_config.json` as `Tokenizer.load` does."""
    strip_accents = settings.get("strip_accents")
    if settings.get("keep_accents") is not None:
        strip_accents = not settings["keep_accents"]
    values = {"lower_case": settings.get("do_lower_case"), "strip_accents": strip_accents}
    return {name: value for name, value in values.items() if isinstance(value, bool)}
