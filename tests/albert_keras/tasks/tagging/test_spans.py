"""Texts with spans of characters become words with tags."""

import json

import pytest

from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

#: Characters of two UTF-16 code units, a mark, and both line ends.
TEXTS = (
    "🚲🚲 Mara Lind left Turin.",
    "Cafe\u0301 tip 👍🏽: Mara met Jo.",
    "Ünal\r\nsaw Mara\r\nin Turin",
)
WORDS = {"Mara": "PER", "Turin": "LOC"}
COUNTS = {
    "characters": (len, 0),
    "utf16": (lambda text: len(text.encode("utf-16-le")) // 2, 0),
    "inclusive": (len, 1),
}


def written(path, offsets="characters", with_text=True):
    """Writes texts with spans of `WORDS`, which count characters in one of three ways."""
    count, less = COUNTS[offsets]
    records = []
    for text in TEXTS:
        spans = []
        for word, label in WORDS.items():
            if (at := text.find(word)) >= 0:
                end = count(text[: at + len(word)]) - less
                span = {"start": count(text[:at]), "end": end, "label": label}
                spans.append(span | ({"text": word} if with_text else {}))
        records.append({"text": text, "label": spans})
    lines = map(json.dumps, records)
    path.write_text(json.dumps(records) if path.suffix == ".json" else "\n".join(lines))
    return path


def read(path, **settings):
    task = build_task(TaskConfig(name="tagging", train=str(path), **settings))
    return task.read_file(str(path), labelled=True)


def tagged(examples):
    return [
        (word, tag[2:])
        for one in examples
        for word, tag in zip(one.words, one.tags, strict=True)
        if tag != "O"
    ]


@pytest.mark.parametrize("with_text", [True, False])
@pytest.mark.parametrize("offsets", COUNTS)
def test_spans_count_as_the_setting_says(offsets, with_text, tmp_path):
    examples = read(written(tmp_path / "a.jsonl", offsets, with_text), offsets=offsets)
    wanted = [("Mara", "PER"), ("Turin", "LOC"), ("Mara", "PER"), ("Mara", "PER"), ("Turin", "LOC")]
    assert tagged(examples) == wanted
    for other in COUNTS.keys() - {offsets}:
        with pytest.raises(InputError, match="must have .*`task.offsets` says how characters are"):
            read(tmp_path / "a.jsonl", offsets=other)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_span_that_has_another_text_is_named(name, tmp_path):
    path = written(tmp_path / name)
    path.write_text(path.read_text().replace("Mara Lind left", "Then Mara Lind left"))
    place = "entry 1" if name == "a.json" else "line 1"
    says = f'{place} must have spans with the text .* has "Mara" PER from 3 to 7, .* "Then"'
    with pytest.raises(InputError, match=says):
        read(path)
    assert len(read(path, skip_bad_rows=True)) == 2


@pytest.mark.parametrize(
    "text, span, says",
    [
        (TEXTS[0], [90, 94, "PER"], "inside its text of 24 characters. It has PER from 90 to 94"),
        (TEXTS[0], [3, 12, "ORG"], "do not overlap, .*: PER from 3 to 7, and ORG from 3 to 12"),
        (TEXTS[0], [7, 8, "X"], "a word in each span. It has X from 7 to 8"),
        (TEXTS[0], [8, 10, "X"], "X from 8 to 10, which cuts `Lind`"),
        (TEXTS[0], [19, 19, "X"], "inside its text of 24 characters. It has X from 19 to 19"),
        (TEXTS[0], [None, 4, "PER"], r'such as \[0, 3, "PER"\].* Received: \[null, 4, "PER"\]'),
        (TEXTS[0], {"start": 8, "end": 12, "labels": ["X"]}, "objects with `start`, `end` and `la"),
    ],
)
def test_spans_that_cannot_be_used_are_named(text, span, says, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": text, "label": [[3, 7, "PER"], [18, 23, "LOC"], span]}))
    with pytest.raises(InputError, match=f"line 1 must have .*{says}"):
        read(path)


def test_words_are_split_by_the_rule_of_the_setting(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "Mara's cat: Jo.", "label": [[0, 4, "X"], [12, 14, "X"]]}))
    with pytest.raises(InputError, match="cuts `Mara's`. `task.word_split` names how a text is"):
        read(path)
    [example] = read(path, word_split="contractions")
    assert example.words == ("Mara", "'s", "cat", ":", "Jo", ".")
    path.write_text(json.dumps({"text": "东京 Rom", "label": [[0, 2, "X"]]}))
    [example] = read(path)
    assert example.words == ("东", "京", "Rom") and example.tags == ("B-X", "I-X", "O")


def test_keys_are_named_and_a_text_may_have_no_spans(tmp_path):
    path = tmp_path / "a.jsonl"
    records = [{"body": "Mara left.", "spans": [[0, 4, "PER"]]}, {"body": "So did I.", "spans": []}]
    path.write_text("\n".join(map(json.dumps, records)))
    first, second = read(path, text="body", label="spans")
    assert first.tags == ("B-PER", "O", "O") and second.tags == ("O",) * 4
