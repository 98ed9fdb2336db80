"""Tables of errors and pictures of answers show what is there, whatever texts and classes are."""

import warnings

import numpy as np
import pytest
import sklearn.metrics  # noqa: F401  # its import must not meet warnings as errors
from matplotlib.figure import Figure

from albert_keras.tasks.answer_files import draw_confusion, write_errors
from albert_keras.tasks.task import Error

HEADER = "id\tconfidence\ttruth\tanswer\ttext\tpair\n"


def test_errors_keep_their_order_and_their_line(tmp_path):
    errors = [
        Error("7", ("a dull\tfilm\r\nindeed", "x"), "0", "1", 0.75),
        Error("3", ('says "no"\u2029end\ud800', ""), "1", "0\x85", 0.999_991),
    ]
    path = write_errors(tmp_path / "errors.tsv", errors, ("text", "pair"))
    assert path.read_bytes().decode("utf-8") == (
        f'{HEADER}7\t0.75\t0\t1\ta dull film indeed\tx\n3\t0.999991\t1\t0\tsays "no" end\\ud800\t\n'
    )
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Returns a function that calls one that draws, and returns the axes of the picture."""
    figures, savefig = [], Figure.savefig

    def keep(figure, *args, **words):
        figures.append(figure)
        savefig(figure, *args, **words)

    monkeypatch.setattr(Figure, "savefig", keep)

    def draw(function, *args):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            path = function(tmp_path / "picture.png", *args)
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        return figures[-1].axes[0]

    return draw


def test_rows_are_the_truth_and_cells_hold_their_share(drawn):
    title = "sst-2 $x^$ " + 12 * "word "
    axes = drawn(draw_confusion, [[1500, 500], [0, 40]], ["no", "日" * 30], title)
    assert axes.get_ylabel() == "truth" and axes.get_xlabel() == "answer"
    names = [
        [label.get_text() for label in axis.get_ticklabels()] for axis in (axes.xaxis, axes.yaxis)
    ]
    assert names == [["no", "#1"]] * 2  # a name that the font cannot draw becomes its number
    # Places are (column, row).
    shares = {(0, 0): "75%", (1, 0): "25%", (0, 1): "0%", (1, 1): "100%"}
    assert {text.get_position(): text.get_text() for text in axes.texts} == shares
    np.testing.assert_array_equal(axes.images[0].get_array(), [[0.75, 0.25], [0, 1]])
    first, second = axes.figure.get_suptitle().splitlines()
    assert first.startswith("sst-2 $x^$ word") and second.endswith("word")
