"""RACE from files to scores, with what a model would give made up."""

import json

import numpy as np
import pytest

from albert_keras.tasks.choice.task import ChoiceAnswer, ChoiceTask
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


def outputs(*choices, options=4, sure=2.0):
    return {"logits": sure * np.eye(options, dtype=np.float32)[list(choices)]}


def answered(*choices):
    return task().answers(EXAMPLES, None, outputs(*choices))


def passage(count=2, **changes):
    content = {"article": CONTEXT, "questions": ["Why _?"] * count, "options": [OPTIONS] * count}
    return json.dumps({**content, "answers": ["B"] * count, "id": "p", **changes})


def write(path, *passages):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(passages), encoding="utf-8")
    return path


def test_labels_are_needed_in_training_only(tiny_tokenizer):
    examples = [EXAMPLES[0], EXAMPLES[1]._replace(label=None)]
    assert "labels" not in task().features(examples, tiny_tokenizer).batch([0])
    with pytest.raises(InputError, match="1 have none, the first is 'm2'"):
        task().features(examples, tiny_tokenizer, training=True)
    with pytest.raises(InputError, match="at least one question"):
        task().features([], tiny_tokenizer)


def test_any_number_of_options_may_be_typed(tiny_tokenizer):
    fields = {"context": CONTEXT, "question": "When?", "options": ["at noon", "never", "now"]}
    example = task().example(7, fields)
    assert example == ChoiceExample("7", CONTEXT, "When?", ("at noon", "never", "now"))
    features = task().features([example, example], tiny_tokenizer)
    assert features.batch([0, 1], 64)["input_ids"].shape == (2, 3, 64)
    answers = task().answers([example, example], features, outputs(2, 1, options=3))
    assert [answer.option for answer in answers] == ["now", "never"]
    bad = {**fields, "options": ["one"]}, {**fields, "options": "ab"}, {**fields, "question": 1}
    for one in (*bad, {"context": CONTEXT}, {**fields, "text": "x"}):
        with pytest.raises(InputError, match="must"):
            task().example(0, one)


def test_the_most_probable_option_is_chosen():
    found = outputs(3, 1, 2, sure=4.0)
    answers = task().answers(EXAMPLES, None, found)
    assert [answer.choice for answer in answers] == [3, 1, 2]
    weights = np.exp(found["logits"][0].astype(float))
    expected = weights / weights.sum()
    np.testing.assert_allclose(answers[0].probabilities, expected, rtol=1e-12)
    assert answers[0].probability == max(answers[0].probabilities)
    assert answers[0].option == "never"
    assert json.loads(json.dumps(answers[0]._asdict()))["choice"] == 3


def test_scores_and_what_went_wrong():
    answers = answered(0, 2, 1)
    assert task().scores(EXAMPLES, answers) == {
        "accuracy": pytest.approx(2 / 3), "accuracy_middle": 0.5, "accuracy_high": 1.0
    }  # fmt: skip
    matrix, names = task().confusion(EXAMPLES, answers)
    assert names == ("A", "B", "C", "D")
    assert matrix.tolist() == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    (error,) = task().errors(EXAMPLES, answers)
    assert error.text == (
        "When did it come back? ||| A: at noon B: at night C: in the long and cold spring "
        "D: never ||| The ferry left at noon. It came back at night."
    )
    assert (error.truth, error.answer) == ("B: at night", "C: in the long and cold spring")
    assert error.confidence == answers[1].probability
    surer = answers[0]._replace(choice=3, probability=0.9)
    errors = task().errors(EXAMPLES, [surer, *answers[1:]])
    assert [error.id for error in errors] == ["m1", "m2"]


def test_collapse_and_guesses(tmp_path):
    guesses = task().guesses(EXAMPLES, EXAMPLES[:2])
    shares = (pytest.approx(1 / 3), pytest.approx(2 / 3), 0.0, 0.0)
    assert guesses[1] == ChoiceAnswer("m2", 1, "at night", pytest.approx(2 / 3), shares)
    assert task().collapse(guesses) == "all 2 answers are `B`"
    assert task().collapse(answered(0, 1, 1)) is None
    assert task().collapse(guesses[:1]) is None
    (path,) = task().write(tmp_path, "dev", EXAMPLES[:2], guesses)
    assert path.name == "predictions-dev.jsonl"
    assert json.loads(path.read_text().splitlines()[1])["option"] == "at night"


def test_splits_come_from_the_folder_or_from_files(tmp_path):
    for split in ("train", "dev", "test"):
        write(tmp_path / f"RACE/{split}/high/1.txt", passage(id=split))
        write(tmp_path / f"RACE/{split}/middle/1.txt", passage(id=split))
    race = task(data_dir=str(tmp_path), levels=("high",))
    for split in ("train", *race.dev_splits, *race.labelled_tests):
        assert [one.id for one in race.read(split)] == [f"{split}-1", f"{split}-2"]
    assert len(task(data_dir=str(tmp_path)).read("test")) == 4
    own = write(tmp_path / "own.jsonl", passage(1, id="x"))
    assert [one.id for one in task(dev=str(own)).read("dev")] == ["x-1"]
    with pytest.raises(InputError, match="`data_dir` must be .* there is no `RACE/train`"):
        task(dev=str(own)).read("train")
    with pytest.raises(InputError, match="The split `eval` of race is unknown"):
        race.read("eval")


def test_files_and_folders_elsewhere_are_read(tmp_path):
    several = write(tmp_path / "any.jsonl", passage(id="x"), "", passage(1, id="y"))
    read = task().read_file
    assert [(one.id, one.level) for one in read(several, True)] == [
        ("x-1", ""), ("x-2", ""), ("y-1", "")
    ]  # fmt: skip
    spread = json.dumps(json.loads(passage(1, id="z")), indent=1)
    one = write(tmp_path / "split/high/1.txt", spread)
    write(tmp_path / "split/middle/1.txt", passage(1, id="m"))
    assert [example.id for example in read(one, True)] == ["z-1"]
    assert [(example.id, example.level) for example in read(tmp_path / "split/high", True)] == [
        ("z-1", "high")
    ]
    assert [example.id for example in read(tmp_path / "split", True)] == ["m-1", "z-1"]
    with pytest.raises(InputError, match="none.txt` must be a file of RACE, or a folder"):
        read(tmp_path / "none.txt", True)


def test_answers_are_there_if_they_should_be(tmp_path):
    content = json.loads(passage(1))
    del content["answers"], content["id"]
    path = write(tmp_path / "x.jsonl", json.dumps(content))
    (example,) = task().read_file(path, labelled=False)
    assert (example.id, example.label) == ("x.jsonl-1-1", None)
    with pytest.raises(InputError, match="line 1 must have an answer, A to D"):
        task().read_file(path, labelled=True)


def test_gold_answers_to_the_real_corpus_score_full_marks(shared_data):
    race = task(data_dir=str(shared_data / "race"))
    examples = race.read("dev")
    answers = race.answers(examples, None, outputs(*[one.label for one in examples]))
    assert race.scores(examples, answers) == {
        "accuracy": 1.0, "accuracy_middle": 1.0, "accuracy_high": 1.0
    }  # fmt: skip
    assert race.errors(examples, answers) == []
