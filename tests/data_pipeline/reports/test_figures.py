"""Pictures appear whole, with the panels they should have."""

import struct

import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.reports.figures import Histogram, draw_histograms

PANELS = [
    Histogram.of_values("whole", np.array([1, 2, 2, 9])),
    Histogram.of_values("one", np.array([5, 5])),
    Histogram.of_values("none", np.array([])),
    Histogram(
        "labels",
        np.array([0.4, 0.6]),
        labels=("a", "b"),
        expected=np.array([0.5, 0.5]),
        ranges=np.array([[0.3, 0.5], [0.5, 0.7]]),
        note="a note",
    ),
]


def size_of(path):
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n" and content[-8:-4] == b"IEND"
    return struct.unpack(">II", content[16:24])


def test_a_picture_is_drawn(tmp_path):
    draw_histograms(tmp_path / "one.png", "title", PANELS[:1])
    draw_histograms(tmp_path / "four.png", "title", PANELS)
    one, four = size_of(tmp_path / "one.png"), size_of(tmp_path / "four.png")
    assert abs(four[0] - 3 * one[0]) <= 3 and four[1] > 1.5 * one[1]  # inches become whole pixels
    assert sorted(path.name for path in tmp_path.iterdir()) == ["four.png", "one.png"]


def test_a_picture_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "x.png"
    path.write_bytes(b"older")

    def fail(figure, file, **_):
        file.write_bytes(b"half")
        raise RuntimeError

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    with pytest.raises(RuntimeError):
        draw_histograms(path, "title", PANELS)
    assert path.read_bytes() == b"older" and list(tmp_path.iterdir()) == [path]


def test_whole_numbers_have_bars_of_their_own():
    histogram = Histogram.of_values("", np.array([3, 3, 5, 6]))
    assert histogram.edges.tolist() == [2.5, 3.5, 4.5, 5.5, 6.5]
    assert histogram.heights.tolist() == [0.5, 0, 0.25, 0.25]


def test_many_whole_numbers_share_bars_evenly():
    histogram = Histogram.of_values("", np.arange(100))
    assert np.diff(histogram.edges).tolist() == [3] * 34
    assert histogram.heights[0] == 0.03 and histogram.heights.sum() == pytest.approx(1)


@pytest.mark.parametrize("values", [[7], [7, 7], [-3, 4]])
def test_shares_add_up(values):
    assert Histogram.of_values("", np.array(values)).heights.sum() == 1


def test_nothing_to_count_says_so():
    histogram = Histogram.of_values("", np.zeros(0))
    assert histogram.heights.size == 0 and histogram.note == "nothing to count"


@pytest.mark.parametrize(
    "name, message", [("x.jpg", "must name a .png file"), ("no/x.png", "does not exist")]
)
def test_a_place_that_cannot_be_is_refused(name, message, tmp_path):
    with pytest.raises(InputError, match=message):
        draw_histograms(tmp_path / name, "title", PANELS)
    assert not list(tmp_path.iterdir())


def test_values_may_be_counted_before_and_the_largest_left_out():
    histogram = Histogram.of_values("", np.array([1, 2, 900]), np.array([3, 6, 1]), largest=2)
    assert histogram.edges.tolist() == [0.5, 1.5, 2.5]
    assert histogram.heights.tolist() == [0.3, 0.6]
