"""Figures of attention: a table of all heads as colours, and the maps of a text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_keras.analysis.figures import new_figure

_COLOURS = "Blues"
#: Up to this many tokens each has its name beside a map.
_NAMES_UP_TO = 32


def draw_heads(label: str, heads: Sequence[Any], uniform: Any):
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


def draw_maps(label: str, maps: Any):
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
