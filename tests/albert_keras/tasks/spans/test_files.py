import json

import pytest

from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.spans.files import read_questions
from data_pipeline.errors import InputError

CONTEXT = "Anna lives in Rome. Rome is old."


def content():
    """Returns a small file of version 2.0."""
    answerable = {
        "id": "q1",
        "question": "Where?",
        "answers": [{"text": "Rome", "answer_start": 14}, {"text": "in Rome", "answer_start": 11}],
        "is_impossible": False,
    }
    impossible = {
        "id": "q2",
        "question": "When?",
        "answers": [],
        "is_impossible": True,
        "plausible_answers": [{"text": "old", "answer_start": 28}],
    }
    paragraph = {"context": CONTEXT, "qas": [answerable, impossible]}
    return {"version": "v2.0", "data": [{"title": "Cities", "paragraphs": [paragraph]}]}


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "squad.json"
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        path.write_bytes(content)
        return path

    return write


def test_questions_come_in_order_with_everything_that_is_known(write):
    assert read_questions(write(content())) == [
        QuestionExample(
            "q1", "Where?", CONTEXT, (Answer("Rome", 14), Answer("in Rome", 11)), False
        ),
        QuestionExample("q2", "When?", CONTEXT, (), True),
    ]


def test_an_id_occurs_once(write):
    file = content()
    file["data"][0]["paragraphs"][0]["qas"][0]["id"] = "q2"
    with pytest.raises(InputError, match=r"qas\[1\]`\) must have an `id` of its own. Rec.*'q2'"):
        read_questions(write(file))


@pytest.mark.parametrize(
    "name, questions, answers, impossible",
    [
        ("dev-v1.1.json", 4961, 17778, 0),
        ("train-v2.0.slice.json", 3250, 1506, 1744),
        ("dev-v2.0.slice.json", 2828, 5186, 1424),
    ],
)
def test_real_files_have_their_known_counts(name, questions, answers, impossible, shared_data):
    examples = read_questions(shared_data / "squad" / name)
    assert len(examples) == questions
    assert sum(len(example.answers) for example in examples) == answers
    assert sum(bool(example.is_impossible) for example in examples) == impossible


def test_white_space_around_an_answer_does_not_belong_to_it(write):
    file = content()
    file["data"][0]["paragraphs"][0]["qas"][0]["answers"] = [{"text": " Rome", "answer_start": 13}]
    assert read_questions(write(file))[0].answers == (Answer("Rome", 14),)


def test_scores_need_no_positions(write):
    file = content()
    file["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] = -1
    path = write(file)
    with pytest.raises(InputError, match="Received: 'Rome' at -1, .* with `skip_bad_rows=True`"):
        read_questions(path)
    scored = read_questions(path, needs_positions=False)  # scores compare texts
    assert scored[0].answers[0] == Answer("Rome", 14)
