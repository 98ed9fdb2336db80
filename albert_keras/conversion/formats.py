"""The formats by name, and which of them a path contains."""

import importlib
import inspect
from pathlib import Path
from types import ModuleType

from albert_keras.formats.foreign_formats import FOREIGN_FORMATS
from albert_keras.formats.foreign_hint import missing_part
from albert_keras.formats.model_weights import ModelWeights
from data_pipeline.errors import InputError, Mistake

#: Name -> module with `is_source`, `read` and `write`, and how to recognize it.
FORMATS = {
    "albert-keras": (
        "albert_keras.conversion.own",
        "a run, a checkpoint of one, an export, a `.keras` file, a folder with conversion.json",
    ),
    **FOREIGN_FORMATS,
}
#: Checked before the others, because its folders also contain files with the others' names.
_FIRST = "albert-keras"


def load_format(name: str) -> ModuleType:
    """Returns the module of a format; InputError if there is no such format."""
    if name not in FORMATS:
        names = ", ".join(FORMATS)
        raise InputError(f"The format must be one of {names}. Received: {name}.")
    return importlib.import_module(FORMATS[name][0])


def detect_format(path: str | Path) -> str:
    """Returns the format of a path, from the names of its files and small JSON files.

    InputError if it is none of them, or several.
    """
    path = Path(path)
    if not path.exists() and not path.with_name(f"{path.name}.index").is_file():
        raise InputError(f"The model `{path}` does not exist, as a file, folder or checkpoint.")
    if load_format(_FIRST).is_source(path):
        return _FIRST
    found = [name for name in FORMATS if name != _FIRST and load_format(name).is_source(path)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            f"`{path}` matches several formats: {', '.join(found)}. Choose one with --from."
        )
    raise InputError(
        f"The format of `{path}` is unknown (unpack an archive first). It must be one of: "
        f"{', '.join(FORMATS)}. If it is one of these, choose it with --from.{missing_part(path)}",
        Mistake.UNKNOWN_FORMAT,
    )


def read_format(name, path, trust_pickle=False, config: str | Path | None = None) -> ModelWeights:
    """Reads a model from a format.

    `trust_pickle` is whether pickled files may be read; they can run any program. `config` is the
    `albert_config.json` of weights without one.

    Raises:
        InputError: If it cannot be read, or `config` is given for a format that has its own.
    """
    read = load_format(name).read
    if config is None:
        return read(path, trust_pickle=trust_pickle)
    if "config" not in inspect.signature(read).parameters:
        raise InputError(f"`--config` cannot be used with {name}, which has its own configuration.")
    return read(path, trust_pickle=trust_pickle, config=config)
