"""A model card shows what is known, and neither where nor by whom a model was made."""

import json
import re
import shlex
import subprocess
import sys

import pytest

from albert_keras.serving.export.model_card import model_card, write_model_card
from tests.albert_keras.serving.card_records import FINETUNED, PRETRAINED, publish

OF_KINDS = {
    "classification": ({"text_pair": ("first", "second"), "serving_default": ("text",)}, "first"),
    "choice": ({"multiple_choice": ("context", "options", "question")}, "options"),
    "spans": ({"question_answering": ("context", "question"), "serving_default": ("text",)}, None),
    "tagging": ({"serving_default": ("text",), "tags": ("text",)}, None),
}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "books"


def unwrapped(card):
    return " ".join(card.split())


def test_a_pretrained_model_is_told_as_it_is(out):
    card = unwrapped(model_card(publish(out, 1, PRETRAINED)))
    assert (
        "ALBERT, 2 layers that share one set of weights, 0.8 M parameters, hidden size 128, "
        "a vocabulary of 8,000 pieces, "
        "pre-trained for 12,000 steps. It fills masks and predicts the order of two texts."
    ) in card
    assert "## Scores No scores were measured." in card
    assert "at most 2,048 bytes of each text, and at most 64 tokens" in card
    assert "Upper and lower case make no difference." in card and "Accents" not in card
    assert "| Records | records64 | | Number of records | 167,162 |" in card
    assert "| Steps | 12,000 of 13,000 |" in card and "| Seed | 0 |" in card
    assert "lamb, learning rate 0.002, 300 steps of warm-up" in card
    assert "answers to 9 inputs" in card and "is 8e-07." in card
    assert "| `1.keras` | 1.25 MB |" in card
    assert "`354b4ad7` `2901f8ae` |" in card
    assert 'predictor.fill_mask(["' in card and "pipeline_tag: fill-mask" in card


def test_a_finetuned_model_is_told_as_it_is(out):
    card = unwrapped(model_card(publish(out, 1, FINETUNED)))
    assert "fine-tuned on sst-2 for 300 steps. It sorts texts into 2 classes." in card
    assert "Labels: negative, positive." in card
    assert (
        "| accuracy | 0.9128 | | f1 (of positive) | 0.9 |" in card
        and "development examples" in card
    )
    assert "| int8 | 256 | 99.6 % | 0.0011 (0.02) |" in card
    assert "| Initial weights | t2 step 12000 |" in card
    assert "answers to 9 inputs" not in card and "is the same whether it is sent alone" in card
    assert "predictor.answer(" in card and "fill_mask" not in card


def test_scores_of_held_out_records_say_of_which(out):
    scores = {"path": "/home/ada/held-out", "num_records": 3188, "num_predictions": 27188}
    scores |= {"masked_lm_loss": 4.0159, "masked_lm_accuracy": 0.32631, "unigram_guess": "|"}
    scores["overlap"] = {"rows": 3188, "exact": 0, "normalised": 0, "is_estimate": False}
    card = unwrapped(model_card(publish(out, 1, PRETRAINED | {"scores": scores})))
    assert "on 3,188 held-out records held-out with 27,188 masked tokens." in card
    assert "trained on" not in card
    assert "| proportion of masked tokens that are predicted correctly | 0.3263 |" in card
    assert "| masked lm accuracy 0.3263 |" in card  # in the table of versions


@pytest.mark.parametrize("record", [PRETRAINED, FINETUNED], ids=["pretrained", "finetuned"])
def test_it_tells_neither_who_made_a_model_nor_where(out, record):
    card = model_card(publish(out, 1, record))
    assert "ada" not in re.findall(r"\w+", card)
    assert "books of mine" not in card and "secret" not in card and str(out.parent) not in card


def test_it_is_about_the_newest_version_and_lists_all(out):
    publish(out, 9, PRETRAINED)
    publish(out, 10, FINETUNED)
    card = model_card(out)
    assert "describes version 10," in card and 'load_model("10.keras")' in card
    table = card.partition("## Versions")[2]
    assert [line.split(" | ")[:3] for line in table.strip().split("\n")[2:]] == [
        ["| 10", "300", "int8"],
        ["| 9", "12,000", "float32"],
    ]


def test_the_same_versions_have_the_same_card(out):
    card = model_card(publish(out, 1, FINETUNED))
    (out / "README.md").write_text("an older one")
    write_model_card(out)
    assert (out / "README.md").read_text() == card == model_card(out)
    assert sorted(path.name for path in out.iterdir()) == ["1", "1.keras", "README.md"]


@pytest.mark.parametrize("kind", OF_KINDS)
def test_the_request_is_one_that_the_model_takes(out, kind):
    inputs, key = OF_KINDS[kind]
    signatures = {
        name: {"inputs": {field: ["string", [None]] for field in fields}, "outputs": {}}
        for name, fields in inputs.items()
    }
    task = FINETUNED["task"] | {"kind": kind, "takes_pair": kind == "classification"}
    record = FINETUNED | {"signatures": signatures, "task": task}
    card = model_card(publish(out, 1, record))
    script = re.findall("```sh\n(.*?)\n```", card, re.DOTALL)[1]
    words = shlex.split(script.replace("\\\n", ""))
    assert words[:2] == ["curl", "http://127.0.0.1:8501/v1/models/books:predict"]
    assert words[words.index("-H") + 1] == "Content-Type: application/json"
    body = json.loads(words[words.index("--data") + 1])
    [row] = body["instances"]
    asked = body.get("signature_name", "serving_default")
    assert set(row if isinstance(row, dict) else {"text"}) == set(inputs[asked])
    assert asked == next(iter(inputs)) and (key is None or row[key])


@pytest.mark.slow
def test_its_python_runs_in_the_folder_of_an_export(tiny_export):
    snippets = re.findall("```python\n(.*?)\n```", model_card(tiny_export), re.DOTALL)
    assert len(snippets) == 2
    for snippet in snippets:
        command = [sys.executable, "-c", snippet]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tiny_export)
        assert done.returncode == 0, done.stderr
        assert "in_order" in done.stdout or "tf.Tensor" in done.stdout


def test_the_scores_of_baselines_stand_beside_those_of_the_model(out):
    baselines = {"majority": 0.5092, "bag_of_words": 0.7821, "random": 0.7969}
    card = model_card(publish(out, 1, FINETUNED | {"baselines": baselines}))
    scores = card.split("## Scores")[1].split("## ")[0]
    assert "| f1 (of positive) | 0.9 |" in scores
    assert scores.count("| accuracy") == 2 and "| this model | 0.9128 |" in scores
    assert "| always the most frequent answer | 0.5092 |" in scores
    assert "| a linear model on counts of words and word pairs (bag of words) | 0.7821 |" in scores
    assert "| the same model trained from random weights | 0.7969 |" in scores
    assert "no better" not in card


def test_a_model_that_is_no_better_than_a_baseline_says_so(out):
    baselines = {"bag_of_words": 0.92, "majority": "<b>", "unknown": 2.0}
    card = model_card(publish(out, 1, FINETUNED | {"baselines": baselines}))
    assert "**This model is no better than a linear model on counts of words" in card
    assert "<b>" not in card and "unknown" not in card
