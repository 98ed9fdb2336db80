"""The nearest texts of a corpus."""

import json
import shutil

import numpy as np
import pytest

from albert_keras import embed, similar
from albert_keras.cli import main
from albert_keras.texts import similar as module
from albert_keras.texts.similar import nearest
from data_pipeline.errors import InputError


@pytest.mark.parametrize("top_k", [7, 500])
def test_the_search_is_exact_in_any_blocks(top_k, monkeypatch):
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(300, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[20] = np.eye(16)[3]  # products with it have no rounding error
    vectors[250] = vectors[20]  # equally near: the first of them counts as nearer
    queries = np.concatenate([draw.normal(size=(300, 16)), vectors[[20]]]).astype(np.float32)
    cosines = queries @ vectors.T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :top_k]
    for size in (300, 7):
        monkeypatch.setattr(module, "_BLOCK", size)
        scores, numbers = nearest(queries, vectors, top_k)
        np.testing.assert_allclose(scores, np.take_along_axis(cosines, order, axis=1), atol=1e-6)
        assert (numbers[:-1] == order[:-1]).mean() > 0.99  # but for rounding
        assert numbers[-1, 0] == 20
    assert scores.shape == (301, min(top_k, 300))


@pytest.fixture(scope="module")
def corpus(tiny_run, tiny_corpus, tmp_path_factory):
    """Returns a folder with 20 texts, `texts.txt`, and their vectors, `x.npy`."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "texts.txt").write_text("\n".join(tiny_corpus[:20]))
    embed(tiny_run, file=folder / "texts.txt", out=folder / "x.npy")
    return folder


def test_a_text_finds_itself_first(corpus, tiny_corpus, capsys):
    found = similar(corpus / "x.npy", [tiny_corpus[3], tiny_corpus[17]], top_k=3)
    assert [one.neighbours[0].row for one in found] == [3, 17]
    assert [one.neighbours[0].text for one in found] == [tiny_corpus[3], tiny_corpus[17]]
    for one in found:
        scores = [neighbour.score for neighbour in one.neighbours]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)
        assert scores[0] == pytest.approx(1, abs=1e-5) and scores[1] < 1 - 1e-6
    assert main(["similar", str(corpus / "x.npy"), tiny_corpus[4], "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert found["neighbours"][0]["row"] == 4 and len(found["neighbours"]) == 5


def test_the_most_similar_pairs_of_a_corpus(corpus, monkeypatch, capsys):
    vectors = np.load(corpus / "x.npy")
    cosines = vectors @ vectors.T
    every = [(-cosines[a, b], a, b) for a in range(20) for b in range(a + 1, 20)]
    expected = [(-score, b) for score, a, b in sorted(every)[:7]]
    for size in (64, 3):
        monkeypatch.setattr(module, "_BLOCK", size)
        found = [one.neighbours for one in similar(corpus / "x.npy", None, top_k=7)]
        assert [len(each) for each in found] == [1] * 7
        scores, rows = zip(*((each.score, each.row) for (each,) in found), strict=True)
        assert scores == pytest.approx([score for score, _ in expected], abs=1e-5)
        assert rows == tuple(row for _, row in expected)
    assert len(similar(corpus / "x.npy", None, top_k=500)) == 190
    assert main(["similar", str(corpus / "x.npy"), "--pairs", "--top-k", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert main(["similar", str(corpus / "x.npy"), "a", "--pairs"]) == 2
    assert "either TEXT or --pairs" in capsys.readouterr().err


def test_queries_need_the_model_of_the_corpus(corpus, tmp_path):
    shutil.copytree(corpus, tmp_path / "other")
    about = tmp_path / "other" / "x.npy.json"
    values = json.loads(about.read_text())
    about.write_text(json.dumps(values | {"encoder_digest": "0" * 64}))
    with pytest.raises(InputError, match="has other weights now"):
        similar(tmp_path / "other" / "x.npy", ["A ferry."])


@pytest.mark.parametrize(
    "arguments, message",
    [({"top_k": 0}, "at least 1"), ({"queries": [""]}, "Text 1 must be a text. It is blank")],
)
def test_wrong_input_is_named(corpus, arguments, message):
    with pytest.raises(InputError, match=message):
        similar(corpus / "x.npy", **{"queries": ["A ferry."]} | arguments)


def test_the_commands(tiny_run, tiny_corpus, tmp_path, capsys):
    path, out = tmp_path / "texts.tsv", tmp_path / "x.npy"
    path.write_text("key\tbody\n" + "".join(f"k{n}\t{tiny_corpus[n]}\n" for n in range(9)))
    words = ["--file", str(path), "--text-column", "body"]
    words += ["--out", str(out)]
    assert main(["embed", str(tiny_run), *words]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("9 vectors of 32 numbers, 9 texts truncated: ")
    assert main(["similar", str(out), tiny_corpus[4], "--top-k", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == tiny_corpus[4]
    assert lines[1] == f"   1.000  4  {tiny_corpus[4]}" and len(lines) == 3
