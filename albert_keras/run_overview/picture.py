"""The curves of several runs in one picture."""

import os
from collections.abc import Sequence
from pathlib import Path

from albert_keras.run_overview.comparison import check_runs
from albert_keras.run_overview.summary import first_training
from albert_keras.runs.kind import kind_of_run
from albert_keras.tasks.results import read_results
from albert_keras.training.loop.curves import BLUE, PANELS, Curve, Panel, draw_several
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder
from data_pipeline.mistakes import Mistake


def plot_runs(paths: Sequence[str | Path], out: str | Path, overwrite: bool = False) -> Path:
    """Draws the logs of several runs of one kind into a PNG file, and returns its path.

    Of a fine-tuning with several seeds the first one is drawn.

    Raises:
        InputError: If there are fewer than two runs, they are of different kinds, one is not a run,
            or the file exists and `overwrite` is false.
    """
    folders, out = check_runs(paths), Path(out)
    kinds = {kind_of_run(folder) for folder in folders}
    if len(kinds) > 1:
        raise InputError(
            "The runs must be of one kind, pre-trainings or fine-tunings. Received: "
            f"{', '.join(f'{folder} ({kind_of_run(folder)})' for folder in folders)}."
        )
    if not overwrite:
        if out.exists():
            raise InputError(
                f"`{out}` exists. Give --overwrite, or choose another --out.",
                Mistake.OUTPUT_EXISTS,
            )
        check_output_folder(out)
    metrics = [_metric_of(folder) for folder in folders]
    panels = panels_of(metrics[0] if "finetuning" in kinds else None)
    runs = {_label(folder, folders): first_training(folder) for folder in folders}
    out.parent.mkdir(parents=True, exist_ok=True)
    return draw_several(runs, out, panels)


def panels_of(metric: str | None) -> tuple[Panel, ...]:
    """Returns six panels with one curve each, for several runs in one picture.

    Args:
        metric: The main score of fine-tunings; None for pre-trainings.
    """
    loss, accuracy, speed, rate, gradients, _ = PANELS
    speed = speed._replace(curves=speed.curves[1:])
    if metric is None:
        scores = [
            accuracy._replace(title=f"Accuracy, {curve.label}", curves=(curve,))
            for curve in accuracy.curves
        ]
        return (loss._replace(curves=loss.curves[:1]), *scores, rate, gradients, speed)
    curves = {name: Curve(name, name, BLUE) for name in ("loss", "answer_accuracy", metric)}
    return (
        Panel("Loss in training", "mean over examples", (curves["loss"],)),
        Panel("Accuracy in training", "fraction", (curves["answer_accuracy"],), range=(0, 1)),
        Panel(f"Development examples, {metric}", "score", (curves[metric],), range=(None, None)),
        rate,
        gradients,
        speed,
    )


def _metric_of(folder):
    return read_results(folder).metric if (folder / "results.json").is_file() else "accuracy"


def _label(folder, folders):
    """Returns the part of the path in which the runs differ."""
    shared = os.path.commonpath([path.absolute() for path in folders])
    label = os.path.relpath(folder.absolute(), shared)
    return folder.absolute().name if label == "." else label
