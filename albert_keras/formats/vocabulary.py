"""The files of a vocabulary, from one format into another.

SentencePiece models are copied byte for byte. A `tokenizer.json` alone is converted into the file
that it was made from. Byte-level BPE is vocab.json with merges.txt, or tokenizer.json.
"""

import json
from pathlib import Path
from typing import NamedTuple

from albert_keras.formats.detection import CONFIG, Place, find, read_conversion_record
from albert_keras.formats.sentence_transformers import encoder_folder, needs_small
from albert_keras.formats.tokenizer_check import (
    check_class,
    check_ids,
    check_settings,
    check_side,
    lower_cases,
    overrides,
)
from albert_keras.formats.tokenizer_json import (
    USUAL_LONGEST,
    added_tokens,
    append_pieces,
    read_tokenizer_json,
)
from albert_keras.formats.tokenizer_json_writing import special_tokens, template, tokenizer_json
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import MAX_VOCABULARY_BYTES, parse_json, read_json, read_limited
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.byte_bpe import (
    PIECES_FILE,
    SPECIAL_PIECES,
    BytePieces,
    read_bpe,
    write_bpe,
)
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import CONFIG_FILE
from data_pipeline.tokenizers.wordpiece import read_pieces

_MODELS = (".model", ".spm")
#: Google's releases have `30k-clean.model`, `vocab_chinese.txt` and `vocab.txt`.
_VOCABULARIES = ("*.model", "vocab*.txt")
PIECES, MERGES = "vocab.json", "merges.txt"
_ADDED, _SPECIAL = "added_tokens.json", "special_tokens_map.json"
#: Where a preset of KerasNLP has its SentencePiece model.
KERAS_NLP_FILE = "assets/tokenizer/vocabulary.spm"
#: Files beside a vocabulary, and all files that may be one or belong to one.
_BESIDE = (CONFIG_FILE, MERGES, _SPECIAL, _ADDED)
_FILES = (*_VOCABULARIES, "*.spm", PIECES, PIECES_FILE, *_BESIDE)
_PREFIX = "add_prefix_space"
#: Names of RoBERTa's special tokens, under the keys of transformers.
_KEYS = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
_NAMES = dict(zip(_KEYS, SPECIAL_PIECES, strict=True))


class Vocabulary(NamedTuple):
    """A vocabulary with its text normalization."""

    tokenizer: Tokenizer
    source: str  #: Where it was read.
    notes: tuple[str, ...] = ()  #: Differences from the code it comes from, for people.


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Loads a tokenizer, or the tokenizer of a model.

    Args:
        path: str or Path. A tokenizer, see `read_vocabulary`; or a model, as for `open_weights`.

    Raises:
        InputError: If there is no tokenizer, or it is damaged.

    Example:
        load_tokenizer("albert-mini-en").encode("The ship sailed.")
    """
    return vocabulary_at(path).tokenizer


def vocabulary_at(path: str | Path) -> Vocabulary:
    """Returns the vocabulary that `load_tokenizer` loads."""
    folder = find_model(path)
    place = find(folder)
    if place is None:
        return read_vocabulary(folder)
    vocabulary = stored_vocabulary(place)
    if vocabulary is None:
        raise InputError(f"`{path}` has no tokenizer.", Mistake.NO_TOKENIZER)
    return vocabulary


def stored_vocabulary(place: Place) -> Vocabulary | None:
    """Reads the vocabulary that is stored with the weights of a place; None if there is none.

    Weights are not read, and TensorFlow is only needed for a vocabulary inside a `.keras` file.
    InputError as `read_vocabulary`, or if it is not the one that `conversion.json` describes.
    """
    vocabulary = _stored_vocabulary(place)
    record = read_conversion_record(place.path).get("vocabulary") or {}
    if vocabulary is not None:
        check_digest(str(place), vocabulary, record.get("written_digest"))
    return vocabulary


def check_digest(name: str, vocabulary: Vocabulary, digest: str | None) -> None:
    """Raises InputError unless the tokenizer of a model has a digest, if that is known."""
    if digest not in (None, vocabulary.tokenizer.digest):
        source = f" ({vocabulary.source})" if vocabulary.source else ""
        raise InputError(
            f"The digest of the tokenizer for `{name}` must be {digest}, as in its "
            f"training or conversion. Received: {vocabulary.tokenizer.digest}{source}."
        )


def _stored_vocabulary(place):
    if place.format == "hugging-face":
        folder = encoder_folder(place.path)
        files, usual = _read_files(folder), read_json(folder / CONFIG).get("tokenizer_class")
        vocabulary = vocabulary_of(files, place.path, usual or "None") if files else None
        if vocabulary and not vocabulary.tokenizer.config.lower_case and needs_small(place.path):
            raise InputError(
                f"`do_lower_case` of sentence-transformers in `{place.path}` must be false for a "
                "vocabulary with capitals. Received: true. Set it to false, and write texts in "
                "small letters."
            )
        return vocabulary
    if place.format == "keras-nlp":
        path = place.path / KERAS_NLP_FILE
        return read_vocabulary(path) if path.is_file() else None
    vocabulary = vocabulary_beside(*place.folders)
    if vocabulary is None and place.kind == "keras":
        from albert_keras.formats.keras_file import KerasFile

        tokenizer = KerasFile(place.path).tokenizer()
        return None if tokenizer is None else Vocabulary(tokenizer, str(place.path))
    return vocabulary


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
    if files.keys() <= set(_BESIDE):
        return Vocabulary(Tokenizer.load(path), str(path))
    return vocabulary_of(files, path)


def _read_files(folder):
    """Returns the files of a folder that belong to a vocabulary: dict of name -> content."""
    paths = (path for pattern in _FILES for path in folder.glob(pattern) if path.is_file())
    return {path.name: read_limited(path, MAX_VOCABULARY_BYTES) for path in paths}


def vocabulary_beside(*folders: Path) -> Vocabulary | None:
    """Reads the vocabulary in the nearest of the folders that has one, or in its `tokenizer/`.

    InputError if a folder has several, or as `read_vocabulary`.
    """
    for folder in folders:
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
    return None


def vocabulary_of(
    files: dict[str, bytes],
    source: str | Path,
    usual_class: str | None = None,
) -> Vocabulary:
    """Finds the vocabulary among files stored beside weights.

    `usual_class` is the class of transformers that reads it if `tokenizer_config.json` has none;
    "None" if there is none, and None if it may be another program.

    Raises:
        InputError: If there are several vocabularies, none among the files, or it is damaged.
    """
    source = str(source)
    models = sorted(name for name in files if name.endswith(_MODELS))
    if len({files[name] for name in models}) > 1:
        listing = ", ".join(models)
        raise InputError(f"`{source}` contains several vocabularies. Pass one: {listing}.")
    theirs = read_json_in(files, CONFIG_FILE, source)
    if "sha256" in theirs:  # a tokenizer folder of ours
        return Vocabulary(Tokenizer.of_bytes(files, source=source), source)
    check_side(theirs, read_json_in(files, PIECES_FILE, source), source)
    # AutoTokenizer reads `tokenizer.json`; a file that a user names may be called anything.
    json_name = PIECES_FILE if PIECES_FILE in files else None
    if len(files) == 1 and next(iter(files)).endswith(".json") and CONFIG_FILE not in files:
        json_name = next(iter(files))
    lists = sorted(name for name in files if name.startswith("vocab") and name.endswith(".txt"))
    origin, longest = source, USUAL_LONGEST
    is_theirs = json_name is not None or bool(theirs) or usual_class is not None
    notes: tuple[str, ...] = ()
    if models:
        # Their program lower-cases text unless its settings say otherwise.
        name, settings = models[0], _normalization(theirs and {"do_lower_case": True} | theirs)
        origin, content = f"{source}: {name}", files[name]
    elif has_byte_bpe(files):
        name, content, settings = PIECES_FILE, read_byte_bpe(files, source), {}
    elif json_name is not None:
        found = read_tokenizer_json(files[json_name], json_name)
        name, content, notes = found.file_name, found.content, found.notes
        longest = found.max_word_characters
        origin, files = f"{source}: {json_name}", {PIECES_FILE: files[json_name]}
        settings = {"lower_case": found.lower_case, "strip_accents": found.strip_accents}
        if name == "vocab.txt" and overrides(theirs):
            settings = _settings_of_bert(theirs, source)
    elif lists:
        name, origin = lists[0], f"{source}: {lists[0]}"
        content, notes = _with_added_pieces(files[name], files, theirs, source)
        files, settings = files | {name: content}, _settings_of_bert(theirs, source)
    else:
        raise InputError(
            f"`{source}` does not contain a vocabulary: a SentencePiece model (*.model), "
            "vocab.txt, tokenizer.json, or vocab.json with merges.txt. It contains: "
            f"{', '.join(sorted(files))}."
        )
    tokenizer = Tokenizer.of_bytes({name: content}, **settings, source=origin)
    vocabulary = Vocabulary(tokenizer, origin, notes)
    if is_theirs and vocabulary.tokenizer.config.kind == "wordpiece":
        config = vocabulary.tokenizer.config.replace(
            program="tokenizers", max_word_characters=longest
        )
        vocabulary = vocabulary._replace(tokenizer=Tokenizer(content, config))
    kind, class_name = vocabulary.tokenizer.config.kind, theirs.get("tokenizer_class", usual_class)
    check_class(class_name, kind, json_name is not None, source)
    if not models:
        check_ids(vocabulary.tokenizer, files, theirs, source)
        return vocabulary
    _check_same_pieces(vocabulary.tokenizer, files, name, source)
    if added := _added_beyond(vocabulary.tokenizer.vocab_size, files, theirs, source):
        raise InputError(
            f"The vocabulary of `{source}` must have no tokens that were added to its "
            f"SentencePiece model. Received: {', '.join(added)}. To use the model without "
            f"them and their rows, pass {name} as `tokenizer`."
        )
    return vocabulary


def _check_same_pieces(tokenizer, files, name, source):
    """Raises InputError if a `tokenizer.json` has other pieces than the model `name` beside it."""
    model = read_json_in(files, PIECES_FILE, source).get("model")
    pieces = model.get("vocab") if isinstance(model, dict) else None
    for id, entry in enumerate(pieces if isinstance(pieces, list) else []):
        theirs = entry[0] if isinstance(entry, list) and entry else entry
        ours = tokenizer.piece_of(id) if id < tokenizer.vocab_size else None
        if theirs != ours:
            raise InputError(
                f"`{source}` must have the same pieces in {PIECES_FILE} and in {name}. The piece "
                f"{id} is {ours!r} in {name}. Received: {theirs!r}. Remove the one that the model "
                "was not trained with."
            )


def _with_added_pieces(vocab, files, settings, source):
    """Appends the tokens that were added to a `vocab.txt`; also returns notes.

    Their rows of the embeddings are kept. In a text they are found only where they are whole words.
    """
    pieces = read_pieces(vocab)
    ids = {piece: id for id, piece in enumerate(pieces)}
    stored = _added_beyond(0, files, settings, source)
    added = {piece: id for piece, id in stored.items() if ids.get(piece) != id}
    return append_pieces(pieces, added, source) if added else (vocab, ())


def _added_beyond(size, files, settings, source):
    """Returns the ids, from `size` on, of tokens that were added to a vocabulary, by token.

    They are in `added_tokens.json`, `tokenizer.json` or `tokenizer_config.json`.
    """
    try:
        decoder = settings.get("added_tokens_decoder") or {}
        tokens = {str(token["content"]): int(id) for id, token in decoder.items()}
        tokens |= added_tokens(read_json_in(files, PIECES_FILE, source))
        stored = read_json_in(files, _ADDED, source)
        tokens |= {piece: int(id) for piece, id in stored.items()}
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise InputError(f"The added tokens of `{source}` are damaged: {error!r}.") from error
    return {token: id for token, id in tokens.items() if id >= size}


def files_for(
    vocabulary: Vocabulary, format_name: str, max_length: int, has_segments: bool = True
) -> dict[str, bytes]:
    """Returns the files of a vocabulary in a format.

    `max_length` is the longest sequence of the model, in tokens; `has_segments` is whether it
    distinguishes the two texts of a pair by segment ids.
    """
    tokenizer, kind = vocabulary.tokenizer, vocabulary.tokenizer.config.kind
    own = tokenizer.files()
    if format_name == "albert-keras":
        return own
    files, is_googles = {}, format_name in ("google", "google-bert")
    if kind == "unigram":
        files["30k-clean.model" if is_googles else "spiece.model"] = tokenizer.model_bytes
    elif kind == "wordpiece":
        name = "vocab_chinese.txt" if format_name == "google" else "vocab.txt"
        files[name] = tokenizer.model_bytes
    elif format_name != "hugging-face":
        raise InputError(
            f"The vocabulary of the format `{format_name}` must be SentencePiece or WordPiece. "
            f"Received: byte-level BPE of `{vocabulary.source}`."
        )
    if kind == "unigram" and is_googles:
        files["30k-clean.vocab"] = own["tokenizer.vocab"]
    if format_name == "hugging-face":
        files |= _files_of_transformers(tokenizer, max_length, has_segments and kind != "bpe")
    return files


def _files_of_transformers(tokenizer, max_length, has_segments):
    """Returns the files with which transformers tokenizes, and joins pairs, as this package does.

    `AutoTokenizer` reads `tokenizer.json`, if there is one.
    """
    config = tokenizer.config
    names = ["input_ids", *(["token_type_ids"] if has_segments else []), "attention_mask"]
    settings = {"model_max_length": max_length, "model_input_names": names}
    if config.kind == "bpe":
        content = read_bpe(tokenizer.model_bytes)
        values = json.loads(write_bpe(content))
        values["post_processor"] = template(tokenizer, has_segments)
        pieces = _text(values)
        settings[_PREFIX] = content.add_prefix_space
        settings["added_tokens_decoder"] = {
            str(token["id"]): {key: value for key, value in token.items() if key != "id"}
            for token in values["added_tokens"]
        }
    else:
        pieces = tokenizer_json(tokenizer)
        kind, accents = "BertTokenizer", {"strip_accents": config.strip_accents}
        if config.kind == "unigram":
            kind, accents = "AlbertTokenizer", {"keep_accents": not config.strip_accents}
        settings |= {"tokenizer_class": kind, "do_lower_case": config.lower_case, **accents}
    if pieces is None:
        return {CONFIG_FILE: _text(settings)}
    # Their classes for ALBERT and RoBERTa build steps of their own instead of reading this file.
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast"} | special_tokens(tokenizer)
    return {PIECES_FILE: pieces, CONFIG_FILE: _text(settings)}


def write_files(folder: str | Path, files: dict[str, bytes]):
    """Writes files into a folder."""
    for name, content in files.items():
        Path(folder, name).write_bytes(content)


def _settings_of_bert(values, source):
    """Returns the same for a `vocab.txt`; settings that cannot be followed are refused."""
    check_settings(values, source)
    return {"lower_case": lower_cases(values)} | _normalization(values) if values else {}


def _normalization(values):
    """Returns the settings of Hugging Face's `tokenizer_config.json` as `Tokenizer.load` does."""
    strip_accents = values.get("strip_accents")
    if values.get("keep_accents") is not None:
        strip_accents = not values["keep_accents"]
    settings = {"lower_case": values.get("do_lower_case"), "strip_accents": strip_accents}
    return {name: value for name, value in settings.items() if isinstance(value, bool)}


def read_json_in(files: dict[str, bytes], name: str, source: object) -> dict:
    """Returns the object in a JSON file; an empty one if there is no such file."""
    try:
        return dict(parse_json(files.get(name, b"{}")))
    except (ValueError, TypeError) as error:
        raise InputError(f"`{name}` of `{source}` must contain a JSON object: {error}.") from error


def has_byte_bpe(files: dict[str, bytes]) -> bool:
    """Returns whether files of a tokenizer are byte-level BPE, from their names and kind."""
    if {PIECES, MERGES} <= files.keys():
        return True
    try:
        return parse_json(files[PIECES_FILE])["model"]["type"] == "BPE"
    except (LookupError, ValueError, TypeError):
        return False


def read_byte_bpe(files: dict[str, bytes], source: object) -> bytes:
    """Returns the `tokenizer.json` of our tokenizer folders for the files of a RoBERTa.

    `tokenizer.json` is read if there is one, else `vocab.json` with `merges.txt`. InputError if it
    is not byte-level BPE, or has other special tokens than RoBERTa, or tokens that were added.
    """
    settings = {name: read_json_in(files, name, source) for name in (CONFIG_FILE, _SPECIAL, _ADDED)}
    for name in (CONFIG_FILE, _SPECIAL):
        for key, wanted in _NAMES.items():
            found = settings[name].get(key, wanted)
            found = found.get("content") if isinstance(found, dict) else found
            if found not in (wanted, None):
                raise InputError(
                    f"`{key}` in {name} of `{source}` must be {wanted}. Received: {found!r}."
                )
    prefix = settings[CONFIG_FILE].get(_PREFIX)
    try:
        if PIECES_FILE in files:
            added = added_tokens(parse_json(files[PIECES_FILE]))
            content = read_bpe(files[PIECES_FILE])
            prefix = content.add_prefix_space if prefix is None else prefix
        else:
            added, content = settings[_ADDED], _joined(files, source)
        ids = {piece: id for id, piece in enumerate(content.pieces)}
        added = {token: id for token, id in added.items() if ids.get(token) != id}
        if added:
            raise InputError(
                f"The tokenizer of `{source}` must have no added tokens except RoBERTa's, because "
                f"byte-level BPE has no whole words. Received: {added!r}. Train the model without "
                "them, or pass another vocabulary as `tokenizer`."
            )
        return write_bpe(content._replace(add_prefix_space=bool(prefix)))
    except InputError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"The pieces of `{source}` must be text, and RoBERTa's special tokens must be among "
            f"them: {error}."
        ) from error


def _text(values):
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()


def _joined(files, source):
    """Returns the content of `vocab.json` and `merges.txt`."""
    ids = read_json_in(files, PIECES, source)
    pieces = sorted(ids, key=ids.__getitem__)
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise ValueError(f"the ids in {PIECES} are not numbered from 0")
    merges = []
    for number, line in enumerate(files[MERGES].decode("utf-8-sig").split("\n"), 1):
        merge = tuple(line.removesuffix("\r").split(" "))
        if merge == ("",) or (number == 1 and line.startswith("#version:")):
            continue
        if len(merge) != 2 or not all(merge):
            raise InputError(
                f"Each line of {MERGES} of `{source}` must be two pieces with a space between "
                f"them. Received in line {number}: {line!r}."
            )
        merges.append(merge)
    return BytePieces(pieces, merges, False, pair_separators=2)
