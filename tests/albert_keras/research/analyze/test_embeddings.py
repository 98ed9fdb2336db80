"""Neighbours and singular values of the embeddings, compared with brute force."""

import numpy as np
import pytest

from albert_keras.cli import main
from albert_keras.research.analyze.embeddings import _spectrum, analyze_embeddings
from data_pipeline.errors import InputError


@pytest.fixture(scope="module")
def table(encoder):
    return encoder.embeddings.word_embeddings.numpy().astype(np.float64)


def test_singular_values_are_those_of_table_and_product(tiny_run, encoder, table):
    found = {each.matrix: each for each in analyze_embeddings(tiny_run).spectra}
    assert list(found) == ["table", "product"]
    matrices = {"table": table, "product": table @ encoder.embeddings.projection.kernel.numpy()}
    for name, matrix in matrices.items():
        expected = np.linalg.svd(matrix, compute_uv=False)[:16]  # E
        np.testing.assert_allclose(found[name].values, expected, rtol=1e-4)
        assert 1 < found[name].effective_rank < 16


@pytest.mark.parametrize(
    "diagonal, rank, for_90", [([1, 1, 1, 1], 4, 4), ([5, 0, 0], 1, 1), ([2, 2, 0], 2, 2)]
)
def test_effective_rank_of_known_matrices(diagonal, rank, for_90):
    found = _spectrum("m", "table", np.diag(np.array(diagonal, np.float64)))
    assert found.effective_rank == pytest.approx(rank)
    assert found.values_for_90_percent == for_90


@pytest.mark.parametrize("center", [False, True])
def test_neighbours_are_the_largest_cosines(tiny_run, tiny_tokenizer, table, center):
    found = analyze_embeddings(tiny_run, ["the"], top_k=3, center=center).neighbours
    table = table - table.mean(axis=0) if center else table
    own = tiny_tokenizer.encode("the")[0]
    norms = np.linalg.norm(table, axis=1)
    cosines = table @ table[own] / norms / norms[own]
    cosines[own] = -2
    order = np.argsort(-cosines)[:3]
    assert [each.neighbour for each in found] == [tiny_tokenizer.piece_of(int(i)) for i in order]
    np.testing.assert_allclose([each.cosine for each in found], cosines[order], atol=1e-6)
    assert [each.rank for each in found] == [1, 2, 3]


def test_the_command_writes_its_tables(tiny_run, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["analyze", "embeddings", str(tiny_run), "--out", str(out), "--token", "the"]
    assert main([*words, "--random-weights"]) == 0
    assert "effective rank" in capsys.readouterr().out
    tables = {"embeddings.csv", "spectrum.csv", "neighbours.csv"}
    assert {path.name for path in out.iterdir()} == tables | {"embeddings.json", "embeddings.png"}


def test_a_token_must_be_one_of_the_vocabulary(tiny_run):
    with pytest.raises(InputError, match="`the harbour` must be one token.*Received: . tokens"):
        analyze_embeddings(tiny_run, ["the harbour"])
    with pytest.raises(InputError, match="`top_k` must be at least 1"):
        analyze_embeddings(tiny_run, ["the"], top_k=0)
    assert analyze_embeddings(tiny_run, ["[MASK]"]).neighbours[0].token == "[MASK]"
