"""A model card shows what is known, and neither where nor by whom a model was made."""

import contextlib
import copy
import io
import re

import pytest
from markdown_it import MarkdownIt

from albert_keras.cli import main
from albert_keras.serving.export.model_card import FACTS, as_text, model_card, write_model_card
from albert_keras.serving.publish import export
from data_pipeline.errors import InputError
from tests.albert_keras.serving.card_records import FINETUNED, PRETRAINED, publish

WHOLE = """
language: en
licence: apache-2.0
description: For trying things out.
sections:
  Texts: |
    Old texts.

    | Text | Words |
    | --- | --- |
    | 22 novels | 2,900,000 |
  More results: Of 67 paradigms.
limits:
  - It knows few words of after 1920.
"""


@pytest.fixture
def out(tmp_path):
    return tmp_path / "books"


def unwrapped(card):
    return " ".join(card.split())


def test_a_pretrained_model_is_told_as_it_is(out):
    card = unwrapped(model_card(publish(out, 1, PRETRAINED)))
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
        'load_model("model-1.keras")',
        'predictor.fill_mask(["... [MASK] ..."])',
        "The weights of the SavedModel are float32. A SavedModel",
        "pipeline_tag: fill-mask",
    ):
        assert text in card


def test_a_finetuned_model_is_told_as_it_is(out):
    card = unwrapped(model_card(publish(out, 1, FINETUNED)))
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


def test_scores_of_held_out_records_say_of_which_and_stand_beside_those_of_counting(out):
    scores = {"path": "/home/ada/held-out", "num_records": 3188, "num_predictions": 27188}
    scores |= {"masked_lm_loss": 4.0159, "masked_lm_accuracy": 0.32631, "unigram_guess": "|"}
    scores["overlap"] = {"rows": 3188, "normalised": 0, "is_estimate": False}
    bigram = {"masked_lm_accuracy": 0.2072, "masked_lm_loss": 4.834}
    scores["baselines"] = {"bigram": bigram}
    card = model_card(publish(out, 1, PRETRAINED | {"scores": scores}))
    assert "on 3,188 held-out records of “held-out” with 27,188 masked tokens." in unwrapped(card)
    assert "trained on" not in card
    assert "| masked lm accuracy | 0.3263 |" in card
    assert "(bigram) | 0.2072 |\n" in card
    assert "The model has learned to use context." in card
    bigram["masked_lm_accuracy"] = 0.4
    card = model_card(publish(out, 2, PRETRAINED | {"scores": scores}))
    assert "The model has not learned to use context." in card


def test_the_language_and_a_time_budget_are_told(out):
    record = copy.deepcopy(PRETRAINED)
    record["run"]["data"]["language"] = "ar"
    record["run"]["config"]["training"]["time_budget"] = "8h"
    card = model_card(publish(out, 1, record))
    assert "\nlanguage: ar\n" in card and "| Language | ar |" in card
    assert "| Steps | 12,000 in a time budget of 8h |" in card


@pytest.mark.parametrize("record", [PRETRAINED, FINETUNED], ids=["pretrained", "finetuned"])
def test_it_tells_neither_who_made_a_model_nor_where(out, record):
    card = model_card(publish(out, 1, record))
    assert "ada" not in re.findall(r"\w+", card)
    assert "books of mine" not in card and "secret" not in card and str(out.parent) not in card


def test_it_is_about_the_newest_version_and_is_the_same_again(out):
    publish(out, 9, PRETRAINED)
    publish(out, 10, FINETUNED)
    card = model_card(out)
    assert 'load_model("model-10.keras")' in card
    (out / "README.md").write_text("an older one")
    write_model_card(out)
    assert (out / "README.md").read_text() == card == model_card(out)


@pytest.mark.slow
def test_its_python_runs_in_the_folder_of_an_export(tiny_export, monkeypatch):
    monkeypatch.chdir(tiny_export)
    snippets = re.findall("```python\n(.*?)\n```", model_card(tiny_export), re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        for snippet in snippets:
            exec(snippet, {})
    assert "FilledMask" in shown.getvalue()


def test_the_scores_of_baselines_stand_beside_those_of_the_model(out):
    sentence = "worth using: accuracy 0.913 versus 0.782 of the bag of words, difference +0.131"
    baselines = {"most frequent answer": 0.5092, "bag of words": 0.7821, "<b>": 2.0}
    record = FINETUNED | {"baselines": baselines, "verdict": sentence}
    card = model_card(publish(out, 1, record))
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
def test_labels_read_as_they_are(out, label):
    # Where labels may stand: in a paragraph and in cells of tables.
    task = FINETUNED["task"] | {"labels": [label, "positive"], "name": label}
    record = FINETUNED | {"task": task, "scores": {label: 0.5}, "precision": label}
    page = rendered(model_card(publish(out, 1, record)))
    text = label.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"<p>Labels: {text}, positive.</p>" in page
    assert f"of the SavedModel are {text}." in page
    assert f"<td>{' '.join(text.replace('_', ' ').split())}</td>" in page
    assert "<script" not in page and '<a href="http' not in page
    assert page.count("<h2>") == rendered(model_card(out)).count("<h2>")


# What no program knows: `card.yaml`


def test_the_card_has_every_fact(out):
    (publish(out, 1, PRETRAINED) / FACTS).write_text(WHOLE)
    card = model_card(out)
    head = card.split("---")[1]
    assert "\nlanguage: en\nlicense: apache-2.0\n" in head
    assert "\nFor trying things out.\n" in card
    assert "\n## Texts\n\nOld texts.\n\n| Text | Words |\n| --- | --- |\n| 22 novels | 2,9" in card
    assert "\n## More results\n\nOf 67 paradigms.\n" in card
    limits = card[card.index("## Limits") : card.index("## Scores")]
    assert "\n- It knows few words of after 1920.\n- It knows what its training data say" in limits


def test_a_mistake_in_the_facts_is_named_before_any_work(out, tmp_path):
    (publish(out, 1, PRETRAINED) / FACTS).write_text("license: mit")
    with pytest.raises(InputError, match="`license` is not a known key. Did you mean `licence`?"):
        export(tmp_path / "missing", out)


def test_the_command_writes_the_card_again(out, capsys):
    publish(out, 1, PRETRAINED)
    assert main(["export", "--card", "--out", str(out)]) == 0
    assert "without facts: there is no card.yaml" in capsys.readouterr().out
    (out / FACTS).write_text("description: A model of books.")
    assert main(["export", "--card", "--out", str(out)]) == 0
    assert "with the facts of card.yaml" in capsys.readouterr().out
    assert "\nA model of books.\n" in (out / "README.md").read_text()
