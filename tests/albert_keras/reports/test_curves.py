"""The picture of a run shows what its log holds, however much that is."""

import json
import warnings

import numpy as np
import pytest

from albert_keras.reports.curves import PANELS, curves_of


def line_of(step, **changes):
    return {
        "step": step,
        "loss": 5.0 - step / 1e5,
        "gradient_norm": 1.0 + step,
        "masked_lm_loss": 4.0,
        "masked_lm_accuracy": 0.25,
        "sentence_order_loss": 1.0,
        "sentence_order_accuracy": 0.75,
        "learning_rate": 0.001,
        "skipped": 0,
        "tokens_per_second": 8000.0,
        "positions_per_second": 10_000.0,
        "seconds": 1.0,
    } | changes


@pytest.fixture
def drawn(tmp_path):
    """Returns a function that draws lines of a log and returns the panels by title."""

    def draw(lines):
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            figure = curves_of(tmp_path)
            figure.savefig(tmp_path / "curves.png")
        assert all(axes.get_xlabel() == "step" and axes.get_ylabel() for axes in figure.axes)
        return {axes.get_title(): axes for axes in figure.axes}

    return draw


def lines_of(axes):
    return {
        curve.get_label(): (list(curve.get_xdata()), list(curve.get_ydata()))
        for curve in axes.lines
    }


def test_each_panel_shows_its_curves(drawn):
    panels = drawn([line_of(50, input_wait=0.02), line_of(100, input_wait=0.01)])
    assert list(panels) == [one.title for one in PANELS if one.title != "Scores of the task"]
    loss = lines_of(panels["Loss"])
    assert list(loss) == ["loss", "masked lm loss", "sentence order loss"]
    assert loss["loss"] == ([50, 100], [4.9995, 4.999])
    assert list(lines_of(panels["Accuracy"])) == ["masked lm accuracy", "sentence order accuracy"]
    assert lines_of(panels["Speed"])["tokens per second"] == ([50, 100], [8000, 8000])
    gradients = panels["Gradient norm before clipping"]
    assert gradients.get_yscale() == "log"
    assert lines_of(gradients) == {"gradient norm": ([50, 100], [51, 101])}


def test_evaluations_are_points_at_their_steps(drawn):
    lines = [
        line_of(50),
        {"step": 50, "evaluation": {"masked_lm_accuracy": 0.2, "sentence_order_accuracy": None}},
        line_of(100),
        {"step": 100, "evaluation": {"masked_lm_accuracy": 0.3, "overlap": {"rows": 9}}},
    ]
    accuracies = lines_of(drawn(lines)["Accuracy"])
    assert accuracies["masked lm accuracy, evaluated"] == ([50, 100], [0.2, 0.3])
    assert not any("sentence order," in label for label in accuracies)
    tuned = drawn([{"step": 7, "loss": 1.0}, {"step": 7, "evaluation": {"f1": 51.0, "total": 9}}])
    assert list(tuned) == ["Loss", "Scores of the task"]
    assert lines_of(tuned["Scores of the task"]) == {"f1, evaluated": ([7], [51.0])}


def test_a_report_without_updates_leaves_a_gap(drawn):
    nothing = dict.fromkeys(("loss", "gradient_norm", "masked_lm_loss"))
    panels = drawn([line_of(50), line_of(100, skipped=50, **nothing), line_of(150)])
    assert np.isnan(lines_of(panels["Loss"])["loss"][1][1])


def test_edges_of_stages_are_lines(drawn):
    panels = drawn([line_of(100, stage=1), line_of(200, stage=1), line_of(300, stage=2)])
    for axes in panels.values():
        edges = [list(line.get_xdata()) for line in axes.lines if line.get_color() == "0.4"]
        assert edges == [[200, 200]]
    assert lines_of(panels["Loss"])["loss"][0] == [100, 200, 300]
