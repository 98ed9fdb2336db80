"""Byte-level BPE in the files of transformers: vocab.json with merges.txt, or tokenizer.json."""

import json

from albert_keras.formats.tokenizer_json_writing import special_tokens, template
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json
from data_pipeline.tokenizers.byte_bpe import (
    PIECES_FILE,
    BytePieces,
    read_bpe,
    write_bpe,
)
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import CONFIG_FILE

PIECES, MERGES = "vocab.json", "merges.txt"
_ADDED, _SPECIAL = "added_tokens.json", "special_tokens_map.json"
_PREFIX = "add_prefix_space"
#: Names of RoBERTa's special tokens, under the keys of transformers.
_NAMES = {
    "cls_token": "<s>",
    "sep_token": "</s>",
    "mask_token": "<mask>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
}


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
    if PIECES_FILE in files:
        added = _added(read_json_in(files, PIECES_FILE, source), source)
        content = read_bpe(files[PIECES_FILE])
        prefix = content.add_prefix_space if prefix is None else prefix
    else:
        added = settings[_ADDED]
        content = read_bpe(_joined(files, bool(prefix), source))
    ids = {piece: id for id, piece in enumerate(content.pieces)}
    added = {token: id for token, id in added.items() if ids.get(token) != id}
    if added:
        raise InputError(
            f"The tokenizer of `{source}` must have no added tokens except RoBERTa's, because "
            f"byte-level BPE has no whole words. Received: {added!r}. Train the model without "
            "them, or pass another vocabulary with --tokenizer."
        )
    return _written(content._replace(add_prefix_space=bool(prefix)), source)


def byte_bpe_files(tokenizer: Tokenizer, max_length: int) -> dict[str, bytes]:
    """Returns the files with which transformers tokenizes as a tokenizer of byte-level BPE does.

    `AutoTokenizer` reads `tokenizer.json`, and also joins pairs as this package does.
    """
    content = read_bpe(tokenizer.model_bytes)
    values = json.loads(write_bpe(content))
    values["post_processor"] = template(tokenizer, has_segments=False)
    settings = {
        # Their class for RoBERTa builds a step of its own for pairs instead of reading this one.
        "tokenizer_class": "PreTrainedTokenizerFast",
        _PREFIX: content.add_prefix_space,
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        **special_tokens(tokenizer),
        "added_tokens_decoder": {
            str(token["id"]): {key: value for key, value in token.items() if key != "id"}
            for token in values["added_tokens"]
        },
    }
    return {PIECES_FILE: _text(values), CONFIG_FILE: _text(settings)}


def _added(values, source):
    """Returns the ids of the added tokens of a `tokenizer.json`, by token."""
    try:
        return {str(token["content"]): token["id"] for token in values.get("added_tokens") or ()}
    except (LookupError, TypeError) as error:
        raise InputError(f"`added_tokens` of `{source}` cannot be read: {error!r}.") from error


def _text(values):
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()


def _joined(files, prefix, source):
    """Returns the content of `tokenizer.json` for `vocab.json` and `merges.txt`."""
    ids = read_json_in(files, PIECES, source)
    try:
        pieces = sorted(ids, key=ids.__getitem__)
        if [ids[piece] for piece in pieces] != list(range(len(pieces))):
            raise ValueError(f"the ids in {PIECES} are not numbered from 0")
        lines = files[MERGES].decode().split("\n")
    except (ValueError, TypeError) as error:
        raise InputError(f"The vocabulary of `{source}` cannot be read: {error}.") from error
    first = 1 if lines[0].startswith("#version:") else 0
    merges = [tuple(line.split(" ")) for line in lines[first:] if line]
    return _written(BytePieces(pieces, merges, prefix, pair_separators=2), source)


def _written(content, source):
    """Returns the content of a `tokenizer.json`; pieces of half a character are an InputError."""
    try:
        return write_bpe(content)
    except ValueError as error:
        raise InputError(
            f"The pieces of `{source}` must be text, and RoBERTa's special tokens must be among "
            f"them: {error}."
        ) from error
