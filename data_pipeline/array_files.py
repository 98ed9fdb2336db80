"""Several arrays in one `.npz` file."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def write_arrays(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays as `np.savez` does, to a path of any name.

    If the disk is full, `np.savez` leaves an archive open, which Python tries to complete later and
    reports as a second error, with a traceback.

    Raises:
        ValueError: If an array contains objects.
    """
    with open(path, "wb") as file:
        archive = zipfile.ZipFile(file, "w")
        try:
            for name, values in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asanyarray(values), allow_pickle=False)
            archive.close()
        except BaseException:
            archive.fp = None  # so that nothing is left to complete
            raise
