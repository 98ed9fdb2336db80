"""Files as other people have them are read with the right meaning, or refused by name."""

import json

import pytest

from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.example_report import report_task
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.tables.cells import score_of
from albert_keras.tasks.tables.files import read_table
from albert_keras.tasks.tagging.scores import entity_scores
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "tags, named",
    [
        ("PER O", "`PER`"),
        ("PER 0", "`PER`"),
        ("PER OTHER PER", "`PER`"),
        ("PER OTHER OTHER OTHER LOC PER PER", "`LOC`, `PER`"),
        ("B-PER null OTHER", "`null`"),
        ("B-PER LOC-B O", "`LOC-B`"),
        ("b-per O", "`b-per`"),
        ("NN VB DT", None),
        ("NN VB X . _ DT", None),
        ("PER LOC AWAY AWAY AWAY", "`LOC`, `PER`"),
        ("S N V", None),
        ("B_PER O", None),
        ("W-PER B-LOC M-LOC E-LOC O", None),
    ],
)
def test_tags_that_mark_no_entities_are_named(tags, named, tmp_path):
    rows = [f"word{number} {tag}" for number, tag in enumerate(tags.split() * 20)]
    train = write(tmp_path / "a.conll", *rows, "", "other " + tags.split()[0])
    task = build_task(TaskConfig(name="tagging", train=str(train), dev=str(train)))
    assert task.metric == ("entity_f1" if named is None and "O" in tags else "accuracy")
    findings = report_task(task)["train"].findings
    found = [one.text for one in findings if one.name == "entities"]
    assert len(found) == (named is not None) and all(f"Received: {named}" in one for one in found)


@pytest.mark.parametrize("outside", ["OTHER", "NONE", "X", "_", "-", "null", "0", "out"])
@pytest.mark.parametrize("form", ["{}-PER", "PER-{}", "{}"])
def test_words_outside_of_entities_may_have_any_tag(outside, form, tmp_path):
    """The scores are those of the same entities with O, which equal seqeval's."""
    truth = [form.format(one) if one in "BI" else one for one in "BIOOBOBI"]
    given = [form.format(one) if one in "BI" else one for one in "BIOOBIOB"]
    wanted = entity_scores([truth], [given])
    assert wanted["f1"] == pytest.approx(2 / 6)
    pair = [[outside if tag == "O" else tag for tag in tags] for tags in (truth, given)]
    assert entity_scores(pair[:1], pair[1:]) == wanted
    rows = [f"word{number} {tag}" for number, tag in enumerate(pair[0])]
    train = write(tmp_path / "a.conll", *rows, "", f"other {outside}")
    task = build_task(TaskConfig(name="tagging", train=str(train)))
    assert task.metric == "entity_f1"
    findings = report_task(task)["train"].findings
    assert (None, f"words outside of them are tagged `{outside}`") in [one[::2] for one in findings]


@pytest.mark.parametrize(
    "columns, cells, settings, says",
    [
        ("label", "a b", {"label": "label", "labels": ("a", "b", "c")}, "5 examples of `c`"),
        ("label", "a b a|b", {"label": "label"}, "`a|b` seems to be several"),
        ("label", "1 1.0", {"label": "label"}, "`1` and `1.0` count as different"),
        ("label", "x \u200bx", {"label": "label"}, "count as different, but may be the same"),
        ("label", "a,b b", {"label": "label", "label_separator": "|"}, "is `|` between them?"),
        ("a\tb", "0\t1 1\t1", {"label": ("a", "b")}, "5 examples without `b`"),
        ("a\tb", "0\t0 1\t0", {"label": ("a", "b")}, "5 examples of `b`"),
    ],
)
def test_labels_that_cannot_be_learnt_are_a_warning(columns, cells, settings, says, tmp_path):
    some = cells.split(" ")
    rows = [f"text {number}\t{some[number % len(some)]}" for number in range(40)]
    path = write(tmp_path / "t.tsv", f"text\t{columns}", *rows)
    task = build_task(TaskConfig(name="classification", train=str(path), text="text", **settings))
    assert says in " ".join(report_task(task)["train"].warnings)


@pytest.mark.parametrize(
    "cell",
    ["['a', 'b']", '["a"]', "{'a': 1}", "array([1, 2])", "[0.1 0.2 0.3]", "[]", "('a', 'b')"]
    + ["{'b'}", "[np.str_('a')]", "[None, True]", "[[1, 2], [3]]", "[{'a': 1}]", "{1: 'a'}"]
    + ["OrderedDict([('a', 1)])", "b'good'", "(1, 2)", "[('a', 1)]"],
)
def test_a_structure_written_as_text_is_no_name_and_no_text(cell, tmp_path):
    for row in (f"one\t{cell}", f"{cell}\ta"):
        path = write(tmp_path / "t.tsv", "text\tlabel", row, "two\tb")
        with pytest.raises(InputError, match="line 2 .*another structure written as text"):
            read_table(path, "text", label="label")
    texts = ["[Music] he said [so]", "{sic}", "(laughs)", "(2020)", "[[a link]]", "set it (now)"]
    path = write(tmp_path / "t.tsv", "text\tlabel", *(f"{text}\ta" for text in texts))
    assert [one.first for one in read_table(path, "text", label="label")] == texts


@pytest.mark.parametrize(
    "label",
    ['c("a", "b")', "character(0)", "[a, b]", "{a,b}", "WrappedArray(a, b)", "List()", "<a; b>"],
)
def test_a_list_of_another_language_is_no_name(label, tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"text": "one", "label": label}, {"text": "two", "label": "b"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    for settings in ({}, {"label_separator": ","}):
        config = TaskConfig(name="classification", train=str(path), text="text", label="label")
        with pytest.raises(InputError, match="line 1 .*another structure written as text"):
            build_task(config.replace(**settings)).read_file(str(path), labelled=True)
    names = ("other (old, new)", "f(x)", "(none)", "[UNK]", "a/b", label)
    rows = [{"text": name, "label": name} for name in names]
    path.write_text("\n".join(map(json.dumps, rows)))
    task = build_task(config.replace(labels=names))
    assert [one.label for one in task.read_file(str(path), labelled=True)] == list(names)


@pytest.mark.parametrize("label", ["a\ud800", ["a\udfff", "b"]])
def test_a_label_with_half_a_character_is_refused_before_training(label, tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"text": f"text {n}", "label": "b" if n else label} for n in range(4)]
    path.write_text("\n".join(map(json.dumps, rows)))
    config = TaskConfig(name="classification", train=str(path), text="text", label="label")
    settings = {"label_separator": "|"} if isinstance(label, list) else {}
    with pytest.raises(InputError, match="line 1 label must be Unicode. It has half a surrogate"):
        build_task(config.replace(**settings)).read_file(str(path), labelled=True)


def test_a_list_of_one_name_is_a_class(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"text": f"text {n}", "label": [["pos"], ["neg"]][n % 2]} for n in range(4)]
    path.write_text("\n".join(map(json.dumps, rows)))
    config = TaskConfig(name="classification", train=str(path), text="text", label="label")
    assert build_task(config).labels == ("neg", "pos")
    path.write_text(path.read_text() + '\n{"text": "so", "label": ["neg", "pos"]}')
    with pytest.raises(InputError, match="line 5 must have a name .* `label_separator` is for sev"):
        build_task(config).read_file(str(path), labelled=True)


def test_rows_that_a_spreadsheet_left_empty_are_counted(tmp_path):
    rows = ["text;label", "one;a", ";", "two;b", ";", " ; ", ";b", "three;a"]
    path = tmp_path / "t.csv"
    path.write_text("\r\n".join(rows))
    config = TaskConfig(name="classification", train=str(path), text="text", label="label")
    with pytest.raises(InputError, match="line 7 `text` must be a text. It is blank"):
        build_task(config).read_file(str(path), labelled=True)
    task = build_task(config.replace(skip_bad_rows=True))
    assert len(task.read_file(str(path), labelled=True)) == 3
    says = "left out 3 rows in which all columns are blank, the first in line 3"
    assert task.remarks[str(path)] == [f"{path}: {says}"]


def test_what_stands_for_nothing_is_no_label(tmp_path):
    for row in ("one\tnan", "one\t<NA>", "one\t\\N", "\\N\ta"):
        path = write(tmp_path / "t.tsv", "text\tlabel", row, "two\tb")
        with pytest.raises(InputError, match="line 2 .*, which means none"):
            read_table(path, "text", label="label")
    path = write(tmp_path / "t.tsv", "text\tlabel", "one\tnan", "two\tb")
    task = TextTask(TaskConfig(name="classification", text=0, label=1, labels=("nan", "b")))
    assert task.read_file(str(write(path, "one\tnan")), True)[0].label == "nan"


@pytest.mark.parametrize(
    "rows, says",
    [
        (["review,mood", *["good,a", "bad,b"] * 2], "`mood` is the label of no other row"),
        (["review,sentiment", "good,a", "bad,b"], "`sentiment` is the label of no other row"),
        (["1,2", "good,3", "bad,4"], "seems to have the names of the columns"),
        (["dull,c", "good,a", "bad,b"], None),
        (["2020,1", "1984,2", "good,1"], None),
        (["dull,4.5", *["good,1.0", "bad,2.0"] * 2], None),
    ],
)
def test_a_header_is_no_row_if_columns_are_numbers(rows, says, tmp_path):
    """Unless all names of labels are known."""
    path, skipped = write(tmp_path / "t.csv", *rows), []
    if says is None:
        assert len(read_table(path, 0, label=1)) == len(rows)
    else:
        with pytest.raises(InputError, match=f"line 1 .*{says}"):
            read_table(path, 0, label=1)
        assert len(read_table(path, 0, label=1, skipped=skipped)) == len(rows) - len(skipped) > 1
        labels = tuple(dict.fromkeys(row.partition(",")[2] for row in rows))
        task = TextTask(TaskConfig(name="classification", text=0, label=1, labels=labels))
        assert len(task.read_file(str(path), True)) == len(rows)


@pytest.mark.parametrize("prefix, header", [("", "0,1"), ("7,", ",0,1"), ("7,", "2,0,1")])
def test_the_default_names_of_a_data_frame_are_names(prefix, header, tmp_path):
    path = write(tmp_path / "t.csv", header, f"{prefix}good,a", f"{prefix}bad,b")
    examples = read_table(path, 0, label=1)
    assert [(one.first, one.label) for one in examples] == [("good", "a"), ("bad", "b")]


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
NAMED = "Sentence #\tWord\tTag\nSentence: 1\tAnna\tB\n\tslept\tO\nSentence: 2\tBonn\tB"
DOCCANO = '{"text": "Anna, of Bonn-Beuel.", "label": [[9, 13, "LOC"], [0, 4, "PER"]]}'
SPANS = '{"text": "王明住。", "entities": [{"start_offset": 0, "end_offset": 2, "label": "PER"}]}'
STUDIO = '[{"text": "X Y", "label": [{"start": 0, "end": 3, "labels": ["A"]}]},\n{"text": "Z"}]'
WORDS = "# O\nAnna B\n\n# a b\nBonn B"  # a word, and a comment
NAMES, TAGS = ("a", "V", "N"), ("O", "B-PER")
PASSAGE = {"article": "A b.", "questions": ["q1", "q2"], "options": [list("abcd")] * 2}
RACE = [json.dumps(PASSAGE | {"answers": list(two)}) for two in ("AE", "BA")]
RTE = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tmaybe\n1\ta\tb\tentailment\n"
FLAT = {"context": "A b.", "id": 3, "question": "?", "answers": {"text": [], "answer_start": []}}
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
        ("a.conll", "Anna\tthe name\nleft\tno name", {}, "Anna/the name left/no name"),
        ("a.conll", "New York\tB-X\n\nBonn \tO", {}, "New York/B-X, Bonn/O"),
        ("a.jsonl", HF, {"labels": TAGS}, "Anna/B-PER slept/O"),
        ("a.jsonl", HF, {"label": "pos_tags", "labels": NAMES}, "Anna/N slept/V"),
        ("a.csv", KAGGLE, {}, 'Anna/B "/O, Zürich/B'),
        ("a.tsv", NAMED, {}, "Anna/B slept/O, Bonn/B"),
        ("a.tsv", 'word\tner\nAnna\tB\n\n"\tO\nBonn\tB\n\n"\tO', {}, 'Anna/B, "/O Bonn/B, "/O'),
        ("a.csv", "Word;Tag\nAnna;B\n;\nBonn;O\n;\n;", {}, "Anna/B, Bonn/O"),
        (
            "a.csv",
            "sent_id,token,label\n0,Anna,B\n0,slept,O\n1,Bonn,B",
            {},
            "Anna/B slept/O, Bonn/B",
        ),
        ("a.jsonl", DOCCANO, {}, "Anna/B-PER ,/O of/O Bonn/B-LOC -/O Beuel/O ./O"),
        ("a.jsonl", SPANS, {}, "王/B-PER 明/I-PER 住/O 。/O"),
        ("a.json", STUDIO, {"skip_bad_rows": True}, "X/B-A Y/I-A"),
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
        ("a.jsonl", '{"title": "Anna"}', "line 1 must have lists of words .* JSON_MIN of L"),
        ("a.jsonl", DOCCANO.replace("[0, 4,", "[4, 0,"), r"such as \[0, 4, .PER.\].*: \[4, 0"),
        ("a.csv", "Word,Tag\nAnna,B-PER", "such as `Word`, `Tag` and `Sentence #`"),
        ("a.csv", "sentence,word,tag\n1,Anna,\"['B', 'O']\"", "must have a tag for each word. Rec"),
        ("a.csv", "sentence,word,tag\n1,Anna,B\n,,O", "line 3 must have a word in `word`"),
        ("a.conll", "word tag\nAnna B", "Received: names of columns in its first line"),
        ("a.conll", "Anna B-PER 0\nleft O 0", "`0` in each line. Columns that differ, .* 0: 1\\."),
        ("a.conll", "O Anna\nB-PER left\nO so", "Give both: `text=1` and `label=0`. .*: B-PER, O"),
        (
            "a.conll",
            "\n".join(f"{'NN VB'.split()[n % 2]} w{n}" for n in range(90)),
            "Give both: `text=1` and `label=0`. .*: NN, VB",
        ),
        (
            "a.tsv",
            "A whole text of it\tpos\nSo is this one too\tneg",
            "Received: whole texts, such",
        ),
        ("a.conll", "Anna B\nleft not one\nso O", "Separate columns by tabs if words or tags"),
        (
            "a.conll",
            "\n".join(f"w{n}/N v{n}/V{n}" for n in range(30)),
            "names of classes. Received: 3",
        ),
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
        ("squad2", {}, json.dumps({"data": [{"paragraphs": [{"context": "A"}]}, FLAT]}), [1], 1),
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
        ("x.csv", 'text,label\n"a, ""b""\r\nc",b\nd,a\n', ['a, "b"\r\nc', "d"], "ba"),
        ("x.tsv", 'text\tlabel\n"a, ""b""\tb\nc\ta\n', ['"a, ""b""', "c"], "ba"),
        ("x.tsv", 'text\tlabel\n"A ""big"" one"\tb\nplain\ta\n', ['A "big" one', "plain"], "ba"),
        ("x.tsv", '"text"\t"label"\n"one"\t"b"\n"two"\t"a"\n', ["one", "two"], "ba"),
        ("x.tsv", 'text\tlabel\n"a lone mark\tb\n"two"\ta\n', ['"a lone mark', '"two"'], "ba"),
        ("x.csv", 'text,label\n"I said \\"no\\", ok",b\n"c",a\n', ['I said "no", ok', "c"], "ba"),
        ("x.csv", 'text,label\r"a, b",b\rc,a\r', ["a, b", "c"], "ba"),
        ("x.csv", "text,label\ra,b\rc,a\r\n", ["a", "c"], "ba"),
        ("x.csv", '"text","label"\n"1","a","b"\n"2","c","a"\n', ["a", "c"], "ba"),
        ("x.csv", "text,label\na,b,\nc,a,\n", ["a", "c"], "ba"),
        ("x.csv", 'label, text\nb, "a, c"\na, d\n', ["a, c", "d"], "ba"),
        ("x.tsv", 'text\tlabel\n"a\nb"\tb\nc\ta\n', ["a\nb", "c"], "ba"),
        ("x.tsv", 'text\tlabel\n"a\tb"\tb\nc\ta\n', ["a\tb", "c"], "ba"),
        ("x.tsv", "text\tlabel\n" + '"a, b"\tb\nc\ta\n' * 3, ["a, b", "c"] * 3, "ba" * 3),
        ("x.tsv", "text\tlabel\n" + '"a, b"\tb\nc, d\ta\n' * 3, ['"a, b"', "c, d"] * 3, "ba" * 3),
        ("x.json", '[{"text": "a", "label": "b"},\n{"text": "c", "label": "a"}]', ["a", "c"], "ba"),
        ("x.json", '{"text": "a", "label": "b"}\n{"text": "c", "label": "a"}', ["a", "c"], "ba"),
        ("x.jsonl", '{"text": "a", "label": 1.0}\n', ["a"], ["1.0"]),
    ],
)
def test_the_content_of_a_table_counts_not_its_ending(name, content, texts, labels, tmp_path):
    (tmp_path / name).write_bytes(content.encode())
    found = read_table(tmp_path / name, "text", label="label")
    assert [one.first for one in found] == texts
    assert [one.label for one in found] == list(labels)


def test_a_comma_in_each_text_makes_no_column(tmp_path):
    path = write(tmp_path / "x.csv", "text,label", "Yes, we did,b", "No, we did not,a")
    with pytest.raises(InputError, match="line 2 must have 2 columns, like the first row. It has"):
        read_table(path, "text", label="label")


def test_decimal_commas_are_told(tmp_path):
    path = write(tmp_path / "x.csv", "Text;Note", "a;0,5", "b;1,5")
    with pytest.raises(InputError, match="Received: '0,5'. Write digits and a decimal"):
        read_table(path, "Text", label="Note", label_kind=score_of)
