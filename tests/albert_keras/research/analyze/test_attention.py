"""Summaries of heads, compared with the attention of each text alone."""

import numpy as np
import pytest

from albert_keras.cli import main
from albert_keras.research.analyze.attention import analyze_attention


def test_summaries_are_means_over_tokens_without_padding(tiny_run, texts, encoder, sequences):
    found = analyze_attention(tiny_run, texts, batch_size=2)
    sums, count = np.zeros([4, 2, 2]), 0
    for ids in sequences:
        length = ids.shape[1]
        count += length
        distances = np.abs(np.arange(length)[:, None] - np.arange(length))
        attention = encoder({"input_ids": ids}, return_attention=True)["attention"]
        for layer, head in np.ndindex(2, 2):
            probs = attention[layer].numpy()[0, head].astype(np.float64)
            special = probs[:, [0, -1]].sum()
            measures = -(probs * np.log(probs)).sum(), (probs * distances).sum(), special
            sums[:, layer, head] += *measures, np.trace(probs)
    assert found.num_tokens == count
    for head in found.heads:
        expected = sums[:, head.layer - 1, head.head - 1] / count
        np.testing.assert_allclose(head[2:], expected, rtol=1e-3, atol=1e-4)


def test_the_uniform_head_has_the_largest_entropy(tiny_run, texts, sequences):
    found = analyze_attention(tiny_run, texts)
    lengths = np.array([ids.shape[1] for ids in sequences])
    assert found.uniform.entropy == pytest.approx((lengths * np.log(lengths)).sum() / lengths.sum())
    assert found.uniform.own == pytest.approx(len(lengths) / lengths.sum())
    assert found.uniform.special == pytest.approx(2 * len(lengths) / lengths.sum())
    assert all(0 < head.entropy <= found.uniform.entropy + 1e-6 for head in found.heads)


def test_the_command_writes_summaries(tiny_run, tiny_records, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["analyze", "attention", str(tiny_run), "--data", str(tiny_records), "--limit", "4"]
    assert main([*words, "--out", str(out)]) == 0
    assert "uniform" in capsys.readouterr().out
    names = {"attention.csv", "attention.json", "attention.png"}
    assert {path.name for path in out.iterdir()} == names
