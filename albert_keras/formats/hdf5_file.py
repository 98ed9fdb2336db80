"""Opens HDF5 files of others, the only place: KerasNLP presets and `.keras` files contain them.

An HDF5 file may name other files whose bytes then appear as arrays (external storage, virtual
datasets, links), and a few bytes may describe arrays of any size (fill values, compression).
"""

import contextlib
import io
import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.limits import check_memory, check_regular_file

_MAX_OBJECTS, _MAX_DEPTH = 50_000, 32
#: An array may have several names, for Keras 2 and for Keras 3, and is read under each of them.
_MAX_GROWTH = 4


@contextlib.contextmanager
def open_hdf5(path: str | Path, content: bytes | None = None) -> Iterator[dict[str, h5py.Dataset]]:
    """Yields the arrays of a file of weights, by name, after all of them have been checked.

    Attributes, where a whole model's file stores what to run, are not read. `content` are the bytes
    of the file if it is in an archive; `path` is then only its name in messages.

    Raises:
        InputError: If it is not an HDF5 file, is damaged, or contains anything but groups and plain
            arrays of its own: arrays of numbers with a byte in the file for each of their bytes,
            or compressed by gzip; also for errors of HDF5 within the block.
    """
    if content is None:
        check_regular_file(path)
    try:
        with h5py.File(path if content is None else io.BytesIO(content), "r") as file:
            datasets = dict(_datasets(file, path))
            size = os.path.getsize(path) if content is None else len(content)
            for name, dataset in datasets.items():
                _check_plain(name, dataset, size, path)
            total = sum(dataset.nbytes for dataset in datasets.values())
            if total > _MAX_GROWTH * size:
                raise InputError(
                    f"The arrays in `{path}` must have at most {_MAX_GROWTH} times the size of the "
                    f"file. Received: {total:,} bytes."
                )
            check_memory(total, f"The arrays in `{path}`")
            yield datasets
    except InputError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
        raise InputError(f"`{path}` is not a readable HDF5 file: {error}") from error


def _datasets(file, path):
    """Yields (name, dataset); the number of objects and their depth are bounded against cycles."""
    waiting, seen = [("", file, 0)], 0
    while waiting:
        prefix, group, depth = waiting.pop()
        for key in group:
            name = f"{prefix}{key}"
            seen += 1
            if seen > _MAX_OBJECTS or depth > _MAX_DEPTH:
                raise InputError(f"`{path}` is not a file of weights: it has too many groups.")
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                raise InputError(
                    f"{name} in `{path}` must be an array, not a link to another place."
                )
            item = group[key]
            if isinstance(item, h5py.Group):
                waiting.append((f"{name}/", item, depth + 1))
            elif isinstance(item, h5py.Dataset):
                yield name, item
            else:
                raise InputError(f"{name} in `{path}` must be an array or a group.")


def _check_plain(name, dataset, file_size, path):
    """Checks that the bytes of an array are in the file, as they are or compressed by gzip."""
    is_own = dataset.dtype.kind in "fiu" and dataset.external is None and not dataset.is_virtual
    is_plain = is_own and (
        dataset.id.get_storage_size() == dataset.nbytes <= file_size
        if dataset.chunks is None
        else _unpacks_to_its_size(dataset, file_size)
    )
    if not is_plain:
        raise InputError(
            f"{name} in `{path}` must be a plain array of numbers as written by Keras: stored in "
            "this file, not in another one, either complete and uncompressed or compressed by gzip."
        )


def _unpacks_to_its_size(dataset, file_size):
    """Returns whether all chunks of a compressed array are there and unpack to their own size.

    Exports store float16 weights like this. HDF5 itself would unpack a chunk to any size.
    """
    plan, array = dataset.id.get_create_plist(), dataset.id
    filters = {plan.get_filter(number)[0] for number in range(plan.get_nfilters())}
    expected = math.prod(map(math.ceil, np.divide(dataset.shape, dataset.chunks)))
    if (
        filters != {h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE}
        or dataset.nbytes > _MAX_GROWTH * file_size
        or array.get_num_chunks() != expected
    ):
        return False
    size = math.prod(dataset.chunks) * dataset.dtype.itemsize
    if size > _MAX_GROWTH * file_size:
        return False
    for number in range(expected):
        skipped, content = array.read_direct_chunk(array.get_chunk_info(number).chunk_offset)
        if skipped:  # a filter that was not applied to this chunk
            return False
        try:
            stream = zlib.decompressobj()
            if len(stream.decompress(content, size)) != size:
                return False
            if stream.decompress(stream.unconsumed_tail, 1):  # it unpacks to more
                return False
        except zlib.error:
            return False
    return True
