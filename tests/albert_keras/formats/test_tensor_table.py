import numpy as np
import pytest

from albert_keras.formats.tensor_table import Row, expand, read_by_table, write_by_table
from data_pipeline.errors import InputError

ROWS = (
    Row("table", "embed"),
    Row("kernel", "weight", "transposed"),
)
SHAPES = {"table": (5, 3), "kernel": (3, 4)}
THEIRS = {
    "embed": np.arange(15, dtype=np.float32).reshape(5, 3),
    "weight": np.arange(12, dtype=np.float32).reshape(4, 3),
}


def test_layouts_are_brought_to_ours():
    found = read_by_table(ROWS, THEIRS, SHAPES, "x")
    assert list(found) == list(SHAPES)
    np.testing.assert_array_equal(found["kernel"], THEIRS["weight"].T)
    assert all(array.flags.c_contiguous for array in found.values())


def test_what_is_read_is_written_back():
    written = write_by_table(ROWS, read_by_table(ROWS, THEIRS, SHAPES, "x"))
    assert written.keys() == THEIRS.keys()
    for name, array in THEIRS.items():
        np.testing.assert_array_equal(written[name], array)
        assert written[name].shape == array.shape


def test_rows_are_written_for_each_group_and_block():
    rows = expand((Row("a", "b"), Row("g{g}/k{k}", "{k}.{g}")), groups=2, inner=2)
    assert [(row.ours, row.theirs) for row in rows] == [
        ("a", "b"),
        ("g0/k0", "0.0"),
        ("g0/k1", "1.0"),
        ("g1/k0", "0.1"),
        ("g1/k1", "1.1"),
    ]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"embed": None}, r"embed: missing \(table \[5, 3\]\)"),
        ({"more": np.zeros((2, 2))}, r"more: unexpected tensor of shape \[2, 2\]"),
        ({"weight": THEIRS["weight"].T}, r"weight: expected shape \[4, 3\], received \[3, 4\]"),
        ({"embed": THEIRS["embed"].ravel()}, r"embed: expected shape \[5, 3\], received \[15\]"),
        ({"embed": np.zeros((5, 3), np.int64)}, "embed: expected floats, received int64"),
        ({"embed": np.full((5, 3), np.nan)}, "embed: 15 numbers are not finite"),
        ({"embed": np.full((5, 3), 1e300)}, "embed: 15 numbers are not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_what_does_not_match_is_an_error_that_names_it(change, message):
    theirs = {name: array for name, array in (THEIRS | change).items() if array is not None}
    with pytest.raises(InputError, match=message):
        read_by_table(ROWS, theirs, SHAPES, "x")


def test_a_tensor_without_a_place_is_not_written():
    with pytest.raises(InputError, match="cannot store head"):
        write_by_table(ROWS, {"head": np.zeros(1)})
