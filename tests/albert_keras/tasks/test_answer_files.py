"""The table of errors has one line per error, whatever is in the texts."""

import pytest

from albert_keras.tasks.answer_files import write_errors
from albert_keras.tasks.task import Error

ERRORS = [
    Error("7", "a dull\tfilm\r\nindeed", "0", "1", 0.75),
    Error("3", 'says "no"', "1", "0", 0.999_991),
    Error("9", "end", "0", "1", 0.75),
]
HEADER = "id\tconfidence\ttruth\tanswer\ttext\n"


def test_errors_keep_their_order(tmp_path):
    path = write_errors(tmp_path / "errors.tsv", ERRORS)
    assert path.read_bytes().decode("utf-8") == (
        HEADER
        + "7\t0.75\t0\t1\ta dull film indeed\n"
        + '3\t0.999991\t1\t0\tsays "no"\n'
        + "9\t0.75\t0\t1\tend\n"
    )
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mark", ["\t", "\n", "\x85", "\u2029"])
def test_nothing_ends_a_line_or_a_cell_but_the_table(tmp_path, mark):
    error = Error(f"a{mark}b", f"c{mark}d", f"e{mark}f", f"g{mark}h", 1.0)
    text = write_errors(tmp_path / "errors.tsv", [error]).read_bytes().decode("utf-8")
    assert text.splitlines() == [HEADER.rstrip(), "a b\t1\te f\tg h\tc d"]
