"""What no program knows is on the card if `card.yaml` says so."""

import pytest

from albert_keras.cli import main
from albert_keras.serving.export.model_card import FACTS, model_card, read_card_facts
from albert_keras.serving.publish import export
from data_pipeline.errors import InputError
from tests.albert_keras.serving.card_records import PRETRAINED, publish

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
    return publish(tmp_path / "books", 1, PRETRAINED)


def test_the_card_has_every_fact(out):
    (out / FACTS).write_text(WHOLE)
    card = model_card(out)
    head = card.split("---")[1]
    assert "\nlanguage: en\nlicense: apache-2.0\n" in head
    assert "\nFor trying things out.\n" in card
    assert "\n## Texts\n\nOld texts.\n\n| Text | Words |\n| --- | --- |\n| 22 novels | 2,9" in card
    assert "\n## More results\n\nOf 67 paradigms.\n" in card
    limits = card[card.index("## Limits") : card.index("## Scores")]
    assert "\n- It knows few words of after 1920.\n- It knows what its training data say" in limits


def test_scores_of_counting_models_are_beside_those_of_the_model(tmp_path):
    scores = {"masked_lm_accuracy": 0.4213, "masked_lm_loss": 3.1}
    baselines = {"bigram": {"masked_lm_accuracy": 0.2072, "masked_lm_loss": 4.834}, "x": 3}
    record = PRETRAINED | {"scores": scores | {"baselines": baselines}}
    card = model_card(publish(tmp_path / "books", 1, record))
    assert "| this model | 0.4213 | 3.1 |\n| bigram | 0.2072 | 4.834 |\n" in card
    assert "| x |" not in card


@pytest.mark.parametrize(
    "text, message",
    [
        ("licence: [", "is not valid YAML"),
        ("license: mit", "`license` is not a known key. Did you mean `licence`?"),
        ("sections: [a]", "`sections`"),
    ],
)
def test_a_mistake_in_the_facts_is_named(out, tmp_path, text, message):
    (out / FACTS).write_text(text)
    with pytest.raises(InputError, match=message):
        read_card_facts(out)
    with pytest.raises(InputError, match=message):  # before any work
        export(tmp_path / "missing", out)


def test_the_command_writes_the_card_again(out, capsys):
    assert main(["export", "--card", "--out", str(out)]) == 0
    assert "without facts: there is no card.yaml" in capsys.readouterr().out
    (out / FACTS).write_text("description: A model of books.")
    assert main(["export", "--card", "--out", str(out)]) == 0
    assert "with the facts of card.yaml" in capsys.readouterr().out
    assert "\nA model of books.\n" in (out / "README.md").read_text()
    assert main(["export", "--card", "--out", str(out / "nothing")]) == 2
    assert "must be an exported model" in capsys.readouterr().err
