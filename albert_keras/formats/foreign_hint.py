"""What an error adds where a command was given a model of another program.

This module imports no TensorFlow: mistakes are reported at once.
"""

import shlex
from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.limits import read_json

#: Patterns of files; a folder of a foreign format contains at least one such file.
_MARKS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "model.weights.h5",
    "*.index",
)
_PICKLE, _CONFIG = "pytorch_model.bin", "config.json"
#: Files that only our runs and exports have.
_OURS = ("run.json", "results.json", "export.json", "*/export.json", "seed-*/run.json")


def convert_command(path: str | Path, options: str = "") -> str:
    """Returns the command that converts a foreign model into our format."""
    path = Path(path)
    has_pickle = (path / _PICKLE).is_file()
    needs_trust = has_pickle and not any(path.glob("model.safetensors*"))
    trust = " --trust-pickle" if needs_trust else ""
    target = f"models/{path.absolute().name}"
    return f"albert-keras convert {shlex.quote(str(path))} {shlex.quote(target)}{trust}{options}"


def is_ours(path: str | Path) -> bool:
    """Returns whether a folder is a run, a fine-tuning or an export, complete or damaged."""
    return any(any(Path(path).glob(mark)) for mark in _OURS)


def foreign_hint(path: str | Path) -> str:
    """Returns a sentence with the command that converts a foreign model, after a space.

    It is empty if the path does not look like the folder or the prefix of one.
    """
    path = Path(path)
    looks_foreign = any(any(path.glob(mark)) for mark in _MARKS) and not is_ours(path)
    if not looks_foreign and not path.with_name(f"{path.name}.index").is_file():
        return ""
    return (
        f" It contains a model in another format. Convert it first with `{convert_command(path)}`."
    )


def missing_part(path: str | Path) -> str:
    """Returns a sentence about what a folder of Hugging Face lacks, after a space; or nothing.

    A configuration that cannot be read is missing, too.
    """
    path = Path(path)
    weights = sorted(file.name for mark in _MARKS[:4] for file in path.glob(mark))
    has_config = (path / _CONFIG).exists()
    try:
        if has_config:
            read_json(path / _CONFIG)
    except InputError as error:
        return f" {error}"
    if weights and not has_config:
        return (
            f" It has {weights[0]} but no config.json, which describes the shape of the model. "
            "Copy the file from the source of the weights."
        )
    if has_config and not weights and not (path / "model.weights.h5").is_file():
        return " It has config.json but no weights: model.safetensors or pytorch_model.bin."
    return ""
