"""The files of a vocabulary, in any of the formats."""

import json
from pathlib import Path

from albert_keras.formats.foreign_vocabulary import PREFIX
from albert_keras.formats.keras_nlp import tokenizer_files
from albert_keras.formats.tokenizer_json_writing import special_tokens, template, tokenizer_json
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.byte_bpe import PIECES_FILE, read_bpe, write_bpe
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import CONFIG_FILE, TOKENIZER_FOLDER

_ALL = ("unigram", "wordpiece", "bpe")
#: Format -> kinds of vocabularies that it stores.
_KINDS = {
    "albert-keras": _ALL,
    "google": _ALL[:2],
    "google-bert": _ALL[:2],
    "hugging-face": _ALL,
    "keras-nlp": _ALL[:1],
}


def files_for(
    tokenizer: Tokenizer, format_name: str, max_length: int, has_segments: bool = True
) -> dict[str, bytes]:
    """Returns the files of a tokenizer in a format, by name.

    `max_length` is the longest sequence of the model, in tokens; `has_segments` is whether it
    distinguishes the two texts of a pair by segment ids. InputError if the format cannot store it.
    """
    kind, own, model = tokenizer.config.kind, tokenizer.files(), tokenizer.model_bytes
    if kind not in _KINDS[format_name]:
        raise InputError(
            f"The vocabulary of the format `{format_name}` must be one of "
            f"{', '.join(_KINDS[format_name])}. Received: {kind}."
        )
    if format_name == "albert-keras":
        return {f"{TOKENIZER_FOLDER}/{name}": content for name, content in own.items()}
    if format_name == "keras-nlp":
        return tokenizer_files(model)
    if format_name == "hugging-face":
        names = {"unigram": "spiece.model", "wordpiece": "vocab.txt"}
        files = {names[kind]: model} if kind in names else {}
        return files | _files_of_transformers(tokenizer, max_length, has_segments and kind != "bpe")
    if kind == "unigram":
        return {"30k-clean.model": model, "30k-clean.vocab": own["tokenizer.vocab"]}
    return {"vocab_chinese.txt" if format_name == "google" else "vocab.txt": model}


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
        settings[PREFIX] = content.add_prefix_space
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


def _text(values):
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()


def write_files(folder: str | Path, files: dict[str, bytes]):
    """Writes files into a folder; their names may contain folders."""
    for name, content in files.items():
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_bytes(content)
