"""Files as other people have them are read with the right meaning, or refused by name."""

import collections
import itertools
import logging
import random

import pytest

from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.example_report import report_task
from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.spans.scores import answer_words, f1
from albert_keras.tasks.tables.files import read_table
from albert_keras.tasks.tagging.scores import entities_of, entity_scores, has_entities
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "gold, predicted",
    [
        ("西班牙国家足球队", "西班牙国家足球"),
        ("1997年7月1日", "1997年7月"),
        ("東京タワー", "東京"),
        ("「台灣大學」", "台灣大學"),
    ],
)
def test_answers_without_spaces_are_compared_by_characters(gold, predicted):
    """F1 of a bag of characters, computed here from its definition, as DRCD's script does."""
    kept = [[letter for letter in text if letter not in "「」"] for text in (gold, predicted)]
    # Digits are words of Latin text: they stay together.
    bags = [
        [
            part
            for is_digit, group in itertools.groupby(letters, str.isdigit)
            for part in (["".join(group)] if is_digit else group)
        ]
        for letters in kept
    ]
    same = sum((collections.Counter(bags[0]) & collections.Counter(bags[1])).values())
    precision, recall = same / len(bags[1]), same / len(bags[0])
    assert f1(gold, predicted) == pytest.approx(2 * precision * recall / (precision + recall))
    assert f1(gold, predicted) > 0.5


def test_english_answers_are_compared_as_by_the_official_script():
    assert answer_words("The quick, brown-fox’s 2nd") == ["quick", "brownfox’s", "2nd"]


def in_scheme(entities, length, scheme):
    """Writes entities, (type, first, last + 1), as tags."""
    single, begin, inside, end = scheme
    tags = ["O"] * length
    for name, first, last in entities:
        for word in range(first, last):
            letter = begin if word == first else end if word == last - 1 else inside
            tags[word] = (single if last - first == 1 else letter, name)
    return tags


@pytest.mark.parametrize(
    "scheme, order",
    [("SBIE", "-"), ("SBME", "-"), ("UBIL", "-"), ("BBII", "suffix"), ("SBME", "suffix")],
)
def test_every_scheme_marks_the_same_entities(scheme, order):
    rng, sentences, found = random.Random(0), [], []
    for _ in range(200):
        entities, word = [], 0
        while word < 9:
            length = rng.randint(1, 3)
            if rng.random() < 0.5:
                entities.append((rng.choice(("LOC", "PER")), word, min(word + length, 9)))
            word += length + 1
        sentences.append(entities)
        tags = in_scheme(entities, 9, scheme)
        join = (lambda a, b: f"{b}-{a}") if order == "suffix" else "{}-{}".format
        found.append([tag if tag == "O" else join(*tag) for tag in tags])
    known = sorted({tag for tags in found for tag in tags})
    assert has_entities(known)
    assert [entities_of(tags, known) for tags in found] == sentences
    assert entity_scores(found, found, known)["f1"] == 1.0


def test_tags_that_mark_no_entities_are_named(tmp_path, caplog):
    train = write(tmp_path / "a.conll", "Anna PER", "slept O", "", "Bert PER", "left O")
    task = build_task(TaskConfig(name="tagging", train=str(train)))
    with caplog.at_level(logging.WARNING):
        assert task.metric == "accuracy"
    assert "No entities are recognised in the tags O, PER" in caplog.text


def test_a_label_without_an_example_is_a_warning(tmp_path):
    rows = [f"text {number}\t{'ab'[number % 2]}" for number in range(20)]
    config = {"train": str(write(tmp_path / "t.tsv", "text\tlabel", *rows)), "text": "text"}
    task = TextTask(
        TaskConfig(name="classification", label="label", labels=("a", "b", "c"), **config)
    )
    assert "fewer than 5 examples of `c`" in report_task(task)["train"].warnings[0]


@pytest.mark.parametrize(
    "cell", ["['a', 'b']", '["a"]', "{'a': 1}", "array([1, 2])", "[0.1 0.2 0.3]", "[]"]
)
def test_a_structure_written_as_text_is_no_name_and_no_text(cell, tmp_path):
    lines = ["text\tlabel", f"one\t{cell}", "two\tb"]
    with pytest.raises(InputError, match="line 2 .*another structure written as text"):
        read_table(write(tmp_path / "t.tsv", *lines), "text", label="label")
    lines = ["text\tlabel", f"{cell}\ta", "two\tb"]
    with pytest.raises(InputError, match="line 2 .*another structure written as text"):
        read_table(write(tmp_path / "t.tsv", *lines), "text", label="label")


def test_a_text_in_brackets_stays_a_text(tmp_path):
    path = write(tmp_path / "t.tsv", "text\tlabel", "[Music] he said [so]\ta", "{sic}\tb")
    assert [row.first for row in read_table(path, "text", label="label")][0].startswith("[Music]")


@pytest.mark.parametrize("prefix, header", [("", "0,1"), ("7,", ",0,1")])
def test_the_default_names_of_a_data_frame_are_names(prefix, header, tmp_path):
    path = write(tmp_path / "t.csv", header, f"{prefix}good,a", f"{prefix}bad,b")
    examples = read_table(path, 0, label=1)
    assert [(one.first, one.label) for one in examples] == [("good", "a"), ("bad", "b")]


def test_a_sentence_may_be_a_list_of_words():
    task = build_task(TaskConfig(name="tagging", labels=("O", "B-X")))
    assert task.example(0, {"text": ["王", "明"]}) == TaggedExample("0", ("王", "明"))
