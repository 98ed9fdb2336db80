"""Where the heads of each layer look: entropy, distance and special tokens, and maps of a text."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.report import new_figure
from albert_keras.research.analyze.inputs import AnalysisData
from albert_keras.research.analyze.models import AnalyzedModel, open_models
from albert_keras.research.analyze.output import check_out, write_analysis
from albert_keras.texts.reading import text_problem
from data_pipeline.errors import InputError

#: Tokens of the text whose maps are saved: one number for each head and pair of tokens.
_LONGEST_MAP = 128
_COLOURS = "Blues"
#: Up to this many tokens each has its name beside a map.
_NAMES_UP_TO = 32


class HeadSummary(NamedTuple):
    """What a head attends to: means over all tokens but padding, as queries."""

    layer: int  # from 1; with several blocks in each layer, the number of the block
    head: int  # from 1
    entropy: float  # of the attention, in nats: 0 for a single token
    distance: float  # between the query and the tokens it attends to, in tokens
    special: float  # share of the attention on [CLS] and [SEP]
    own: float  # share of the attention on the query itself


class AttentionMaps(NamedTuple):
    """Attention within one text of S tokens."""

    text: str | None  # None for a record
    tokens: list[str]  # S
    maps: np.ndarray  # float32 [layers, heads, S, S]; each row of the last axis sums to 1


class AttentionAnalysis(NamedTuple):
    """Result of `analyze_attention`."""

    data: str
    num_sequences: int
    num_tokens: int
    model: dict  # see `AnalyzedModel.describe`
    uniform: HeadSummary  # of a head that attends to all tokens equally, numbered 0
    heads: list[HeadSummary]  # of one layer after the other
    maps: AttentionMaps
    files: list[str]


def analyze_attention(
    model: str | Path,
    data: str | Path,
    out: str | Path | None = None,
    text: str | None = None,
    step: int | str | None = None,
    text_column: str | int | None = None,
    limit: int = 256,
    batch_size: int = 32,
) -> AttentionAnalysis:
    """Summarizes the attention of each head, and returns the maps of one text.

    Args:
        model, step: See `open_models`.
        data, text_column, limit, batch_size: See `AnalysisData`.
        out: New folder for attention.png, .csv and .json, with the maps, and maps.png.
            None writes nothing.
        text: The text of the maps; its first 128 tokens are used. None takes the first text of the
            data.

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
    if text is not None and (problem := text_problem(text)):
        raise InputError(f"The text of the maps {problem}")
    sequences = AnalysisData(data, text_column, limit, batch_size)
    opened = open_models(model, step)[0]
    sequences.check(opened)
    heads, uniform, num_tokens = _summaries(opened, sequences)
    maps = _maps(opened, sequences, text)
    result = AttentionAnalysis(
        sequences.origin,
        sequences.num_sequences,
        num_tokens,
        opened.describe(),
        uniform,
        heads,
        maps,
        files=[],
    )
    rows = [head._asdict() for head in heads]
    record = result._asdict() | {"uniform": uniform._asdict(), "heads": rows}
    del record["files"]
    record["maps"] = maps._asdict() | {"maps": np.round(maps.maps.astype(float), 5).tolist()}
    tables = {"attention": rows}
    figures = {
        "attention": lambda: draw_heads(opened.label, heads, uniform),
        "maps": lambda: draw_maps(opened.label, maps),
    }
    return result._replace(files=write_analysis(out, record, tables, figures))


def _attention(model: AnalyzedModel, inputs) -> np.ndarray:
    """Returns the attention of all blocks: float32 [blocks, B, heads, S, S]."""
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


def _maps(model, sequences, text):
    """Returns the AttentionMaps of a text, or of the first sequence of the data."""
    tokenizer = model.tokenizer
    if text is None and not sequences.texts:
        first = next(sequences.batches(model))
        ids = first["input_ids"][0][first["input_mask"][0] > 0][:_LONGEST_MAP]
    else:
        text = sequences.texts[0] if text is None else text
        room = min(model.max_seq_length, _LONGEST_MAP) - 2
        ids = [tokenizer.cls_id, *tokenizer.encode(text)[:room], tokenizer.sep_id]
    maps = _attention(model, {"input_ids": np.array([ids], np.int32)})[:, 0]
    return AttentionMaps(text, [tokenizer.piece_of(int(id)) for id in ids], maps)


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


def draw_maps(label: str, maps: AttentionMaps):
    """Draws the AttentionMaps of a text: a row for each layer, a column for each head."""
    layers, heads, length, _ = maps.maps.shape
    has_names = length <= _NAMES_UP_TO
    side = np.clip(0.13 * length, 1.2, 3.4) if has_names else 1.6
    size = (1.6 + side * heads, 1.8 + side * layers)
    title = f"Attention of {label}: rows attend to columns"
    figure, axes = new_figure(*size, title, columns=heads, rows=layers)
    drawable = [token.replace("▁", "_") for token in maps.tokens]
    for (layer, head), panel in np.ndenumerate(axes):
        panel.imshow(maps.maps[layer, head], cmap=_COLOURS, vmin=0, vmax=1)
        panel.set(xticks=[], yticks=[])
        if layer == 0:
            panel.set_title(f"head {head + 1}", fontsize=9)
        if head == 0:
            panel.set_ylabel(f"layer {layer + 1}", fontsize=9)
        if has_names and head == 0:
            panel.set_yticks(range(length), drawable, fontsize=6)
        if has_names and layer == layers - 1:
            panel.set_xticks(range(length), drawable, fontsize=6, rotation=90)
        panel.tick_params(length=0, pad=1)
        for tick in (*panel.get_xticklabels(), *panel.get_yticklabels()):
            tick.set_parse_math(False)
    return figure
