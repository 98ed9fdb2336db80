import json

import pytest

from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.spans.files import NULL_ODDS, PREDICTIONS, read_questions
from albert_keras.tasks.spans.scores import official_scores
from albert_keras.tasks.tables.rows import read_checked
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


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda q: q.pop("id"), "[0]`) `id` is missing."),
        (lambda q: q.update(id="q2"), "[1]`) must have an `id` of its own. Received: 'q2', as in"),
        (
            lambda q: q["answers"][0].update(answer_start="x"),
            "[0]`) `answers[0].answer_start` must",
        ),
        (lambda q: q["answers"].append("x"), '[0]`) `answers[2]` must be an object. Received: "x"'),
        (
            lambda q: q["answers"][0].update(answer_start=15),
            "[0]`) must have answers that are in the context at `answer_start`. "
            "Received: 'Rome' at 15, where the context has 'ome.'",
        ),
        (lambda q: q["answers"][0].update(text=" "), "[0]`) must have answers with a text"),
    ],
)
def test_a_broken_question_is_named(damage, message, write):
    file = content()
    damage(file["data"][0]["paragraphs"][0]["qas"][0])
    with pytest.raises(InputError) as error:
        read_questions(write(file))
    assert f"`data[0].paragraphs[0].qas{message}" in str(error.value)


def test_predictions_and_null_scores_are_read(write):
    assert read_checked(PREDICTIONS, write({"q1": "Rome", "q2": ""})) == {"q1": "Rome", "q2": ""}
    assert read_checked(NULL_ODDS, write({"q1": -3, "q2": 0.5})) == {"q1": -3.0, "q2": 0.5}
    with pytest.raises(InputError, match="`q1` must be a valid string. Received: 5"):
        read_checked(PREDICTIONS, write({"q1": 5}))
    with pytest.raises(InputError, match="`q1` must be a valid number. Received: true"):
        read_checked(NULL_ODDS, write({"q1": True}))
    with pytest.raises(InputError, match="`q1` must be a finite number. Received: NaN"):
        read_checked(NULL_ODDS, write(b'{"q1": NaN}'))


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


def test_files_of_other_programs_are_read(write):
    """Whole numbers as ids, white space at the ends of answers, blanks for "no answer"."""
    file = content()
    first, second = file["data"][0]["paragraphs"][0]["qas"]
    first["id"], first["answers"] = (
        7,
        [
            {"text": " Rome ", "answer_start": 13},  # the position of the white space
            {"text": " lives", "answer_start": 5},  # the position of the text
        ],
    )
    second["answers"] = [{"text": "", "answer_start": -1}]
    found = read_questions(write(file))
    assert found[0].id == "7" and found[0].answers == (Answer("Rome", 14), Answer("lives", 5))
    assert found[1].answers == () and found[1].is_impossible


def test_what_the_official_scripts_read_is_read_and_told(write, caplog):
    """Version 2.0 scores the answers of a question, whether or not it is called impossible."""
    file = content()
    first, second = file["data"][0]["paragraphs"][0]["qas"]
    first["answers"][0]["answer_start"] = " 14"
    del second["is_impossible"]
    remarks = []
    found = read_questions(write(file), version=2, remarks=remarks)
    assert found[0].answers[0] == Answer("Rome", 14)
    assert found[1].is_impossible and found[1].answers == ()
    assert "1 questions have no answers and no `is_impossible`, and are read as imp" in remarks[0]
    assert "the first is data[0].paragraphs[0].qas[1]" in remarks[0] and remarks[0] in caplog.text
    first["is_impossible"] = True
    train, dev = (
        read_questions(write(file), is_training, 2, remarks=remarks)
        for is_training in (True, False)
    )
    assert train[0].answers == () and train[0].is_impossible
    assert [answer.text for answer in dev[0].answers] == ["Rome", "in Rome"]
    assert official_scores(dev, {"q1": "Rome", "q2": ""}, 2)["HasAns_total"] == 1
    assert "1 questions are impossible and have answers, with which they are scored" in remarks[-1]
    for changes, version in (({"is_impossible": False}, 2), ({}, 1)):
        second |= changes
        with pytest.raises(InputError, match="must have an answer"):
            read_questions(write(file), version=version)


def test_scores_need_no_positions(write):
    file = content()
    file["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] = -1
    path = write(file)
    with pytest.raises(InputError, match="Received: 'Rome' at -1, .* with `skip_bad_rows=True`"):
        read_questions(path)
    scored = read_questions(path, needs_positions=False)  # scores compare texts
    assert scored[0].answers[0] == Answer("Rome", 14)
    del file["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"]
    assert read_questions(write(file), needs_positions=False)[0].answers == scored[0].answers


def test_questions_with_a_passage_each_are_read(write, tmp_path):
    """As the package datasets writes them: a list of each part, and no answer is impossible."""
    rows = [
        {"id": one.id, "question": one.question, "context": one.context, "answers": answers}
        for one, answers in zip(
            read_questions(write(content())),
            ({"text": ["Rome", "in Rome"], "answer_start": [14, 11]}, {"text": []}),
            strict=True,
        )
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for path in (tmp_path / "x.jsonl", write({"data": rows})):
        found = read_questions(path, version=2)
        assert [one.answers for one in found] == [(Answer("Rome", 14), Answer("in Rome", 11)), ()]
        assert found[1].is_impossible


def test_why_an_answer_is_not_there_is_told(write):
    file = content()
    [answer, _] = file["data"][0]["paragraphs"][0]["qas"][0]["answers"]
    answer["answer_start"] = None
    with pytest.raises(InputError, match="Received: 'Rome' at null"):
        read_questions(write(file))
    answer |= {"text": "Ro\u0308me", "answer_start": 14}
    with pytest.raises(InputError) as error:
        read_questions(write(file))
    assert "another form" not in str(error.value)
    answer["answer_start"], answer["text"] = 5, "Rome"
    with pytest.raises(InputError, match="It is there at 14."):
        read_questions(write(file))
    answer |= {"text": "Ro\u0308me", "answer_start": 14}
    file["data"][0]["paragraphs"][0]["context"] = CONTEXT.replace("Rome", "R\xf6me")
    file["data"][0]["paragraphs"][0]["qas"][0]["answers"] = [answer]
    with pytest.raises(InputError, match="where the context has 'Röme.'. It is there in another f"):
        read_questions(write(file))
    remarks = []
    read_questions(write(file), needs_positions=False, remarks=remarks)
    file["data"][0]["paragraphs"][0]["context"] = CONTEXT.replace("Rome", "Rome’s")
    answer["text"] = "Rome's"
    with pytest.raises(InputError, match="another form: Unicode"):
        read_questions(write(file))
    assert "1 questions have answers that their context has in another form" in remarks[0]


def test_lists_of_articles_or_passages_are_read(write):
    articles = content()["data"]
    for data in (articles, articles[0]["paragraphs"]):
        assert read_questions(write(data)) == read_questions(write(content()))
    with pytest.raises(InputError, match='must be an object with the key `data`. Received: "x"'):
        read_questions(write("x"))
