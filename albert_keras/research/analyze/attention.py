"""Where the heads of each layer look: entropy, distance and special tokens."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.report import new_figure
from albert_keras.research.analyze.inputs import AnalysisData
from albert_keras.research.analyze.models import AnalyzedModel, open_models
from albert_keras.research.analyze.output import check_out, write_analysis

_COLOURS = "Blues"


class HeadSummary(NamedTuple):
    """What a head attends to: means over all tokens but padding, as queries."""

    layer: int  # from 1; with several blocks in each layer, the number of the block
    head: int  # from 1
    entropy: float  # of the attention, in nats: 0 for a single token
    distance: float  # between the query and the tokens it attends to, in tokens
    special: float  # share of the attention on [CLS] and [SEP]
    own: float  # share of the attention on the query itself


class AttentionAnalysis(NamedTuple):
    """Result of `analyze_attention`."""

    data: str
    num_sequences: int
    num_tokens: int
    model: dict  # see `AnalyzedModel.describe`
    uniform: HeadSummary  # of a head that attends to all tokens equally, numbered 0
    heads: list[HeadSummary]  # of one layer after the other
    files: list[str]


def analyze_attention(
    model: str | Path,
    data: str | Path,
    out: str | Path | None = None,
    step: int | str | None = None,
    text_column: str | int | None = None,
    limit: int = 256,
    batch_size: int = 32,
) -> AttentionAnalysis:
    """Summarizes the attention of each head over all tokens of some texts.

    Args:
        model, step: See `open_models`.
        data, text_column, limit, batch_size: See `AnalysisData`.
        out: New folder for attention.png, .csv and .json. None writes nothing.

    Returns:
        AttentionAnalysis.

    Raises:
        InputError: If model and data do not fit together, or `out` exists.

    Source:
        Clark et al. (2019): What does BERT look at? (https://arxiv.org/abs/1906.04341).

    Example:
        analyze_attention("runs/books", "texts.txt").heads[0].entropy
    """
    check_out(out)
    sequences = AnalysisData(data, text_column, limit, batch_size)
    opened = open_models(model, step)[0]
    sequences.check(opened)
    heads, uniform, num_tokens = _summaries(opened, sequences)
    result = AttentionAnalysis(
        sequences.origin,
        sequences.num_sequences,
        num_tokens,
        opened.describe(),
        uniform,
        heads,
        files=[],
    )
    rows = [head._asdict() for head in heads]
    record = result._asdict() | {"uniform": uniform._asdict(), "heads": rows}
    del record["files"]
    tables = {"attention": rows}
    figures = {"attention": lambda: draw_heads(opened.label, heads, uniform)}
    return result._replace(files=write_analysis(out, record, tables, figures))


def _attention(model: AnalyzedModel, inputs) -> np.ndarray:
    """Returns the attention of all blocks: float32 [blocks, B, heads, S, S]."""
    inputs = {name: inputs[name] for name in ("input_ids", "input_mask", "segment_ids")}
    found = model.encoder(inputs, training=False, return_attention=True)["attention"]
    return np.stack([block.numpy() for block in found])


def _summaries(model, sequences):
    """Returns a HeadSummary for each head, one of uniform attention, and the number of tokens."""
    config, tokenizer = model.config, model.tokenizer
    blocks, heads = config.num_hidden_layers * config.inner_group_num, config.num_attention_heads
    sums, uniform, num_tokens = np.zeros([4, blocks, heads]), np.zeros(4), 0
    for inputs in sequences.batches(model):
        ids, is_real = inputs["input_ids"], inputs["input_mask"] > 0
        is_special = np.isin(ids, [tokenizer.cls_id, tokenizer.sep_id]) & is_real
        even = is_real[:, None, :] / is_real.sum(axis=1)[:, None, None]  # [B, 1, S]
        even = np.broadcast_to(even, (*is_real.shape, is_real.shape[1]))
        uniform += _measured(even[:, None], is_real, is_special)[:, 0]
        num_tokens += int(is_real.sum())
        for block, probs in enumerate(_attention(model, inputs)):
            sums[:, block] += _measured(probs, is_real, is_special)
    means = sums / num_tokens
    found = [
        HeadSummary(block + 1, head + 1, *means[:, block, head].tolist())
        for block in range(blocks)
        for head in range(heads)
    ]
    return found, HeadSummary(0, 0, *(uniform / num_tokens).tolist()), num_tokens


def _measured(probs, is_real, is_special):
    """Sums the four measures of `HeadSummary` over the tokens of a batch: float64 [4, heads]."""
    probs = probs.astype(np.float64)  # [B, heads, S, S]
    positions = np.arange(probs.shape[-1])
    distances = np.abs(positions[:, None] - positions)  # [S, S]
    logs = np.log(probs, out=np.zeros_like(probs), where=probs > 0)
    each = (
        -(probs * logs).sum(axis=-1),
        (probs * distances).sum(axis=-1),
        (probs * is_special[:, None, None]).sum(axis=-1),
        np.diagonal(probs, axis1=-2, axis2=-1),
    )  # [B, heads, S] each
    return np.stack([np.where(is_real[:, None], one, 0).sum(axis=(0, 2)) for one in each])


def draw_heads(label: str, heads: Sequence[HeadSummary], uniform: HeadSummary):
    """Draws the measures of all heads (HeadSummary) as colours, layers from top to bottom."""
    layers, width = max(head.layer for head in heads), max(head.head for head in heads)
    fields = {
        "entropy": f"entropy in nats (uniform attention: {uniform.entropy:.2f})",
        "distance": f"mean distance in tokens (uniform: {uniform.distance:.1f})",
        "special": f"share on [CLS] and [SEP] (uniform: {uniform.special:.0%})",
        "own": f"share on the token itself (uniform: {uniform.own:.0%})",
    }
    size = (max(9.0, 1.6 + 1.1 * width), max(5.4, 2.0 + 0.62 * layers))
    figure, axes = new_figure(*size, f"Attention heads of {label}", columns=2, rows=2)
    for panel, (field, title) in zip(axes.ravel(), fields.items(), strict=True):
        values = np.array([getattr(head, field) for head in heads]).reshape(layers, width)
        is_share = field in ("special", "own")
        highest = 1 if is_share else max(values.max(), getattr(uniform, field), 1e-9)
        image = panel.imshow(values, cmap=_COLOURS, vmin=0, vmax=highest, aspect="auto")
        panel.set_title(title, fontsize=10)
        panel.set_xticks(range(width), range(1, width + 1))
        panel.set_yticks(range(layers), range(1, layers + 1))
        panel.set(xlabel="head", ylabel="layer")
        panel.tick_params(length=0, labelsize=9)
        panel.spines[:].set_visible(False)
        shape = "{:.0%}" if is_share else "{:.2f}" if field == "entropy" else "{:.1f}"
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if value > 0.6 * highest else "black"
            panel.text(
                column, row, shape.format(value), ha="center", va="center", color=colour, fontsize=8
            )
        figure.colorbar(image, ax=panel, shrink=0.9).outline.set_visible(False)
    return figure
