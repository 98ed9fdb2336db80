"""Accuracies on minimal pairs: those of a run and of its export, their means and intervals."""

import json

import numpy as np
import pytest
import scipy.stats

from albert_keras import evaluate_minimal_pairs, score_sentences
from albert_keras.texts.minimal_pairs import MinimalPair
from albert_keras.texts.pair_accuracy import (
    accuracy_by_group,
    accuracy_of,
    mean_of_groups,
    means_by,
    wilson_interval,
)
from data_pipeline.errors import InputError


@pytest.fixture(scope="module")
def pairs(tiny_corpus):
    """Returns rows of a file: three groups; the last two pairs are ties."""
    rows = []
    for number, text in enumerate(tiny_corpus[:12]):
        words = text.split()[:4]
        bad = " ".join(words[::-1] if number % 2 else [words[1], words[0], *words[2:]])
        group = "reversed" if number % 2 else "swapped"
        rows.append({"good": " ".join(words), "bad": bad, "group": group})
    rows.append({"good": "Rain.", "bad": "RAIN.", "group": "ties"})
    return [*rows, {"good": "A letter.", "bad": "A letter.", "group": "ties"}]


@pytest.fixture
def file(pairs, tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in pairs))
    return path


def test_a_pair_is_right_if_its_good_sentence_scores_higher(tiny_run, tiny_export, pairs, file):
    out = file.with_name("scores.jsonl")
    out.write_text("kept")
    with pytest.raises(InputError, match="which exists"):
        evaluate_minimal_pairs(tiny_run, file, out=out)
    assert out.read_text() == "kept"
    result = evaluate_minimal_pairs(tiny_run, file, True, out=out, overwrite=True)
    points = {"swapped": 0.0, "reversed": 0.0, "ties": 0.0}
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    texts = [row[side] for row in pairs for side in ("good", "bad")]
    scores = [one.score for one in score_sentences(tiny_run, texts, True)]
    for number, (row, line) in enumerate(zip(pairs, lines, strict=True)):
        good, bad = scores[2 * number : 2 * number + 2]
        assert (line["good_score"], line["bad_score"]) == pytest.approx((good, bad), abs=1e-4)
        assert (line["good"], line["line"], line["file"]) == (row["good"], number + 1, str(file))
        points[row["group"]] += 0.5 if good == bad else float(good > bad)
        assert line["result"] == ("tie" if good == bad else "right" if good > bad else "wrong")
    counts = {"swapped": 6, "reversed": 6, "ties": 2}
    found = {one.group: one.accuracy for one in result.groups}
    assert found == {group: points[group] / counts[group] for group in counts}
    assert [one.accuracy for one in result.groups] == sorted(found.values())
    assert result.overall.accuracy == pytest.approx(sum(points.values()) / 14)
    assert result.mean.accuracy == pytest.approx(sum(found.values()) / 3)
    assert result.overall.num_ties == 2
    assert (result.step, result.fields, result.terms) == (12, [], [])
    of_export = evaluate_minimal_pairs(tiny_export, file, True)
    assert of_export.groups == result.groups and of_export.step == 12


def test_sentences_that_are_too_long_and_wrong_files_are_refused(tiny_run, file, tmp_path):
    with pytest.raises(InputError, match="must not be a file of minimal pairs or in a folder"):
        evaluate_minimal_pairs(tiny_run, tmp_path, out=tmp_path / "new.jsonl")
    long = {"good": "Rain.", "bad": "Seven geese crossed the frozen lake " * 9}
    file.write_text(file.read_text() + json.dumps(long) + "\n")
    out = file.with_name("scores.jsonl")
    message = r"pairs.jsonl` line 15: a sentence must have from 1 to 30 tokens"
    with pytest.raises(InputError, match=message):
        evaluate_minimal_pairs(tiny_run, file, out=out)
    assert not out.exists()


def test_the_interval_is_that_of_wilson_and_ties_count_one_half():
    for points, count in [(0, 1), (1, 1), (0, 200), (131, 200), (7, 9)]:
        expected = scipy.stats.binomtest(points, count).proportion_ci(0.95, "wilson")
        np.testing.assert_allclose(wilson_interval(points, count), expected, atol=1e-7)
    found = accuracy_of(np.array([1.0, 0.0, -2.0, 0.0, 3.0, 0.0]))
    assert (found.num_pairs, found.num_ties, found.accuracy) == (6, 3, 3.5 / 6)
    assert found.interval == wilson_interval(3.5, 6)


def pair(group, field, term="t"):
    return MinimalPair("a", "b", group, field, term, "x.jsonl", 1)


def test_groups_have_equal_weights_in_the_mean():
    pairs = [pair("large", "syntax")] * 6 + [pair("small", "semantics")] * 2
    pairs += [pair("none", None, None)]
    differences = np.array([1, 1, 1, -1, 1, 1, -1, 0, 1.0])
    groups = accuracy_by_group(pairs, differences)
    shown = [(one.group, one.field, one.num_pairs, one.num_ties, one.accuracy) for one in groups]
    assert shown == [
        ("small", "semantics", 2, 1, 0.25),
        ("large", "syntax", 6, 0, 5 / 6),
        ("none", None, 1, 0, 1.0),
    ]
    mean = mean_of_groups(groups)
    assert (mean.num_groups, mean.accuracy) == (3, pytest.approx((0.25 + 5 / 6 + 1) / 3))
    assert accuracy_of(differences).accuracy == pytest.approx(6.5 / 9)
    fields = means_by(groups, "field")
    assert [(one.name, one.accuracy) for one in fields] == [("semantics", 0.25), ("syntax", 5 / 6)]
    assert fields[1].interval == pytest.approx(groups[1].interval)  # of one group it is its own
    assert [(one.name, one.num_groups) for one in means_by(groups, "term")] == [("t", 2)]


def test_the_interval_of_the_mean_covers_it_and_has_a_width_at_1():
    sizes, chances = (40, 60, 25), (0.55, 0.8, 0.97)
    pairs = [pair(str(n), "f") for n, size in enumerate(sizes) for _ in range(size)]
    likely = np.repeat(chances, sizes)
    generator, covered = np.random.default_rng(5), 0
    for _ in range(400):
        differences = np.where(generator.random(len(likely)) < likely, 1.0, -1.0)
        low, high = mean_of_groups(accuracy_by_group(pairs, differences)).interval
        covered += low <= np.mean(chances) <= high
    assert 0.92 < covered / 400 < 0.985
    perfect = mean_of_groups(accuracy_by_group(pairs, np.ones(len(pairs))))
    assert perfect.interval.low < perfect.accuracy == perfect.interval.high == 1.0
