"""RACE in both layouts, and its features."""

import copy
import json

import numpy as np
import pytest

from albert_keras.tasks.choice.files import race_folder, read_race
from albert_keras.tasks.choice.task import choice_text, encode_choices
from albert_keras.tasks.examples import ChoiceExample
from albert_keras.tasks.pair_features import lay_out
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.cleanup import clean_up
from data_pipeline.tokenizers.tokenization import Tokenizer

OPTIONS = ["at noon", "at night", "in spring", "never"]
PASSAGE = {
    "article": "The ferry left at noon.\nIt came back at night.",
    "questions": ["The ferry left _ .", "When did it come back?"],
    "options": [OPTIONS, OPTIONS],
    "answers": ["A", "B"],
    "id": "middle1.txt",
}


def choice_features(examples, tokenizer, max_seq_length=512, max_qa_length=128):
    choices = encode_choices(examples, tokenizer, max_seq_length, max_qa_length)
    features = lay_out(choices, tokenizer, max_seq_length)
    count = len(examples[0].options)
    return {name: ids.reshape(-1, count, max_seq_length) for name, ids in features.items()}


def other(**changes):
    return json.dumps({**PASSAGE, **changes})


def write(folder, **files):
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / f"{name}.txt").write_text(content, encoding="utf-8", newline="")


def test_options_of_roberta_have_two_separators(tiny_tokenizer):
    tokenizer = copy.copy(tiny_tokenizer)
    tokenizer.pair_separators = 2
    example = ChoiceExample("1", "The ferry left at noon.", "When?", tuple(OPTIONS), 0, "middle")
    ids = choice_features([example], tokenizer, 16, 6)["input_ids"][0]
    for row in ids:
        seps = np.flatnonzero(row == tokenizer.sep_id)
        assert len(seps) == 3 and seps[1] == seps[0] + 1
    with pytest.raises(InputError, match="less than `max_seq_length` - 4"):
        choice_features([example], tokenizer, 10, 6)


def test_the_original_layout_is_read_in_the_order_of_numbers(tmp_path):
    write(tmp_path / "RACE/dev/middle", **{"10": other(id="m10"), "9": other(id="m9")})
    write(tmp_path / "RACE/dev/high", **{"1": json.dumps(PASSAGE, indent=1)})
    examples = read_race(race_folder(tmp_path, "dev"))
    assert [example.id for example in examples] == [
        "m9-1",
        "m9-2",
        "m10-1",
        "m10-2",
        "middle1.txt-1",
        "middle1.txt-2",
    ]
    assert examples[1] == ChoiceExample(
        "m9-2", PASSAGE["article"], "When did it come back?", tuple(OPTIONS), 1, "middle"
    )
    assert [example.level for example in examples] == ["middle"] * 4 + ["high"] * 2
    assert read_race(race_folder(tmp_path / "RACE", "dev"), ["high"]) == examples[4:]


def test_one_file_of_all_passages_gives_the_same(tmp_path):
    content = "\ufeff" + other(id="m1") + "\r\n\r\n" + other(id="m2") + "\n"
    write(tmp_path / "all/train/middle", all=content)
    write(tmp_path / "each/train/middle", **{"1": other(id="m1"), "2": other(id="m2")})
    first, second = (read_race(tmp_path / name / "train", ["middle"]) for name in ("all", "each"))
    assert first == second and len(first) == 4


@pytest.mark.parametrize(
    "line, says",
    [
        ("{", "line 3 must be a JSON object. Received: {"),
        (other(article=None), "line 3 `article` must be a valid string. Received: null"),
        (other(answers=["A"]), "line 3 must have as many .* Received: 2, 1 and 2"),
        (other(options=[OPTIONS, OPTIONS[:3]]), "line 3 `options` must have at least 4"),
        (other(answers=["A", "E"]), "line 3 `answer` must be 'A', 'B', 'C' or 'D'.*\"E\""),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, says):
    write(tmp_path / "dev/high", all="\n".join(["", other(), line]))
    with pytest.raises(InputError, match=f"all.txt` {says}"):
        read_race(tmp_path / "dev", ["high"])


@pytest.mark.parametrize(
    "question, text",
    [
        ("Why?", r"Why? be\1t"),
        (" The _ and  the _. ", r"The be\1t and  the be\1t."),
        ("A ＿ wins.", r"A be\1t wins."),
    ],
)
def test_an_option_fills_the_blanks_or_follows(question, text):
    assert choice_text(question, r" be\1t ") == text


def test_an_option_keeps_its_end_and_a_passage_its_beginning(tiny_tokenizer):
    example = ChoiceExample("1", "The old ferry left the harbour.", "Why _?", ("it rained", "no"))
    features = choice_features([example], tiny_tokenizer, max_seq_length=16, max_qa_length=8)
    passage = tiny_tokenizer.encode(example.context)
    long, short = (
        tiny_tokenizer.encode(choice_text("Why _?", option)) for option in example.options
    )
    assert len(long) > 8 > len(short)
    cls, sep = tiny_tokenizer.cls_id, tiny_tokenizer.sep_id
    assert features["input_ids"].tolist() == [
        [
            [cls, *passage[:5], sep, *long[-8:], sep],
            [cls, *passage[: 13 - len(short)], sep, *short, sep],
        ]
    ]
    assert features["segment_ids"].sum(axis=2).tolist() == [[9, len(short) + 1]]
    assert {values.shape for values in features.values()} == {(1, 2, 16)}
    assert {values.dtype for values in features.values()} == {np.dtype(np.int32)}


def test_the_real_corpus_is_read_whole(shared_data):
    counts = {
        split: len(read_race(race_folder(shared_data / "race", split)))
        for split in ("train", "dev", "test")
    }
    assert counts == {"train": 314, "dev": 112, "test": 116}


def test_real_questions_give_the_pieces_of_the_original_order_of_work(shared_data, official_model):
    tokenizer = Tokenizer.load(official_model)
    examples = read_race(race_folder(shared_data / "race", "dev"))
    features = choice_features(examples, tokenizer, 256, 64)
    for example, choices in zip(examples, features["input_ids"], strict=True):
        passage = tokenizer.encode(example.context)
        question = clean_up(example.question)
        for option, ids in zip(example.options, choices, strict=True):
            option = clean_up(option)
            text = f"{question} {option}"
            if "_" in question:
                text = question.replace("_", option)
            tail = tokenizer.encode(text)[-64:]
            expected = [2, *passage[: 253 - len(tail)], 3, *tail, 3]
            assert ids.tolist() == expected + [0] * (256 - len(expected))
