"""Files that are wrong in one way each end with one short message that says where."""

import json

import pytest

from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

CLASSES = {"name": "classification", "text": "text", "label": "label"}
NUMBERS = CLASSES | {"name": "regression"}
SEVERAL = CLASSES | {"label_separator": "|"}
COLUMNS = CLASSES | {"label": ("a", "b")}
BY_NUMBER = CLASSES | {"text": 0, "label": 1}
TAGS = {"name": "tagging"}
KNOWN = TAGS | {"labels": ("O", "B-PER")}
SQUAD1, SQUAD2, RACE = {"name": "squad1"}, {"name": "squad2"}, {"name": "race"}
GLUE = {name: {"name": name} for name in ("rte", "sts-b", "cola")}


def squad(**changes):
    question = {"id": "1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
    question |= {"is_impossible": False} | changes
    question = {name: value for name, value in question.items() if value is not ...}
    return json.dumps({"data": [{"paragraphs": [{"context": "Ada slept.", "qas": [question]}]}]})


def race(**changes):
    passage = {"article": "A b.", "questions": ["q"], "options": [list("wxyz")], "answers": ["A"]}
    return json.dumps(passage | changes)


WRONG = [
    # Tables
    (CLASSES, "a.csv", "text,label\nA,x\nB,y,z\n", "line 3 must have 2 columns, .* It has 3"),
    (CLASSES, "a.csv", "text,label\nA,x\nB\n", "line 3 must have 2 columns, .* It has 1"),
    (CLASSES, "a.csv", "text,label\nA,x\n\nB,y\n", "line 3 must have 2 columns, .* It has 0"),
    (CLASSES, "a.csv", 'text,label\n"A,x\nB,y\n', "line 2 must be CSV: unexpected end of data"),
    (CLASSES, "a.csv", 'text,label\n"A" b,x\n', "line 2 must be CSV: ',' expected after '\"'"),
    (CLASSES, "a.csv", "text:label\nA:x\n", "line 1 has no column `text`"),
    (CLASSES, "a.csv", "text,mood\nA,x\n", "line 1 has no column `label`. Expected one of: mood"),
    (CLASSES, "a.csv", "text,label\nA,x\nB, \n", "line 3 must have a name as label. Received: ' '"),
    (CLASSES, "a.tsv", "text\tlabel\nA\tx\n \ty\n", "line 3 `text` must be a text. It is blank"),
    (CLASSES, "a.tsv", b"text\tlabel\nA\xff\tx\n", r"line 2 must be UTF-8. Its byte 1 \(0xff\)"),
    (CLASSES, "a.tsv", b"\xff\xfet\0e\0", "must be UTF-8. Its byte 0"),
    (BY_NUMBER, "a.csv", "A;x\nB;y\n", "line 1 has no column 1: it has 1, counted from 0"),
    (CLASSES, "a.jsonl", '{"text": "A", "label": "x"}\n{"text": "B"}', "line 2 has no `label`"),
    (CLASSES, "a.jsonl", '{"text": "A", "label": "x"},', "line 1 must be a JSON object.* Extra"),
    (CLASSES, "a.jsonl", '{"text": 7, "label": "x"}', "line 1 `text` must be a text. Received: 7"),
    (CLASSES, "a.jsonl", '{"text": "A", "label": null}', "line 1 must have a name as label"),
    (CLASSES, "a.jsonl", '{"text": "A", "label": ["x"]}', "line 1 must have a name as label"),
    (CLASSES, "a.jsonl", "[1, 2]", r"line 1 must be a JSON object. Received: \[1, 2\]"),
    (CLASSES, "a.json", '{"text": "A", "label": "x"}', "line 1 must be a JSON array of objects"),
    (
        CLASSES,
        "a.json",
        '{"text": "A"}\n{"text": "B"}',
        "line 2 must be JSON, .*: Extra",
    ),
    (
        CLASSES,
        "a.json",
        '[{"text": "A", "label": "x"}, 3]',
        "entry 2 must be a JSON object. Received: 3",
    ),
    (NUMBERS, "a.csv", "text;label\nA;1.5\nB;0,5\n", "line 3 must have a number .*: '0,5'"),
    (NUMBERS, "a.csv", "text,label\nA,1\nB,1e39\n", "line 3 must have a number .*: '1e39'"),
    (
        SEVERAL,
        "a.jsonl",
        '{"text": "A", "label": ["x", "x"]}',
        "line 1 has the label `x` more than",
    ),
    (COLUMNS, "a.csv", "text,a,b\nA,0,1\nB,2,0\n", "line 3 must have 0 or 1 .* in `a`"),
    (CLASSES, "a.tsv", "text\tlabel\n", "must contain at least one row. It is empty."),
    (CLASSES, "a.tsv", "texts\tlabel\nA.\t1\n", "has no column `text`. Did you mean `texts`"),
    (CLASSES, "a.csv", "text\xa0,label\nA,1\n", r"no column `text`. Did you mean `text\\xa0`"),
    (CLASSES, "a.csv", "text,label\u200b\nA,1\n", r"no column `label`. .* `label\\u200b`"),
    (CLASSES, "a.tsv", "text\tlabel\ttext\nA\tx\tB\n", "a different name for each .* `text`"),
    (CLASSES, "a.csv", 'text,label\n"a\nb",x\n"c" d,x\n', "line 4 must be CSV: ',' expected"),
    (
        CLASSES,
        "a.jsonl",
        '{"text": "\\ud800", "label": "x"}',
        "`text` must be Unicode. It has half",
    ),
    (CLASSES, "a.jsonl", '{"text": "A", "label": "a", "label": "b"}', "has `label` more than once"),
    # Tags
    (TAGS, "a.conll", "Ada B-PER\nslept\n", "line 2 must have 2 columns, like the first one"),
    (TAGS, "a.conll", "Ada\nslept\n", "must have a column of words and one of tags"),
    (KNOWN, "a.conll", "Ada B-PER\nslept V\n", "line 1 has an unknown tag, `V` of `slept`"),
    (TAGS, "a.jsonl", '{"words": ["A", "b"], "tags": ["O"]}', "line 1 must have a tag for every"),
    (TAGS, "a.jsonl", '{"words": ["A"], "tags": [1]}', "line 1 has numbers as tags"),
    (TAGS, "a.jsonl", '{"words": ["a", ""], "tags": ["O", "O"]}', r"line 1 `words\[1\]`"),
    (
        TAGS,
        "a.jsonl",
        '{"text": "So did I."}',
        "line 1 has no `label`. It must have .* Received: t",
    ),
    (TAGS, "a.jsonl", '{"title": "Anna"}', "line 1 has no `text`. It must have .* Received: title"),
    (TAGS, "a.jsonl", '{"text": "So.", "label": {"X": 1}}', "line 1 must have a list of spans"),
    (TAGS, "a.conll", b"a O\nb\x81 O\n", r"line 2 must be UTF-8. Its byte 1 \(0x81\) is not"),
    (TAGS, "a.conll", "-DOCSTART- O\n\n", "must contain at least one row"),
    (TAGS | {"label": 2}, "a.conll", "a O\n", "must have .* Received: 0 and 2 of 2 columns"),
    (TAGS, "a.csv", "Sentence #,Word,Label\n1,Ada,O\n", "line 1 has no column `Tag`"),
    # SQuAD
    (SQUAD1, "a.json", squad(answers=[{"text": "Bob", "answer_start": 0}]), r"question 1 .*'Bob'"),
    (SQUAD1, "a.json", squad(answers=[{"answer_start": 1}]), r"question 1 .*`answers\[0\].text`"),
    (SQUAD1, "a.json", squad(answers=[{"text": "Ada"}]), "question 1 .*`answers.0..answer_start`"),
    (
        SQUAD1,
        "a.json",
        squad(answers={"text": ["Ada"], "answer_start": [0]}),
        "`answers`: Input should be a valid list",
    ),
    (SQUAD1, "a.json", squad(answers=["x"]), r"`answers\[0\]`: .* valid dict.* Received: .x"),
    (SQUAD1, "a.json", squad(answers=[{"text": " ", "answer_start": 3}]), "answers with a text"),
    (SQUAD1, "a.json", squad(id=...), "question 1 .*`id`: Field required"),
    (SQUAD1, "a.json", "[]", "Input should be a valid dictionary"),
    (SQUAD1, "a.json", '{"data": [{"id": "1"}]}', "`data.0..paragraphs`: Field required"),
    (
        SQUAD1,
        "a.json",
        '{"data": [{"paragraphs": [{"context": "A"}]}]}',
        "`data.0..paragraphs.0..qas`: Field required",
    ),
    (SQUAD1, "a.json", squad(answers=[]), "question 1 .* must have an answer; squad2 is for"),
    (SQUAD2, "a.json", squad(answers=[], is_impossible=...), "question 1 .* or be impossible"),
    (SQUAD2, "a.json", squad(is_impossible=True), "question 1 .* no answers, as it is impossible"),
    (SQUAD1, "a.json", squad()[:-3], "not JSON: .*line 1 column"),
    # RACE
    (RACE, "a.txt", race(answers=["E"]), "line 1 `answer`: .* 'A', 'B', 'C' or 'D'"),
    (RACE, "a.txt", f"\n{race()}\n{{", "line 3 must be a JSON object. Received: {"),
    (RACE, "a.txt", race(article=None), "line 1 `article`: .* valid string"),
    (RACE, "a.txt", race(options=[list("wxy")]), "line 1 `options`: "),
    (RACE, "a.txt", race(answers=[]), "line 1 must have as many `options` and `answers`"),
    # GLUE
    (
        GLUE["rte"],
        "a.tsv",
        "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tmaybe\n",
        "line 2 .*maybe",
    ),
    (
        GLUE["sts-b"],
        "a.tsv",
        "index\tsentence1\tsentence2\tscore\n0\ta\tb\t6\n",
        "line 2 .* 5.0 in",
    ),
    (
        GLUE["cola"],
        "a.tsv",
        "x\t1\t\tA b.\nx\t1\tA b.\n",
        "line 2 must have 4 columns, .* It has 3",
    ),
]


@pytest.mark.parametrize("settings, name, content, says", WRONG)
def test_a_wrong_file_is_one_short_message(settings, name, content, says, tmp_path):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    task = build_task(TaskConfig(train=str(path), dev=str(path), **settings))
    with pytest.raises(InputError, match=says) as error:
        task.read("train")
    message = str(error.value)
    assert message.startswith(f"`{path}`") and message.count("\n") < 3
