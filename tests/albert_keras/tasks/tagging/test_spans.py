"""Offsets of spans are compared with the text, whatever a program counted as characters."""

import json

import pytest

from albert_keras.cli import main
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

#: Characters of two, one and no UTF-16 code units beyond ASCII, a mark, and both line ends.
TEXTS = (
    "🚲🚲 Mara Lind left Turin.",
    "Cafe\u0301 tip 👍🏽: Mara met Jo.",
    "Ünal\r\nsaw Mara\r\nin Turin",
    "Line\none: Mara",
)
WORDS = {"Mara": "PER", "Turin": "LOC"}


def utf16(text):
    return len(text.encode("utf-16-le")) // 2


COUNTS = {
    "characters": len,
    "UTF-16 code units": utf16,
    "bytes of UTF-8": lambda text: len(text.encode()),
    "characters together with their marks": lambda text: len(
        text.replace("\u0301", "").replace("🏽", "")
    ),
    "UTF-16 code units and each line end as one": lambda text: utf16(text.replace("\r\n", "\n")),
    "characters and each line end as two": (
        lambda text: len(text.replace("\r\n", "\n").replace("\n", "\r\n"))
    ),
}


def written(path, count, with_text=True, texts=TEXTS, in_form=None):
    """Writes texts with spans of `WORDS`, whose offsets were counted by a function."""
    records = []
    for text in texts:
        places = {word: text.find(word) for word in WORDS if word in text}
        spans = [
            {"start": count(text[:at]), "end": count(text[: at + len(word)]), "label": WORDS[word]}
            | ({"text": word} if with_text else {})
            for word, at in places.items()
        ]
        records.append({"text": text, "label": spans})
    path.write_text(
        json.dumps(records) if path.suffix == ".json" else "\n".join(map(json.dumps, records))
    )
    return path


def read(path, **settings):
    task = build_task(TaskConfig(name="tagging", train=str(path), **settings))
    examples = task.read_file(str(path), labelled=True)
    return examples, task.remarks[str(path)]


def tagged(examples):
    return [
        (word, tag[2:])
        for one in examples
        for word, tag in zip(one.words, one.tags, strict=True)
        if tag != "O"
    ]


@pytest.mark.parametrize("with_text", [True, False])
@pytest.mark.parametrize("way", COUNTS)
def test_spans_are_found_however_their_program_counted(way, with_text, tmp_path, caplog):
    examples, remarks = read(written(tmp_path / "a.jsonl", COUNTS[way], with_text))
    wanted = [("Mara", "PER"), ("Turin", "LOC"), ("Mara", "PER"), ("Mara", "PER"), ("Turin", "LOC")]
    assert tagged(examples) == [*wanted, ("Mara", "PER")]
    assert len(remarks) == (way != "characters")
    if remarks:
        assert f"spans count {way}, not characters, and are read so: 6 of them" in remarks[0]
        assert remarks[0] in caplog.text


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_span_that_has_another_text_is_named(name, tmp_path):
    path = written(tmp_path / name, len)
    path.write_text(path.read_text().replace("Mara Lind left", "Then Mara Lind left"))
    place = "entry 1" if name == "a.json" else "line 1"
    says = f'{place} must have spans with the text .* has "Mara" PER from 3 to 7, .* "Then"'
    with pytest.raises(InputError, match=says):
        read(path)
    assert len(read(path, skip_bad_rows=True)[0]) == 3


@pytest.mark.parametrize(
    "span, says",
    [
        ([90, 94, "PER"], "inside its text of 24 characters. It has PER from 90 to 94"),
        ([3, 12, "ORG"], "do not overlap, .*: PER from 3 to 7, and ORG from 3 to 12"),
        ([7, 8, "X"], "a word in the span X from 7 to 8"),
    ],
)
def test_other_spans_that_cannot_be_used_are_named(span, says, tmp_path):
    path = tmp_path / "a.jsonl"
    spans = [[3, 7, "PER"], [18, 23, "LOC"], span]
    path.write_text(json.dumps({"text": TEXTS[0], "label": spans}))
    with pytest.raises(InputError, match=says):
        read(path)


def test_spans_that_cut_words_are_counted_and_the_first_is_named(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    rows = [{"text": f"Mara {n} left Turin by train.", "label": [[1, 4, "PER"]]} for n in range(9)]
    rows += [
        {"text": "東京へ行く。", "label": [[0, 2, "LOC"]]}
    ]  # words have no spaces between them
    path.write_text("\n".join(map(json.dumps, rows)))
    says = "9 of 10 spans begin or end inside a word and cut it; the first is 'ara' of 'Mara' in "
    assert says in read(path)[1][0]
    assert main(["data", "check", "--task", "tagging", "--train", str(path)]) == 0
    assert f"⚠ files              {path}: {says}" in capsys.readouterr().out
    assert main(["data", "check", "--task", "tagging", "--train", str(path), "--json"]) == 0
    assert any(says in one for one in json.loads(capsys.readouterr().out)["warnings"])


@pytest.mark.parametrize("join", ["\n".join, lambda lines: f"[{','.join(lines)}]"])
def test_pairs_of_spacy_are_texts_with_spans(join, tmp_path):
    pairs = [
        [text, {"entities": [[text.find("Mara"), text.find("Mara") + 4, "PER"]]}] for text in TEXTS
    ]
    path = tmp_path / "a.jsonl"
    path.write_text(join(map(json.dumps, pairs)))
    assert tagged(read(path)[0]) == [("Mara", "PER")] * 4


def test_a_text_without_spans_is_not_one_in_which_nothing_is_marked(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps([{"text": "Mara left.", "label": [[0, 4, "PER"]]}, {"text": "So did I."}])
    )
    with pytest.raises(
        InputError, match="entry 2 has a text without spans: none of the keys label"
    ):
        read(path)
    path.write_text(path.read_text().replace('I."', 'I.", "label": []'))
    assert read(path)[0][1].tags == ("O",) * 4


@pytest.mark.parametrize("count", [len, utf16])
@pytest.mark.parametrize("with_text", [True, False])
def test_ends_may_be_those_of_last_characters(count, with_text, tmp_path):
    path = written(tmp_path / "a.jsonl", count, with_text, TEXTS[:2])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for span in (span for row in rows for span in row["label"]):
        span["end"] -= 1
    path.write_text("\n".join(map(json.dumps, rows)))
    examples, [remark] = read(path)
    assert tagged(examples) == [("Mara", "PER"), ("Turin", "LOC"), ("Mara", "PER")]
    assert " and each end as the last one, not characters, and are read so: 3 of them" in remark


def test_stems_do_not_make_ends_inclusive(tmp_path):
    rows = [{"text": "Mara's cats and Jo's dogs sleep.", "label": [[7, 10, "X"], [0, 4, "PER"]]}]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(rows[0]))
    examples, [remark] = read(path)
    assert tagged(examples) == [("Mara", "PER"), ("cat", "X")] and "cut it" in remark


def test_names_with_their_places_are_read(tmp_path):
    rows = [
        {
            "text": "浙商银行的叶老桂",
            "label": {"ORG": {"浙商银行": [[0, 3]]}, "PER": {"叶老桂": [[5, 7]]}},
        },
        {"text": "没有", "label": {}},
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    examples, [remark] = read(path)
    assert "".join(word for word, _ in tagged(examples)) == "浙商银行叶老桂"
    assert examples[1].tags == ("O", "O") and "each end as the last one" in remark


def test_what_is_read_of_spans_is_logged(tmp_path, caplog):
    """Nothing shows where ends are inclusive in Chinese without the text of spans."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "浙商银行的叶老桂", "label": [[0, 3, "ORG"]]}))
    with caplog.at_level("INFO"):
        read(path)
    assert "the first span is '浙商银': ORG from 0 to 3" in caplog.text


@pytest.mark.parametrize(
    "label, says",
    [
        ({"PER": [[0, 4]]}, r'Received: {"PER": \[\[0, 4\]\]}'),
        ({"PER": {"Mara": 5}}, "`PER.Mara` must be a valid list"),
        ([[None, 4, "PER"]], r"Received: \[null, 4, .PER.\]"),
        ([[4, 4, "PER"]], "a word in the span PER from 4 to 4, before its end"),
        ("B-PER O", "must have tags or spans in a list, not in a text. Received: 'B-PER O'"),
    ],
)
def test_what_the_file_has_instead_of_spans_is_told(label, says, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "Mara left.", "label": label}))
    with pytest.raises(InputError, match=says):
        read(path)


def test_a_way_to_count_that_few_spans_suit_is_not_believed(tmp_path):
    """Counted from 1, a few spans suit bytes of UTF-8 by chance, and most cut a word."""
    rows = [{"text": "Ému Rossi slept.", "label": [[5, 10, "PER"]]}]
    rows += [{"text": "Anna Rossi slept.", "label": [[6, 11, "PER"]]}] * 4
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    _, remarks = read(path)
    assert not [one for one in remarks if "bytes" in one]
    assert [one for one in remarks if "inside a word" in one]
