"""The table of token embeddings: neighbours, singular values, and norms by frequency."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.analysis.embedding_figure import draw_embeddings
from albert_keras.analysis.inputs import AnalysisData
from albert_keras.analysis.models import AnalyzedModel, open_models
from albert_keras.analysis.output_files import check_out, write_analysis
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


class NormOfToken(NamedTuple):
    """Length of the embedding of a token, and how often the token occurs in the data."""

    model: str  # label of the model
    token: str
    occurrences: int
    norm: float


class EmbeddingAnalysis(NamedTuple):
    """Result of `analyze_embeddings`."""

    models: list[dict]  # see `AnalyzedModel.describe`
    neighbours: list[Neighbour]
    spectra: list[Spectrum]
    norms: list[NormOfToken]  # of all tokens of the vocabulary; empty without data
    #: By model, the rank correlation (Spearman) of norm and occurrences over the tokens that occur.
    correlations: dict[str, float]
    files: list[str]


def analyze_embeddings(
    models: str | Path | Sequence[str | Path],
    tokens: Sequence[str] = (),
    data: str | Path | None = None,
    out: str | Path | None = None,
    random_weights: bool = False,
    top_k: int = 8,
    center: bool = False,
    step: int | str | None = None,
    text_column: str | int | None = None,
    limit: int = 10_000,
    seed: int = 0,
) -> EmbeddingAnalysis:
    """Analyses the table of token embeddings, and its product with the projection to H.

    Args:
        models, random_weights, step, seed: See `open_models`. Random weights have no neighbours
            worth showing: neighbours are shown for trained models only.
        tokens: Words or pieces whose neighbours to find; each must be one token of every model.
        data: Texts or records to count tokens in, see `AnalysisData`; None skips the norms.
        out: New folder for embeddings.png and .json, and spectrum.csv, neighbours.csv and
            norms.csv. None writes nothing.
        top_k: Number of neighbours of each token.
        center: Whether the mean of all embeddings is subtracted before cosines are computed.
        text_column, limit: See `AnalysisData`.

    Returns:
        EmbeddingAnalysis.

    Raises:
        InputError: If a token is not one of the vocabulary, models and data do not fit together,
            or `out` exists.

    Source:
        Effective rank: Roy & Vetterli (2007): The effective rank, a measure of effective
        dimensionality.

    Example:
        analyze_embeddings("runs/books", ["king", "sea"]).neighbours[0]
    """
    check_out(out)
    if top_k < 1:
        raise InputError(f"`top_k` must be at least 1. Received: {top_k}.")
    sequences = None if data is None else AnalysisData(data, text_column, limit)
    opened = open_models(models, step, random_weights, seed)
    neighbours, spectra, norms, correlations = [], [], [], {}
    for one in opened:
        if sequences is not None:
            sequences.check(one)
        if not one.is_random:
            neighbours += _neighbours(one, tokens, top_k, center)
        spectra += _spectra(one)
        if sequences is not None:
            found, correlations[one.label] = _norms(one, sequences)
            norms += found
    result = EmbeddingAnalysis(
        [one.describe() for one in opened], neighbours, spectra, norms, correlations, files=[]
    )
    rows = {
        "spectrum": [
            {"model": each.model, "matrix": each.matrix, "number": number, "value": value}
            for each in spectra
            for number, value in enumerate(each.values, 1)
        ],
        "neighbours": [each._asdict() for each in neighbours],
        "norms": [each._asdict() for each in norms],
    }
    record = {
        "models": result.models,
        "data": None if data is None else str(data),
        "correlations": correlations,
        "neighbours": rows["neighbours"],
        "spectra": [each._asdict() for each in spectra],
    }
    tables = {"embeddings": _summary(spectra)} | {name: each for name, each in rows.items() if each}
    figures = {"embeddings": lambda: draw_embeddings(opened, spectra, norms)}
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


def _norms(model, sequences):
    """Returns a NormOfToken for each token, and the correlation of norm and frequency."""
    from scipy.stats import spearmanr

    size, tokenizer = model.config.vocab_size, model.tokenizer
    counts = np.zeros(size, np.int64)
    for inputs in sequences.batches(model):
        ids = inputs["input_ids"][inputs["input_mask"] > 0]
        counts += np.bincount(ids, minlength=size)
    norms = np.linalg.norm(_table(model), axis=1)
    occurs = counts > 0
    correlation = float(spearmanr(counts[occurs], norms[occurs])[0]) if occurs.sum() > 2 else 0.0
    rows = [
        NormOfToken(model.label, tokenizer.piece_of(id), int(counts[id]), float(norms[id]))
        for id in range(size)
    ]
    return rows, correlation
