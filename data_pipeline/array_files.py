"""NumPy's files: several arrays in one `.npz`, and an array in an `.npy` that is read in place."""

import contextlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from data_pipeline.limits import check_regular_file


def write_arrays(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays as `np.savez` does, to a path of any name."""
    content = io.BytesIO()  # an archive that cannot be closed would print a traceback
    np.savez(content, **arrays)
    Path(path).write_bytes(content.getbuffer())


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Reads all arrays of an `.npz` file, by name.

    Raises:
        InputError: If it is not a regular file.
        ValueError: If it is damaged, or contains objects or compressed arrays. A few bytes of a
            compressed array may stand for any size.
        OSError: If it cannot be read.
    """
    check_regular_file(path)
    with _damage_as_value_error(), zipfile.ZipFile(path) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ValueError("its arrays are compressed")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)


def map_array(path: str | Path) -> np.ndarray:
    """Maps the array of an `.npy` file into memory, to be read only; raises as `read_arrays`."""
    check_regular_file(path)
    with _damage_as_value_error():
        return np.lib.format.open_memmap(path, mode="r")


@contextlib.contextmanager
def _damage_as_value_error() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError):
        raise
    except Exception as error:  # NumPy parses headers as Python, and trusts their sizes
        raise ValueError(f"it is damaged: {error}") from error
