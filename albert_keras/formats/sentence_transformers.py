"""Folders of sentence-transformers: how the vector of a text is computed from the encoder."""

import contextlib
from pathlib import Path
from typing import Any

from data_pipeline.errors import InputError
from data_pipeline.limits import reading_json
from data_pipeline.tokenizers.vocabulary_files import CONFIG_FILE

MODULES = "modules.json"
_LENGTHS, _PROMPTS = "sentence_bert_config.json", "config_sentence_transformers.json"
#: Their switch -> our pooling.
_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_cls": "cls",
}
_SUPPORTED = ("Transformer", "Pooling", "Normalize")


def encoder_folder(folder: Path) -> Path:
    """Returns the folder of the encoder: of `modules.json` the first module, or the folder."""
    modules = _modules(folder)
    return folder / modules[0][1] if modules else folder


def embedding_of(folder: Path) -> dict[str, Any]:
    """Returns how vectors are computed: "pooling", "longest_text"; {} if not stored.

    Raises:
        InputError: With the module, the pooling or the prompt that cannot be expressed.
    """
    modules = _modules(folder)
    if not modules:
        return {}
    kinds = [kind for kind, _ in modules]
    unknown = [kind for kind in kinds if kind not in _SUPPORTED]
    if unknown or kinds[:2] != ["Transformer", "Pooling"] or len(set(kinds)) < len(kinds):
        raise InputError(
            f"The modules of `{folder / MODULES}` must be Transformer, Pooling and, optionally, "
            f"Normalize. Received: {', '.join(kinds)}. Vectors would differ from those of "
            "sentence-transformers: to use the encoder alone, copy its config.json, weights and "
            "tokenizer into a folder of their own."
        )
    with _settings(folder / _PROMPTS) as values:
        prompt = (values.get("prompts") or {}).get(values.get("default_prompt_name"))
    if prompt:
        raise InputError(
            f"`default_prompt_name` in `{folder / _PROMPTS}` must be null. Received: the prompt "
            f"{prompt!r}, which sentence-transformers puts before each text. Set it to null, and "
            "begin your texts with it."
        )
    path = folder / modules[0][1] / _LENGTHS
    with _settings(path) as values, _settings(path.with_name(CONFIG_FILE)) as tokenizer:
        if values.get("do_lower_case"):
            raise InputError(
                f"`do_lower_case` in `{path}` must be false. Received: true. Set it to false; a "
                "vocabulary of small letters lower-cases texts itself, for another write them so."
            )
        # Without a limit of its own it takes the one of its tokenizer.
        longest = values.get("max_seq_length") or tokenizer.get("model_max_length")
        longest = None if longest is None else int(longest)
    return {
        "pooling": _pooling(folder / modules[1][1] / "config.json"),
        "longest_text": longest,
    }


def _settings(path):
    """Returns a context with the values in a JSON file, or {} if there is no such file."""
    return reading_json(path) if path.is_file() else contextlib.nullcontext({})


def _modules(folder):
    """Returns the modules in order: the last part of the type, and the folder."""
    if not (folder / MODULES).is_file():
        return []
    with reading_json(folder / MODULES, kind=list) as values:
        modules = [(str(one["type"]).rpartition(".")[2], str(one["path"])) for one in values]
    for _, path in modules:
        if path:
            check_name(path, folder / MODULES)
    return modules


def check_name(name: object, source: str | Path):
    """Raises InputError for the name of a file or folder in `source` that leads out of its own."""
    is_plain = isinstance(name, str) and name not in ("", ".", "..")
    if not is_plain or any(mark in name for mark in "/\\:\0"):
        raise InputError(f"`{source}` must name files of its own folder. Received: {name!r}.")


def _pooling(path):
    with reading_json(path) as values:
        modes = [key for key, value in values.items() if key.startswith("pooling_mode_") and value]
        if "pooling_mode" in values:  # in later versions
            modes = [f"pooling_mode_{values['pooling_mode']}"]
    if len(modes) == 1 and modes[0] in _POOLINGS:
        return _POOLINGS[modes[0]]
    raise InputError(
        f"The pooling of `{path}` must be mean or cls. Received: "
        f"{', '.join(modes) or 'none'}. Another pooling gives other vectors: to use the encoder "
        "alone, copy its config.json, weights and tokenizer into a folder of their own."
    )
