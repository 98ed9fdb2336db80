"""How the state changes as layers are applied, also beyond the trained depth."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.analysis.figures import add_legend, draw_lines, line_styles, new_figure
from albert_keras.analysis.inputs import AnalysisData
from albert_keras.analysis.models import AnalyzedModel, open_models
from albert_keras.analysis.output_files import check_out, write_analysis
from albert_keras.analysis.similarity import differences
from albert_keras.analysis.states import layer_states
from albert_keras.layers.cross_entropy import sparse_cross_entropy
from data_pipeline.errors import InputError
from data_pipeline.progress import CountedProgress

logger = logging.getLogger(__name__)

#: Depth without `depth`, in trained depths, where all layers share their weights.
_USUAL_FACTOR = 3


class DepthState(NamedTuple):
    """The state after a number of layers: means over all tokens of the masked sequences."""

    model: str  # label of the model
    depth: int  # layers applied, from 0, the embedding
    norm: float  # length of the state
    #: Euclidean distance and cosine to the state before this layer; None at depth 0.
    l2: float | None
    cosine: float | None
    #: Cosine of the last two steps, each the difference of two states: -1 if the state oscillates
    #: between two points, 1 if it moves on in the same direction. None below depth 2.
    turn: float | None
    to_trained_l2: float  # Euclidean distance to the state at the trained depth
    masked_lm_loss: float | None  # nats per masked token; None without the head
    masked_lm_accuracy: float | None


class ConvergenceAnalysis(NamedTuple):
    """Result of `analyze_convergence`."""

    data: str
    num_sequences: int
    models: list[dict]  # see `AnalyzedModel.describe`
    depths: list[DepthState]  # of one model after the other
    files: list[str]


def analyze_convergence(
    models: str | Path | Sequence[str | Path],
    data: str | Path,
    out: str | Path | None = None,
    depth: int | None = None,
    random_weights: bool = False,
    step: int | str | None = None,
    text_column: str | int | None = None,
    limit: int = 256,
    batch_size: int = 32,
    seed: int = 0,
) -> ConvergenceAnalysis:
    """Follows the state layer by layer, and reads masked tokens out after each.

    Where all layers share their weights, the same layer is applied again beyond the trained depth:
    whether the state converges to a fixed point or oscillates is seen there. Other models end at
    their trained depth.

    Args:
        models, random_weights, step, seed: See `open_models`.
        data, text_column, limit, batch_size: See `AnalysisData`; tokens are masked.
        out: New folder for convergence.png, .csv and .json. None writes nothing.
        depth: Number of layers to apply. None takes three times the trained depth where all layers
            share their weights, and else the trained depth.

    Returns:
        ConvergenceAnalysis.

    Raises:
        InputError: If `depth` exceeds the layers of a model that does not share all weights, models
            and data do not fit together, or `out` exists.

    Source:
        ALBERT, section 3.1 (https://arxiv.org/abs/1909.11942), which reports oscillation; Bai et
        al. (2019): Deep equilibrium models (https://arxiv.org/abs/1909.01377), which converge.

    Example:
        analyze_convergence("runs/books", "texts.txt", depth=48).depths[-1].l2
    """
    check_out(out)
    sequences = AnalysisData(data, text_column, limit, batch_size)
    opened = open_models(models, step, random_weights, seed)
    depths = {one.label: _checked_depth(one, depth) for one in opened}
    for one in opened:
        sequences.check(one)
    states = [state for one in opened for state in _states(one, sequences, depths[one.label])]
    result = ConvergenceAnalysis(
        sequences.origin,
        sequences.num_sequences,
        [one.describe() for one in opened],
        states,
        files=[],
    )
    rows = [state._asdict() for state in states]
    record = result._asdict() | {"depths": rows}
    del record["files"]
    figures = {"convergence": lambda: draw_convergence(opened, states)}
    return result._replace(files=write_analysis(out, record, {"convergence": rows}, figures))


def _checked_depth(model: AnalyzedModel, depth: int | None) -> int:
    trained = model.config.num_hidden_layers
    shares_all = model.config.sharing == "all" and model.config.num_hidden_groups == 1
    if depth is None:
        return _USUAL_FACTOR * trained if shares_all else trained
    if depth < 1 or depth > trained and not shares_all:
        rule = "at least 1"
        if not shares_all:
            rule = f"from 1 to {trained}, the layers of `{model.label}`, which do not all share "
            rule += "their weights"
        raise InputError(f"`depth` must be {rule}. Received: {depth}.")
    return depth


def _states(model: AnalyzedModel, sequences: AnalysisData, depth: int) -> list[DepthState]:
    """Returns a DepthState for each depth from 0."""
    trained, size = model.config.num_hidden_layers, model.layer_size
    blocks = model.encoder.blocks
    if depth > trained:  # all layers are the same
        blocks = blocks[:size] * depth
    needed = max(depth, trained)
    sums, num_tokens, num_masked = np.zeros([needed + 1, 7]), 0, 0.0
    progress = CountedProgress(logger, model.label, sequences.num_sequences, "sequences")
    for inputs in sequences.batches(model, is_masked=True):
        is_real = inputs["input_mask"] > 0
        num_tokens += int(is_real.sum())
        num_masked += float(inputs["masked_lm_weights"].sum())
        states = []
        for number, state in enumerate(layer_states(model.encoder, inputs, blocks)):
            if model.has_masked_lm:
                sums[number, 5:] += _read_out(model, state, inputs)
            states.append(state.numpy()[is_real].astype(np.float64))
        sums[:, :5] += _compared(states, states[trained])
        progress.add(len(is_real))
    means = sums / np.array([num_tokens] * 5 + [max(num_masked, 1)] * 2)
    found = []
    for number, row in enumerate(means[: depth + 1].tolist()):
        norm, l2, cosine, turn, to_trained, loss, accuracy = row
        has_read = model.has_masked_lm and num_masked > 0
        found.append(
            DepthState(
                model.label,
                number,
                norm,
                l2 if number > 0 else None,
                cosine if number > 0 else None,
                turn if number > 1 else None,
                to_trained,
                loss if has_read else None,
                accuracy if has_read else None,
            )
        )
    return found


def _compared(states: Sequence[np.ndarray], trained: np.ndarray) -> np.ndarray:
    """Sums norm, distance, cosine, turn and distance to `trained`: float64 [depths, 5]."""
    sums = np.zeros([len(states), 5])
    for number, state in enumerate(states):
        sums[number, 0] = np.linalg.norm(state, axis=1).sum()
        sums[number, 4] = np.linalg.norm(state - trained, axis=1).sum()
        if number > 0:
            sums[number, 1:3] = differences(states[number - 1], state)[:2].sum(axis=1)
        if number > 1:
            steps = states[number - 1] - states[number - 2], state - states[number - 1]
            sums[number, 3] = differences(*steps)[1].sum()
    return sums


def _read_out(model: AnalyzedModel, state: tf.Tensor, inputs: dict[str, Any]) -> np.ndarray:
    """Returns the sums of losses and of right predictions of masked tokens: float64 [2]."""
    head, weights = model.model.masked_lm_head, inputs["masked_lm_weights"].ravel() > 0
    masked = tf.gather(state, inputs["masked_lm_positions"], batch_dims=1)  # [B, P, H]
    masked = tf.boolean_mask(tf.reshape(masked, [-1, masked.shape[-1]]), weights)
    labels = inputs["masked_lm_ids"].ravel()[weights]
    if not len(labels):
        return np.zeros(2)
    scores = head.scores(masked[:, None])[:, 0]
    found = sparse_cross_entropy(scores, tf.convert_to_tensor(head.output_bias), labels)
    return np.array([float(tf.reduce_sum(each)) for each in found])


def draw_convergence(models: Sequence[AnalyzedModel], states: Sequence[DepthState]):
    """Draws distances, cosines and masked-LM accuracy over the number of layers applied."""
    styles = line_styles(models)
    panels = {
        "l2": ("Distance to the state before", "L2 distance", (0, None)),
        "turn": ("Direction of the last two steps", "cosine", (-1.05, 1.05)),
        "to_trained_l2": ("Distance to the state at the trained depth", "L2 distance", (0, None)),
        "masked_lm_accuracy": ("Masked tokens read out early", "accuracy", (0, None)),
    }
    figure, axes = new_figure(12, 7.6, "Layers applied one after the other", columns=2, rows=2)
    for panel, (field, (title, unit, limits)) in zip(axes.ravel(), panels.items(), strict=True):
        lines = {}
        for label in styles:
            rows = [(row.depth, getattr(row, field)) for row in states if row.model == label]
            rows = [(depth, value) for depth, value in rows if value is not None]
            if rows:
                lines[label] = tuple(zip(*rows, strict=True))
        draw_lines(panel, lines, styles, title=title, xlabel="layers applied", ylabel=unit)
        panel.set_ylim(*limits)
        for model in models:
            if not model.is_random:
                depth, colour = model.config.num_hidden_layers, styles[model.label].color
                panel.axvline(depth, color=colour, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0)
        if field == "turn":
            panel.axhline(0, color="0.4", linewidth=0.8, zorder=0)
    add_legend(figure, axes[0, 0])
    return figure
