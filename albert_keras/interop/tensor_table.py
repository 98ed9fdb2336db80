"""Tables of tensors: which tensor of another format is which of ours, and in what layout.

A table is data, a tuple of `Row`. Ours are the names of google-research/albert, which are those of
our weights, too; `{g}` stands for a group and `{k}` for a block in it.
"""

from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError

#: Layout of theirs → (theirs to ours, ours to theirs), functions of array and our shape.
_LAYOUTS = {
    "same": (lambda array, shape: array, lambda array: array),
    "transposed": (lambda array, shape: array.T, lambda array: array.T),
    # Heads are an axis of their own: [H, A, D], [A, D], [A, D, H].
    "heads": (lambda array, shape: array.reshape(shape), None),
}


class Row(NamedTuple):
    """A tensor in both formats.

    Attributes:
        ours: str. Name, perhaps with `{g}` and `{k}`.
        theirs: str. Likewise.
        layout: str. How theirs lies: "same", "transposed" or "heads" (an axis of ours is several
            axes of theirs, in the same order).
    """

    ours: str
    theirs: str
    layout: str = "same"


def expand(table, groups=1, inner=1):
    """Writes a row for each group and each block in it.

    Args:
        table: iterable of Row.
        groups: int. How many; `{g}` runs from 0.
        inner: int. Blocks in each; `{k}` runs from 0.

    Returns:
        list of Row, without braces.
    """
    rows = []
    for row in table:
        places = {"g": range(groups if "{g}" in row.ours else 1)}
        places["k"] = range(inner if "{k}" in row.ours else 1)
        rows += [
            row._replace(ours=row.ours.format(g=g, k=k), theirs=row.theirs.format(g=g, k=k))
            for g in places["g"]
            for k in places["k"]
        ]
    return rows


def read_by_table(rows, theirs, shapes, source, ignored=()):
    """Brings tensors of another format into ours. Nothing unmatched passes.

    Args:
        rows: iterable of Row, without braces.
        theirs: mapping of name -> array. All tensors of the source.
        shapes: dict of our name -> shape. What the model wants; rows of other tensors are left out.
        source: str. What the user calls it.
        ignored: iterable of str. Names of theirs that may be left, such as moments of an optimizer.

    Returns:
        dict of our name -> float32 array, in the order of `shapes`.

    Raises:
        InputError: With all tensors that are missing, there besides, of another shape, no floats,
            or not finite.
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
    for name in sorted(set(theirs) - used - set(ignored)):
        problems.append(f"{name}: not wanted, of shape {list(np.shape(theirs[name]))}")
    if problems:
        listing = "\n  ".join(problems)
        raise InputError(f"The tensors of `{source}` are not those of the model:\n  {listing}")
    return found


def write_by_table(rows, tensors, shapes=None):
    """Brings tensors of ours into another format.

    Args:
        rows: iterable of Row, without braces.
        tensors: dict of our name -> array.
        shapes: dict of their name -> shape, where heads are an axis, or None.

    Returns:
        dict of their name -> array, contiguous.

    Raises:
        InputError: If the format has no place for one of them.
    """
    by_name = {row.ours: row for row in rows}
    missing = sorted(set(tensors) - set(by_name))
    if missing:
        raise InputError(f"The format has no place for {', '.join(missing)}.")
    written = {}
    for name, array in tensors.items():
        row = by_name[name]
        if row.layout == "heads":
            array = np.reshape(array, shapes[row.theirs])
        else:
            array = _LAYOUTS[row.layout][1](array)
        written[row.theirs] = np.ascontiguousarray(array)
    return written


def _read(row, array, shape, problems):
    """Returns one tensor in our layout; tells what is wrong with it in `problems`."""
    array = np.asarray(array)
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        problems.append(f"{row.theirs}: floats wanted, {array.dtype.name} found")
        return None
    # A square kernel may lie either way, and nobody can tell by its shape.
    wanted = shape[::-1] if row.layout == "transposed" else shape
    fits = _splits(array.shape, shape) if row.layout == "heads" else array.shape == wanted
    if not fits:
        problems.append(f"{row.theirs}: {list(wanted)} wanted, {list(array.shape)} found")
        return None
    array = np.ascontiguousarray(_LAYOUTS[row.layout][0](array, shape), dtype=np.float32)
    if not np.isfinite(array).all():
        problems.append(f"{row.theirs}: {np.sum(~np.isfinite(array)):,} numbers are not finite")
    return array


def _splits(found, shape):
    """Tells whether `found` is `shape` with axes split into several: [H, A, D] is [H, A * D]."""
    rest = list(found)
    for size in shape:
        product = 1
        while rest and product < size:
            product *= rest.pop(0)
        if product != size:
            return False
    return not rest
