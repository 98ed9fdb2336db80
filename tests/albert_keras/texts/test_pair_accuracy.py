"""Runs and exports on files of minimal pairs."""

import json

import pytest

from albert_keras import evaluate_minimal_pairs, score_sentences
from data_pipeline.errors import InputError


@pytest.fixture(scope="module")
def pairs(tiny_corpus):
    """Returns rows of a file: three groups; the last two pairs are ties."""
    rows = []
    for number, text in enumerate(tiny_corpus[:12]):
        words = text.split()[:4]
        bad = " ".join(words[::-1] if number % 2 else [words[1], words[0], *words[2:]])
        rows.append(
            {"good": " ".join(words), "bad": bad, "group": "reversed" if number % 2 else "swapped"}
        )
    rows.append({"good": "Rain.", "bad": "RAIN.", "group": "ties"})
    return [*rows, {"good": "A letter.", "bad": "A letter.", "group": "ties"}]


@pytest.fixture
def file(pairs, tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in pairs))
    return path


@pytest.mark.parametrize("rest_of_word", [False, True])
def test_a_pair_is_right_if_its_good_sentence_scores_higher(tiny_run, pairs, file, rest_of_word):
    out = file.with_name("scores.jsonl")
    result = evaluate_minimal_pairs(tiny_run, file, rest_of_word, out=out)
    points = {"swapped": 0.0, "reversed": 0.0, "ties": 0.0}
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    texts = [row[side] for row in pairs for side in ("good", "bad")]
    scores = [one.score for one in score_sentences(tiny_run, texts, rest_of_word)]
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


def test_an_export_equals_its_run(tiny_run, tiny_export, file):
    found = evaluate_minimal_pairs(tiny_export, file)
    expected = evaluate_minimal_pairs(tiny_run, file)
    assert found.groups == expected.groups and found.step == expected.step


def test_blimp_has_fields_and_terms(tiny_run, tmp_path):
    rows = [
        {"UID": f"p{number}", "field": field, "linguistics_term": f"t{number}"}
        | {"sentence_good": "The ferry left.", "sentence_bad": "The left ferry \u2603."}
        for number, field in enumerate(["syntax", "syntax", "semantics"])
    ]
    file = tmp_path / "blimp.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = evaluate_minimal_pairs(tiny_run, file)
    assert {(one.name, one.num_groups) for one in result.fields} == {
        ("syntax", 2),
        ("semantics", 1),
    }
    assert len(result.terms) == 3


def test_existing_files_are_replaced_only_if_allowed(tiny_run, file, tmp_path):
    out = tmp_path / "scores.jsonl"
    out.write_text("kept")
    with pytest.raises(InputError, match="which exists"):
        evaluate_minimal_pairs(tiny_run, file, out=out)
    assert out.read_text() == "kept"
    evaluate_minimal_pairs(tiny_run, file, out=out, overwrite=True)
    assert len(out.read_text().splitlines()) == 14
    with pytest.raises(InputError, match="must not be a file of minimal pairs or in a folder"):
        evaluate_minimal_pairs(tiny_run, tmp_path, out=tmp_path / "new.jsonl")
    with pytest.raises(InputError, match=r"must end in \.jsonl.* Received: .*scores.csv"):
        evaluate_minimal_pairs(tiny_run, file, out=tmp_path / "scores.csv")


def test_sentences_that_are_too_long_are_refused_with_file_and_line(tiny_run, file):
    long = {"good": "Rain.", "bad": "Seven geese crossed the frozen lake " * 9}
    file.write_text(file.read_text() + json.dumps(long) + "\n")
    out = file.with_name("scores.jsonl")
    message = r"pairs.jsonl` line 15: a sentence must have from 1 to 30 tokens"
    with pytest.raises(InputError, match=message):
        evaluate_minimal_pairs(tiny_run, file, out=out)
    assert not out.exists()
