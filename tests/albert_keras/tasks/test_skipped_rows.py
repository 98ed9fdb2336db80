"""Rows that cannot be used are an error, or are skipped, counted and listed."""

import json

import pytest

from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

TAGS = ("O", "B-PER")
PASSAGE = {"article": "A b.", "questions": ["q1", "q2"], "options": [list("abcd")] * 2}
RACE = [json.dumps(PASSAGE | {"answers": list(two)}) for two in ("AE", "BA")]
RTE = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tmaybe\n1\ta\tb\tentailment\n"
QUESTIONS = [{"id": "1"}, {"id": "2", "question": "?", "answers": [], "is_impossible": True}]
PARAGRAPH = {"context": "A b.", "qas": QUESTIONS}
SQUAD = json.dumps({"data": [{"paragraphs": [PARAGRAPH]}]})


@pytest.mark.parametrize("label", ["a\ud800", ["a\udfff", "b"]])
def test_a_label_with_half_a_character_is_refused_before_training(label, tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"text": f"text {n}", "label": "b" if n else label} for n in range(4)]
    path.write_text("\n".join(map(json.dumps, rows)))
    config = TaskConfig(name="classification", train=str(path), text="text", label="label")
    settings = {"label_separator": "|"} if isinstance(label, list) else {}
    with pytest.raises(InputError, match="line 1 label must be Unicode. It has half a surrogate"):
        build_task(config.replace(**settings)).read_file(str(path), labelled=True)


def read_as(name, path, content, **settings):
    path.write_text(content, encoding="utf-8")
    task = build_task(TaskConfig(name=name, train=str(path), **settings))
    return task, task.read_file(str(path), labelled=True)


@pytest.mark.parametrize(
    "name, settings, content, lines, left",
    [
        ("tagging", {"labels": TAGS}, "A O\n\nB\nC O\n\nD O\n\nE O\n", [3], 3),
        ("tagging", {"labels": TAGS}, "A S-ORG\nB O\n\nC B-PER\n", [1], 1),  # an unseen tag
        ("race", {}, "\n".join(RACE), [1], 3),
        ("race", {}, f"{RACE[1]}\n{{\n", [2], 2),
        ("rte", {}, RTE, [2], 1),
        ("squad2", {}, SQUAD, [1], 1),
    ],
)
def test_what_cannot_be_used_is_skipped_and_listed(
    name, settings, content, lines, left, tmp_path, caplog
):
    path = tmp_path / "x.txt"
    with pytest.raises(InputError, match="skip such rows with `skip_bad_rows=True`"):
        read_as(name, path, content, **settings)
    task, found = read_as(name, path, content, skip_bad_rows=True, **settings)
    assert len(found) == left
    [skipped] = task.skipped_rows.values()
    assert [(row.file, row.line) for row in skipped] == [(str(path), line) for line in lines]
    assert f"skipped {len(lines)} of {len(lines) + left} rows" in caplog.text


def test_a_training_file_alone_is_not_enough_for_an_official_task():
    for name in ("rte", "squad1", "race"):
        task = build_task(TaskConfig(name=name, train="x"))
        with pytest.raises(InputError, match="^`data_dir` must be .*, or `dev` a file"):
            task.read(task.dev_splits[0])
