"""SQuAD 1.1 and 2.0 from files to scores, with what a model would give made up."""

import json

import numpy as np
import pytest

from albert_keras.models.answers import SpanAnswer
from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.spans.scores import official_scores
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from tests.albert_keras.tasks.small_tasks import rows_for, write_squad

CONTEXT = "The old ferry left the  harbour before sunrise, and nobody (but me) wondered why."
EXAMPLES = [
    QuestionExample(
        "a", "What left?", CONTEXT, (Answer("old ferry", 4), Answer("ferry", 8)), False
    ),
    QuestionExample("b", "Who sang?", CONTEXT, (), True),
    QuestionExample("c", "Left what?", CONTEXT, (Answer("the  harbour", 19),), False),
    QuestionExample("d", "When?", "Before sunrise.", (Answer("Before sunrise", 0),), False),
]
ANSWERABLE = [example for example in EXAMPLES if example.answers]


def task(name="squad2", **settings):
    return build_task(TaskConfig(name=name, **settings))


def small(name="squad2", **settings):
    return task(name, max_seq_length=32, doc_stride=8, max_query_length=8, **settings)


def golden(examples, nulls):
    """Returns what a model answers that knows the first answer to each question."""
    found = []
    for example, null in zip(examples, nulls, strict=True):
        text, start = example.answers[0] if example.answers else ("The", 0)
        best = {"text": text, "probability": 0.5, "start_log_prob": -1.0, "end_log_prob": -0.5}
        end = start + len(text)
        found.append(SpanAnswer(example.id, text, 0.5, start, end, null, [best]))
    return found


def test_at_the_threshold_a_question_is_not_answered():
    squad, nulls = small(), [-1.0, 1.0, 0.0, -0.125]
    answers = [answer.at_threshold(0.0) for answer in golden(EXAMPLES, nulls)]
    assert [answer.text for answer in answers] == ["old ferry", "", "", "Before sunrise"]
    assert [answer.null_score for answer in answers] == nulls
    empty = answers[2]
    assert (empty.start, empty.end, empty.probability) == (None, None, 0.5)
    assert empty.nbest[0]["text"] == "the  harbour"
    assert squad.scores(EXAMPLES, answers) == {
        "f1": 75.0, "exact": 75.0, "total": 4,
        "HasAns_exact": 200 / 3, "HasAns_f1": 200 / 3, "HasAns_total": 3,
        "NoAns_exact": 100.0, "NoAns_f1": 100.0, "NoAns_total": 1,
    }  # fmt: skip


def test_the_threshold_is_tuned_on_answers_to_all_questions():
    squad = small()
    # Only answering a, d and c is best; b, at 2.5, is a question without an answer.
    known = golden(EXAMPLES, [1.0, 2.5, 2.0, 1.5])
    answers, tuned = squad.fit_thresholds(EXAMPLES, known)
    assert tuned == {"null_threshold": np.nextafter(np.float32(2.0), np.float32(3.0))}
    assert [answer.text for answer in answers] == [
        "old ferry",
        "",
        "the  harbour",
        "Before sunrise",
    ]


def test_training_wants_one_answer_that_leaves_something(tiny_tokenizer):
    two = EXAMPLES[0]
    for example, count in ((two, 2), (two._replace(answers=()), 0)):
        with pytest.raises(InputError, match=f"'a' must have exactly one answer.*: {count}"):
            rows_for(small(), [example], tiny_tokenizer, training=True)
    lost = two._replace(context="\x07 why", answers=(Answer("\x07", 0),))
    with pytest.raises(InputError, match="must contain text that remains after"):
        rows_for(small(), [lost], tiny_tokenizer, training=True)
    with pytest.raises(InputError, match="at least one example with a token"):
        empty = EXAMPLES[1]._replace(context=" ")
        rows_for(small(), [empty], tiny_tokenizer, training=True)


@pytest.mark.parametrize("name", ["squad1", "squad2"])
def test_the_official_files_are_written(name, tmp_path):
    squad = small(name)
    examples = ANSWERABLE if name == "squad1" else EXAMPLES
    nulls = [None] * 3 if name == "squad1" else [-4.0, 3.0, -4.0, -4.0]
    answers = [one.at_threshold(0.0) for one in golden(examples, nulls)]
    paths = squad.write(tmp_path / "new", "test", examples, answers)
    names = ["predictions.json", "nbest_predictions.json", "null_odds.json"]
    assert [path.name for path in paths] == names[: 2 if name == "squad1" else 3]
    predictions = json.loads(paths[0].read_text())
    version = 1 if name == "squad1" else 2
    assert official_scores(examples, predictions, version) == squad.scores(examples, answers)
    nbest = json.loads(paths[1].read_text())
    keys = "text", "probability", "start_log_prob", "end_log_prob"
    assert {tuple(one) for texts in nbest.values() for one in texts} == {keys}
    if name == "squad2":
        assert json.loads(paths[2].read_text()) == {"a": -4.0, "b": 3.0, "c": -4.0, "d": -4.0}


def answer(example, text, probability=0.5):
    start = example.context.find(text) if text else None
    return SpanAnswer(example.id, text, probability, start, None, 0.0, [])


def test_wrong_answers_are_told_the_worst_first():
    texts = ("left the", 0.3), ("nobody", 0.8), ("harbour before", 0.9), ("Before sunrise", 0.99)
    answers = [answer(*pair) for pair in zip(EXAMPLES, *zip(*texts, strict=True), strict=True)]
    errors = small().errors(EXAMPLES, answers)
    assert [error.id for error in errors] == ["b", "a", "c"]  # c has a right word
    assert errors[1] == (
        "a",
        (CONTEXT, "What left?"),
        "old ferry | ferry",
        "left the",
        0.3,
    )
    long = EXAMPLES[0]._replace(context="x " * 400 + CONTEXT, answers=(Answer("ferry", 808),))
    (error,) = small("squad1").errors([long], [answer(long, "me")])
    shown = error.texts[0]
    assert len(shown) < 400 and "…x x" in shown and "old ferry left" in shown


def test_collapse_and_guesses():
    squad = small()
    guesses = squad.guesses(EXAMPLES, EXAMPLES)
    assert squad.scores(EXAMPLES, guesses)["f1"] == 25.0
    assert guesses[0] == SpanAnswer("a", "", 0.25, None, None, None, [])
    assert small("squad1").guesses(ANSWERABLE, ANSWERABLE) is None
    assert squad.collapse(guesses) == "all 4 answers are no answer"
    same = [answer(example, "sunrise") for example in EXAMPLES]
    assert squad.collapse(same) == "all 4 answers are `sunrise`"
    assert squad.collapse([*same, answer(EXAMPLES[0], "ferry")]) is None
    assert squad.collapse(same[:1]) is None


def test_files_have_their_official_names_or_are_given(tmp_path):
    write_squad(tmp_path / "dev-v2.0.json", EXAMPLES[0])
    assert task(data_dir=str(tmp_path)).read("dev") == EXAMPLES[:1]
    own = write_squad(tmp_path / "own.json", EXAMPLES[1])
    assert task(data_dir=str(tmp_path), dev=str(own)).read("dev") == EXAMPLES[1:2]
    with pytest.raises(InputError, match="`data_dir` must be .* there is no `train-v1.1.json`"):
        task("squad1").read("train")


def test_a_question_may_be_typed():
    fields = {"question": "Who?", "context": CONTEXT}
    assert task().typed_example(3, fields) == QuestionExample("3", "Who?", CONTEXT)
    for bad in ({"question": "Who?"}, {**fields, "text": "x"}, {**fields, "context": 1}, {}):
        with pytest.raises(InputError, match="must"):
            task().typed_example(0, bad)
