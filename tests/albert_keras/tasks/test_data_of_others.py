"""Files as other people have them are read with the right meaning, or refused by name."""

import collections
import itertools
import json
import logging
import random

import pytest

from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.example_report import report_task
from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.spans.scores import answer_words, f1
from albert_keras.tasks.tables.cells import score_of
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


CONLL_U = """# sent_id = 1
# text = Anna ate vámonos 10 000 .
1	Anna	anna	PROPN	_	_	2	nsubj	_	_
2	ate	eat	VERB	_	_	0	root	_	_
3-4	vámonos	_	_	_	_	_	_	_	_
3	vamos	ir	VERB	_	_	2	dep	_	_
4	nos	nos	PRON	_	_	3	dep	_	_
5	10 000	10	NUM	_	_	2	obj	_	_

# text = # hash
1	#	#	SYM	_	_	0	root	_	_"""
GERMEVAL = """#\tn-tv.de vom 26.02.2005 [2005-02-26]
1\tAnna\tB-PER\tO
2\tschlief\tO\tO

#\thttp://de.wikipedia.org/wiki/X [2009-10-17]
1\tBerlin\tB-LOC\tB-ORG"""
HF = ('{"id": 4, "tokens": ["Anna", "slept"], "pos_tags": [7, 9], "ner_tags": [1, 0]}',)
KAGGLE = (
    "Sentence #,Word,POS,Tag",
    "Sentence: 1,Anna,NNP,B-per",
    ',"""",``,O',
    "Sentence: 2,Zürich,NNP,B-geo",
)


def tagging(path, **settings):
    return build_task(TaskConfig(name="tagging", train=str(path), dev=str(path), **settings))


@pytest.mark.parametrize(
    "name, content, settings, sentences",
    [
        (
            "a.conllu",
            CONLL_U,
            {"text": 1, "label": 3},
            [
                "Anna/PROPN ate/VERB vamos/VERB nos/PRON 10 000/NUM",
                "#/SYM",
            ],
        ),
        ("a.tsv", GERMEVAL, {"text": 1, "label": 2}, ["Anna/B-PER schlief/O", "Berlin/B-LOC"]),
        ("a.txt", "# O\nAnna B-PER\n\n# a b\nBonn B-LOC", {}, ["#/O Anna/B-PER", "Bonn/B-LOC"]),
        ("a.jsonl", "\n".join(HF), {"labels": ("O", "B-PER")}, ["Anna/B-PER slept/O"]),
        (
            "a.jsonl",
            "\n".join(HF),
            {"label": "pos_tags", "labels": tuple("abcdefgNhV")},
            ["Anna/N slept/V"],
        ),
        ("a.csv", "\n".join(KAGGLE), {}, ['Anna/B-per "/O', "Zürich/B-geo"]),
    ],
)
def test_taggings_of_popular_tools_are_read(name, content, settings, sentences, tmp_path):
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1" if "Zürich" in content else "utf-8"))
    found = tagging(path, **settings).read("train")
    assert [
        " ".join(f"{word}/{tag}" for word, tag in zip(one.words, one.tags, strict=True))
        for one in found
    ] == sentences
    assert name != "a.jsonl" or found[0].id == "4"


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("a.conllu", CONLL_U, "number of each word in its first column. .*--text 1 --label 3"),
        ("a.jsonl", HF[0], r"line 1 has numbers as tags. .*--set task.labels='\[O, B-PER"),
        (
            "a.jsonl",
            '{"text": "Anna slept", "label": [[0, 4, "PER"]]}',
            "line 1 must have lists of words and tags, .* doccano and Label Studio",
        ),
        ("a.csv", "Word,Tag\nAnna,B-PER", "such as `Word`, `Tag` and `Sentence #`"),
    ],
)
def test_taggings_that_are_not_understood_say_what_to_do(name, content, says, tmp_path):
    path = tmp_path / name
    path.write_text(content + "\n")
    with pytest.raises(InputError, match=says) as error:
        tagging(path).read("train")
    assert "tag_column" not in str(error.value)


RACE = {"article": "A b.", "questions": ["q1", "q2"], "options": [list("abcd")] * 2}


@pytest.mark.parametrize(
    "name, settings, content, lines, left",
    [
        (
            "tagging",
            {"labels": ("O", "B-PER")},
            "Anna B-PER\n\nBert\nslept O\n\nleft O\n\nCleo B-PER\n",
            [3],
            3,
        ),
        ("tagging", {"labels": ("O", "B-PER")}, "Anna S-ORG\nleft O\n\nAnna B-PER\n", [1], 1),
        (
            "race",
            {},
            "\n".join(
                json.dumps(RACE | {"answers": answers}) for answers in (["A", "E"], ["B", None])
            ),
            [1, 2],
            2,
        ),
        ("race", {}, json.dumps(RACE | {"answers": ["A", "B"]}) + "\n{\n", [2], 2),
        (
            "rte",
            {},
            "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tmaybe\n1\ta\tb\tentailment\n",
            [2],
            1,
        ),
        (
            "squad2",
            {},
            json.dumps(
                {
                    "data": [
                        {
                            "paragraphs": [
                                {
                                    "context": "A b.",
                                    "qas": [
                                        {"id": 1},
                                        {"id": 2, "question": "?", "is_impossible": True},
                                    ],
                                }
                            ]
                        }
                    ]
                }
            ),
            [1],
            1,
        ),
    ],
)
def test_what_cannot_be_used_is_skipped_and_listed(
    name, settings, content, lines, left, tmp_path, caplog
):
    path = tmp_path / "x.txt"
    path.write_text(content)
    task = build_task(TaskConfig(name=name, **settings))
    with pytest.raises(InputError, match="skip such rows with --skip-bad-rows"):
        task.read_file(str(path), labelled=True)
    task = build_task(TaskConfig(name=name, skip_bad_rows=True, **settings))
    assert len(task.read_file(str(path), labelled=True)) == left
    [skipped] = task.skipped_rows.values()
    assert [(row.file, row.line) for row in skipped] == [(str(path), line) for line in lines]
    assert f"skipped {len(lines)} of {len(lines) + left} rows" in caplog.text


@pytest.mark.parametrize("name", ["rte", "squad1", "race"])
def test_a_training_file_alone_is_not_enough_for_an_official_task(name, tmp_path):
    task = build_task(TaskConfig(name=name, train=str(tmp_path / "x")))
    with pytest.raises(InputError, match="^`--train` without `--dev`: .*--data-dir"):
        task.read(task.dev_splits[0])


@pytest.mark.parametrize(
    "name, content, texts, labels",
    [
        (
            "x.tsv",
            'text\tlabel\n"The ""big"" one"\tb\nplain\ta\n',
            ['The "big" one', "plain"],
            "ba",
        ),
        ("x.tsv", '"text"\t"label"\n"one"\t"b"\n"two"\t"a"\n', ["one", "two"], "ba"),
        (
            "x.csv",
            'text,label\n"He said \\"no\\", twice",b\n"c",a\n',
            ['He said "no", twice', "c"],
            "ba",
        ),
        ("x.csv", 'text,label\r"a, b",b\rc,a\r', ["a, b", "c"], "ba"),
        (
            "x.jsonl",
            '{"text": "a", "label": 1.0}\n{"text": "b", "label": 0.0}\n',
            ["a", "b"],
            ("1.0", "0.0"),
        ),
        (
            "x.tsv",
            'text\tlabel\n"a lone quote\tb\n"quoted"\ta\n',
            ['"a lone quote', '"quoted"'],
            "ba",
        ),
    ],
)
def test_the_content_of_a_table_counts_not_its_ending(name, content, texts, labels, tmp_path):
    path = tmp_path / name
    path.write_bytes(content.encode())
    found = read_table(path, "text", label="label")
    assert [one.first for one in found] == texts
    assert [one.label for one in found] == list(labels)


def test_decimal_commas_are_told(tmp_path):
    path = write(tmp_path / "x.csv", "Text;Note", "a;0,5", "b;1,5")
    with pytest.raises(InputError, match="Received: '0,5'. Write decimal points, not commas"):
        read_table(path, "Text", label="Note", label_kind=score_of)
