"""The log of a fine-tuning as a picture."""

from albert_keras.training.loop.curves import (
    BLUE,
    GREEN,
    ORANGE,
    PANELS,
    RED,
    Curve,
    Panel,
    draw_curves,
)
from albert_keras.training.loop.reports import read_evaluations

#: Endings of scores that would spoil the scale of the others.
_OTHER_SCALES = ("mean_squared_error", "total", "_thresh")


def draw_dev_curves(folder, metric):
    """Draws loss and accuracy in training and the scores on development examples.

    Args:
        folder: Path. Of the run.
        metric: str. Name of the score that decides; the others in the log are drawn too.

    Returns:
        Path of the picture.
    """
    colours = (BLUE, ORANGE, GREEN, RED)
    found = [
        name
        for _, scores in read_evaluations(folder)
        for name in scores
        if not name.endswith(_OTHER_SCALES)
    ]
    names = list(dict.fromkeys([metric, *found]))[: len(colours)]
    curves = tuple(
        Curve(name, name.replace("_", " "), colour)
        for name, colour in zip(names, colours, strict=False)
    )
    speed, rate, gradients = PANELS[2:5]
    panels = (
        Panel("Loss in training", "mean over examples", (Curve("loss", "loss", BLUE),)),
        Panel(
            "Right in training", "share", (Curve("answer_accuracy", "answers", BLUE),), range=(0, 1)
        ),
        Panel("Development examples", "score", curves, range=(None, None)),
        rate,
        gradients,
        speed,
    )
    return draw_curves(folder, panels=panels)
