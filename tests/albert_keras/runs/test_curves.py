"""The picture of a run shows what its log holds, however much that is."""

import json
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from albert_keras.runs.curves import draw_curves

TITLES = [
    "Loss",
    "Accuracy",
    "Speed",
    "Learning rate",
    "Gradient norm before clipping",
    "Hardware use",
]


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
def drawn(tmp_path, monkeypatch):
    """Returns a function that draws lines of a log and returns the panels by title."""
    figures = []
    savefig = Figure.savefig

    def keep(figure, *args, **words):
        figures.append(figure)
        savefig(figure, *args, **words)

    monkeypatch.setattr(Figure, "savefig", keep)

    def draw(lines):
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            path = draw_curves(tmp_path)
        assert path == tmp_path / "curves.png"
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        panels = {axes.get_title(): axes for axes in figures[-1].axes}
        assert list(panels) == TITLES
        assert all(axes.get_xlabel() == "step" and axes.get_ylabel() for axes in panels.values())
        return panels

    return draw


def curves_of(axes):
    return {
        curve.get_label(): (curve.get_xdata().tolist(), curve.get_ydata().tolist())
        for curve in axes.lines
    }


def test_each_panel_shows_its_curves(drawn):
    panels = drawn([line_of(50, mfu=0.4, input_wait=0.02), line_of(100, mfu=0.5, input_wait=0.01)])
    loss = curves_of(panels["Loss"])
    assert list(loss) == ["total", "masked LM", "sentence order"]
    assert loss["total"] == ([50, 100], [4.9995, 4.999])
    assert list(curves_of(panels["Accuracy"])) == ["masked LM", "sentence order"]
    assert curves_of(panels["Speed"])["without padding"] == ([50, 100], [8, 8])
    assert curves_of(panels["Learning rate"])["learning rate"][1] == [0.001, 0.001]
    assert curves_of(panels["Hardware use"])["of the peak FLOP/s (MFU)"][1] == [40, 50]
    gradients = panels["Gradient norm before clipping"]
    assert gradients.get_yscale() == "log"
    assert curves_of(gradients) == {"gradient norm": ([50, 100], [51, 101])}


def test_evaluations_are_points_at_their_steps(drawn):
    scores = {"masked_lm_accuracy": 0.2, "sentence_order_accuracy": None, "path": "held out"}
    lines = [
        line_of(50),
        {"step": 50, "evaluation": scores},
        line_of(100),
        {"step": 80, "evaluation": {"loss": 3.0}},
        {"step": 100, "evaluation": {"masked_lm_accuracy": 0.3}},
    ]
    panels = drawn(lines)
    accuracies = curves_of(panels["Accuracy"])
    assert accuracies["masked LM, evaluated"] == ([50, 100], [0.2, 0.3])
    assert "sentence order, evaluated" not in accuracies
    assert curves_of(panels["Loss"])["total, evaluated"] == ([80], [3.0])


@pytest.mark.parametrize(
    "normalised, ending",
    [([0, 0], "held out"), ([0, 3], "partly trained on"), ([0, None], "evaluated")],
)
def test_the_legend_says_whether_the_scores_are_on_held_out_data(drawn, normalised, ending):
    overlaps = [None if rows is None else {"normalised": rows} for rows in normalised]
    panels = drawn(
        [
            {"step": step, "evaluation": {"loss": 2.0, "overlap": overlap}}
            for step, overlap in enumerate(overlaps, start=1)
        ]
    )
    assert list(curves_of(panels["Loss"])) == [f"total, {ending}"]


def test_skipped_updates_are_marked_where_they_were(drawn):
    nothing = dict.fromkeys(("loss", "gradient_norm", "masked_lm_loss"))
    panels = drawn([line_of(50), line_of(100, skipped=50, **nothing), line_of(150, skipped=2)])
    for title in ("Loss", "Gradient norm before clipping"):
        assert curves_of(panels[title])["52 skipped updates"][0] == [100, 150]
    assert np.isnan(curves_of(panels["Loss"])["total"][1][1])


def stage_of(step, number, max_seq_length):
    stage = {"number": number, "max_seq_length": max_seq_length, "batch_size": 64}
    return {"step": step, "stage_begins": stage}


def test_edges_of_stages_are_lines_with_what_is_new(drawn):
    lines = [stage_of(0, 1, 32), *map(line_of, (100, 200)), stage_of(200, 2, 128), line_of(300)]
    panels = drawn(lines)
    for axes in panels.values():
        assert [200, 200] in [list(line.get_xdata()) for line in axes.lines]
    labels = [text.get_text() for text in panels["Learning rate"].texts]
    assert labels == ["S 32, batch 64", "S 128, batch 64"]
    assert not panels["Loss"].texts
    [loss] = [line for line in panels["Loss"].lines if line.get_label() == "total"]
    assert list(loss.get_xdata()) == [100, 200, 300]
