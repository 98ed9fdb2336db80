"""The log of a run as a picture."""

from pathlib import Path

from albert_keras.training.reports import read_log
from data_pipeline.files import whole_file


def draw_curves(folder, evaluation=None):
    """Draws loss and accuracies over the steps of a run.

    Args:
        folder: str or Path. Folder of the run.
        evaluation: dict or None. Held-out `masked_lm_accuracy` and `sentence_order_accuracy`,
            drawn as points at the last step.

    Returns:
        Path of the picture, `curves.png`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    log = read_log(folder)
    steps = [line["step"] for line in log]
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for name, label in (
        ("loss", "total"),
        ("masked_lm_loss", "masked LM"),
        ("sentence_order_loss", "sentence order"),
    ):
        if log and name in log[0]:  # there may be no sentence-order head
            left.plot(steps, [line[name] for line in log], label=label)
    for number, (name, label) in enumerate(
        (("masked_lm_accuracy", "masked LM"), ("sentence_order_accuracy", "sentence order"))
    ):
        if not log or name not in log[0]:
            continue
        colour = f"C{number + 1}"
        right.plot(steps, [line[name] for line in log], label=label, color=colour)
        if evaluation and steps:
            right.plot(
                steps[-1],
                evaluation[name],
                "o",
                color=colour,
                label=f"{label}, held out",
                clip_on=False,
            )
    left.set(title="Loss (nats)", xlabel="step", ylim=(0, None))
    right.set(title="Accuracy", xlabel="step", ylim=(0, 1))
    for axes in (left, right):
        axes.grid(alpha=0.3)
        if log:
            axes.legend()
    path = Path(folder) / "curves.png"
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)
    return path
