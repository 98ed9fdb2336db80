"""How the layers change the state at each token, also beyond the trained depth."""

import csv
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.layers.cross_entropy import sparse_cross_entropy
from albert_keras.layers.kernels import inference
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.execution import Execution
from albert_keras.report import COLOURS, legend_below, new_figure, save_figure, shortened, tidy
from albert_keras.research.analyze.inputs import AnalysisData, AnalyzedModel, open_models
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder
from data_pipeline.progress import CountedProgress

logger = logging.getLogger(__name__)

_LONGEST_LABEL = 48


class LayerState(NamedTuple):
    """The state after a number of layers: means over all tokens but padding."""

    model: str  # label of the model
    depth: int  # layers applied, from 0, the embedding after its projection
    norm: float  # length of the state
    #: Euclidean distance, cosine and angle to the state before this layer; None at depth 0.
    l2: float | None
    cosine: float | None
    degrees: float | None
    masked_lm_loss: float | None  # nats per masked token; None without the head
    masked_lm_accuracy: float | None


class LayerAnalysis(NamedTuple):
    """Result of `analyze_layers`."""

    data: str
    num_sequences: int
    models: list[dict]  # what they are, see `AnalyzedModel.describe`
    depths: list[LayerState]  # of one model after the other
    files: list[str]


def analyze_layers(
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
) -> LayerAnalysis:
    """Compares the state before and after every layer, and reads masked tokens out after each.

    Where all layers share their weights, the same layer can be applied again beyond the trained
    depth: whether the state converges to a fixed point or oscillates is seen there.

    Args:
        models, random_weights, step, seed: See `open_models`.
        data, text_column, limit, batch_size: See `AnalysisData`; tokens are masked as in training.
        out: New folder for layers.png, layers.csv and layers.json. None writes nothing.
        depth: Number of layers to apply. None takes the trained depth.

    Returns:
        LayerAnalysis.

    Raises:
        InputError: If `depth` exceeds the layers of a model that does not share all weights, models
            and data do not fit together, or `out` exists.

    Source:
        ALBERT, figure 1 and section 3.1 (https://arxiv.org/abs/1909.11942), which reports
        oscillation; Bai et al. (2019): Deep equilibrium models (https://arxiv.org/abs/1909.01377),
        which converge.

    Example:
        analyze_layers("runs/books", "texts.txt", depth=48).depths[-1].l2
    """
    if out is not None:
        check_output_folder(out)  # before any work is done
    sequences = AnalysisData(data, text_column, limit, batch_size)
    opened = open_models(models, step, random_weights, seed)
    depths = {one.label: _checked_depth(one, depth) for one in opened}
    for one in opened:
        sequences.check(one)
    states = [state for one in opened for state in _states(one, sequences, depths[one.label])]
    described = [one.describe() for one in opened]
    result = LayerAnalysis(sequences.origin, sequences.num_sequences, described, states, files=[])
    return result if out is None else result._replace(files=_written(Path(out), result, opened))


def _written(out, result, models):
    """Writes the files of an analysis into a new folder, and returns their paths."""
    rows = [state._asdict() for state in result.depths]
    record = result._asdict() | {"depths": rows}
    del record["files"]
    with whole_folder(out) as folder:
        with open(folder / "layers.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, LayerState._fields)
            writer.writeheader()
            writer.writerows(rows)
        text = json.dumps(record, indent=1, ensure_ascii=False)
        (folder / "layers.json").write_text(text + "\n", encoding="utf-8")
        save_figure(draw_layers(models, result.depths), folder / "layers.png")
        names = sorted(path.name for path in folder.iterdir())
    return [str(out / name) for name in names]


def layer_states(
    encoder: AlbertEncoder, inputs: Mapping[str, Any], depth: int | None = None
) -> Iterator[tf.Tensor]:
    """Runs the layers one after the other; yields the state before the first and after each.

    Args:
        encoder: AlbertEncoder.
        inputs: dict. The inputs of the encoder, [B, S].
        depth: Number of layers. None runs those of the encoder; more of them need shared weights.

    Yields:
        [B, S, H] in the compute dtype.
    """
    size, blocks = encoder.config.inner_group_num, encoder.blocks
    if depth is not None and depth > encoder.config.num_hidden_layers:  # all layers are the same
        blocks = blocks[:size] * depth
    execution = Execution(encoder, blocks, inputs, False, None, None, False)
    with inference():
        hidden = encoder.embeddings(
            execution.input_ids, execution.segment_ids, execution.input_mask, execution.rows
        )
    yield execution.to_batch(hidden)
    for number, (attention, feed_forward) in enumerate(blocks, 1):
        with inference():
            hidden = execution.run(attention, feed_forward, hidden)
        if number % size == 0:
            yield execution.to_batch(hidden)


def differences(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Compares N vectors each: L2 distance, cosine and angle in degrees, float64 [3, N]."""
    distances = np.linalg.norm(after - before, axis=1)
    norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines = np.clip((before * after).sum(axis=1) / np.maximum(norms, 1e-30), -1, 1)
    return np.stack([distances, cosines, np.degrees(np.arccos(cosines))])


def _checked_depth(model: AnalyzedModel, depth: int | None) -> int:
    trained = model.config.num_hidden_layers
    shares_all = model.config.sharing == "all" and model.config.num_hidden_groups == 1
    if depth is None:
        return trained
    if depth < 1 or depth > trained and not shares_all:
        rule = "at least 1"
        if not shares_all:
            rule = f"from 1 to {trained}, the layers of `{model.label}`, which do not all share "
            rule += "their weights"
        raise InputError(f"`depth` must be {rule}. Received: {depth}.")
    return depth


def _states(model: AnalyzedModel, sequences: AnalysisData, depth: int) -> list[LayerState]:
    """Returns a LayerState for each depth from 0."""
    sums, num_tokens, num_masked = np.zeros([depth + 1, 6]), 0, 0.0
    progress = CountedProgress(logger, model.label, sequences.num_sequences, "sequences")
    for inputs in sequences.batches(model):
        is_real = inputs["input_mask"] > 0
        num_tokens += int(is_real.sum())
        num_masked += float(inputs["masked_lm_weights"].sum())
        states = []
        for number, state in enumerate(layer_states(model.encoder, inputs, depth)):
            if model.has_masked_lm:
                sums[number, 4:] += _read_out(model, state, inputs)
            states.append(state.numpy()[is_real].astype(np.float64))
        sums[:, :4] += _compared(states)
        progress.add(len(is_real))
    means = sums / np.array([num_tokens] * 4 + [max(num_masked, 1)] * 2)
    has_read = model.has_masked_lm and num_masked > 0
    found = []
    for number, (norm, *row) in enumerate(means.tolist()):
        changes = row[:3] if number > 0 else [None] * 3
        read = row[3:] if has_read else [None] * 2
        found.append(LayerState(model.label, number, norm, *changes, *read))
    return found


def _compared(states: Sequence[np.ndarray]) -> np.ndarray:
    """Sums norm, and distance, cosine and angle to the state before: float64 [depths, 4]."""
    sums = np.zeros([len(states), 4])
    for number, state in enumerate(states):
        sums[number, 0] = np.linalg.norm(state, axis=1).sum()
        if number > 0:
            sums[number, 1:] = differences(states[number - 1], state).sum(axis=1)
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
    found = sparse_cross_entropy(scores, head.output_bias, labels)
    return np.array([float(tf.reduce_sum(each)) for each in found])


def draw_layers(models: Sequence[AnalyzedModel], states: Sequence[LayerState]):
    """Draws distances, angles and masked-LM accuracy over the number of layers applied."""
    panels = {
        "l2": ("Distance to the state before", "L2 distance", (0, None)),
        "degrees": ("Angle to the state before", "degrees", (0, None)),
        "masked_lm_accuracy": ("Masked tokens read out early", "accuracy", (0, None)),
    }
    panels = {
        field: panel
        for field, panel in panels.items()
        if any(getattr(state, field) is not None for state in states)
    }
    rows = -(-len(panels) // 2)
    title = "Layers applied one after the other"
    figure, axes = new_figure(11.5, 0.6 + 3.4 * rows, title, rows=rows, columns=2)
    for panel in axes.ravel()[len(panels) :]:
        panel.set_axis_off()
    for panel, (field, (heading, unit, limits)) in zip(axes.ravel(), panels.items(), strict=False):
        number = -1
        for model in models:
            # A model with random weights has the colour of the trained model before it, and dashes.
            number += not model.is_random
            own = [state for state in states if state.model == model.label]
            found = [(state.depth, getattr(state, field)) for state in own]
            panel.plot(
                *zip(*(point for point in found if point[1] is not None), strict=True),
                linestyle="--" if model.is_random else "-",
                color=COLOURS[number % len(COLOURS)],
                label=shortened(model.label, _LONGEST_LABEL, middle=True),
                marker=".",
            )
            depth = model.config.num_hidden_layers
            if any(state.depth > depth for state in own):
                panel.axvline(depth, color="0.5", linewidth=0.8, linestyle=(0, (2, 3)), zorder=0)
        panel.set(title=heading, xlabel="layers applied", ylabel=unit, ylim=limits)
        tidy(panel)
    legend_below(figure, axes[0, 0])
    return figure
