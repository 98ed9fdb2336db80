"""Pictures of answers show the counts, whatever the classes are called and how many they are."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from albert_keras.tasks.answer_files import draw_confusion, draw_scores


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Returns a function that calls one that draws, and returns the axes of the picture."""
    figures = []
    savefig = Figure.savefig

    def keep(figure, *args, **words):
        figures.append(figure)
        savefig(figure, *args, **words)

    monkeypatch.setattr(Figure, "savefig", keep)

    def draw(function, *args):
        path = tmp_path / "picture.png"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert function(path, *args) == path
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert list(tmp_path.iterdir()) == [path]
        return figures[-1].axes[0]

    return draw


def cells_of(axes):
    return {text.get_position(): text.get_text() for text in axes.texts}


def names_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_rows_are_the_truth_and_cells_hold_count_and_share(drawn):
    axes = drawn(
        draw_confusion, [[1500, 500], [0, 40]], ["no", "yes"], "sst-2 $x^$ " + 12 * "word "
    )
    assert axes.get_ylabel() == "truth" and axes.get_xlabel() == "answer"
    assert names_of(axes.yaxis) == names_of(axes.xaxis) == ["no", "yes"]
    # Places are (column, row).
    assert cells_of(axes) == {
        (0, 0): "1,500\n75%",
        (1, 0): "500\n25%",
        (0, 1): "0\n0%",
        (1, 1): "40\n100%",
    }
    np.testing.assert_array_equal(axes.images[0].get_array(), [[0.75, 0.25], [0, 1]])
    first, second = axes.figure.get_suptitle().splitlines()
    assert first.startswith("sst-2 $x^$ word") and second.endswith("word")


@pytest.mark.parametrize("truth, scores", [([1.0, 5.0], [2.0, 4.5]), ([3], [3])])
def test_scores_are_points_over_the_truth_beside_the_diagonal(drawn, truth, scores):
    axes = drawn(draw_scores, truth, scores, "sts-b")
    points = axes.collections[0].get_offsets()
    assert points.tolist() == [list(point) for point in zip(truth, scores, strict=True)]
    assert axes.get_xlim() == axes.get_ylim()
    (diagonal,) = axes.lines
    assert tuple(diagonal.get_xdata()) == tuple(diagonal.get_ydata()) == axes.get_xlim()
