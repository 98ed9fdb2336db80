"""The `.keras` model of an export, which can be trained further, stored in fewer bytes."""

import io
import zipfile
from pathlib import Path

import h5py
import numpy as np
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

#: Precision of the weights in the file; loaded, they are float32. HDF5 has no bfloat16: bfloat16
#: values are stored as float16 and leave three of its bits empty, so that they compress better.
PRECISIONS = ("float32", "float16", "bfloat16")
_WEIGHTS = "model.weights.h5"


def round_weights(path: Path, precision: str) -> None:
    """Rounds the float32 kernels and tables of a `.keras` file, and compresses them.

    Biases and norms stay float32: they are few, and large output biases would lose most.
    Keras loads the file as before, with float32 weights. Raises InputError, and changes nothing,
    if a weight is too large for float16.

    Args:
        path: The `.keras` file, which is replaced.
        precision: "float16" or "bfloat16".
    """
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents[_WEIGHTS] = _rounded(contents[_WEIGHTS], precision)
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def _rounded(content, precision):
    """Returns an HDF5 file of weights, as bytes, with rounded ones as float16 for float32."""
    dtype = tf.as_dtype(precision).as_numpy_dtype
    result = io.BytesIO()
    with h5py.File(io.BytesIO(content)) as old, h5py.File(result, "w") as new:

        def copy(name, item):
            if isinstance(item, h5py.Group):
                new.require_group(name)
                return
            if item.ndim < 2:
                new.create_dataset(name, data=item[()])
                return
            with np.errstate(over="ignore"):  # checked below
                values = item[()].astype(dtype).astype(np.float16)
            if not np.isfinite(values).all():
                raise InputError(
                    f"The weights of the model must be at most {np.finfo(np.float16).max:g} to be "
                    f"stored as {precision}. Received: {np.abs(item[()]).max():g} in {name}. Use "
                    "`keras_precision` float32."
                )
            # In one chunk, as many small ones compress less.
            options = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
            new.create_dataset(name, data=values, chunks=values.shape, **options)

        old.visititems(copy)
    return result.getvalue()
