"""How much each layer changes its input: L2 distance and cosine, as in ALBERT's figure 1."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.analysis.figures import add_legend, draw_lines, line_styles, new_figure
from albert_keras.analysis.inputs import AnalysisData
from albert_keras.analysis.models import AnalyzedModel, open_models
from albert_keras.analysis.output_files import check_out, write_analysis
from albert_keras.analysis.states import layer_states
from data_pipeline.progress import CountedProgress

logger = logging.getLogger(__name__)


class LayerChange(NamedTuple):
    """Difference between the input and the output of a layer: means over all tokens."""

    model: str  # label of the model
    layer: int  # from 1
    l2: float  # Euclidean distance
    cosine: float  # from -1 to 1
    degrees: float  # angle between the two vectors, from 0 to 180


class SimilarityAnalysis(NamedTuple):
    """Result of `analyze_similarity`."""

    data: str
    num_sequences: int
    models: list[dict]  # what they are, see `AnalyzedModel.describe`, and "num_tokens"
    layers: list[LayerChange]  # of one model after the other
    files: list[str]


def analyze_similarity(
    models: str | Path | Sequence[str | Path],
    data: str | Path,
    out: str | Path | None = None,
    random_weights: bool = False,
    step: int | str | None = None,
    text_column: str | int | None = None,
    limit: int = 256,
    batch_size: int = 32,
    seed: int = 0,
) -> SimilarityAnalysis:
    """Compares the input and the output of every layer, as means over all tokens but padding.

    The input of the first layer is the embedding, after its projection. [CLS] and [SEP] are tokens,
    too.

    Args:
        models, random_weights, step, seed: See `open_models`.
        data, text_column, limit, batch_size: See `AnalysisData`.
        out: New folder for similarity.png, similarity.csv and similarity.json. None writes nothing.

    Returns:
        SimilarityAnalysis.

    Raises:
        InputError: If models and data do not fit together, or `out` exists.

    Source:
        ALBERT, figure 1 (https://arxiv.org/abs/1909.11942), where the cosine is given as an angle.

    Example:
        analyze_similarity(["runs/albert", "runs/bert"], "texts.txt", random_weights=True).layers[0]
    """
    check_out(out)
    sequences = AnalysisData(data, text_column, limit, batch_size)
    opened = open_models(models, step, random_weights, seed)
    for one in opened:
        sequences.check(one)
    descriptions, layers = [], []
    for one in opened:
        changes, num_tokens = _changes(one, sequences)
        layers += changes
        descriptions.append(one.describe() | {"num_tokens": num_tokens})
    result = SimilarityAnalysis(
        sequences.origin, sequences.num_sequences, descriptions, layers, files=[]
    )
    rows = [change._asdict() for change in layers]
    record = result._asdict() | {"layers": rows}
    del record["files"]
    files = write_analysis(
        out, record, dict(similarity=rows), dict(similarity=lambda: draw_similarity(opened, layers))
    )
    return result._replace(files=files)


def _changes(model: AnalyzedModel, sequences: AnalysisData):
    """Returns a LayerChange for each layer of a model, and the number of tokens."""
    sums = np.zeros([model.config.num_hidden_layers, 3])
    num_tokens = 0
    progress = CountedProgress(logger, model.label, sequences.num_sequences, "sequences")
    for inputs in sequences.batches(model):
        is_real = inputs["input_mask"] > 0
        num_tokens += int(is_real.sum())
        before = None
        for layer, state in enumerate(layer_states(model.encoder, inputs)):
            state = state.numpy()[is_real].astype(np.float64)  # [tokens, H]
            if before is not None:
                sums[layer - 1] += np.sum(differences(before, state), axis=1)
            before = state
        progress.add(len(is_real))
    means = sums / num_tokens
    rows = [LayerChange(model.label, layer, *row) for layer, row in enumerate(means.tolist(), 1)]
    return rows, num_tokens


def differences(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Compares N vectors each: L2 distance, cosine and angle in degrees, float64 [3, N]."""
    distances = np.linalg.norm(after - before, axis=1)
    norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines = np.clip((before * after).sum(axis=1) / np.maximum(norms, 1e-30), -1, 1)
    return np.stack([distances, cosines, np.degrees(np.arccos(cosines))])


def draw_similarity(models: Sequence[AnalyzedModel], layers: Sequence[LayerChange]):
    """Draws the L2 distances and the angles of several models over their layers."""
    styles = line_styles(models)
    figure, axes = new_figure(11, 4.6, "Input and output of each layer", columns=2)
    panels = {"l2": "L2 distance", "degrees": "angle in degrees"}
    titles = ("L2 distance", "Cosine similarity, as an angle")
    for panel, (field, unit), title in zip(axes[0], panels.items(), titles, strict=True):
        lines = {}
        for label in styles:
            rows = [change for change in layers if change.model == label]
            lines[label] = [row.layer for row in rows], [getattr(row, field) for row in rows]
        draw_lines(panel, lines, styles, title=title, xlabel="layer", ylabel=unit)
        panel.set_ylim(bottom=0)
    add_legend(figure, axes[0, 0])
    return figure
