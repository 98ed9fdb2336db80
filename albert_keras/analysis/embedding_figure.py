"""The figure of embeddings: singular values, and norms over frequencies."""

from collections.abc import Sequence
from typing import Any

from albert_keras.analysis.figures import line_styles, new_figure
from albert_keras.analysis.models import AnalyzedModel


def draw_embeddings(models: Sequence[AnalyzedModel], spectra: Sequence[Any], norms: Sequence[Any]):
    """Draws the singular values of tables and products, and norms over frequencies if known.

    Args:
        models: The models, in order.
        spectra: Spectrum of each matrix.
        norms: NormOfToken of all tokens, or nothing.
    """
    styles = line_styles(models)
    titles = {"table": "Table of tokens, V x E", "product": "Table times projection, V x H"}
    titles = {name: title for name, title in titles.items() if name in {s.matrix for s in spectra}}
    columns = len(titles) + bool(norms)
    figure, axes = new_figure(
        max(5.5 * columns, 6.5), 4.4, "Embeddings of the vocabulary", columns=columns
    )
    for panel, (name, title) in zip(axes[0], titles.items(), strict=False):
        for spectrum in spectra:
            if spectrum.matrix != name:
                continue
            style = styles[spectrum.model]
            panel.plot(
                range(1, len(spectrum.values) + 1),
                [value / spectrum.values[0] for value in spectrum.values],
                linestyle=style.linestyle,
                color=style.color,
                linewidth=1.6,
                label=f"{style.label}: effective rank {spectrum.effective_rank:.0f}",
            )
        panel.set_yscale("log")
        panel.set(xlabel="number of the singular value", ylabel="proportion of the largest one")
        panel.set_title(title, fontsize=11)
        panel.legend(fontsize=8, frameon=False)
    if norms:
        _draw_norms(axes[0, -1], norms, styles)
    for panel in axes[0]:
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_norms(panel, norms, styles):
    for label, style in styles.items():
        rows = [row for row in norms if row.model == label and row.occurrences]
        panel.scatter(
            [row.occurrences for row in rows],
            [row.norm for row in rows],
            s=6,
            alpha=0.35,
            linewidths=0,
            color="0.6" if style.linestyle == "--" else style.color,
            label=style.label,
        )
    panel.set_xscale("log")
    panel.set_title("Length of the embedding of a token", fontsize=11)
    panel.set(xlabel="number of occurrences, log scale", ylabel="Euclidean norm")
    panel.set_ylim(bottom=0)
    panel.legend(fontsize=8, frameon=False, markerscale=2)
