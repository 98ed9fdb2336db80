"""RACE from files in all layouts to features, answers and scores."""

import json

import numpy as np
import pytest

from albert_keras.models.answers import ChoiceAnswer, choice_answers
from albert_keras.models.multiple_choice import AlbertMultipleChoicePreprocessor
from albert_keras.tasks.choice.task import ChoiceTask
from albert_keras.tasks.examples import ChoiceExample
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

OPTIONS = ("at noon", "at night", "in the long and cold spring", "never")
CONTEXT = "The ferry left at noon.\nIt came back at night."
EXAMPLES = [
    ChoiceExample("m1", CONTEXT, "The ferry left _ .", OPTIONS, 0, "middle"),
    ChoiceExample("m2", CONTEXT, "When did it come back?", OPTIONS, 1, "middle"),
    ChoiceExample("h1", "Rain fell.", "Why _?", OPTIONS, 1, "high"),
]


def task(**settings):
    return ChoiceTask(TaskConfig(name="race", **settings))


def answered(*choices, examples=EXAMPLES):
    """Returns answers with options of these numbers, to one of four which is the most likely."""
    values = (0.1 + 0.6 * np.eye(4)[list(choices)]).tolist()
    ids, options = [one.id for one in examples], [one.options for one in examples]
    return choice_answers(ids, options, values, choices)


def passage(count=2, **changes):
    content = {"article": CONTEXT, "questions": ["Why _?"] * count, "options": [OPTIONS] * count}
    return json.dumps({**content, "answers": ["B"] * count, "id": "p", **changes})


def write(path, *passages):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(passages), encoding="utf-8", newline="")
    return path


def test_the_original_layout_is_read_in_the_order_of_numbers(tmp_path):
    for split in ("train", "dev", "test"):
        for number in ("10", "9"):
            path = tmp_path / f"RACE/{split}/middle/{number}.txt"
            write(path, passage(id=f"{split}{number}"))
        write(tmp_path / f"RACE/{split}/high/1.txt", passage(1, id=f"{split}high"))
    race = task(data_dir=str(tmp_path))
    for split in ("train", *race.dev_splits, *race.labelled_tests):
        ids = [f"{split}9-1", f"{split}9-2", f"{split}10-1", f"{split}10-2", f"{split}high-1"]
        assert [one.id for one in race.read(split)] == ids
    examples = race.read("dev")
    assert examples[1] == ChoiceExample("dev9-2", CONTEXT, "Why _?", OPTIONS, 1, "middle")
    assert [one.level for one in examples] == ["middle"] * 4 + ["high"]
    assert task(data_dir=str(tmp_path), levels=("high",)).read("dev") == examples[4:]
    with pytest.raises(InputError, match="`data_dir` must be .* there is no `RACE/train`"):
        task(dev="own").read("train")


def test_files_elsewhere_are_read_with_or_without_answers(tmp_path):
    read = task().read_file
    lines = "\ufeff" + passage(id="x"), "\r", passage(1, id="y")
    several = write(tmp_path / "any.jsonl", *lines)
    found = [(one.id, one.level) for one in read(several, True)]
    assert found == [("x-1", ""), ("x-2", ""), ("y-1", "")]
    content = json.loads(passage(1))
    del content["answers"], content["id"]
    path = write(tmp_path / "high" / "x.jsonl", json.dumps(content))
    (example,) = read(path, labelled=False)
    assert (example.id, example.label, example.level) == ("high-x.jsonl-1-1", None, "high")
    with pytest.raises(InputError, match="line 1 must have an answer, A to D"):
        read(path, labelled=True)


def test_any_number_of_options_may_be_typed():
    fields = {"context": CONTEXT, "question": "When?", "options": ["at noon", "never", "now"]}
    example = task().typed_example(7, fields)
    assert example == ChoiceExample("7", CONTEXT, "When?", ("at noon", "never", "now"))
    bad = {**fields, "options": ["one"]}, {**fields, "options": "ab"}, {**fields, "question": 1}
    for one in (*bad, {"context": CONTEXT}, {**fields, "text": "x"}):
        with pytest.raises(InputError, match="must"):
            task().typed_example(0, one)


@pytest.mark.parametrize(
    "question, text",
    [
        ("Why?", r"Why? be\1t"),
        (" The _ and  the _. ", r"The be\1t and  the be\1t."),
        ("A ＿ wins.", r"A be\1t wins."),
        ("", r" be\1t"),
        ("__", r"be\1tbe\1t"),
    ],
)
def test_an_option_fills_the_blanks_or_follows(question, text, tiny_tokenizer):
    rows = AlbertMultipleChoicePreprocessor(tiny_tokenizer)
    stripped = (rows._stripped([part]) for part in (question, r" be\1t "))
    assert rows._filled(*stripped).numpy()[0].decode() == text


def test_real_questions_are_read_and_their_answers_score_full_marks(shared_data):
    race = task(data_dir=str(shared_data / "race"))
    examples = race.read("dev")
    assert [len(race.read(split)) for split in ("train", "dev", "test")] == [314, 112, 116]
    answers = answered(*[one.label for one in examples], examples=examples)
    assert set(race.scores(examples, answers).values()) == {1.0}
    assert race.errors(examples, answers) == []


def test_scores_and_what_went_wrong():
    answers = answered(0, 2, 1)
    expected = {"accuracy": pytest.approx(2 / 3), "accuracy_middle": 0.5, "accuracy_high": 1.0}
    assert task().scores(EXAMPLES, answers) == expected
    (error,) = task().errors(EXAMPLES, answers)
    assert error.texts == (
        EXAMPLES[1].context,
        "When did it come back?",
        "A: at noon B: at night C: in the long and cold spring D: never",
    )
    assert (error.truth, error.answer) == ("B: at night", "C: in the long and cold spring")
    assert error.confidence == answers[1].probability
    surer = answers[0]._replace(choice=3, probability=0.9)
    errors = task().errors(EXAMPLES, [surer, *answers[1:]])
    assert [error.id for error in errors] == ["m1", "m2"]


def test_collapse_and_guesses():
    guesses = task().guesses(EXAMPLES, EXAMPLES[:2])
    shares = (pytest.approx(1 / 3), pytest.approx(2 / 3), 0.0, 0.0)
    assert guesses[1] == ChoiceAnswer("m2", 1, "at night", pytest.approx(2 / 3), shares)
    assert task().collapse(guesses) == "all 2 answers are `B`"
    assert task().collapse(answered(0, 1, 1)) is None
