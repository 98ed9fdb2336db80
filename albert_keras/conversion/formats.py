"""The formats by name, and which of them a path holds."""

import importlib
import inspect
from pathlib import Path

from data_pipeline.errors import InputError

#: Name -> module with `is_source`, `read` and `write`, and what marks it.
FORMATS = {
    "albert-keras": (
        "albert_keras.conversion.own",
        "a run, a checkpoint of one, an export, a `.keras` file, a folder with conversion.json",
    ),
    "google": (
        "albert_keras.interop.google_checkpoint",
        "a checkpoint of google-research/albert (`.index`) with albert_config.json",
    ),
    "google-bert": (
        "albert_keras.interop.google_bert",
        "a checkpoint of google-research/bert (`.index`) with bert_config.json",
    ),
    "tf-hub": (
        "albert_keras.interop.hub_module",
        "a module of TensorFlow Hub (saved_model.pb, variables/)",
    ),
    "hugging-face": (
        "albert_keras.interop.hugging_face",
        "config.json with model.safetensors or pytorch_model.bin",
    ),
    "keras-nlp": (
        "albert_keras.interop.keras_nlp_preset",
        "a preset of KerasNLP (config.json, model.weights.h5)",
    ),
    "tf-models": (
        "albert_keras.interop.tf_models",
        "a checkpoint of tensorflow-models (`.index` with names of objects)",
    ),
}
#: The one that goes before others: its folders hold files with the others' names, too.
_FIRST = "albert-keras"


def load_format(name):
    """Returns the module of a format.

    Raises:
        InputError: If there is no such format.
    """
    if name not in FORMATS:
        names = ", ".join(FORMATS)
        raise InputError(f"A format should be one of {names}. Received: {name}.")
    module, _ = FORMATS[name]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise InputError(f"The format {name} is not part of this installation.") from error


def detect_format(path):
    """Tells which format a path holds (str), by the names of its files and small JSON files.

    Raises:
        InputError: If it is none of them, or several.
    """
    if not _exists(Path(path)):
        raise InputError(
            f"`{path}` should be a model. There is no such file, folder or checkpoint."
        )
    if load_format(_FIRST).is_source(path):
        return _FIRST
    found = [name for name in FORMATS if name != _FIRST and _is_source(name, path)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            f"`{path}` could be of several formats: {', '.join(found)}. Say which one with --from."
        )
    listing = "\n  ".join(f"{name}: {marks}" for name, (_, marks) in FORMATS.items())
    raise InputError(
        f"`{path}` is of no known format (of an archive, unpack it first). Looked for:\n  "
        f"{listing}\nIf it is one of them, say so with --from."
    )


def read_format(name, path, trust_pickle=False, config=None):
    """Reads a model from a format: ModelWeights.

    Args:
        name: str. One of `FORMATS`.
        path: str or Path.
        trust_pickle: bool. Whether pickled files may be opened; they can run any program.
        config: str, Path or None. The `albert_config.json` of weights that come without.

    Raises:
        InputError: If it cannot be read, or `config` is given to a format that brings its own.
    """
    read = load_format(name).read
    words = {"trust_pickle": trust_pickle}
    if config is not None:
        if "config" not in inspect.signature(read).parameters:
            raise InputError(f"`--config` should be left out: {name} tells the shape by itself.")
        words["config"] = config
    return read(path, **words)


def _exists(path):
    return path.exists() or path.with_name(f"{path.name}.index").is_file()


def _is_source(name, path):
    try:
        return load_format(name).is_source(path)
    except InputError as error:
        if str(error).endswith("not part of this installation."):
            return False
        raise
