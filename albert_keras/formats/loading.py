"""How weights are loaded into a model: all or none, with a report.

The reference silently leaves a weight random if its name is not in the checkpoint, which is the
cause of many reports of chance results.
"""

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import keras
import numpy as np

from albert_keras.formats.tensor_table import Row, is_float, read_by_table
from albert_keras.runs.tensors import is_moment, weight_names
from albert_keras.shape import heads_of
from data_pipeline.errors import InputError

_ENCODER = "bert/"
#: The part of the encoder that only some models with the same configuration may have.
_POOLER = "bert/pooler/"

#: How the weights of a head end that have a row for each label.
_PER_LABEL = ("output_weights", "output_bias")


class ArrayTensors:
    """Arrays with the interface of `CheckpointTensors`."""

    def __init__(self, tensors: dict[str, np.ndarray]):
        self._tensors = tensors
        self.shapes = {name: list(array.shape) for name, array in tensors.items()}

    @classmethod
    def of_model(cls, model: keras.Model) -> "ArrayTensors":
        """Returns the weights of a model."""
        return cls({name: weight.numpy() for name, weight in weight_names(model).items()})

    def read(self, name: str) -> np.ndarray:
        """Returns a tensor."""
        return np.asarray(self._tensors[name])


def encoder_names(tensors) -> list[str]:
    """Lists the encoder's weights in a source, sorted, without the moments of an optimizer."""
    return sorted(filter(is_encoder, tensors.shapes))


def encoder_digest(tensors, heads: tuple[str, ...] = ()) -> str:
    """Hashes names, shapes and float32 values of the encoder's weights: SHA-256, in hexadecimal.

    The weights of `heads`, prefixes as in `load_encoder`, are included. The digest depends neither
    on the kind of file nor on other tensors in it. Raises InputError if one of the weights is not
    of floats, or cannot be read.
    """
    digest = hashlib.sha256()
    further = sorted(name for name in tensors.shapes if name.startswith(heads)) if heads else []
    names = encoder_names(tensors)
    for name in names + [name for name in further if not is_moment(name) and name not in names]:
        array = tensors.read(name)
        if not is_float(array):
            raise InputError(f"{name} must contain floats. Received: {array.dtype.name}.")
        digest.update(f"{name} {tensors.shapes[name]}\n".encode())
        with np.errstate(over="ignore"):  # values beyond the range become infinite
            digest.update(np.ascontiguousarray(array.astype("<f4")))
    return digest.hexdigest()


def is_encoder(name: str) -> bool:
    """Returns whether a name belongs to a weight of the encoder, not to one of its moments."""
    return name.startswith(_ENCODER) and not is_moment(name)


@dataclass(frozen=True)
class LoadReport:
    """Where the weights of a model came from."""

    source: str | None  # what was loaded; None if all weights are random
    loaded: dict[str, int]  # number of values of each loaded weight of the model
    new: dict[str, int]  # number of values of each weight that keeps its initial values
    unused: tuple[str, ...]  #: Heads of the source that were not used, see `HEADS` in `shape.py`.
    #: Labels whose part of the head was loaded, and those whose part is new; () if not by label.
    kept_labels: tuple[str, ...] = ()
    new_labels: tuple[str, ...] = ()

    def lines(self):
        """Returns the report as text (list of str)."""
        if self.source is None:
            return [f"all {len(self.new)} weights are random ({sum(self.new.values()):,} values)"]
        encoder = [size for name, size in self.loaded.items() if is_encoder(name)]
        head = {name: size for name, size in self.loaded.items() if not is_encoder(name)}
        lines = [
            f"loaded from {self.source}: {len(encoder)} encoder weights ({sum(encoder):,} values)"
            + (f" and {_listing(head)}" if head else "")
        ]
        lines += [f"newly initialized: {_listing(self.new)}"] if self.new else []
        if self.new_labels:
            names = ", ".join(f"`{label}`" for label in self.new_labels)
            lines.append(f"the head knows {len(self.kept_labels)} of the labels, new are: {names}")
        return lines + ([f"heads not used: {', '.join(self.unused)}"] if self.unused else [])


def load_encoder(
    tensors,
    model,
    source: str,
    with_head: bool = False,
    heads: Iterable[str] = (),
    labels: Sequence[str] = (),
) -> LoadReport:
    """Assigns the encoder's weights of a source to a model, all or none.

    Args:
        tensors: CheckpointTensors or ArrayTensors.
        model: keras.Model. The names of its encoder's weights start with "bert/".
        source: Name of the source in messages.
        with_head: Whether the source was trained for the same kind of task. Its head is then
            loaded, too, provided that all weights of it exist in the model's shapes.
        heads: Prefixes of further parts, such as "cls/predictions/". Each is loaded, all of it or
            none, if the source has any of its tensors.
        labels: Of the head of the source. Where the model has other labels, those of the same name
            keep their part of the head, and the others begin as they are.

    Raises:
        InputError: With all tensors of the encoder, and of `heads`, that are missing or
            superfluous, have another shape, are not floats, or contain values that are not finite.
            No weight is changed then.
    """
    weights = weight_names(model)
    names = [name for name in tensors.shapes if not is_moment(name)]
    optional = () if model.config.pooler == "always" else (_POOLER,)
    parts = tuple(
        head
        for head in (*heads, *optional)
        if all(any(name.startswith(head) for name in each) for each in (weights, names))
    )

    def is_part(name):
        is_required = is_encoder(name) and not name.startswith(optional)
        return is_required or (name.startswith(parts) and not is_moment(name))

    chosen = {name: weight for name, weight in weights.items() if is_part(name)}
    own_labels = tuple(getattr(model, "labels", ()))
    kept = [label for label in own_labels if label in labels]
    is_same = tuple(labels) == own_labels
    by_label = () if is_same else _PER_LABEL

    def fits(name, weight):
        first = 1 if name.endswith(by_label) else 0  # the number of labels may differ
        return list(weight.shape)[first:] == tensors.shapes.get(name, [None])[first:]

    if with_head and (kept or is_same) and all(itertools.starmap(fits, weights.items())):
        chosen = weights
    else:
        by_label = ()
    shapes = {name: tuple(weight.shape) for name, weight in chosen.items()}
    used = [name for name in tensors.shapes if name in chosen or is_part(name)]
    theirs = {name: tensors.read(name) for name in used}
    for name in theirs:
        if name.endswith(by_label):
            rows = weights[name].numpy()
            for label in kept:
                rows[own_labels.index(label)] = theirs[name][labels.index(label)]
            theirs[name] = rows
    values = read_by_table([Row(name, name) for name in shapes], theirs, shapes, source)
    for name, weight in chosen.items():
        weight.assign(values[name])
    return LoadReport(
        source,
        loaded={name: values[name].size for name in chosen},
        new=_sizes({name: weight for name, weight in weights.items() if name not in chosen}),
        unused=heads_of([name for name in names if name not in chosen]),
        kept_labels=tuple(kept) if by_label else (),
        new_labels=tuple(label for label in own_labels if by_label and label not in kept),
    )


def report_random(model):
    """Returns the LoadReport of a model into which nothing was loaded."""
    return LoadReport(None, loaded={}, new=_sizes(weight_names(model)), unused=())


def _sizes(weights):
    return {name: weight.shape.num_elements() for name, weight in weights.items()}


def _listing(weights):
    return f"{', '.join(weights)} ({sum(weights.values()):,} values)"
