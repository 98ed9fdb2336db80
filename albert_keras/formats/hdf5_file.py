"""Opens HDF5 files of others, the only place: KerasNLP presets and `.keras` files contain them.

An HDF5 file may name other files whose bytes then appear as arrays (external storage, virtual
datasets, links), and a few bytes may describe arrays of any size (fill values, compression).
"""

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import h5py

from data_pipeline.errors import InputError
from data_pipeline.limits import check_memory, check_regular_file

#: An array may have several names, for Keras 2 and for Keras 3, and is read under each of them;
#: exports store weights of 16 bits compressed.
_MAX_GROWTH = 4


@contextlib.contextmanager
def open_hdf5(path: str | Path, content: bytes | None = None) -> Iterator[dict[str, h5py.Dataset]]:
    """Yields the arrays of a file of weights, by name, after all of them have been checked.

    Attributes, where a whole model's file stores what to run, are not read. `content` are the bytes
    of the file if it is in an archive; `path` is then only its name in messages.

    Raises:
        InputError: If it is not an HDF5 file, is damaged, or contains anything but groups and plain
            arrays of its own; also for errors of HDF5 within the block.
    """
    if content is None:
        check_regular_file(path)
    try:
        with h5py.File(path if content is None else io.BytesIO(content), "r") as file:
            arrays = _arrays(file, path)
            size = os.path.getsize(path) if content is None else len(content)
            total = sum(array.nbytes for array in arrays.values())
            if total > _MAX_GROWTH * size:
                raise InputError(
                    f"The arrays in `{path}` must have at most {_MAX_GROWTH} times the size of the "
                    f"file. Received: {total:,} bytes."
                )
            check_memory(total, f"The arrays in `{path}`")
            yield arrays
    except InputError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
        raise InputError(f"`{path}` is not a readable HDF5 file: {error}") from error


def _arrays(file, path):
    """Returns the arrays of a file by name; InputError for anything else but groups."""
    links, arrays = [], {}
    file.visititems_links(lambda name, link: links.append((name, link)))
    for name, link in links:
        item = file[name] if isinstance(link, h5py.HardLink) else None
        if isinstance(item, h5py.Group):
            continue
        if not isinstance(item, h5py.Dataset) or not _is_plain(item):
            raise InputError(
                f"{name} in `{path}` must be a plain array of numbers as written by Keras: stored "
                "in this file, not in another one, complete, and uncompressed or compressed by "
                "gzip."
            )
        arrays[name] = item
    return arrays


def _is_plain(array):
    """Returns whether an array consists of numbers in the file, as they are or in chunks."""
    plan = array.id.get_create_plist()
    filters = {plan.get_filter(number)[0] for number in range(plan.get_nfilters())}
    return (
        array.dtype.kind in "fiu"
        and array.external is None
        and not array.is_virtual
        and filters <= {h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE}
        and (array.chunks is not None or array.id.get_storage_size() == array.nbytes)
    )
