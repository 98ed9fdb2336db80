"""Tables of tensors: which tensor of another format is which of ours, and in what layout.

A table is data, a tuple of `Row`. Our names are the names in google-research/albert and also
the names of our weights; `{g}` stands for a group and `{k}` for a block in it.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.shape import BLOCK, encoder_shapes, head_shapes
from data_pipeline.errors import InputError

_BLOCK = "bert/encoder/transformer/group_{g}/inner_group_{k}"


class Row(NamedTuple):
    """A tensor in both formats; the names may contain `{g}` and `{k}`."""

    ours: str
    theirs: str
    layout: str = "same"  #: Of theirs: "same" or "transposed".


class Naming(NamedTuple):
    """How a format names the tensors of a layer, after its name, and stores kernels."""

    kernel: str
    bias: str
    gamma: str
    beta: str
    layout: str = "same"  #: Of kernels.

    def dense(self, ours: str, theirs: str) -> tuple[Row, ...]:
        """Returns the rows of a dense layer."""
        return (
            Row(f"{ours}/kernel", f"{theirs}{self.kernel}", self.layout),
            Row(f"{ours}/bias", f"{theirs}{self.bias}"),
        )

    def norm(self, ours: str, theirs: str) -> tuple[Row, ...]:
        """Returns the rows of a layer normalization."""
        return (
            Row(f"{ours}/gamma", f"{theirs}{self.gamma}"),
            Row(f"{ours}/beta", f"{theirs}{self.beta}"),
        )

    def block(self, theirs: str, **names: str) -> tuple[Row, ...]:
        """Returns the rows of a block, for what the names of its layers start and end with.

        `names` has the layers in `BLOCK`. "query" stands for "key" and "value", too, and has braces
        for the layer, or `{1}` for its first letter.
        """
        rows: tuple[Row, ...] = ()
        for layer, (ours, axes) in BLOCK.items():
            end = names.get(layer, names["query"]).format(layer, layer[0])
            rows_of = self.norm if len(axes) == 1 else self.dense
            rows += rows_of(f"{_BLOCK}/{ours}", f"{theirs}{end}")
        return rows


def expand(table: Iterable[Row], groups: int = 1, inner: int = 1) -> list[Row]:
    """Repeats the rows of a table for each group `{g}` and each block `{k}` in it, from 0.

    `{n}` in their names is the number of the block, counted through all groups.
    """
    return [
        row._replace(
            ours=row.ours.format(g=g, k=k), theirs=row.theirs.format(g=g, k=k, n=g * inner + k)
        )
        for row in table
        for g in range(groups if "{g}" in row.ours else 1)
        for k in range(inner if "{k}" in row.ours else 1)
    ]


def read_by_table(rows: Iterable[Row], theirs, shapes: dict, source) -> dict[str, np.ndarray]:
    """Converts tensors of another format into ours, in float32. Every tensor must be matched.

    Args:
        rows: Without braces. Rows of tensors that the model does not have are skipped.
        theirs: Mapping of name -> array. All tensors of the source.
        shapes: By our name. The model's tensors, in the order of the result.
        source: How the user calls it.

    Raises:
        InputError: With all tensors that are missing, unexpected, of another shape, not floats, or
            not finite.
    """
    by_name = {row.ours: row for row in rows}
    problems, found = [], {}
    for name, shape in shapes.items():
        row = by_name.get(name)
        if row is None:
            problems.append(f"{name}: the format has no such tensor")
        elif row.theirs not in theirs:
            problems.append(f"{row.theirs}: missing ({name} {list(shape)})")
        else:
            found[name] = _read(row, theirs[row.theirs], tuple(shape), problems)
    used = {by_name[name].theirs for name in found}
    for name in sorted(set(theirs) - used):
        problems.append(f"{name}: unexpected tensor of shape {list(np.shape(theirs[name]))}")
    if problems:
        listing = "\n  ".join(problems)
        raise InputError(f"The tensors of `{source}` do not match the model:\n  {listing}")
    return found


def read_reference_tensors(config: AlbertConfig, tensors: dict, source) -> dict[str, np.ndarray]:
    """Checks tensors that have our names, as `read_by_table`; returns them in float32."""
    shapes = encoder_shapes(config, tensors) | head_shapes(config, tensors)
    return read_by_table([Row(name, name) for name in shapes], tensors, shapes, source)


def write_by_table(rows: Iterable[Row], tensors: dict) -> dict[str, np.ndarray]:
    """Converts tensors of ours into contiguous ones of another format, by the rows without braces.

    InputError if the format cannot store one of the tensors.
    """
    by_name = {row.ours: row for row in rows}
    missing = sorted(set(tensors) - set(by_name))
    if missing:
        raise InputError(f"The format cannot store {', '.join(missing)}.")
    written = {}
    for name, array in tensors.items():
        row = by_name[name]
        array = array.T if row.layout == "transposed" else array
        written[row.theirs] = np.ascontiguousarray(array)
    return written


def is_float(array: np.ndarray) -> bool:
    """Returns whether an array is of floats; NumPy does not count bfloat16."""
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _read(row, array, shape, problems):
    """Returns one tensor in our layout; adds what is wrong with it to `problems`."""
    array = np.asarray(array)
    if not is_float(array):
        problems.append(f"{row.theirs}: expected floats, received {array.dtype.name}")
        return None
    # The shape of a square kernel does not show whether it is transposed.
    expected = shape[::-1] if row.layout == "transposed" else shape
    if array.shape != expected:
        problems.append(
            f"{row.theirs}: expected shape {list(expected)}, received {list(array.shape)}"
        )
        return None
    array = array.T if row.layout == "transposed" else array
    with np.errstate(over="ignore"):  # numbers beyond the range become infinite
        array = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(array).all():
        problems.append(f"{row.theirs}: {np.sum(~np.isfinite(array)):,} numbers are not finite")
    return array
