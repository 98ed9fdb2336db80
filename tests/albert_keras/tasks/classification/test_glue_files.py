"""The files of GLUE."""

import logging

import pytest

from albert_keras.tasks.classification.glue_files import (
    official_path,
    read_glue_file,
)
from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.examples import TextExample

#: Rows of real files; one row of QQP has too few columns.
ROWS = {
    ("cola", "train"): 8551,
    ("sst-2", "dev"): 872,
    ("mrpc", "train"): 3668,
    ("qqp", "train"): 7999,
    ("sts-b", "dev"): 1500,
    ("mnli", "test_matched"): 5,
    ("rte", "dev"): 277,
    ("wnli", "train"): 635,
}
QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
STS_B = "index\tg\tf\ty\to\ts1\ts2\tsentence1\tsentence2\tscore\n"


def write(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_glue(task, folder, split):
    is_labelled = split in GLUE_TASKS[task].labelled_splits
    return read_glue_file(task, official_path(task, folder, split), is_labelled)


def numbered(count, *last):
    """Returns a row whose fields tell their numbers, but for the last ones."""
    return "\t".join([*(f"field {number}" for number in range(count - len(last))), *last]) + "\n"


@pytest.mark.parametrize(
    "task, split, header, row, expected",
    [
        ("cola", "train", "", "s\t1\t\tHe goes.\n", ("0", "He goes.", None, "1")),
        ("cola", "test", "index\tsentence\n", "7\tHe goes.\n", ("7", "He goes.", None, None)),
        (
            "mrpc",
            "train",
            "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n",
            "1\tx\ty\tA.\tB.\n",
            ("0", "A.", "B.", "1"),
        ),
        ("qqp", "dev", QQP, "7\tx\ty\tA?\tB?\t0\n", ("7", "A?", "B?", "0")),
        ("sts-b", "dev", STS_B, numbered(10, "3.25"), ("field 0", "field 7", "field 8", 3.25)),
        (
            "mnli",
            "dev_mismatched",
            numbered(16, "sentence1", "sentence2", *"12345", "gold_label").replace(
                "field 0", "index"
            ),
            numbered(16, "neutral"),
            ("field 0", "field 8", "field 9", "neutral"),
        ),
    ],
)
def test_each_task_takes_its_columns(tmp_path, task, split, header, row, expected):
    files = GLUE_TASKS[task]
    write(tmp_path, f"{files.folder}/{split}.tsv", header + row)
    assert read_glue(task, tmp_path, split) == [TextExample(*expected)]


def test_quotes_and_control_characters_stay_in_the_text_and_line_ends_do_not(tmp_path):
    text = '\ufeffsentence\tlabel\r\n"lone\t1\r\nThe\rend\x00 \x08 \x85\u2028\x1c.\t0\r\n\r\n'
    examples = read_glue_file("sst-2", write(tmp_path, "x.tsv", text))
    assert [(example.first, example.label) for example in examples] == [
        ('"lone', "1"),
        ("The\rend\x00 \x08 \x85\u2028\x1c.", "0"),
    ]


def test_short_rows_of_qqp_are_left_out_and_told(tmp_path, caplog):
    text = QQP + "1\tx\ty\tA?\tB? 0\n2\tx\ty\tA?\tB?\t1\n\n3\tx\ty\tA?\tB?\t0\n"
    path = write(tmp_path, "x.tsv", text)
    with caplog.at_level(logging.WARNING):
        assert [example.id for example in read_glue_file("qqp", path)] == ["2", "3"]
    assert "skipped 2 of 4 rows" in caplog.text and "line 4 must have 6 columns" in caplog.text


def test_real_files_have_their_rows(shared_data):
    for (task, split), rows in ROWS.items():
        examples = read_glue(task, shared_data / "glue", split)
        assert len(examples) == len({example.id for example in examples}) == rows
        assert {example.second is None for example in examples} == {task in ("cola", "sst-2")}
    path = shared_data / "glue" / "MRPC/msr_paraphrase_train.txt"
    assert len(read_glue_file("mrpc", path)) == 4076
