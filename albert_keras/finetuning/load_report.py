"""Encoder weights go from a source into a model: all of them or none, and it is told which.

The reference leaves a weight random if its name is not in the checkpoint, and says nothing; many
reports of chance results come from there.
"""

import hashlib
import json
import re
import zipfile
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.finetuning import AlbertForTask
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.training.tensors import weight_names
from data_pipeline.errors import InputError

#: What a `.keras` file may hold.
_MODELS = (AlbertEncoder, AlbertForPretraining, AlbertForTask)
_ENCODER = "bert/"
_HUB = "module/"  # what TensorFlow Hub puts before all names
_MOMENTS = re.compile(r".*/(adam|lamb)_[mv]")
#: What people call tensors that a fine-tuned model leaves behind, by how their names begin.
_GROUPS = {
    "cls/predictions/": "masked-LM head",
    "cls/seq_relationship/": "sentence-order head",
    "cls/squad/": "span head",
    "start_logits/": "span head",
    "end_logits/": "span head",
    "answer_class/": "span head",
    "output_": "task head",
    "global_step": "training state",
    "training/": "training state",
    "": "other tensors",
}


@dataclass(frozen=True)
class LoadReport:
    """Which weights of a model came from where.

    Attributes:
        source: str or None. Where they came from; None if all of them are random.
        loaded, new: dict of str to int. Weights of the model that were loaded and those that have
            their initial values: how many numbers each has, by name.
        left: dict of str to tuple of str. Tensors of the source that were not used, by what they
            are ("masked-LM head").
    """

    source: str | None
    loaded: dict[str, int]
    new: dict[str, int]
    left: dict[str, tuple[str, ...]]

    def lines(self):
        """Says it in words (list of str)."""
        if self.source is None:
            count, numbers = len(self.new), sum(self.new.values())
            return [f"from nothing: all {count} weights are random ({numbers:,} numbers)"]
        encoder = [self.loaded[name] for name in self.loaded if _is_encoder(name)]
        head = {name: size for name, size in self.loaded.items() if not _is_encoder(name)}
        lines = [
            f"from {self.source}: {len(encoder)} encoder weights ({sum(encoder):,} numbers)"
            + (f" and {_listing(head)}" if head else "")
        ]
        lines += [f"new: {_listing(self.new)}"] if self.new else []
        return lines + ([f"left: {', '.join(self.left)}"] if self.left else [])


class CheckpointTensors:
    """Tensors of a TensorFlow checkpoint.

    Args:
        prefix: str. As TensorFlow's checkpoint readers take it.

    Attributes:
        shapes: dict of str to list of int. By name, without the `module/` of TensorFlow Hub.
        types: dict of str to tf.DType.

    Raises:
        InputError: If it cannot be read, or two tensors have one name without `module/`.
    """

    def __init__(self, prefix):
        self._prefix = prefix
        try:
            self._reader = tf.train.load_checkpoint(prefix)
            shapes = self._reader.get_variable_to_shape_map()
            types = self._reader.get_variable_to_dtype_map()
        except (tf.errors.OpError, ValueError) as error:
            raise InputError(f"`{prefix}` should be a TensorFlow checkpoint: {error}") from error
        self._stored = {name.removeprefix(_HUB): name for name in shapes}
        twice = [name for name in self._stored if {name, _HUB + name} <= shapes.keys()]
        if twice:
            raise InputError(f"`{prefix}` holds tensors with and without {_HUB}: {twice}.")
        self.shapes = {name: shapes[stored] for name, stored in self._stored.items()}
        self.types = {name: types[stored] for name, stored in self._stored.items()}

    def read(self, name):
        """Reads a tensor: array; InputError if its bytes are not what was saved."""
        try:
            return self._reader.get_tensor(self._stored[name])
        except (tf.errors.OpError, ValueError) as error:
            raise InputError(f"`{self._prefix}`: {name} cannot be read: {error}") from error


class ModelTensors:
    """Weights of a model in memory, in the place of a checkpoint's tensors.

    Args:
        model: keras.Model. One of ours.
    """

    def __init__(self, model):
        self._weights = weight_names(model)
        self.shapes = {name: list(weight.shape) for name, weight in self._weights.items()}
        self.types = {name: weight.dtype.base_dtype for name, weight in self._weights.items()}

    def read(self, name):
        """Reads a weight: array."""
        return self._weights[name].numpy()


def shape_in_keras_file(path):
    """Reads the shape of the model in a `.keras` file (AlbertConfig), without loading it.

    Keras imports whatever module such a file names, safe mode or not; so it gets to see no other
    class than one of ours.

    Raises:
        InputError: If it cannot be read, or holds any other model.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            content = json.loads(archive.read("config.json"))
        content.pop("compile_config", None)  # not loaded
        name, shape = content["class_name"], content["config"].get("config")
        model = keras.saving.get_registered_object(content["registered_name"])
        num_classes = json.dumps(content).count('"class_name"')
    except (zipfile.BadZipFile, OSError, ValueError, LookupError, TypeError, AttributeError) as e:
        raise InputError(f"`{path}` should be a `.keras` model. Received: {e!r}.") from e
    ours = isinstance(model, type) and issubclass(model, _MODELS) and model.__name__ == name
    if not ours or num_classes != 1 or not isinstance(shape, dict):
        raise InputError(f"`{path}` should hold a model of albert_keras. It holds another: {name}.")
    return AlbertConfig.from_dict(shape)


def open_keras_file(path):
    """Loads the weights of a `.keras` file: ModelTensors.

    Raises:
        InputError: As `shape_in_keras_file`; or if weights are missing.
    """
    shape_in_keras_file(path)
    try:
        return ModelTensors(keras.models.load_model(path, compile=False, safe_mode=True))
    except (ValueError, TypeError, KeyError, OSError, tf.errors.OpError) as error:
        raise InputError(f"`{path}` cannot be loaded: {error}") from error


def encoder_names(tensors):
    """Lists the encoder's weights in a source, sorted; the moments of an optimizer are none."""
    return sorted(filter(_is_encoder, tensors.shapes))


def encoder_digest(tensors):
    """Hashes names, shapes and float32 values of the encoder's weights: SHA-256, in hexadecimal.

    The digest does not depend on the kind of file they are in, nor on what else is there.

    Args:
        tensors: CheckpointTensors or ModelTensors.

    Raises:
        InputError: If one of them does not hold floats, or cannot be read.
    """
    digest = hashlib.sha256()
    for name in encoder_names(tensors):
        if not tensors.types[name].is_floating:
            raise InputError(f"{name} should hold floats. Received: {tensors.types[name].name}.")
        digest.update(f"{name} {tensors.shapes[name]}\n".encode())
        digest.update(np.ascontiguousarray(_read_floats(tensors, name)))
    return digest.hexdigest()


def load_encoder(tensors, model, source, with_head=False):
    """Assigns the encoder's weights of a source to those of a model, all or none.

    Args:
        tensors: CheckpointTensors or ModelTensors.
        model: keras.Model. Its encoder's weights begin with "bert/".
        source: str. What the user calls it.
        with_head: bool. Whether the source was trained for the same task. Its head is then loaded
            too, as long as all of its weights are there in the model's shapes.

    Returns:
        LoadReport.

    Raises:
        InputError: With all of the encoder's tensors that are missing, are there besides, have
            another shape, no floats, or numbers that are not finite. No weight is changed then.
    """
    weights = weight_names(model)
    encoder = {name: weight for name, weight in weights.items() if _is_encoder(name)}
    head = {name: weight for name, weight in weights.items() if not _is_encoder(name)}
    misfits = _misfits(tensors, encoder) + [
        f"{name}: nothing wanted, {tensors.shapes[name]} found"
        for name in encoder_names(tensors)
        if name not in encoder
    ]
    if misfits:
        listing = "\n  ".join(misfits)
        raise InputError(
            f"The encoder of `{source}` is not the one that its albert_config describes:\n"
            f"  {listing}"
        )
    takes_head = with_head and not _misfits(tensors, head)
    chosen = weights if takes_head else encoder
    values = {name: _read_floats(tensors, name) for name in chosen}
    finite = {name: np.isfinite(value) for name, value in values.items()}
    broken = [
        f"{name}: {np.sum(~is_finite):,} of {is_finite.size:,}"
        for name, is_finite in finite.items()
        if not is_finite.all()
    ]
    if broken:
        listing = "\n  ".join(broken)
        raise InputError(f"`{source}` holds numbers that are not finite:\n  {listing}")
    for name, weight in chosen.items():
        weight.assign(values[name])
    return LoadReport(
        source,
        loaded={name: values[name].size for name in chosen},
        new={} if takes_head else _sizes(head),
        left=_grouped(name for name in sorted(tensors.shapes) if name not in chosen),
    )


def report_random(model):
    """Reports that nothing was loaded into a model: LoadReport."""
    return LoadReport(None, loaded={}, new=_sizes(weight_names(model)), left={})


def _misfits(tensors, weights):
    """Says what keeps weights (dict of name -> variable) from being loaded: list of str."""
    misfits = []
    for name, weight in weights.items():
        if list(weight.shape) != tensors.shapes.get(name):
            found = tensors.shapes.get(name, "nothing")
            misfits.append(f"{name}: {list(weight.shape)} wanted, {found} found")
        elif not tensors.types[name].is_floating:
            misfits.append(f"{name}: floats wanted, {tensors.types[name].name} found")
    return misfits


def _read_floats(tensors, name):
    with np.errstate(over="ignore"):  # infinity then, which is noticed
        return tensors.read(name).astype("<f4")


def _is_encoder(name):
    return name.startswith(_ENCODER) and not _MOMENTS.fullmatch(name)


def _sizes(weights):
    return {name: weight.shape.num_elements() for name, weight in weights.items()}


def _grouped(names):
    groups = {group: [] for group in (*_GROUPS.values(), "optimizer moments")}
    for name in names:
        matches = (group for start, group in _GROUPS.items() if name.startswith(start))
        groups["optimizer moments" if _MOMENTS.fullmatch(name) else next(matches)].append(name)
    return {group: tuple(members) for group, members in groups.items() if members}


def _listing(weights):
    return f"{', '.join(weights)} ({sum(weights.values()):,} numbers)"
