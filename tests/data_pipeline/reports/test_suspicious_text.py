"""Markup and near-duplicates are found in any script."""

import pytest

from data_pipeline.reports.corpus_check import check_corpus
from data_pipeline.reports.suspicious_text import looks_like_markup


def test_texts_that_share_runs_of_words_are_named(tmp_path, tiny_corpus):
    halves = tiny_corpus[:60], tiny_corpus[60:120], tiny_corpus[120:180]
    for name, sentences in (("a", halves[0] + halves[1]), ("b", halves[1] + halves[2])):
        (tmp_path / f"{name}.txt").write_text(" ".join(sentences))
    (tmp_path / "dev.txt").write_text(" ".join(halves[2]).upper())
    report = check_corpus([tmp_path / "[ab].txt"], heldout=[tmp_path / "dev.txt"])
    leak, pair = report.near_duplicates
    assert (leak.name, leak.other, leak.held_out) == ("dev.txt (held out)", "b.txt", True)
    assert leak.share > 0.9
    assert (pair.name, pair.other, pair.held_out) == ("b.txt", "a.txt", False)
    assert pair.share == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize(
    "paragraph, is_markup",
    [
        ("PageV01P084", True),
        ("### |", True),
        ("~~ وقال المصنف", True),
        ("See <a href='x'>this</a> page.", True),
        ("12.5 | 13.5 | 14.5", True),
        ("1,204 3,442 9,001", True),
        ("He paid £12 for it, and left.", False),
        ("अपने पोस्ट ऑफिस में 420 पदों पर भर्ती है।", False),
        ("吾輩は猫である。", False),
    ],
)
def test_lines_that_look_like_markup(paragraph, is_markup):
    assert looks_like_markup(paragraph) == is_markup
