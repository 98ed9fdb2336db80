"""What early exit costs and saves: scores, layers and times at several confidences."""

import functools
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.analysis.figures import new_figure
from albert_keras.analysis.output_files import check_out, write_analysis
from albert_keras.analysis.row_times import RowTimes, time_rows
from albert_keras.layers.kernels import inference
from albert_keras.models.early_exit import check_confidence, classify_until_confident
from albert_keras.tasks.finetuned import FinetunedModels
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.task import Features
from albert_keras.tasks.trained_rows import check_scored
from albert_keras.training.loop.curves import BLUE, GREEN, ORANGE
from data_pipeline.errors import InputError
from data_pipeline.progress import CountedProgress

logger = logging.getLogger(__name__)

#: Rows whose time is measured, and how often each.
_TIMED_ROWS, _ROUNDS = 100, 7
_INPUTS = ("input_ids", "input_mask", "segment_ids")


class ExitPoint(NamedTuple):
    """Early exit at a confidence."""

    confidence: float
    score: float  # the main score of the task
    points_lost: float  # score of all layers minus this one, times 100
    mean_layers: float  # layers that a row takes on average
    milliseconds: float  # of a single row: mean over the rows
    median_milliseconds: float
    lower_quartile_milliseconds: float
    upper_quartile_milliseconds: float
    #: Time of a row through all layers, divided by its time with early exit: median over the rows.
    speedup: float
    mean_speedup: float  # ratio of the mean times
    exits: tuple[float, ...]  # proportion of the rows that stop after each layer


class EarlyExitCurve(NamedTuple):
    """Result of `evaluate_early_exit`."""

    run: str
    task: str
    split: str
    metric: str
    examples: int
    num_timed: int  # examples whose time was measured
    score: float  # of all layers
    milliseconds: float  # of a single row through all layers: mean over the rows
    median_milliseconds: float
    lower_quartile_milliseconds: float
    upper_quartile_milliseconds: float
    layer_scores: tuple[float, ...]  # if every row stops after this layer
    points: list[ExitPoint]
    files: list[str]


def evaluate_early_exit(
    run: str | Path,
    confidences: Sequence[float],
    data: str | Path | None = None,
    data_dir: str | Path | None = None,
    split: str | None = None,
    out: str | Path | None = None,
    step: int | str | None = "best",
    batch_size: int = 64,
    allow_trained_rows: bool = False,
) -> EarlyExitCurve:
    """Scores and times a classifier that stops each row at the first confident layer.

    Every row is scored. Single rows are timed in float32 on this machine: each row runs through all
    layers and with each confidence, directly after each other, see `time_rows`.

    Args:
        run: A run that was fine-tuned with `exit_heads`, or the folder of its fine-tuning.
        confidences: Probabilities of the most likely class at which a row stops.
        data: Labelled file of the task. None takes the development examples.
        data_dir: Folder of the official files. None takes the folder of the training.
        split: Split of the official files, instead of `data`.
        out: New folder for early-exit.png, .csv and .json. None writes nothing.
        step: Checkpoint, see `FinetunedModels`.
        batch_size: Rows per call, where the time is not measured.
        allow_trained_rows: Whether to score examples that were all trained on.

    Returns:
        EarlyExitCurve.

    Raises:
        InputError: If a confidence is not a probability, the model has no classifier after every
            layer, the examples cannot be used, or `out` exists.

    Example:
        evaluate_early_exit("runs/sst-2", [0.8, 0.9]).points[0].mean_layers
    """
    check_out(out)
    confidences = sorted(set(confidences))
    if not confidences:
        raise InputError("`confidences` must contain at least one probability. Received: none.")
    for confidence in confidences:
        check_confidence(confidence)
    folder = None if data_dir is None else str(data_dir)
    models = FinetunedModels(
        run, step=step, strategy="single", batch_size=batch_size, data_dir=folder
    )
    task, opened = models.task, models.runs[0]
    model = opened.load_model(step, precision="float32", task=task)
    if not getattr(model, "exit_heads", None):
        raise InputError(
            f"`{opened.path}` must have a classifier after every layer. Received: a model without "
            "them. Train it with `albert-keras finetune --exit-heads`."
        )
    if data is not None:
        examples, split = task.read_file(data, labelled=True), Path(data).name
    else:
        split = split or task.dev_splits[0]
        examples = task.read(split)
    check_scored(models.runs, examples, split, allow_trained_rows)
    features = task.features(examples, models.tokenizer)

    def score(logits):
        answers = task.answers(examples, features, [{"logits": logits}], models.tuned or None)
        return float(task.scores(examples, answers)[task.metric])

    def every_layer(inputs, training):
        with inference():
            return {"logits": model.logits_of_layers(inputs, training)}

    strategy = tf.distribute.get_strategy()
    predictor = RowPredictor(strategy, every_layer, task.kind, batch_size, config=model.config)
    logits = predictor.predict(features)["logits"]  # [N, L, C]
    layer_scores = tuple(score(logits[:, layer]) for layer in range(logits.shape[1]))
    timed = np.unique(np.linspace(0, len(examples) - 1, _TIMED_ROWS).astype(np.int64))
    times = _time_rows(model, features, timed, confidences)
    points = []
    for number, confidence in enumerate(confidences, 1):
        layers = layers_until_confident(logits, confidence)
        chosen = np.take_along_axis(logits, layers[:, None, None] - 1, axis=1)[:, 0]
        found = score(chosen)
        points.append(
            ExitPoint(
                confidence,
                found,
                100 * (layer_scores[-1] - found),
                float(layers.mean()),
                *times.latency(number),
                times.speedup(number),
                times.mean_speedup(number),
                tuple(np.bincount(layers - 1, minlength=logits.shape[1]) / len(layers)),
            )
        )
    result = EarlyExitCurve(
        str(run),
        task.config.name,
        split,
        task.metric,
        len(examples),
        len(timed),
        layer_scores[-1],
        *times.latency(0),
        layer_scores,
        points,
        files=[],
    )
    return result._replace(files=_write(out, result))


def layers_until_confident(logits: np.ndarray, confidence: float) -> np.ndarray:
    """Returns after how many layers each row stops, int64 [N].

    Args:
        logits: float [N, L, C]. What the classifier after each layer answers.
        confidence: As in `classify_until_confident`.
    """
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    is_confident = 1 / shifted.sum(axis=-1) >= confidence  # the largest probability
    is_confident[:, -1] = True
    return is_confident.argmax(axis=1) + 1


def _time_rows(model, features: Features, rows: np.ndarray, confidences) -> RowTimes:
    """Times single rows through all layers, the first function, and at each confidence."""
    spec = {name: tf.TensorSpec([1, None], tf.int32, name=name) for name in _INPUTS}
    heads = [*model.exit_heads, model.head]

    @tf.function(input_signature=[spec], autograph=False)
    def run_all(inputs):
        return model(inputs, training=False)["logits"]

    def wait_for_all(inputs):
        run_all(inputs).numpy()

    @tf.function(input_signature=[spec, tf.TensorSpec([], tf.float32)], autograph=False)
    def run_early(inputs, confidence):
        with inference():
            return classify_until_confident(model.encoder, heads, inputs, confidence)["logits"]

    def wait_for_early(confidence, inputs):
        run_early(inputs, confidence).numpy()

    inputs = []
    for row in rows:
        batch = features.batch([row], int(features.lengths[row]))
        inputs.append({name: tf.constant(batch[name], tf.int32) for name in _INPUTS})
    limits = [tf.constant(confidence, tf.float32) for confidence in confidences]
    early = [functools.partial(wait_for_early, limit) for limit in limits]
    progress = CountedProgress(logger, "timing", (_ROUNDS + 1) * len(rows), "rows")
    return time_rows([wait_for_all, *early], inputs, _ROUNDS, progress)


def _write(out, result: EarlyExitCurve) -> list[str]:
    rows = []
    for point in result.points:
        row = point._asdict()
        exits = {f"exit_{layer}": part for layer, part in enumerate(row.pop("exits"), 1)}
        rows.append(row | exits)
    record = result._asdict() | {"points": [point._asdict() for point in result.points]}
    del record["files"]
    tables, figures = {"early-exit": rows}, {"early-exit": lambda: draw_early_exit(result)}
    return write_analysis(out, record, tables, figures)


def draw_early_exit(result: EarlyExitCurve):
    """Draws the score over the layers that a row takes on average, and where rows stop."""
    from matplotlib.ticker import MaxNLocator

    title = f"Early exit of {result.run} on {result.examples:,} examples of {result.split}"
    figure, axes = new_figure(11.5, 4.8, title, columns=2)
    left, right = axes[0]
    layers = range(1, len(result.layer_scores) + 1)
    left.plot(
        layers,
        result.layer_scores,
        "s--",
        color=ORANGE,
        markerfacecolor="white",
        label="every row stops after this layer",
    )
    means = [point.mean_layers for point in result.points]
    scores = [point.score for point in result.points]
    left.plot(means, scores, "o-", color=BLUE, label="each row stops when it is confident")
    for number, point in enumerate(result.points):
        left.annotate(
            f"{point.confidence:g}: {point.speedup:.2f}×",
            (point.mean_layers, point.score),
            xytext=(4, -12) if number % 2 else (-22, 8),
            textcoords="offset points",
            fontsize=7.5,
            color=BLUE,
        )
    left.axhline(result.score, color=GREEN, linewidth=1, label="all layers")
    left.axhspan(result.score - 0.005, result.score, color=GREEN, alpha=0.12, linewidth=0)
    left.set_title("Confidence: how many times as fast a typical row is", fontsize=11)
    left.set(xlabel="layers of a row, mean", ylabel=result.metric)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.legend(fontsize=8.5, frameon=False, loc="lower right")
    bottom = np.zeros(len(result.points))
    names = [f"{point.confidence:g}" for point in result.points]
    for layer in layers:
        parts = np.array([point.exits[layer - 1] for point in result.points])
        shade = 0.25 + 0.65 * (layer - 1) / max(len(result.layer_scores) - 1, 1)
        right.bar(names, parts, bottom=bottom, color=_blue(shade), label=f"{layer}", width=0.75)
        bottom += parts
    right.set_title("Where rows stop", fontsize=11)
    right.set(xlabel="confidence", ylabel="proportion of the rows", ylim=(0, 1))
    right.legend(
        title="layer", fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5)
    )
    left.grid(alpha=0.3)
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    return figure


def _blue(shade):
    from matplotlib import colormaps

    return colormaps["Blues"](shade)
