"""Examples that were trained on are never scored as held-out ones in silence."""

import json
from pathlib import Path

import pytest

from albert_keras.cli.evaluate import describe_task
from albert_keras.runs.trained_data import Overlap
from albert_keras.tasks.evaluate import evaluate_task
from albert_keras.tasks.examples import (
    Answer,
    ChoiceExample,
    QuestionExample,
    TaggedExample,
    TextExample,
)
from albert_keras.tasks.results import lines, read_results
from albert_keras.tasks.task_data import digest_rows
from data_pipeline.errors import InputError

FLAGS = {"steps": 2, "batch_size": 4, "max_seq_length": 16, "precision": "float32"}
FLAGS |= {"task": "classification", "text": "text", "label": "label"}
TRAINED = [f"the ferry left at {hour}" for hour in range(20)]
OTHERS = [f"the train left at {hour}" for hour in range(10)]


def write(path, texts):
    rows = [f"{text}\t{'ab'[number % 2]}" for number, text in enumerate(texts)]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def start(tune, end_at_once):
    """Returns a function that fine-tunes on TRAINED, without a training step."""

    def start(out, dev=None, origin="random", train=TRAINED):
        train = write(out.parent / f"{out.name}-train.tsv", train)
        with end_at_once():
            return tune(out, None, origin, train=train, dev=dev, **FLAGS)

    return start


@pytest.fixture(scope="module")
def partial(start, tmp_path_factory):
    """Returns the folder of a fine-tuning, 6 of whose 8 development examples were trained on."""
    folder = tmp_path_factory.mktemp("partial")
    changed = [text.upper() + " " for text in TRAINED[4:6]]
    dev = write(folder / "dev.tsv", TRAINED[:4] + changed + OTHERS[:2])
    return Path(start(folder / "out", dev).path)


def test_a_row_is_what_a_model_reads():
    same = [
        TextExample("0", "A \ufb01lm", None, "x"),
        TextExample("7", "a  FILM ", None, "y"),
    ]
    question = QuestionExample("0", "who?", "Ada slept.", (Answer("Ada", 0),))
    choice = ChoiceExample("1", "Ada slept.", "who?", ("a", "b"), 1)
    tagged = TaggedExample("0", ("Ada", "slept"), ("B", "O"))
    pair = TextExample("0", "Ada", "slept")
    for first, second in (same, (question, choice), (tagged, pair)):
        assert digest_rows([first]).values == digest_rows([second]).values
    others = [TextExample("0", "Ada slept"), pair, TextExample("0", "Ada", "")]
    assert len(set(digest_rows(others).values.tolist())) == 3


def test_development_examples_that_were_trained_on_are_counted(partial):
    expected = {"dev": {"rows": 8, "normalised": 6, "is_estimate": False}}
    result = read_results(partial)
    assert result.overlap == expected
    run = json.loads((partial / "seed-12345" / "run.json").read_text())
    assert run["data"]["overlap"] == expected
    (line,) = [line for line in lines(result) if "trained on" in line]
    assert line.startswith("warning: 6 of 8 rows of dev were trained on: these are not held-out")


def test_only_scores_of_other_rows_give_a_verdict(partial, tmp_path):
    verdicts = [
        evaluate_task(partial, write(tmp_path / f"{count}.tsv", texts)).verdict
        for count, texts in ((2, [*OTHERS, *TRAINED[:2]]), (0, OTHERS))
    ]
    assert verdicts[0] is None and verdicts[1] is not None
    assert Overlap(100, 10).is_large and not Overlap(100, 9).is_large


def test_the_training_file_is_not_evaluated_unless_it_is_allowed(partial, tmp_path):
    data = write(tmp_path / "again.tsv", TRAINED[5:15])
    with pytest.raises(InputError, match="not trained on.*10 rows.*`allow_trained_rows=True`"):
        evaluate_task(partial, data)
    shown = describe_task(evaluate_task(partial, data, allow_trained_rows=True))
    assert shown[0].endswith("10 examples, training scores")
    assert "  10 of 10 rows were trained on" in shown


def test_what_the_initial_weights_were_trained_on_counts(partial, start, tmp_path):
    dev = write(tmp_path / "dev.tsv", [*TRAINED[:5], "nobody knew"])
    result = start(tmp_path / "next", dev, f"{partial}/seed-12345", train=OTHERS)
    assert result.overlap["dev"]["normalised"] == 5
    with pytest.raises(InputError, match="9 of 9 rows of `old.tsv` were trained on"):
        evaluate_task(result.path, write(tmp_path / "old.tsv", TRAINED[:9]))
