"""A model card shows what is known, and neither where nor by whom a model was made."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from albert_keras.serving.export.model_card import as_text, model_card
from tests.albert_keras.serving.card_records import FINETUNED, PRETRAINED


def unwrapped(card):
    return " ".join(card.split())


def test_a_pretrained_model_is_told_as_it_is():
    card = unwrapped(model_card("books", PRETRAINED))
    for text in (
        "ALBERT, 2 layers that share one set of weights, 0.8 M parameters, hidden size 128, "
        "a vocabulary of 8,000 pieces, "
        "pre-trained for 12,000 steps. It fills masks and predicts the order of two texts.",
        "## Scores No scores were measured.",
        "at most 64 tokens",
        "| Records | records64 | | Number of records | 167,162 |",
        "| Steps | 12,000 of 13,000 |",
        "| Seed | 0 |",
        "lamb, learning rate 0.002, 300 steps of warm-up",
        'load_model("../model-1.keras")',
        'predictor.fill_mask(["... [MASK] ..."])',
        "The weights of the SavedModel are float32. A SavedModel",
        "pipeline_tag: fill-mask",
    ):
        assert text in card


def test_a_finetuned_model_is_told_as_it_is():
    card = unwrapped(model_card("books", FINETUNED))
    for text in (
        "fine-tuned on sst-2 for 300 steps. It sorts texts into 2 classes.",
        "Labels: negative, positive.",
        "| accuracy | 0.9128 | | f1 (of positive) | 0.9 |",
        "development examples",
        "are int8. It gave the same answer as float32 in 99.6 % of 256 cases.",
        "| Initial weights | t2 step 12000 |",
        'predictor.answer([{"text": "..."}])',
    ):
        assert text in card
    assert "fill_mask" not in card


def test_scores_of_held_out_records_say_of_which_and_stand_beside_those_of_counting():
    scores = {"path": "/home/ada/held-out", "num_records": 3188, "num_predictions": 27188}
    scores |= {"masked_lm_loss": 4.0159, "masked_lm_accuracy": 0.32631, "unigram_guess": "|"}
    scores["overlap"] = {"rows": 3188, "normalised": 0, "is_estimate": False}
    bigram = {"masked_lm_accuracy": 0.2072, "masked_lm_loss": 4.834}
    scores["baselines"] = {"bigram": bigram}
    card = model_card("books", PRETRAINED | {"scores": scores})
    assert "on 3,188 held-out records of “held-out” with 27,188 masked tokens." in unwrapped(card)
    assert "trained on" not in card
    assert "| masked lm accuracy | 0.3263 |" in card
    assert "(bigram) | 0.2072 |\n" in card
    assert "The model has learned to use context." in card
    bigram["masked_lm_accuracy"] = 0.4
    card = model_card("books", PRETRAINED | {"scores": scores})
    assert "The model has not learned to use context." in card


@pytest.mark.parametrize("record", [PRETRAINED, FINETUNED], ids=["pretrained", "finetuned"])
def test_it_tells_neither_who_made_a_model_nor_where(record):
    card = model_card("books", record)
    assert "ada" not in re.findall(r"\w+", card)
    assert "books of mine" not in card and "secret" not in card


@pytest.mark.slow
def test_its_python_runs_in_the_folder_of_an_export(tiny_export, monkeypatch):
    monkeypatch.chdir(tiny_export / "1")
    snippets = re.findall("```python\n(.*?)\n```", Path("README.md").read_text(), re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        for snippet in snippets:
            exec(snippet, {})
    assert "FilledMask" in shown.getvalue()


def test_the_scores_of_baselines_stand_beside_those_of_the_model():
    sentence = "worth using: accuracy 0.913 versus 0.782 of the bag of words, difference +0.131"
    baselines = {"most frequent answer": 0.5092, "bag of words": 0.7821, "<b>": 2.0}
    record = FINETUNED | {"baselines": baselines, "verdict": sentence}
    card = model_card("books", record)
    assert "| accuracy | 0.9128 |\n" in card and "<b>" not in card
    assert "| accuracy of most frequent answer | 0.5092 |\n" in card
    assert "| accuracy of bag of words | 0.7821 |\n" in card
    assert f"\n**{as_text(sentence)}**\n" in card


# Labels of any kind


def rendered(card):
    return MarkdownIt("commonmark").enable("table").render(card.split("---\n", 2)[2])


@pytest.mark.parametrize(
    "label", ["<script>alert(1)|</script>", "*bold* _it_ `code` ~~gone~~ &amp; # $x$ @all \\| !"]
)
def test_labels_read_as_they_are(label):
    # Where labels may stand: in a paragraph and in cells of tables.
    task = FINETUNED["task"] | {"labels": [label, "positive"], "name": label}
    record = FINETUNED | {"task": task, "scores": {label: 0.5}, "precision": label}
    page = rendered(model_card("books", record))
    text = label.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"<p>Labels: {text}, positive.</p>" in page
    assert f"of the SavedModel are {text}." in page
    assert f"<td>{' '.join(text.replace('_', ' ').split())}</td>" in page
    assert "<script" not in page and '<a href="http' not in page
    assert page.count("<h2>") == rendered(model_card("books", FINETUNED)).count("<h2>")
