"""Files as other people have them are read with the right meaning, or refused by name."""

import json
import logging
import random

import pytest

from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.example_report import report_task
from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.spans.scores import f1
from albert_keras.tasks.tables.cells import score_of
from albert_keras.tasks.tables.files import read_table
from albert_keras.tasks.tagging.scores import entities_of, entity_scores, has_entities
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "gold, predicted, same, given, wanted",
    [
        ("西班牙国家足球队", "西班牙国家足球", 7, 7, 8),
        (
            "1997年7月1日",
            "1997年7月",
            4,
            4,
            6,
        ),  # digits are words of Latin text: they stay together
        ("「台灣大學」", "台灣大學", 4, 4, 4),
    ],
)
def test_answers_without_spaces_are_compared_by_characters(gold, predicted, same, given, wanted):
    """F1 of a bag of characters, as DRCD's script computes it."""
    precision, recall = same / given, same / wanted
    assert f1(gold, predicted) == pytest.approx(2 * precision * recall / (precision + recall))


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
    [("SBIE", "-"), ("SBME", "-"), ("UBIL", "-"), ("BBII", "suffix")],
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
    for row in (f"one\t{cell}", f"{cell}\ta"):
        path = write(tmp_path / "t.tsv", "text\tlabel", row, "two\tb")
        with pytest.raises(InputError, match="line 2 .*another structure written as text"):
            read_table(path, "text", label="label")
    path = write(tmp_path / "t.tsv", "text\tlabel", "[Music] he said [so]\ta", "{sic}\tb")
    assert read_table(path, "text", label="label")[0].first == "[Music] he said [so]"


@pytest.mark.parametrize("prefix, header", [("", "0,1"), ("7,", ",0,1")])
def test_the_default_names_of_a_data_frame_are_names(prefix, header, tmp_path):
    path = write(tmp_path / "t.csv", header, f"{prefix}good,a", f"{prefix}bad,b")
    examples = read_table(path, 0, label=1)
    assert [(one.first, one.label) for one in examples] == [("good", "a"), ("bad", "b")]


def test_a_sentence_may_be_a_list_of_words():
    task = build_task(TaskConfig(name="tagging", labels=("O", "B-X")))
    assert task.example(0, {"text": ["王", "明"]}) == TaggedExample("0", ("王", "明"))


CONLL_U = """# text = Anna ate vámonos 10 000 .
1	Anna	anna	PROPN	_	_	2	nsubj	_	_
2	ate	eat	VERB	_	_	0	root	_	_
3-4	vámonos	_	_	_	_	_	_	_	_
3	vamos	ir	VERB	_	_	2	dep	_	_
4	10 000	10	NUM	_	_	2	obj	_	_

# sent_id = 2
1	#	#	SYM	_	_	0	root	_	_"""
GERMEVAL = """#\thttp://de.wikipedia.org/wiki/X [2009-10-17]
1\tAnna\tB-PER\tO
2\tschlief\tO\tO

#\tn-tv.de vom 26.02.2005 [2005-02-26]
1\tBerlin\tB-LOC\tB-ORG"""
HF = '{"id": 4, "tokens": ["Anna", "slept"], "pos_tags": [2, 1], "ner_tags": [1, 0]}'
KAGGLE = 'Sentence #,Word,POS,Tag\nSentence: 1,Anna,NNP,B\n,"""",``,O\nSentence: 2,Zürich,NNP,B'
DOCCANO = '{"text": "Anna slept", "label": [[0, 4, "PER"]]}'
WORDS = "# O\nAnna B\n\n# a b\nBonn B"  # a word, and a comment
NAMES, TAGS = ("a", "V", "N"), ("O", "B-PER")
PASSAGE = {"article": "A b.", "questions": ["q1", "q2"], "options": [list("abcd")] * 2}
RACE = [json.dumps(PASSAGE | {"answers": list(two)}) for two in ("AE", "BA")]
RTE = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tmaybe\n1\ta\tb\tentailment\n"
QUESTIONS = [{"id": 1}, {"id": 2, "question": "?", "is_impossible": True}]
SQUAD = json.dumps({"data": [{"paragraphs": [{"context": "A b.", "qas": QUESTIONS}]}]})


def read_as(name, path, content, **settings):
    path.write_bytes(content.encode("latin-1" if "Zürich" in content else "utf-8"))
    task = build_task(TaskConfig(name=name, train=str(path), **settings))
    return task, task.read_file(str(path), labelled=True)


@pytest.mark.parametrize(
    "name, content, settings, words",
    [
        ("u", CONLL_U, {"text": 1, "label": 3}, "Anna/PROPN ate/VERB vamos/VERB 10 000/NUM, #/SYM"),
        ("a.tsv", GERMEVAL, {"text": 1, "label": 2}, "Anna/B-PER schlief/O, Berlin/B-LOC"),
        ("a.txt", WORDS, {}, "#/O Anna/B, Bonn/B"),
        ("a.jsonl", HF, {"labels": TAGS}, "Anna/B-PER slept/O"),
        ("a.jsonl", HF, {"label": "pos_tags", "labels": NAMES}, "Anna/N slept/V"),
        ("a.csv", KAGGLE, {}, 'Anna/B "/O, Zürich/B'),
    ],
)
def test_taggings_of_popular_tools_are_read(name, content, settings, words, tmp_path):
    _, found = read_as("tagging", tmp_path / name, content, **settings)
    pairs = (zip(one.words, one.tags, strict=True) for one in found)
    assert ", ".join(" ".join(map("/".join, sentence)) for sentence in pairs) == words
    assert found[0].id == ("4" if content == HF else "1")


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("a.conllu", CONLL_U, "number of each word in its first column. .*`text=1` and `label=3`"),
        ("a.jsonl", HF, r"line 1 has numbers as tags. .*`task.labels=\[O, B-PER"),
        ("a.jsonl", DOCCANO, "line 1 must have lists of words and tags, .* doccano and Label S"),
        ("a.csv", "Word,Tag\nAnna,B-PER", "such as `Word`, `Tag` and `Sentence #`"),
    ],
)
def test_taggings_that_are_not_understood_say_what_to_do(name, content, says, tmp_path):
    with pytest.raises(InputError, match=says):
        read_as("tagging", tmp_path / name, content)


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
        with pytest.raises(InputError, match="^`train` without `dev`: .*`data_dir`"):
            task.read(task.dev_splits[0])


@pytest.mark.parametrize(
    "name, content, texts, labels",
    [
        ("x.tsv", 'text\tlabel\n"A ""big"" one"\tb\nplain\ta\n', ['A "big" one', "plain"], "ba"),
        ("x.tsv", '"text"\t"label"\n"one"\t"b"\n"two"\t"a"\n', ["one", "two"], "ba"),
        ("x.tsv", 'text\tlabel\n"a lone mark\tb\n"two"\ta\n', ['"a lone mark', '"two"'], "ba"),
        ("x.csv", 'text,label\n"I said \\"no\\", ok",b\n"c",a\n', ['I said "no", ok', "c"], "ba"),
        ("x.csv", 'text,label\r"a, b",b\rc,a\r', ["a, b", "c"], "ba"),
        ("x.jsonl", '{"text": "a", "label": 1.0}\n', ["a"], ["1.0"]),
    ],
)
def test_the_content_of_a_table_counts_not_its_ending(name, content, texts, labels, tmp_path):
    (tmp_path / name).write_bytes(content.encode())
    found = read_table(tmp_path / name, "text", label="label")
    assert [one.first for one in found] == texts
    assert [one.label for one in found] == list(labels)


def test_decimal_commas_are_told(tmp_path):
    path = write(tmp_path / "x.csv", "Text;Note", "a;0,5", "b;1,5")
    with pytest.raises(InputError, match="Received: '0,5'. Write decimal points, not commas"):
        read_table(path, "Text", label="Note", label_kind=score_of)
