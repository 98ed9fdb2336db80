"""Keras' files of weights (`.weights.h5`): the numbers in them by name, and nothing else.

Attributes, where a whole model's file keeps what to run, are never looked at. Keras writes plain
arrays; whatever would make HDF5 open other files or expand data is refused.
"""

import os
import re

import h5py
import numpy as np

from data_pipeline.errors import InputError

_MOST_OBJECTS, _MOST_DEPTH = 50_000, 16
#: Keras 3 calls a part of its attention "query_dense", Keras 2 "_query_dense".
_ATTENTION = re.compile(r"(?<=/_self_attention_layer/)_?((?:query|key|value|output)_dense)(?=/)")


def read_arrays(path):
    """Reads all arrays of a file.

    Args:
        path: str or Path.

    Returns:
        dict of name -> array. Attention's parts are called as Keras 2 does; what has both names is
        there once.

    Raises:
        InputError: If it is no HDF5 file, is damaged, or holds anything but groups and plain arrays
            of its own; or if one array has two values.
    """
    arrays = {}
    try:
        with h5py.File(path, "r") as file:
            for name, dataset in _datasets(file, path):
                array = _read(name, dataset, path)
                name = _ATTENTION.sub(r"_\1", name)
                if name in arrays and not np.array_equal(arrays[name], array):
                    raise InputError(f"{name} in `{path}` has two values, one for Keras 2 and 3.")
                arrays[name] = array
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"`{path}` should be a readable HDF5 file: {error}") from error
    return arrays


def write_arrays(path, arrays):
    """Writes arrays such that Keras 2 and Keras 3 find them.

    Args:
        path: str or Path.
        arrays: dict of name -> array. Named as `read_arrays` does.
    """
    with h5py.File(path, "w") as file:
        file.create_group("vars")
        for name, array in arrays.items():
            file[name] = array
            other = _ATTENTION.sub(r"\1", name)
            if other != name:
                file[other] = file[name]  # a second name of the same bytes
            for layer in _layers(name) + _layers(other):
                file.require_group(f"{layer}/vars")  # Keras wants it in layers without weights, too


def _layers(name):
    """Returns the names of the layers an array is in, from the outermost to its own."""
    parts = name.partition("/vars/")[0].split("/")
    return ["/".join(parts[: i + 1]) for i, part in enumerate(parts) if part != "layers"]


def _datasets(file, path):
    """Yields (name, dataset); the number of objects and their depth are bounded against cycles."""
    waiting, seen = [("", file, 0)], 0
    while waiting:
        prefix, group, depth = waiting.pop()
        for key in group:
            name = f"{prefix}{key}"
            seen += 1
            if seen > _MOST_OBJECTS or depth > _MOST_DEPTH:
                raise InputError(f"`{path}` should be a file of weights: it holds too many groups.")
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                raise InputError(f"{name} in `{path}` should be an array, not a link elsewhere.")
            item = group[key]
            if isinstance(item, h5py.Group):
                waiting.append((f"{name}/", item, depth + 1))
            elif isinstance(item, h5py.Dataset):
                yield name, item
            else:
                raise InputError(f"{name} in `{path}` should be an array or a group.")


def _read(name, dataset, path):
    """Reads an array that lies in the file as it is, with a byte for each of its bytes."""
    is_plain = (
        dataset.dtype.kind in "fiu"
        and dataset.chunks is None
        and dataset.external is None
        and not dataset.is_virtual
        and dataset.id.get_storage_size() == dataset.nbytes <= os.path.getsize(path)
    )
    if not is_plain:
        raise InputError(
            f"{name} in `{path}` should be a plain array, as Keras writes them: of numbers, "
            "not compressed and not kept in another file."
        )
    return dataset[()]
