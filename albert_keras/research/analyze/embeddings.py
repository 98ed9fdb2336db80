"""The table of token embeddings: neighbours and singular values."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.report import log_ticks, new_figure, tidy
from albert_keras.research.analyze.models import AnalyzedModel, open_models
from albert_keras.research.analyze.output import check_out, line_styles, write_analysis
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer


class Neighbour(NamedTuple):
    """A token near a given one, by the cosine of their embeddings."""

    model: str  # label of the model
    token: str  # the given token, as a piece of the vocabulary
    rank: int  # from 1
    neighbour: str
    cosine: float


class Spectrum(NamedTuple):
    """Singular values of a matrix, the largest first."""

    model: str  # label of the model
    matrix: str  # "table", V x E; "product", V x H: the table times the projection
    values: list[float]
    #: Number of equal singular values with the same entropy, from 1 to their number.
    effective_rank: float
    #: Singular values that contain 90 % of the sum of squares.
    values_for_90_percent: int


class EmbeddingAnalysis(NamedTuple):
    """Result of `analyze_embeddings`."""

    models: list[dict]  # see `AnalyzedModel.describe`
    neighbours: list[Neighbour]
    spectra: list[Spectrum]
    files: list[str]


def analyze_embeddings(
    models: str | Path | Sequence[str | Path],
    tokens: Sequence[str] = (),
    out: str | Path | None = None,
    random_weights: bool = False,
    top_k: int = 8,
    center: bool = False,
    step: int | str | None = None,
    seed: int = 0,
) -> EmbeddingAnalysis:
    """Analyses the table of token embeddings, and its product with the projection to H.

    Args:
        models, random_weights, step, seed: See `open_models`. Random weights have no neighbours
            worth showing: neighbours are shown for trained models only.
        tokens: Words or pieces whose neighbours to find; each must be one token of every model.
        out: New folder for embeddings.png, .csv and .json, spectrum.csv and neighbours.csv. None
            writes nothing.
        top_k: Number of neighbours of each token.
        center: Whether the mean of all embeddings is subtracted before cosines are computed.

    Returns:
        EmbeddingAnalysis.

    Raises:
        InputError: If a token is not one of the vocabulary, or `out` exists.

    Source:
        Effective rank: Roy & Vetterli (2007): The effective rank, a measure of effective
        dimensionality.

    Example:
        analyze_embeddings("runs/books", ["king", "sea"]).neighbours[0]
    """
    check_out(out)
    if top_k < 1:
        raise InputError(f"`top_k` must be at least 1. Received: {top_k}.")
    opened = open_models(models, step, random_weights, seed)
    trained = [one for one in opened if not one.is_random]
    neighbours = [row for one in trained for row in _neighbours(one, tokens, top_k, center)]
    spectra = [row for one in opened for row in _spectra(one)]
    described = [one.describe() for one in opened]
    result = EmbeddingAnalysis(described, neighbours, spectra, files=[])
    rows = {
        "spectrum": [
            {"model": each.model, "matrix": each.matrix, "number": number, "value": value}
            for each in spectra
            for number, value in enumerate(each.values, 1)
        ],
        "neighbours": [each._asdict() for each in neighbours],
    }
    record = {
        "models": result.models,
        "neighbours": rows["neighbours"],
        "spectra": [each._asdict() for each in spectra],
    }
    tables = {"embeddings": _summary(spectra)} | {name: each for name, each in rows.items() if each}
    figures = {"embeddings": lambda: draw_spectra(opened, spectra)}
    return result._replace(files=write_analysis(out, record, tables, figures))


def _summary(spectra):
    """Returns a row of a table for each Spectrum, without its values."""
    rows = []
    for each in spectra:
        row = each._asdict()
        row["num_values"] = len(row.pop("values"))
        rows.append(row)
    return rows


def token_id(text: str, tokenizer: Tokenizer) -> int:
    """Returns the id of a word or piece; InputError if it is not one token of the vocabulary."""
    ids = tokenizer.encode(text)
    if len(ids) == 1 and ids[0] != tokenizer.unk_id:
        return ids[0]
    piece = tokenizer.id_of(text)
    if tokenizer.piece_of(piece) == text:
        return piece
    pieces = " ".join(tokenizer.piece_of(id) for id in ids) or "none"
    raise InputError(
        f"`{text}` must be one token of the vocabulary. Received: {len(ids)} tokens ({pieces})."
    )


def _neighbours(model, tokens, top_k, center):
    tokenizer, table = model.tokenizer, _table(model)
    table = table - table.mean(axis=0) if center else table
    table = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-30)
    found = []
    for token in tokens:
        own = token_id(token, tokenizer)
        cosines = table @ table[own]
        order = (int(id) for id in np.argsort(-cosines, kind="stable") if id != own)
        for rank, id in enumerate(itertools.islice(order, top_k), 1):
            names = tokenizer.piece_of(own), tokenizer.piece_of(id)
            found.append(Neighbour(model.label, names[0], rank, names[1], float(cosines[id])))
    return found


def _table(model: AnalyzedModel) -> np.ndarray:
    """Returns the embeddings of all tokens, float64 [V, E]."""
    return model.encoder.embeddings.word_embeddings.numpy().astype(np.float64)


def _spectra(model):
    """Returns the Spectrum of the table and, if there is a projection, of the product."""
    # R of the QR decomposition has the same singular values, and is a small matrix.
    triangle = np.linalg.qr(_table(model), mode="r")
    matrices = {"table": triangle}
    projection = model.encoder.embeddings.projection
    if projection is not None:
        matrices["product"] = triangle @ projection.kernel.numpy().astype(np.float64)
    return [_spectrum(model.label, name, matrix) for name, matrix in matrices.items()]


def _spectrum(label, name, matrix):
    values = np.linalg.svd(matrix, compute_uv=False)[: min(matrix.shape)]
    shares = values / values.sum()
    entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum()
    squares = np.cumsum(values**2) / np.sum(values**2)
    for_90 = int(np.searchsorted(squares, 0.9)) + 1
    return Spectrum(label, name, values.tolist(), float(np.exp(entropy)), for_90)


def draw_spectra(models: Sequence[AnalyzedModel], spectra: Sequence[Spectrum]):
    """Draws the singular values of the tables and products of several models."""
    styles = line_styles(models)
    titles = {"table": "Table of tokens, V x E", "product": "Table times projection, V x H"}
    names = [name for name in titles if any(each.matrix == name for each in spectra)]
    width = max(5.5 * len(names), 6.5)
    figure, axes = new_figure(width, 4.4, "Embeddings of the vocabulary", columns=len(names))
    for panel, name in zip(axes[0], names, strict=True):
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
        log_ticks(panel.yaxis)
        panel.set(xlabel="number of the singular value", ylabel="proportion of the largest one")
        panel.set_title(titles[name], fontsize=11)
        panel.legend(fontsize=8, frameon=False)
        tidy(panel)
    return figure
