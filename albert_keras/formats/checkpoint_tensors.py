"""Reads the tensors of TensorFlow checkpoints without a model, by the names of the reference."""

import re
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from albert_keras.runs.tensors import UNREADABLE
from data_pipeline.errors import InputError

_HUB = "module/"  # the prefix of all names in TensorFlow Hub's first format
#: A normalization that a Keras layer has named, in modified copies of the reference.
_ALIAS = re.compile(r"(.*)/layer_normalization(?:_(\d+))?/(beta|gamma)")
_BLOCK = re.compile(r"bert/encoder/transformer/group_\d+/inner_group_\d+")
#: Scopes with one normalization; a block has two.
_SINGLE = {"bert/embeddings", "cls/predictions/transform", "end_logits"}
_MOMENTS = re.compile(r".*/(adam|lamb)_[mv]")
#: Other training state: the step, and the slots of TensorFlow's own optimizers.
_TRAINING = re.compile(r"global_step|training/.*|beta[12]_power|.*/(Adam|Adam_1|Momentum)")


class CheckpointTensors:
    """Tensors of a TensorFlow checkpoint, by the names of the reference.

    The `module/` of TensorFlow Hub is left out, and normalizations that Keras has named get the
    reference's names.

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
        aliases = without_aliases(
            (name for name in self._stored if not is_training_state(name)), prefix
        )
        renamed = {theirs: ours for ours, theirs in aliases.items()}
        self._stored = {renamed.get(name, name): at for name, at in self._stored.items()}
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


def without_aliases(names: Iterable[str], source: str) -> dict[str, str]:
    """Maps the reference's name to the name in `source`, for normalizations that Keras has named.

    `layer_normalization`, `layer_normalization_1` and so on are numbered in the order in which the
    layers were created: within a block attention's comes first, then the feed-forward part's.
    InputError if it is ambiguous which is which.
    """
    matches = {name: _ALIAS.fullmatch(name) for name in names}
    found = {name: name for name, match in matches.items() if match is None}
    aliases = {name: match for name, match in matches.items() if match}
    numbers = {}
    for match in aliases.values():
        numbers.setdefault(match[1], set()).add(int(match[2] or 0))
    problems = []
    for scope, of_scope in numbers.items():
        expected = 1 if scope in _SINGLE else 2 if _BLOCK.fullmatch(scope) else 0
        if len(of_scope) != expected:
            problems.append(f"{scope}: {len(of_scope)} layer_normalization, expected {expected}")
        if any(name.startswith(f"{scope}/LayerNorm") for name in found):
            problems.append(f"{scope}: both LayerNorm and layer_normalization")
    if problems:
        listing = "\n  ".join(problems)
        raise InputError(
            f"`{source}` has normalizations named by Keras, and it is ambiguous which is which. In "
            "the reference, all depths of a group share one block with two normalizations; a copy "
            f"with its own normalizations at each depth is another model:\n  {listing}"
        )
    for name, match in aliases.items():
        is_second = sorted(numbers[match[1]]).index(int(match[2] or 0))
        found[f"{match[1]}/LayerNorm{'_1' if is_second else ''}/{match[3]}"] = name
    return found
