"""TensorFlow checkpoints: finding them, and reading their tensors without a model."""

import re
from pathlib import Path

import numpy as np
import tensorflow as tf

from albert_keras.runs.tensors import UNREADABLE
from data_pipeline.errors import InputError

_CHECKPOINT_FILE = re.compile(r"(.+)\.(index|meta|data-\d{5}-of-\d{5})")
_HUB = "module/"  # the prefix of all names in TensorFlow Hub's first format
_MOMENTS = re.compile(r".*/(adam|lamb)_[mv]")
#: Other training state: the step, and the slots of TensorFlow's own optimizers.
_TRAINING = re.compile(r"global_step|training/.*|beta[12]_power|.*/(Adam|Adam_1|Momentum)")


def find_prefixes(path: str | Path) -> list[str]:
    """Finds the prefixes of checkpoints, sorted; empty if there is none.

    `path` is a prefix, one of a checkpoint's files, or a folder of checkpoints.
    """
    path = Path(path)
    if path.is_dir():
        return sorted(str(file).removesuffix(".index") for file in path.glob("*.index"))
    match = _CHECKPOINT_FILE.fullmatch(str(path))
    prefixes = [str(path), *([match[1]] if match else [])]
    return [prefix for prefix in prefixes if Path(f"{prefix}.index").is_file()]


def find_checkpoint(path, config: str | Path | None, config_name: str) -> tuple[str, Path]:
    """Finds the prefix of a checkpoint and the file with the configuration of its model.

    `path` is as for `find_prefixes`, with one checkpoint. If the user does not name the
    configuration (`config`), it is `config_name` in the checkpoint's folder or its parent.

    Raises:
        InputError: If there is no checkpoint, more than one, or no configuration.
    """
    prefixes = find_prefixes(path)
    if len(prefixes) > 1:
        raise InputError(
            f"`{path}` contains several checkpoints. Choose one of them: {', '.join(prefixes)}."
        )
    if not prefixes:
        raise InputError(
            f"`{path}` is not a TensorFlow checkpoint. Pass its prefix, its `.index` file, or a "
            "folder that contains one checkpoint."
        )
    config = config or find_beside(prefixes[0], config_name)
    if config is None:
        raise InputError(
            f"The shape of the model in `{path}` is unknown: there is no `{config_name}` in its "
            "folder or above. Name the file with `config`."
        )
    return prefixes[0], Path(config)


def find_beside(prefix: str, name: str) -> Path | None:
    """Finds a file in a checkpoint's folder or its parent."""
    folder = Path(prefix).absolute().parent
    paths = (folder / name, folder.parent / name)
    return next((path for path in paths if path.is_file()), None)


class CheckpointTensors:
    """Tensors of a TensorFlow checkpoint, by name without the `module/` of TensorFlow Hub.

    `shapes` is a dict of name to list of int, `types` of name to tf.DType. InputError if the
    checkpoint cannot be read, or two tensors have the same name without `module/`.
    """

    def __init__(self, prefix):
        self._prefix = prefix
        try:
            self._reader = tf.train.load_checkpoint(prefix)
            shapes = self._reader.get_variable_to_shape_map()
            types = self._reader.get_variable_to_dtype_map()
        except UNREADABLE as error:
            raise InputError(f"`{prefix}` is not a readable checkpoint: {error}") from error
        self._stored = {name.removeprefix(_HUB): name for name in shapes}
        twice = [name for name in self._stored if {name, _HUB + name} <= shapes.keys()]
        if twice:
            raise InputError(f"`{prefix}` contains tensors with and without {_HUB}: {twice}.")
        self.shapes = {name: shapes[stored] for name, stored in self._stored.items()}
        self.types = {name: types[stored] for name, stored in self._stored.items()}

    def read(self, name: str) -> np.ndarray:
        """Reads a tensor; InputError if its bytes are damaged."""
        try:
            return self._reader.get_tensor(self._stored[name])
        except UNREADABLE as error:
            raise InputError(f"`{self._prefix}`: {name} cannot be read: {error}") from error


def is_moment(name: str) -> bool:
    """Returns whether a name belongs to an optimizer's moment of a weight."""
    return _MOMENTS.fullmatch(name) is not None


def is_training_state(name: str) -> bool:
    """Returns whether a tensor is needed for training only: moments, the step."""
    return is_moment(name) or _TRAINING.fullmatch(name) is not None
